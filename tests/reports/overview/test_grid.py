from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from probelight.reports.overview.examples import Choice, Example
from probelight.reports.overview.grid import Grid, grid, verdicts_table
from probelight.reports.table import Cell
from probelight.results.load import load_results
from tests.fixtures.diagnostics import share
from tests.fixtures.report import records

WriteRun = Callable[..., Path]
Lines = list[dict[str, Any]]


def line(question: str, scores: list[float | None], answer: int = 0, **more: Any) -> dict[str, Any]:
    choices = [f"c{place}" for place in range(len(scores))]
    known = [score for score in scores if score is not None]
    prediction = scores.index(max(known)) if known else None
    own = {"set": "p", "id": f"#{question}", "position": 1, "question": question}
    own |= {"choices": choices, "scores": scores, "prediction": prediction, "answer": answer}
    return own | {"tied": 1, "correct": float(prediction == answer), **more}


def write_lines(run: Path, lines: Lines) -> None:
    text = "".join(json.dumps(one) + "\n" for one in lines)
    (run / "predictions.jsonl").write_text(text, encoding="utf-8")


def made(folder: Path) -> Grid:
    found = grid(load_results(folder))
    assert found is not None
    return found


def the_example(folder: Path) -> Example:
    [(_, (row,))] = made(folder).groups
    assert row.example is not None
    return row.example


# How far the right one, c0, is ahead: 2, −1, 0.5, and not known.
ITEMS = [line("far", [3, 1]), line("lost", [0, 1]), line("near", [1.5, 1]), line("nan", [None, 1])]


def test_the_example_is_the_item_of_the_median_margin(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    run = write_run(tmp_path, "a", rows.zero_shot("p_small", 40, 100, 2))
    write_lines(run, ITEMS)
    assert the_example(tmp_path) == Example(
        question="near",
        choices=(Choice("c0", True, ("embedded",)), Choice("c1", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=p_small&model=embedded&item=%23near@1",
    )


def test_of_four_margins_the_lower_of_the_two_in_the_middle_counts(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_lines(
        write_run(tmp_path, "a", rows.zero_shot("p", 40, 100, 2)), [*ITEMS[:3], line("x", [2, 1])]
    )
    assert the_example(tmp_path).question == "near"


def test_other_models_answer_the_same_item(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for number in range(6):
        run = write_run(tmp_path, str(number), rows.zero_shot("p", 40, 100, 2, model=f"m{number}"))
        # The second model gets it wrong, and the third says nothing.
        scores: list[list[float | None]] = [[1.5, 1], [0, 1], [None, None]]
        write_lines(run, [ITEMS[0], ITEMS[1], line("near", scores[min(number, 2)])])
    shown = the_example(tmp_path)
    assert [choice.models for choice in shown.choices] == [("m0",), ("m1",)]
    assert (shown.silent, shown.more_models) == (("m2", "m3"), 2)


def test_a_long_item_is_cut_but_for_what_is_asked_and_answered(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    run = write_run(tmp_path, "a", rows.zero_shot("p", 40, 100, 2))
    write_lines(run, [line("ä" * 300 + " what?", [0, 0, 0, 0, 0, 0, 0, 1], answer=6)])
    shown = the_example(tmp_path)
    assert len(shown.question) <= 260
    assert shown.question.endswith("what?")
    assert [choice.text for choice in shown.choices] == ["c0", "c1", "c2", "c3", "c6", "c7"]
    assert shown.more_choices == 2


def test_a_row_without_answers_has_no_example(demo_folder: Path) -> None:
    found = made(demo_folder)
    assert not found.has_examples
    assert [heading for heading, _ in found.groups] == [
        "Asked before training, and after examples",
        "Inoculated with examples",
    ]


def test_what_an_inoculation_taught_is_shown_as_answered_after_it(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    facts = {"original_task": "definitions"}
    run = write_run(tmp_path, "a", rows.inoculation(probe_correct=(200, 440)), **facts)
    before = line("q", [0, 1], set="report_probe_before")
    other = line("original", [0, 1], set="report_original")
    write_lines(run, [before, other, line("q", [1, 0], set="report_probe")])
    shown = the_example(tmp_path)
    assert (shown.question, shown.when) == ("q", "after 100 examples")
    assert shown.choices[0] == Choice("c0", True, ("embedded",))


def test_a_damaged_file_leaves_its_row_without_an_example(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    run = write_run(tmp_path, "a", rows.zero_shot("p", 40, 100, 2))
    (run / "predictions.jsonl").write_text('{"set": "p"', encoding="utf-8")
    assert not made(tmp_path).has_examples


def test_nothing_that_can_be_judged_gives_no_grid(tmp_path: Path, write_run: WriteRun) -> None:
    write_run(tmp_path, "d", [share(8, 34)])
    assert grid(load_results(tmp_path)) is None


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = verdicts_table(load_results(demo_folder))
    assert table is not None
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without its language 62.3"),
    )
    record = records(table)[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("cannot tell", False)  # without a control
    assert (record["first_number"], record["first_value"]) == ("after 1,000 examples", 0.553)
    assert record["gain"] == "gain +26.2 points"  # its runs did not record what each item counted
    assert record["cost"] == "cost +3.8 points (+0.8 to +6.8)"
    assert "Cannot tell: " in table.note
