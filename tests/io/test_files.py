from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from probelight.io import files
from probelight.io.atomic import write_bytes_atomic, write_text_atomic, write_text_once
from probelight.io.documents import read_json
from probelight.io.errors import RecordError
from probelight.io.files import (
    MIB,
    SizeLimit,
    content_sha256,
    delimiter_of,
    read_lines,
    read_table,
    read_text,
    sha256_of,
)

TEXT = "".join(f"line {number}\n" for number in range(1, 5001)).encode()


def test_lines_end_at_newlines_only_and_lose_bom_and_carriage_return(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xe2\x80\xa8still two\n\nlast")
    assert list(read_lines(path)) == [(1, "one"), (2, "two\u2028still two"), (3, ""), (4, "last")]


def test_packed_and_plain_files_read_the_same_whatever_their_names(tmp_path: Path) -> None:
    plain, packed, archive = tmp_path / "a.gz", tmp_path / "b.jsonl", tmp_path / "c"
    in_parts = tmp_path / "d"  # as programs that compress in parallel write them
    in_parts.write_bytes(bz2.compress(TEXT[:7]) + bz2.compress(TEXT[7:]))
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr("folder/", "")
        stream.writestr("folder/inner.jsonl", TEXT)
    for path in (plain, packed, archive, in_parts):
        assert list(read_lines(path))[-1] == (5000, "line 5000")
        assert content_sha256(path) == hashlib.sha256(TEXT).hexdigest()
    assert sha256_of(packed) == hashlib.sha256(packed.read_bytes()).hexdigest()


@pytest.mark.parametrize("size", [5, 4000, -4], ids=["header", "middle", "checksum"])
def test_a_truncated_gzip_is_named_with_its_line(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.jsonl.gz"
    packed = gzip.compress(TEXT)
    path.write_bytes(packed[:size])
    lines = []
    with pytest.raises(RecordError, match=r"cut\.jsonl\.gz:\d+: .*truncated gzip") as caught:
        lines.extend(line for line in read_lines(path))
    assert f"cut.jsonl.gz:{len(lines) + 1}:" in str(caught.value)


def test_damaged_archives_are_one_kind_of_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    packed = bytearray(gzip.compress(TEXT))
    packed[60:70] = b"\xff" * 10
    path.write_bytes(packed)
    with pytest.raises(RecordError, match="damaged"):
        list(read_lines(path))
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("one", "1")
        stream.writestr("two", "2")
    with pytest.raises(RecordError, match="has 2 files"):
        list(read_lines(path))
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(RecordError, match="damaged"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\ncaf\xe9\n", r"x\.txt:2: not UTF-8 \(byte 0xe9 at position 4"),
        ("fine\n".encode("utf-16"), r"x\.txt:1: this is UTF-16"),
    ],
)
def test_wrong_encodings_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(RecordError, match=message):
        list(read_lines(tmp_path / "x.txt"))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "a.txt"
    write_text_atomic(path, "old\r\n")
    assert path.read_bytes() == b"old\r\n"

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_bytes_atomic(path, b"new")
    assert path.read_bytes() == b"old\r\n"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_written_once_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "said.json"
    assert write_text_once(path, "[1]")
    assert not write_text_once(path, "[2]")
    assert read_json(path) == [1]
    assert list(tmp_path.iterdir()) == [path]
    path.write_bytes(b'{"a": ')
    with pytest.raises(ValueError, match=r"said\.json: not a whole JSON file \(Expecting value"):
        read_json(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RATIO_FREE", MIB)  # 16 MiB, which take a second
    content = (b"0" * 99 + b"\n") * 40_000  # 4 MB, packed 200 times smaller and more
    (tmp_path / "b.gz").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr("b", content)
    for name in ("b.gz", "b.zip"):
        assert (tmp_path / name).stat().st_size * 200 < len(content)
        for read in (lambda path: [*read_lines(path)], content_sha256):
            with pytest.raises(RecordError, match=rf"{name}:\d+: it unpacks to more than 200 ti"):
                read(tmp_path / name)
    (tmp_path / "honest.gz").write_bytes(gzip.compress(TEXT * 30, 1))
    assert len(TEXT * 30) > MIB
    assert sum(1 for _ in read_lines(tmp_path / "honest.gz")) == 150_000


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"x" * 50 * MIB))
    tracemalloc.start()
    with pytest.raises(RecordError, match=r"t\.gz:1: the line has more than 1,048,576 bytes"):
        list(read_lines(path))
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()


def test_a_line_and_a_file_that_are_longer_than_their_kind_are_refused(tmp_path: Path) -> None:
    limit = SizeLimit("toys", num_bytes=100, line_bytes=20)
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"fits\n" + b"x" * 19 + b"\n" + b"y" * 20 + b"\n"))
    with pytest.raises(RecordError, match=r"t\.gz:3: the line has more than 20 bytes, the limit"):
        list(read_lines(path, limit=limit))
    path.write_bytes(b"0123456789\n" * 10)
    with pytest.raises(RecordError, match=r"t\.gz:10: more than 100 bytes, the limit for a"):
        list(read_lines(path, limit=limit))
    with pytest.raises(RecordError, match=r"t\.gz:1: more than 100 bytes"):
        content_sha256(path, limit)
    with pytest.raises(RecordError, match=r"t\.gz:1: more than 100 bytes"):
        read_text(path, limit)
    path.write_bytes(b"0123456789\n" * 9 + b"x")
    assert len(read_text(path, limit)) == 100


