from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from probelight.reports.diagnostics.words import words_tables
from probelight.results.load import load_results
from tests.fixtures.results import accuracy

WriteRun = Callable[..., Path]


def write(folder: Path, name: str, probe: str, lines: list[dict[str, Any]], run: WriteRun) -> None:
    row = accuracy(1, 2, protocol="diagnose", model=name[0], probe=probe)
    path = run(folder, name, [row | {"metric": "accuracy@1"}]) / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(context: str, words: str, *expected: str) -> dict[str, Any]:
    return {"context": context, "expected": expected, "predictions": words.split()}


def test_a_context_has_a_row_and_a_model_a_column(tmp_path: Path, write_run: WriteRun) -> None:
    first = [line("He is a", "b c d e f g", "x", "e"), line("He is a", "b c d e f g")]
    not_a = [line("He is not a", "h")]
    write(tmp_path, "m-1", "neg_simp", [*first, *not_a], write_run)
    write(tmp_path, "o-1", "neg_simp", [line("He is a", "k", "x", "e"), *not_a], write_run)
    write(tmp_path, "m-2", "role", [line("She", "l", "z")], write_run)
    role, simp = words_tables(load_results(tmp_path))
    assert [table.name for table in (role, simp)] == [
        "diagnostics_words_role", "diagnostics_words_neg_simp",
    ]  # fmt: skip
    assert [[cell.text for cell in cells] for cells in simp.rows] == [
        ["He is a", "x, e", "b, c, d, e, f", "k"],
        ["He is not a", "–", "h", "h"],
    ]
    assert [cell.detail for cell in simp.rows[0]] == ["", "", "e is no. 4", ""]
    assert [heading.prose for heading in simp.columns] == [True, False, True, True]
    assert [heading.group for heading in simp.columns] == ["", "", "m", "o"]
    assert dict(simp.records[0]) == {
        "model": "m", "context": "He is a", "expected": "x|e", "words": "b, c, d, e, f",
    }  # fmt: skip


def test_of_large_sets_the_first_contexts_are_shown(tmp_path: Path, write_run: WriteRun) -> None:
    lines = [line(f"context {number}", "a", "b") for number in range(1001)]
    write(tmp_path, "m", "role_1500", lines, write_run)
    write(tmp_path, "o", "cprag", lines[:100], write_run)
    small, large = words_tables(load_results(tmp_path))
    assert (small.name, len(small.rows)) == ("diagnostics_words_cprag", 100)
    assert len(large.rows) == 100
    assert large.note.endswith(
        "These are the first 100 of 1,001 different contexts; all of them stand in "
        "predictions.jsonl of each run."
    )
    assert "first 100" not in small.note


def test_a_context_that_is_asked_twice_expects_both_words(
    tmp_path: Path, write_run: WriteRun
) -> None:
    lines = [line("She had", "a b", "b"), line("He had", "c"), line("She had", "a b", "x", "b")]
    write(tmp_path, "m", "role_1500", lines, write_run)
    [table] = words_tables(load_results(tmp_path))
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["She had", "b, x", "a, b"],
        ["He had", "–", "c"],
    ]


def test_lines_of_an_earlier_version_show_what_they_have(
    tmp_path: Path, write_run: WriteRun
) -> None:
    write(tmp_path, "m", "neg_nat", [{"context": "It is", "predictions": ["a"]}], write_run)
    write(tmp_path, "o", "neg_nat", [{"context": "It is"}, {"target": "b"}], write_run)
    [table] = words_tables(load_results(tmp_path))
    assert [[cell.text for cell in cells] for cells in table.rows] == [["It is", "–", "a", "–"]]
