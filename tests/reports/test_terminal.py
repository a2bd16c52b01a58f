from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.console import Console

from probelight.reports.table import Cell, Column, Table
from probelight.reports.terminal import print_table


def shown(table: Table, width: int) -> str:
    page = io.StringIO()
    print_table(table, Console(width=width, file=page))
    return page.getvalue()


def table(columns: list[Column], rows: list[list[Cell]]) -> Table:
    return Table("t", "A table", "", tuple(columns), tuple(map(tuple, rows)), pd.DataFrame())


def made(num_rows: int, num_columns: int) -> Table:
    heads = [Column("model", str, "left")]
    heads += [Column(f"c{i} %", str, group="g") for i in range(num_columns)]
    row = [Cell("a model with a name", "dev")]
    row += [Cell(f"{10 + i}.0", "10.0–20.0") for i in range(num_columns)]
    return table(heads, [row] * num_rows)


def test_a_table_that_fits_has_its_details_beside_the_numbers() -> None:
    said = shown(made(6, 2), 120)
    assert "10.0 10.0–20.0" in said
    assert "continued" not in said


def test_a_few_wide_rows_are_turned_on_their_side() -> None:
    said = shown(made(2, 9), 80)
    assert said.count("g c8 %") == 1
    assert "18.0 10.0–20.0" in said


@pytest.mark.parametrize("width", [60, 80, 100])
def test_many_wide_rows_go_on_in_further_tables_and_nothing_is_cut(width: int) -> None:
    said = shown(made(6, 9), width)
    assert "A table (continued)" in said
    assert "…" not in said
    assert all(said.count(f"{10 + i}.0 ") == 6 for i in range(1, 9))
    assert said.count("10.0–20.0") == 6 * 9
    assert max(map(len, said.splitlines())) <= width


def test_headings_fold_between_their_words_and_not_within() -> None:
    groups = ["BERT-B (paper)"] * 2 + ["BERT-L (paper)"] * 2 + ["bert-base-uncased"] * 2
    heads = [
        Column("set", str, "left"),
        *(Column("prefers %", str, group=group) for group in groups),
    ]
    cells = [Cell("NEG-136-SIMP", "affirmative"), *[Cell("75.0")] * 4, *[Cell("75.0 (12/16)")] * 2]
    said = shown(table(heads, [cells] * 6), 100)
    assert said.count("bert-base-uncased") == 2
    assert said.count("NEG-136-SIMP") == 6
    assert max(map(len, said.splitlines())) <= 100


def test_columns_that_tell_rows_apart_stand_in_each_of_the_tables() -> None:
    heads = [Column(name, str, "left") for name in ("probe", "model")]
    heads += [Column(f"c{i} %", str) for i in range(9)]
    rows = [
        [Cell(probe), Cell(model), *[Cell("10.0", "10.0–20.0")] * 9]
        for probe in ("ages", "types", "kinds")
        for model in ("bert", "gpt")
    ]
    said = shown(table(heads, rows), 80)
    parts = said.count("A table")
    assert parts > 1
    assert said.count(" bert ") == said.count(" gpt ") == 3 * parts
    assert said.count("10.0–20.0") == 6 * 9
    # The same model twice in a probe: nothing tells the rows apart, and the first column is enough.
    said = shown(table(heads, [rows[0]] * 6), 80)
    assert said.count(" bert ") == 6