@pytest.mark.parametrize("read", [content_sha256, sha256_of, read_json, lambda p: [*read_lines(p)]])
def test_only_what_has_an_end_is_read(tmp_path: Path, read: Any) -> None:
    endless, missing = tmp_path / "endless.jsonl", tmp_path / "none"
    os.mkfifo(endless)
    with pytest.raises(RecordError, match=rf"{endless}: a device or a pipe, where a file on the"):
        read(endless)
    with pytest.raises(FileNotFoundError, match=rf"^{missing}: there is no such file$"):
        read(missing)
    with pytest.raises(RecordError, match=rf"^{tmp_path}: a folder, where a file is needed$"):
        read(tmp_path)
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with pytest.raises(RecordError, match=r"zero\.jsonl: a device or a pipe, where a file on the"):
        read(tmp_path / "zero.jsonl")


def test_zip_members_that_cannot_be_unpacked_are_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as stream:
        stream.writestr("in.jsonl", TEXT)
    packed = path.read_bytes()
    directory = packed.index(b"PK\x01\x02")
    for flags, method, why in ((1, 12, "encrypted"), (0, 97, "packed by an unknown method")):
        changed = bytearray(packed)
        for offset in (6, directory + 8):  # in the member's own header and in the directory
            struct.pack_into("<HH", changed, offset, flags, method)
        path.write_bytes(changed)
        with pytest.raises(RecordError, match=rf"a\.zip: 'in\.jsonl' in the zip archive is {why}"):
            list(read_lines(path))
    changed = bytearray(packed)
    changed[60:80] = b"\xff" * 20
    path.write_bytes(changed)
    with pytest.raises(RecordError, match=r"a\.zip:1: the compressed file is damaged here"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("a.csv", ","), ("a.TSV", "\t"), ("a.tsv.gz", "\t"), ("a.jsonl", None), ("csv", None)],
)
def test_the_ending_says_what_parts_the_cells(name: str, delimiter: str | None) -> None:
    assert delimiter_of(name) == delimiter


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
    ("text", "message"),
    [
        ("id,score\n1\n", r"a\.csv:2: 1 cell\(s\), where the header has 2"),
        ("id,\n1,2\n", r"a\.csv:1: column 2 has no name"),
        ("id,score\n", r"a\.csv:1: a header and rows are needed"),
        ('id,score\n1,"2\n', r"a\.csv:2: unexpected end"),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        table(tmp_path, text)
