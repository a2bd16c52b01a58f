"""Accuracy by rule, the items that flip between rules, and some of them, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.reports.sections import printed
from probelight.reports.table import Cell
from probelight.reports.zero_shot.rules import unread
from probelight.results.load import load_results
from tests.fixtures.items import write_lines
from tests.fixtures.report import labels, named, records, tables
from tests.fixtures.results import write_run, zero_shot_rows

RULES = ("sum", "mean_char", "pmi")
# Of four items the choices that are best by the own score and by each rule.
BEST = [[[0], [0], [1], [0]], [[1], [1], [1], [1]], [[0], [0, 1], [0], [1]], [[1], [1], [1], []]]


def line(number: int, best: list[list[int]]) -> dict[str, Any]:
    own, *others = best
    by_rule = {r: {"scores": [], "best": b} for r, b in zip(RULES, others, strict=True)}
    found = {"id": f"q{number}", "question": f"Item {number} [MASK]", "choices": ["x", "y"]}
    found |= {"set": "p", "position": number + 1, "scores": [0.0, 0.0], "prediction": own[0]}
    found |= {"tied": 1, "correct": float(own == [0])}
    return {**found, "answer": 0, "best": own, "by_rule": by_rule}


def write(folder: Path, probe: str = "p") -> None:
    """Write a run of four items with each rule's numbers."""
    found = zero_shot_rows(probe, 2, 4, 2, model="m")
    more = [
        {**found[0], "scoring": rule, "metric": metric, "value": value}
        for rule, share in zip(RULES, (0.25, 0.5, 0.75), strict=True)
        for metric, value in (("accuracy", share), ("flipped_share", 1 - share))
    ]
    run = write_run(folder, f"by-rule-{probe}", [*found, *more])
    write_lines(run, [line(number, best) for number, best in enumerate(BEST)])


def test_accuracies_are_side_by_side(tmp_path: Path) -> None:
    write(tmp_path)
    write_run(tmp_path, "b", zero_shot_rows("q", 2, 4, 2, model="m"))  # no rules were asked for
    made = tables(tmp_path)
    table = made["zero_shot_rules"]
    assert labels(table) == [
        "probe", "model", "chance", "own score: accuracy %", "sum: accuracy %", "sum: flipped %",
        "mean_char: accuracy %", "mean_char: flipped %", "pmi: accuracy %", "pmi: flipped %",
    ]  # fmt: skip
    assert len(table.rows) == 1
    row = named(table, 0)
    assert row["own score: accuracy %"].text == "50.0"
    assert [row[f"{rule}: accuracy %"].text for rule in RULES] == ["25.0", "50.0", "75.0"]
    assert [row[f"{rule}: flipped %"].text for rule in RULES] == ["75.0", "50.0", "25.0"]
    assert [r["rule"] for r in records(table)] == ["own score", *RULES]
    # The other tables go by the own score alone.
    assert [r["accuracy"] for r in records(made["zero_shot"])] == [0.5, 0.5]
    assert "zero_shot_parts" not in made


def test_items_that_flip_are_counted_for_each_two_rules(tmp_path: Path) -> None:
    write(tmp_path)
    table = tables(tmp_path)["zero_shot_flips"]
    assert labels(table) == ["probe", "model", "n", "by", *RULES]
    # A tie is another answer than one of its choices, and so is none at all.
    assert [[cell.text for cell in row[3:]] for row in table.rows] == [
        ["own score", "1", "1", "2"],
        ["sum", "–", "2", "2"],
        ["mean_char", "–", "–", "3"],
    ]
    assert len(records(table)) == 6  # each two rules once
    assert records(table)[0] == {
        "model": "m", "probe": "p", "rule": "own score", "other_rule": "sum", "num_flipped": 1,
        "num_items": 4,
    }  # fmt: skip


def test_some_items_are_shown_with_each_rules_answer(tmp_path: Path) -> None:
    write(tmp_path)
    table = tables(tmp_path)["zero_shot_flipped_items"]
    assert [record["id"] for record in records(table)] == ["q0", "q2", "q3"]
    assert table.rows[1] == (
        Cell("p", "m"), Cell("Item 2 [MASK]"), Cell("x"), Cell("x", "right"), Cell("x, y"),
        Cell("x", "right"), Cell("y"),
    )  # fmt: skip
    assert records(table)[2]["pmi"] == "–"


def test_of_many_probes_each_shows_some_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from probelight.reports.zero_shot import rules

    monkeypatch.setattr(rules, "MOST_EXAMPLES", 3)
    for probe in "pq":
        write(tmp_path, probe)
    table = tables(tmp_path)["zero_shot_flipped_items"]
    assert [(r["probe"], r["id"]) for r in records(table)] == [("p", "q0"), ("q", "q0")]


def test_without_rules_or_predictions_there_is_no_table(tmp_path: Path) -> None:
    found = zero_shot_rows("p", 2, 4, 2, model="m")
    # As minimal pairs have it without being asked: no item was compared.
    write_run(tmp_path, "a", [*found, {**found[0], "scoring": "mean_token", "value": 0.25}])
    assert not {"zero_shot_rules", "zero_shot_flips"} & set(tables(tmp_path))
    write(tmp_path, "q")
    [path] = tmp_path.rglob("predictions.jsonl")
    path.unlink()
    made = tables(tmp_path)
    assert "zero_shot_rules" in made
    assert not {"zero_shot_flips", "zero_shot_flipped_items"} & set(made)
    names = [table.name for table in printed("zero_shot", load_results(tmp_path))]
    assert names == ["zero_shot", "zero_shot_rules"]


def test_damaged_predictions_are_named_and_the_accuracies_shown(tmp_path: Path) -> None:
    write(tmp_path)
    [path] = tmp_path.rglob("predictions.jsonl")
    first, second, *_ = path.read_text().splitlines()
    start, _, end = second.rpartition('"best": [1]')
    path.write_text(f'{first}\n{start}"best": [7]{end}\n')
    results = load_results(tmp_path)
    assert unread(results).startswith("Not shown by rule: ")
    assert "predictions.jsonl:2: a rule's best is none of the choices" in unread(results)
    made = tables(tmp_path)
    assert "zero_shot_rules" in made
    assert not {"zero_shot_flips", "zero_shot_flipped_items"} & set(made)
