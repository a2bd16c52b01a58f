from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.ai2 import read_ai2, write_ai2
from probelight.probes.record import Record
from tests.probes.importers.rows import choices, row


def write(path: Path, *rows: Any, end: str = "\n") -> Path:
    lines = [text if isinstance(text, str) else json.dumps(text) for text in rows]
    path.write_bytes((end.join(lines)).encode())
    return path


def test_a_row_becomes_a_record(tmp_path: Path) -> None:
    read = read_ai2(write(tmp_path / "a.jsonl", row()), "mc_mlm")
    (record,) = read.records
    assert record == Record("x", "He is [MASK] than me", ("older", "younger"), 1, {}, 1)
    assert record.gold == "younger"
    assert pickle.loads(pickle.dumps(read)) == read
    assert hash(record)


def test_line_ends_blank_lines_bom_and_missing_last_newline(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "\ufeff" + json.dumps(row()), "", row(id=2), end="\r\n")
    read = read_ai2(path)
    assert [record.position for record in read.records] == [1, 3]
    assert read.notices == ("1 blank lines skipped (lines 2)",)


def test_rows_without_an_id_are_named_by_file_and_line(tmp_path: Path) -> None:
    without = {key: value for key, value in row().items() if key != "id"}
    path = write(tmp_path / "mine.jsonl", row(id=7), without, row(id=None))
    assert [record.id for record in read_ai2(path).records] == ["7", "mine-2", "mine-3"]
    assert read_ai2(path, name="probe").records[1].id == "probe-2"
    assert "2 rows have no id and are named by their line" in read_ai2(path).notices


def test_ids_that_repeat_are_counted_and_told_apart_by_position(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row(), row(), row(), row(id="y"))
    read = read_ai2(path, ids_repeat=True)
    assert read.notices == ("2 ids repeat",)
    assert len({record.name for record in read.records}) == 4


@pytest.mark.parametrize(("one", "other"), [("x", "x"), (7, "7"), (None, "a-1")])
def test_elsewhere_an_id_that_repeats_is_an_error_that_names_both_lines(
    tmp_path: Path, one: Any, other: Any
) -> None:
    path = write(tmp_path / "a.jsonl", row(id=one), "", row(id="y"), row(id=other))
    with pytest.raises(RecordError, match=r"a\.jsonl:4: the id '.*' is that of line 1 too.*ids_"):
        read_ai2(path)
    assert len(read_ai2(path, leave_out=[1]).records) == 2


def test_a_repeated_distractor_is_kept_counted_and_said(tmp_path: Path) -> None:
    odd = row(question=choices("a", "b", "a"), answerKey="1")
    read = read_ai2(write(tmp_path / "a.jsonl", row(), odd | {"id": "odd"}))
    assert read.records[1].choices == ("a", "b", "a")
    assert read.notices[-1] == "1 row repeats a choice that is not the gold one (lines 2)"


def test_a_malformed_row_is_an_error_with_file_and_line_unless_it_is_left_out(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "bad.jsonl", row(), "", row(question={"stem": 3}))
    with pytest.raises(RecordError, match=r"bad\.jsonl:3: `question\.stem` is a number; a string"):
        read_ai2(path, "mc_mlm")
    assert len(read_ai2(path, "mc_mlm", leave_out=[3]).records) == 1


def test_masks_are_only_counted_where_one_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row(question={"stem": "no mask"}))
    assert read_ai2(path, "mc_qa").records[0].stem == "no mask"


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"empty\.jsonl:1: the file is empty"):
        read_ai2(path)
    with pytest.raises(FileNotFoundError):
        read_ai2(tmp_path / "none.jsonl")


def test_written_records_come_back_and_bytes_are_the_same(tmp_path: Path) -> None:
    records = (
        Record("1", 'A "quoted" [MASK]', ("é", "b", "c"), 2, {"cluster": "k", "hops": 1}, 1),
        Record("1", "B [MASK]", ("x", "y"), 0, {}, 2),
    )
    for name in ("a.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        write_ai2(tmp_path / name, records)
        assert read_ai2(tmp_path / name, ids_repeat=True).records == records
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.jsonl").read_bytes()
    checksums = {
        read_ai2(tmp_path / name, ids_repeat=True).sha256 for name in ("a.jsonl", "a.jsonl.gz")
    }
    assert len(checksums) == 1


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="more than 5 choices"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "s", tuple("abcdef"), 0)])
    with pytest.raises(RecordError, match="the stem is empty"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "", ("a", "b"), 0)])
    assert not (tmp_path / "a.jsonl").exists()
