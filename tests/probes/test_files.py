from __future__ import annotations

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest

from probes.files import (
    content_sha256,
    read_json,
    read_lines,
    sha256_of,
    write_bytes_atomic,
    write_text_atomic,
    write_text_once,
)
from probes.record import RecordError

TEXT = "".join(f"line {number}\n" for number in range(1, 5001)).encode()


def test_lines_end_at_newlines_only_and_lose_bom_and_carriage_return(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xe2\x80\xa8still two\n\nlast")
    assert list(read_lines(path)) == [(1, "one"), (2, "two\u2028still two"), (3, ""), (4, "last")]


def test_plain_gzip_and_zip_read_the_same_whatever_their_names(tmp_path: Path) -> None:
    plain, packed, archive = tmp_path / "a.gz", tmp_path / "b.jsonl", tmp_path / "c"
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr("folder/", "")
        stream.writestr("folder/inner.jsonl", TEXT)
    for path in (plain, packed, archive):
        assert list(read_lines(path))[-1] == (5000, "line 5000")
        assert content_sha256(path) == hashlib.sha256(TEXT).hexdigest()
    assert sha256_of(packed) == hashlib.sha256(packed.read_bytes()).hexdigest()


@pytest.mark.parametrize("kept", [5, 4000, -4], ids=["header", "middle", "checksum"])
def test_a_truncated_gzip_is_named_with_its_line(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cut.jsonl.gz"
    packed = gzip.compress(TEXT)
    path.write_bytes(packed[:kept])
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
    with pytest.raises(RecordError, match="holds 2 files"):
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


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        list(read_lines(tmp_path / "none"))
    with pytest.raises(RecordError, match="a folder"):
        list(read_lines(tmp_path))


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


def test_damaged_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "said.json"
    path.write_bytes(b'{"a": ')
    with pytest.raises(ValueError, match=r"said\.json: damaged JSON: Expecting value"):
        read_json(path)
