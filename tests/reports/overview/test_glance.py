from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from probelight.reports.build import to_html
from probelight.reports.overview.examples import Example, forgotten_example
from probelight.reports.overview.glance import changes_figure, grid, verdicts_table
from probelight.reports.overview.skills import verdicts
from probelight.reports.table import Cell
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.diagnostics import share
from tests.fixtures.grids import write_grid
from tests.fixtures.items import write_lines
from tests.fixtures.report import present, records, texts_of
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def test_every_kind_of_skill_has_a_heading(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 40, 100, 2))
    write_run(tmp_path, "b", inoculation_rows())
    write_run(tmp_path, "c", [share(25, 34, "sensitivity")])
    write_grid(tmp_path, "A", [15, 25, 35], lambda i, j: 1.0)
    page = to_html(load_results(tmp_path), [])
    assert re.findall('<th class="kind"[^>]*>([^<]*)<', page) == [
        "As it is, and after training on examples of the probe",
        "Every pair of values",
        "Inoculation: trained on another task, then on examples of the probe",
        "Prefers the correct completion",
    ]


def test_nothing_that_can_be_judged_gives_no_grid(tmp_path: Path) -> None:
    write_run(tmp_path, "d", [share(8, 34)])
    assert grid(load_results(tmp_path)) is None


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = present(verdicts_table(load_results(demo_folder)))
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without language 62.3"),
    )
    record = records(table)[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("cannot tell", False)  # without a control
    assert (record["first_number"], record["first_value"]) == ("after 1,000 examples", 0.553)
    assert record["gain"] == "gain +26.2 points"  # its runs did not record what each item counted
    assert record["cost"] == "cost +3.8 points (+0.8 to +6.8)"
    assert "Cannot tell: " in table.note


# The example of a row.


SIMP: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
STATEMENTS = [
    share(18, 18, **SIMP, subset=subsets.statements("affirmative")),
    share(0, 18, **SIMP, subset=subsets.statements("negative")),
]


def item(question: str, scores: list[float | None], answer: int = 0, **more: Any) -> dict[str, Any]:
    choices = [f"c{number}" for number in range(len(scores))]
    numbers = [score for score in scores if score is not None]
    prediction = scores.index(max(numbers)) if numbers else None
    fields = {"set": "p", "id": f"#{question}", "position": 1, "question": question}
    fields |= {"choices": choices, "scores": scores, "prediction": prediction, "answer": answer}
    return fields | {"tied": 1, "correct": float(prediction == answer), **more}


def context(text: str, probability: float | None, words: str, expected: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {"context": text, "target": "t", "predictions": words.split()}
    return {**fields, "expected": expected.split(), "probability": probability}


def write_answers(folder: Path, *lines: dict[str, Any], model: str = "m") -> None:
    """Write a zero-shot run of the probe p with its predictions."""
    write_lines(write_run(folder, model, zero_shot_rows("p", 40, 100, 2, model=model)), [*lines])


def examples(folder: Path) -> list[Example | None]:
    overview = present(grid(load_results(folder)))
    firsts = [next(iter(of_row), None) for *_, of_row in overview["rows"]]
    assert overview["has_examples"] == any(firsts)
    return firsts


def the_example(folder: Path) -> Example:
    [example] = examples(folder)
    return present(example)


# How far the right one, c0, is ahead: 2, −1, 0.5, and not known.
ITEMS = [item("far", [3, 1]), item("lost", [0, 1]), item("near", [1.5, 1]), item("nan", [None, 1])]


def test_the_example_is_the_item_of_the_median_margin(tmp_path: Path) -> None:
    write_answers(tmp_path, *ITEMS)
    assert the_example(tmp_path) == Example(
        question="near",
        choices=(("c0", True, ("m",)), ("c1", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=p&model=m&item=%23near@1",
    )


def test_of_four_margins_the_lower_of_the_two_in_the_middle_counts(tmp_path: Path) -> None:
    write_answers(tmp_path, *ITEMS[:3], item("x", [2, 1]))
    assert the_example(tmp_path).question == "near"


def test_other_models_answer_the_same_item(tmp_path: Path) -> None:
    for number in range(6):
        # The second model gets it wrong, and the third says nothing.
        scores: list[list[float | None]] = [[1.5, 1], [0, 1], [None, None]]
        near = item("near", scores[min(number, 2)])
        write_answers(tmp_path, *ITEMS[:2], near, model=f"m{number}")
    example = the_example(tmp_path)
    assert [models for *_, models in example.choices] == [("m0",), ("m1",)]
    assert (example.silent, example.more_models) == (("m2", "m3"), 2)


def test_a_long_item_is_cut_but_for_what_is_asked_and_answered(tmp_path: Path) -> None:
    write_answers(tmp_path, item("ä" * 300 + " what?", [0, 0, 0, 0, 0, 0, 0, 1], answer=6))
    example = the_example(tmp_path)
    assert len(example.question) <= 260
    assert example.question.endswith("what?")
    assert [text for text, *_ in example.choices] == ["c0", "c1", "c2", "c3", "c6", "c7"]
    assert example.more_choices == 2


def test_what_an_inoculation_taught_is_shown_as_answered_after_it(tmp_path: Path) -> None:
    fields = {"original_task": "definitions"}
    run = write_run(tmp_path, "a", inoculation_rows(probe_correct=(200, 440)), **fields)
    first = item("q", [0, 1], set="report_probe_before")
    original = item("original", [0, 1], set="report_original")
    write_lines(run, [first, original, item("q", [1, 0], set="report_probe")])
    example = the_example(tmp_path)  # without a control nothing was learned
    assert (example.question, example.when) == ("q", "before inoculation")
    assert example.choices[1] == ("c1", False, ("dictionary-lm",))
    rows = [{**row, "control": "choice_only"} for row in inoculation_rows(probe_correct=(200, 210))]
    write_run(tmp_path, "b", rows, **fields)
    example = the_example(tmp_path)
    assert (example.question, example.when) == ("q", "after 100 examples")
    assert example.choices[0] == ("c0", True, ("dictionary-lm",))


def test_a_skill_that_is_known_has_an_item_that_is_right_and_one_that_is_wrong(
    tmp_path: Path,
) -> None:
    random = zero_shot_rows("p", 50, 100, 2, model="m (random weights)")
    write_run(tmp_path, "random", random)
    run = write_run(tmp_path, "m", zero_shot_rows("p", 90, 100, 2, model="m"))
    write_lines(run, ITEMS)
    overview = present(grid(load_results(tmp_path)))
    [(_, [verdict], examples_of_row)] = overview["rows"]
    assert verdict.word == "knew it"
    assert [(e.title, e.question) for e in examples_of_row] == [
        ("m gets this right", "near"),
        ("m gets this wrong", "lost"),
    ]


def test_what_inoculation_made_a_model_forget_was_right_before_and_is_wrong_after(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path, "a", inoculation_rows(), original_task="definitions")
    start = {"kept": 3.0, "sure": 9.0, "middle": 2.0, "hardly": 1.5}
    lines = [item(name, [s, 1], set="report_original_before") for name, s in start.items()]
    lines += [item("never", [0, 1], set="report_original_before")]
    end = {"kept": 3.0, "sure": 0.0, "middle": 0.0, "hardly": 0.5, "never": 0.0}
    lines += [item(name, [s, 1], set="report_original") for name, s in end.items()]
    write_lines(run, lines)
    [verdict] = verdicts(load_results(tmp_path))
    lost = present(forgotten_example(load_results(tmp_path), verdict))
    assert (lost.title, lost.question) == ("dictionary-lm forgot this (original task)", "middle")
    assert lost.choices == (("c0", True, ()), ("c1", False, ("dictionary-lm",)))
    assert lost.when == "after 100 examples"


def test_statements_and_negations_have_a_context_of_their_own(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", STATEMENTS)
    is_, is_not = context("A trout is a", 0.5, "fish b c d", "fish"), "A trout is not a"
    write_lines(run, [is_, context(is_not, 0.3, "fish b"), is_, context(is_not, 0.1, "fish b")])
    [statement, negation] = examples(tmp_path)
    assert statement == Example(
        question="A trout is a ___",
        choices=(("fish", True, ("m",)), ("b", False, ()), ("c", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=neg_simp&model=m&item=@1",
    )
    assert present(negation).question == "A trout is not a ___"
    assert present(negation).address.endswith("item=@2")


def test_several_models_say_one_word_each_of_the_context_in_the_middle(tmp_path: Path) -> None:
    for model, words in (("m", "b c"), ("n", "")):
        run = write_run(tmp_path, model, [share(25, 34, "sensitivity", model=model)])
        texts = [("low", 0.1), ("high", 0.9), ("middle", 0.5), ("none", None)]
        write_lines(run, [context(text, p, words, "good") for text, p in texts])
    example = the_example(tmp_path)
    assert example.question == "middle ___"
    assert example.choices == (("b", False, ("m",)), ("good", True, ()))
    assert example.silent == ("n",)


def test_missing_or_damaged_answers_are_no_example(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", STATEMENTS)
    assert examples(tmp_path) == [None, None]
    (run / "predictions.jsonl").write_text('{"context": ')
    (write_run(tmp_path, "b", inoculation_rows()) / "predictions.jsonl").write_text('{"set": "p"')
    assert examples(tmp_path) == [None, None, None]


def test_what_inoculations_changed_has_a_row_per_setting_and_task(tmp_path: Path) -> None:
    """Of 100 items 20 were right and 50 are. Controls have no row: the verdict goes by them."""

    def side(start: int, end: int) -> dict[str, object]:
        right = {"before": start, "after": end}
        hits = {name: "1" * number + "0" * (100 - number) for name, number in right.items()}
        return {"items": "a", "groups": [*range(100)], "choices": [5] * 100, **hits}

    for extra, control, end in (("none", "", 50), ("x1", "", 40), ("none", "choice_only", 21)):
        rows = inoculation_rows(
            num_probe=100, probe_correct=(20, end), original_correct=(300, 300), extra=extra
        )
        rows = [{**row, "control": control} if control else row for row in rows]
        name = f"{extra}{control}"
        run = write_run(tmp_path, name, rows, hits_file="hits.json", original_task="facts")
        hits = {"probe": side(20, end), "original": side(60, 60)}
        (run / "hits.json").write_text(json.dumps(hits))
    figure = present(changes_figure(load_results(tmp_path)))
    [axis] = present(figure.canvas).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "hypernymy",
        "facts",
        "hypernymy, replay x1",
        "facts, replay x1",
    ]
    assert {"+30.0  gained", "+20.0  gained", "0.0  kept"} <= set(texts_of(figure))


def test_without_inoculations_there_is_no_figure(demo_folder: Path, tmp_path: Path) -> None:
    for run in (demo_folder / "runs").glob("inoculation*"):
        run.rename(tmp_path / run.name)
    assert changes_figure(load_results(demo_folder)) is None
