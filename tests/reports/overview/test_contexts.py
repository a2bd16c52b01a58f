from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from probelight.reports.overview.examples import Choice, Example, example
from probelight.reports.overview.skills import verdicts
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.diagnostics import share

WriteRun = Callable[..., Path]
SIMP: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
STATEMENTS = [
    share(18, 18, **SIMP, subset=subsets.statements("affirmative")),
    share(0, 18, **SIMP, subset=subsets.statements("negative")),
]


def line(context: str, probability: float | None, words: str, expected: str = "") -> str:
    own: dict[str, Any] = {"context": context, "target": "t", "predictions": words.split()}
    return json.dumps({**own, "expected": expected.split(), "probability": probability}) + "\n"


def written(run: Path, *lines: str) -> None:
    (run / "predictions.jsonl").write_text("".join(lines), encoding="utf-8")


def examples(folder: Path) -> list[Example | None]:
    results = load_results(folder)
    rows: dict[object, list[Any]] = {}
    for verdict in verdicts(results):
        rows.setdefault(verdict.skill, []).append(verdict)
    return [example(results, row) for row in rows.values()]


def test_statements_and_negations_have_a_context_of_their_own(
    tmp_path: Path, write_run: WriteRun
) -> None:
    run = write_run(tmp_path, "a", STATEMENTS)
    is_, is_not = line("A trout is a", 0.5, "fish b c d", "fish"), "A trout is not a"
    written(run, is_, line(is_not, 0.3, "fish b"), is_, line(is_not, 0.1, "fish b"))
    [statement, negation] = examples(tmp_path)
    assert statement == Example(
        question="A trout is a ___",
        choices=(Choice("fish", True, ("m",)), Choice("b", False, ()), Choice("c", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=neg_simp&model=m&item=@1",
    )
    assert negation is not None
    assert negation.question == "A trout is not a ___"
    assert negation.address.endswith("item=@2")


def test_several_models_say_one_word_each_of_the_context_in_the_middle(
    tmp_path: Path, write_run: WriteRun
) -> None:
    for model, words in (("m", "b c"), ("n", "")):
        run = write_run(tmp_path, model, [share(25, 34, "sensitivity", model=model)])
        texts = [("low", 0.1), ("high", 0.9), ("middle", 0.5), ("none", None)]
        written(run, *(line(text, p, words, "good") for text, p in texts))
    [shown] = examples(tmp_path)
    assert shown is not None
    assert shown.question == "middle ___"
    assert shown.choices == (Choice("b", False, ("m",)), Choice("good", True, ()))
    assert shown.silent == ("n",)


def test_a_diagnostic_without_contexts_has_no_example(tmp_path: Path, write_run: WriteRun) -> None:
    write_run(tmp_path, "a", STATEMENTS)
    assert examples(tmp_path) == [None, None]
    [damaged] = (tmp_path / "runs").iterdir()
    written(damaged, '{"context": ')
    assert examples(tmp_path) == [None, None]
