from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports.diagnostics.words import words_tables
from results.load import load_results
from tests.fixtures.results import accuracy

WriteRun = Callable[..., Path]


def write(folder: Path, name: str, probe: str, lines: list[dict[str, Any]], run: WriteRun) -> None:
    row = accuracy(1, 2, protocol="diagnose", model=name[0], probe=probe)
    path = run(folder, name, [row | {"metric": "accuracy@1"}]) / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(context: str, words: str, *expected: str) -> dict[str, Any]:
    return {"context": context, "expected": expected, "predictions": words.split()}


def test_a_context_has_a_row_and_a_model_a_column(tmp_path: Path, write_run: WriteRun) -> None:
    first = [line("He is a", "b c d e f g", "x", "y"), line("He is a", "b c d e f g")]
    not_a = [line("He is not a", "h")]
    write(tmp_path, "m-1", "neg_simp", [*first, *not_a], write_run)
    write(tmp_path, "o-1", "neg_simp", [line("He is a", "k", "x", "y"), *not_a], write_run)
    write(tmp_path, "m-2", "role", [line("She", "l", "z")], write_run)
    role, simp = words_tables(load_results(tmp_path))
    assert [table.name for table in (role, simp)] == [
        "diagnostics_words_role", "diagnostics_words_neg_simp",
    ]  # fmt: skip
    assert [[cell.text for cell in cells] for cells in simp.rows] == [
        ["He is a", "x|y", "b, c, d, e, f", "k"],
        ["He is not a", "–", "h", "h"],
    ]
    assert [heading.group for heading in simp.columns] == ["", "", "m", "o"]
    assert dict(simp.records[0]) == {
        "model": "m", "context": "He is a", "expected": "x|y", "words": "b, c, d, e, f",
    }  # fmt: skip


def test_sets_that_are_too_large_to_be_read_are_left_out(
    tmp_path: Path, write_run: WriteRun
) -> None:
    lines = [line(f"context {number}", "a", "b") for number in range(101)]
    write(tmp_path, "m", "role_1500", lines, write_run)
    write(tmp_path, "o", "cprag", lines[:100], write_run)
    [table] = words_tables(load_results(tmp_path))
    assert (table.name, len(table.rows)) == ("diagnostics_words_cprag", 100)
