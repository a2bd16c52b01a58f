"""The lines of predictions.jsonl: made, written, read and refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.probes.record import Record
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.predictions import (
    ContextLine,
    RuleAnswer,
    difficulty_of,
    line_as_json,
    prediction_lines,
    read_context_lines,
    read_item_file,
    read_item_lines,
    write_predictions,
)
from probelight.results.run_folder import RunFolder
from tests.fixtures import subsets
from tests.fixtures.rows import LINE

WHALE = Record("7", "A whale is [MASK] than a mouse.", ("larger", "smaller"), 0, position=3)
WHO = Record("7", "Who?", ("a", "b"), 0)


def read(folder: Path, *lines: Any) -> Any:
    (folder / "run").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "run/predictions.jsonl").write_text(text, encoding="utf-8")
    run = Run(protocol="zero_shot", path="run")
    return read_item_lines(RunSet("made", (run,), (), folder), run)


def test_lines_of_items_are_read_and_those_of_contexts_are_not(tmp_path: Path) -> None:
    of_other_types = LINE | {"group": 7, "hops": "2", "distractor_type": 3}
    context = {"context": "He", "target": "ran", "predictions": ["ran"]}
    line, second = read(tmp_path, LINE, of_other_types, context)
    assert line.content == ("a finch is a [MASK].", ("bird", "fish"), 0)
    assert (line.scores, line.correct, line.group) == ((0.5, None), 1.0, "finch.n.01")
    assert (second.group, second.hops, second.distractor_type) == ("7", 2, "3")
    assert (line.tied, line.best, line.by_rule, line.interval_group) == (1, None, None, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([1], "not an object"),
        (LINE | {"answer": 2}, "2 choices"),
        (LINE | {"scores": [0.5]}, "1 scores"),
        (LINE | {"correct": 1.5}, "not from 0 to 1"),
        (LINE | {"choices": "bird"}, "choices"),
        (LINE | {"hops": "two"}, "two"),
        (LINE | {"by_rule": {"sum": {}}}, "best"),
        (LINE | {"best": "0"}, "best"),
        (LINE | {"hops": [1]}, "list"),
        ({"set": "made", "choices": ["a", "b"]}, "id"),
        ({key: value for key, value in LINE.items() if key != "tied"}, "`tied` is missing"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(UnreadableResultError, match=message) as caught:
        read(tmp_path, LINE, line)
    assert "run/predictions.jsonl:2" in str(caught.value)


RELEASED = {"hops": 2, "distractor_type": "sister", "distractor_hops": 1, "chain": "a=>b=>c"}


def test_an_item_has_the_difficulty_of_its_notes() -> None:
    assert difficulty_of(RELEASED) == subsets.difficulty(2, "sister", 1)
    # As the released files have it: null where there is nothing to measure.
    notes = {"hops": 1, "distractor_type": "random", "distractor_hops": None}
    assert difficulty_of(notes) == subsets.difficulty(1, "random", 0)
    for missing in ("hops", "distractor_type"):
        assert difficulty_of({**RELEASED, missing: None}) is None
        assert difficulty_of({k: v for k, v in RELEASED.items() if k != missing}) is None


def test_half_a_line_of_a_file_by_its_path_is_named(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(f'{json.dumps(LINE)}\n{{"set": "ma', encoding="utf-8")
    with pytest.raises(UnreadableResultError, match=r"predictions\.jsonl: .*\(line 2: "):
        read_item_file(path)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    meta = {"cluster": "whale.n.01", "hops": 0, "distractor_type": "sister", "distractor_hops": 1}
    items = [replace(WHALE, meta=meta), WHO, WHO]
    scores = [[-1.5, -math.inf], [1.0, 1.0], [0.0, 1.0]]
    lines = [*prediction_lines("dev", items, scores, "abb")]
    by_rule = {
        "sum": RuleAnswer(scores=(0.0, 0.0), best=(0, 1)),
        "pmi": RuleAnswer(scores=(None, 2.0), best=()),
    }
    lines[1] = replace(lines[1], best=(0, 1), by_rule=by_rule)
    lines[2] = replace(lines[2], control="blah", seed=3)
    run = RunFolder(tmp_path / "runs", "made", {})
    write_predictions(run, lines)
    items_read = read_item_file(run.path / "predictions.jsonl")
    assert items_read == (replace(lines[0], scores=(-1.5, None)), *lines[1:])
    assert list(items_read[1].by_rule or {}) == ["sum", "pmi"]  # in the order of the rules


def test_the_bytes_of_a_line_with_rules(tmp_path: Path) -> None:
    [line] = prediction_lines("p", [WHO], [[0.5, math.nan]])
    answer = RuleAnswer(scores=(1.0, math.nan), best=())
    write_predictions(tmp_path / "x.jsonl", [replace(line, best=(), by_rule={"sum": answer})])
    assert (tmp_path / "x.jsonl").read_text() == (
        '{"set": "p", "id": "7", "position": 0, "question": "Who?", "choices": ["a", "b"], '
        '"scores": [0.5, null], "prediction": null, "tied": 0, "answer": 0, "correct": 0.0, '
        '"best": [], "by_rule": {"sum": {"scores": [1.0, null], "best": []}}}\n'
    )


def test_an_optional_field_that_is_always_there_may_be_null() -> None:
    [line] = prediction_lines("p", [WHO], [[0.0, 1.0]])
    plain = line_as_json(line)
    assert line_as_json(replace(line, control="standard"), always=("control", "seed")) == {
        **plain, "control": "standard", "seed": None,
    }  # fmt: skip
    assert not {"group", "best", "by_rule", "control", "seed"} & plain.keys()


def test_a_context_is_written_and_read_again(tmp_path: Path) -> None:
    plain = ContextLine(context="He", target="ran", predictions=("ran", "is"))
    split = replace(plain, probability=0.25, expected=("ran",), split=("ran",))
    run = RunFolder(tmp_path / "runs", "made", {})
    write_predictions(run, [plain, split])
    loaded = Run(protocol="diagnostics", path=f"runs/{run.key}")
    results = RunSet("made", (loaded,), (), tmp_path)
    assert read_context_lines(results, loaded) == (plain, split)
    assert list(line_as_json(plain).items()) == [
        ("context", "He"), ("target", "ran"), ("expected", ()), ("predictions", ("ran", "is")),
        ("probability", None),
    ]  # fmt: skip


def test_a_prediction_can_be_read_without_the_file_of_its_item() -> None:
    [line] = prediction_lines("dev", [WHALE], [[-1.5, -0.25]])
    assert (line.question, line.choices) == (WHALE.stem, ("larger", "smaller"))
    assert (line.prediction, line.tied, line.correct) == (1, 1, 0.0)
    [padded] = prediction_lines("dev", [WHO], [[0.0, 1.0, 2.0, 0.5]])
    assert (padded.choices, padded.prediction) == (("a", "b", "", ""), 2)
    meta = {"cluster": "whale.n.01", "hops": 0, "distractor_type": "random", "template": "a"}
    lines = prediction_lines("dev", [WHO, replace(WHO, meta=meta)], [[0.0, 1.0]] * 2)
    plain, row = map(line_as_json, lines)
    assert {name: row[name] for name in row.keys() - plain.keys()} == {
        "group": "whale.n.01", "hops": 0, "distractor_type": "random",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "numbers"), [(["ant", "bee", "ant"], [0, 1, 0]), (["a", "b"], [None, None])]
)
def test_items_that_intervals_do_not_divide_are_numbered_and_others_are_not(
    groups: list[str], numbers: list[int | None]
) -> None:
    lines = prediction_lines("dev", [WHO] * len(groups), [[0.0, 1.0]] * len(groups), groups)
    assert [line.interval_group for line in lines] == numbers


@pytest.mark.parametrize(
    ("scores", "prediction", "tied", "correct"),
    [
        ([1.0, 0.0, 0.0], 0, 1, 1.0),
        ([1.0, 1.0, 0.0], 0, 2, 1 / 2),
        ([1.0, 1.0, 1.0], 0, 3, 1 / 3),
        ([0.0, 1.0, 1.0], 1, 2, 0.0),
        ([1.0, -math.inf, 0.0], 0, 1, 1.0),
        ([1.0, math.nan, 0.0], None, 0, 0.0),
    ],
)
def test_a_tie_is_credited_in_parts_and_a_nan_with_nothing(
    scores: list[float], prediction: int | None, tied: int, correct: float
) -> None:
    [line] = prediction_lines("dev", [WHO], [scores])
    assert (line.prediction, line.tied, line.correct) == (prediction, tied, correct)
