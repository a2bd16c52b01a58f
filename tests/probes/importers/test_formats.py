"""What is particular to a format of files: sheets, types of cells, damage, sizes."""

from __future__ import annotations

import datetime
import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from probelight.io import files
from probelight.io.errors import RecordError
from probelight.probes.importers import formats
from probelight.probes.importers.formats import is_item_file, rows_of_file
from probelight.probes.importers.items import read_file
from probelight.probes.source import load_entry

ROW = {"question": "A cat?", "choices": ["tree", "animal"], "answer": "animal"}


def sheet(path: Path, *rows: list[Any], other: list[Any] | None = None) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    notes = book.create_sheet("notes")
    if other:
        notes.append(other)
    book.save(path)
    return path


def test_numbers_empty_rows_and_ragged_ends_of_a_sheet(tmp_path: Path) -> None:
    rows = [[None], ["question", "A", "B", "C", "answer", "hops", None, ""], []]
    rows += [["2-2?", 4, 0, None, "B", 2], [None, ""], ["1-1?", 4, 3, 0, "C"]]
    read = read_file(sheet(tmp_path / "a.XLSX", *rows))
    assert [(r.id, r.stem, r.choices, r.gold, dict(r.meta)) for r in read.records] == [
        ("a-4", "2-2?", ("4", "0"), "0", {"hops": 2}),
        ("a-6", "1-1?", ("4", "3", "0"), "0", {}),
    ]
    assert not any("blank" in notice for notice in read.notices)


def test_a_gold_of_zero_in_a_sheet_is_the_first_choice(tmp_path: Path) -> None:
    rows = [["question", "A", "B", "answer"], ["a?", "x", "y", 0], ["b?", "x", "y", 1]]
    read = read_file(sheet(tmp_path / "a.xlsx", *rows))
    assert [r.gold for r in read.records] == ["x", "y"]


@pytest.mark.parametrize(
    ("rows", "other", "message"),
    [
        ([["question"], ["a?"]], ["x"], "the sheets Sheet, notes have rows; keep those of one"),
        ([], None, ":1: the file is empty"),
        ([["question", "A", "B", "answer"]], None, ":1: the file is empty"),
        (
            [["question", "A", "B", "answer"], ["a?", datetime.date(2020, 1, 1), "y", "A"]],
            None,
            ":2: `A` is an object; a string or an integer",
        ),
        (
            [["question", "A", "B", "answer"], ["a?", "x", "y", "A", "more"]],
            None,
            r":2: 5 cell\(s\), but the header has 4",
        ),
    ],
)
def test_what_is_wrong_of_a_sheet_is_said(
    rows: list[Any], other: list[Any] | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=rf"a\.xlsx.*{message}"):
        read_file(sheet(tmp_path / "a.xlsx", *rows, other=other))


def test_without_its_library_a_sheet_is_to_be_saved_as_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["x"])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        RecordError, match=r"a\.xlsx: \.xlsx needs openpyxl: .*\[excel\].* \.csv in"
    ):
        read_file(path)


