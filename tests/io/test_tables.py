from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from probelight.io.errors import RecordError
from probelight.io.files import delimiter_of
from probelight.io.tables import cells_of, read_table


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("a.csv", ","), ("a.TSV", "\t"), ("a.tsv.gz", "\t"), ("a.jsonl", None), ("csv", None)],
)
def test_the_ending_says_what_parts_the_cells(name: str, delimiter: str | None) -> None:
    assert delimiter_of(name) == delimiter


def test_quotation_marks_hold_commas_in_one_form_and_are_text_in_the_other() -> None:
    assert cells_of('"a, b",c ', ",") == ["a, b", "c"]
    assert cells_of('"a, b"\tc', "\t") == ['"a, b"', "c"]
    with pytest.raises(RecordError, match="each pair is on one line"):
        cells_of('"a, b', ",", "pair")


def table(folder: Path, text: str, name: str = "a.csv") -> pd.DataFrame:
    (folder / name).write_text(text, encoding="utf-8")
    return read_table(folder / name)


def test_cells_are_texts_that_keep_their_lines(tmp_path: Path) -> None:
    read = table(tmp_path, 'ID,Score,more\n\n1,0.5,"two\nlines"\nNA,0.25,\n')
    assert [*read.columns] == ["ID", "Score", "more"]
    assert [*read.index] == [f"{tmp_path / 'a.csv'}:{line}" for line in (3, 5)]
    assert read.to_numpy().tolist() == [["1", "0.5", "two\nlines"], ["NA", "0.25", ""]]
    assert table(tmp_path, 'id\tscore\n"1\t2\n', "a.tsv").to_numpy().tolist() == [['"1', "2"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,score\n1\n", r"a\.csv:2: 1 cell\(s\), where the header has 2"),
        ("id,\n1,2\n", r"a\.csv:1: column 2 has no name"),
        ("id,score\n", r"a\.csv:1: a header and rows are needed"),
        ('id,score\n1,"2\n', r"a\.csv:2: unexpected end"),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        table(tmp_path, text)