def test_files_that_unpack_to_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(20 * files.MIB))
    with pytest.raises(RecordError, match="unpacks to more than 200 times its size"):
        read_file(path)
    rows = pd.DataFrame([ROW | {"question": "x" * 100}] * 3000)
    rows.to_parquet(tmp_path / "a.parquet")
    assert len(read_file(tmp_path / "a.parquet").records) == 3000
    monkeypatch.setattr(formats, "ITEMS", files.SizeLimit("items", 200_000))
    with pytest.raises(RecordError, match=r"a\.parquet.* more than 200,000 bytes"):
        read_file(tmp_path / "a.parquet")
    monkeypatch.setattr(formats, "MAX_ITEMS", 2999)
    with pytest.raises(RecordError, match=r"a\.parquet: a set can have at most 2,999 rows"):
        read_file(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.parquet", "a.xlsx"])
@pytest.mark.parametrize("content", [b"", b"PAR1" + bytes(20) + b"PAR1", b"PK\x03\x04" + bytes(30)])
def test_damaged_files_are_refused_in_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordError, match=rf"{name}: not a whole (Parquet|Excel) file: ") as caught:
        read_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_frame_keeps_its_index_apart_and_its_checksum(tmp_path: Path) -> None:
    frame = pd.DataFrame([ROW, ROW | {"question": "A dog?"}], index=[7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    read = read_file(tmp_path / "a.parquet")
    assert [r.id for r in read.records] == ["a-1", "a-2"]
    assert "columns ignored: __index_level_0__" in read.notices
    assert read.files[0].sha256 == files.sha256_of(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.txt"])
def test_an_array_is_read_under_each_name(name: str, tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf \n" + json.dumps([ROW, ROW], indent=2).encode() + b"\n\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert [r.gold for r in read_file(tmp_path / name).records] == ["animal", "animal"]


def test_json_lines_are_read_under_the_name_of_an_array(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n", encoding="utf-8")
    assert len(read_file(tmp_path / "a.json").records) == 2


ITEM = json.dumps(ROW)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", ":1: the file is empty"),
        (f"[{ITEM}", ":1: behind this item of the array a comma or the ] .* not ''"),
        (f"[{ITEM}, ", ":2: no JSON in this item of the array: Expecting value"),
        (f"[{ITEM}] x", ":1: behind this item of the array .* not '] x'"),
        (f"[{ITEM} {ITEM}]", ":1: behind this item of the array a comma"),
        (f"[{ITEM}, 3]", ":2: a number, where an object with a question is needed"),
        (f"[{ITEM}, {ITEM[:-1]}, " + '"answer": 1}]', ":2: the key 'answer' is given twice"),
        (f"[{'[' * 100_000}", ":1: no JSON in this item of the array"),
    ],
)
def test_what_is_wrong_of_an_array_is_said_with_its_item(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=rf"a\.json{message}") as caught:
        read_file(tmp_path / "a.json")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xls", r"\.xls is no text.*read_excel\('a\.xls'\)\.to_json\('items\.jsonl', orient="),
        ("a.pkl", r"\.pkl is no text; save it as \.csv or \.jsonl.*read_pickle"),
        ("a.docx", r"\.docx is no text; save it as \.csv or \.jsonl in UTF-8$"),
        ("a.parquet.gz", r"\.parquet is packed already; give the unpacked file"),
    ],
)
def test_what_cannot_be_read_leads_to_a_file_that_can(
    name: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(RecordError, match=message):
        load_entry(tmp_path / name)


def test_the_advice_for_a_pickle_makes_a_file_that_is_read(tmp_path: Path) -> None:
    pd.DataFrame([ROW]).to_pickle(tmp_path / "a.pkl")
    with pytest.raises(RecordError) as caught:
        read_file(tmp_path / "a.pkl")
    advice = str(caught.value).rpartition("in pandas ")[2]
    advice = advice.replace("a.pkl", str(tmp_path / "a.pkl"))
    advice = advice.replace("items.jsonl", str(tmp_path / "items.jsonl"))
    eval(f"pd.{advice}", {"pd": pd})
    assert [r.gold for r in read_file(tmp_path / "items.jsonl").records] == ["animal"]


def test_names_of_files_are_told_from_names_of_probes() -> None:
    assert all(map(is_item_file, ["a.CSV", "b/a.json.gz", "a.xlsx", Path("a.parquet"), "a.ods"]))
    assert not any(map(is_item_file, ["age_small", "age_small:dev", "a.yaml", "csv", "v1.5"]))


@pytest.mark.thorough
def test_a_table_that_is_small_only_on_the_disk_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    stored_once = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["x" * 10**6])
    paths = [tmp_path / name for name in ("rows.parquet", "cell.parquet")]
    for path, column in zip(paths, (stored_once, pa.array(["x" * 10**8])), strict=True):
        table = pa.table({"question": column, "answer": ["a"] * len(column)})
        pa.parquet.write_table(table, path, compression="zstd")
        with pytest.raises(RecordError, match=rf"{path.name}:1: it unpacks to more than 200 times"):
            [*rows_of_file(path)]


def test_a_sheet_of_more_rows_than_excel_has_is_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = "question"
    book.save(tmp_path / "a.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "a.xlsx") as archive,
        zipfile.ZipFile(tmp_path / "b.xlsx", "w") as changed,
    ):
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("sheet1.xml"):
                content = content.replace(b'r="1"', b'r="900000000"').replace(b"A1", b"A900000000")
            changed.writestr(name, content)
    with pytest.raises(RecordError, match=r"b\.xlsx:1048577: the sheet 'Sheet' has more than"):
        [*rows_of_file(tmp_path / "b.xlsx")]
