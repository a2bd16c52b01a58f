"""Word vectors are read from every form of the file, and a damaged one is named with its line."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest

from probelight.encoding.word_vectors import (
    EMBEDDED_PATH,
    WordVectors,
    WordVectorsError,
    located,
    word_vectors,
)

TEXT = "the 1 0 0.5\ncat -1 2 3\n. . . 7 7 7\nder Hund 4 4 4\nzebra 1e-1 0 0\n"


def _write(path: Path, text: str = TEXT) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_only_words_that_are_there_and_asked_for(tmp_path: Path) -> None:
    vectors = WordVectors(_write(tmp_path / "v.txt"))
    assert vectors.dimension == 3
    by_word = vectors.find(["cat", "unicorn"])
    assert {word: vector.tolist() for word, vector in by_word.items()} == {"cat": [-1, 2, 3]}
    assert vectors.find(["the", "cat"])["the"].tolist() == [1, 0, 0.5]
    twice = WordVectors(_write(tmp_path / "twice.txt", "a 1 2\nb 3 4\na 5 6\n"))
    assert twice.find(["a"])["a"].tolist() == [1, 2]
    assert twice.spread == pytest.approx((91 / 6) ** 0.5)  # the root mean square


def test_the_last_columns_are_the_vector_of_a_word_with_spaces(tmp_path: Path) -> None:
    vectors = WordVectors(_write(tmp_path / "v.txt"))
    by_word = vectors.find(["der Hund", ". . .", "der", "."])
    assert {word: vector.tolist() for word, vector in by_word.items()} == {
        "der Hund": [4, 4, 4],
        ". . .": [7, 7, 7],
    }


@pytest.mark.parametrize("header", ["", "5 3\n", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_header_line_ends_and_byte_order_mark(tmp_path: Path, header: str, end: str) -> None:
    source = _write(tmp_path / "v.txt", header + TEXT.replace("\n", end))
    vectors = WordVectors(source)
    assert vectors.dimension == 3
    assert vectors.find(["the"])["the"].tolist() == [1, 0, 0.5]
    assert vectors.find(["5"]) == {}


def test_gzip_and_zip_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as archive:
        archive.writestr("glove.3d.txt", TEXT)
        archive.writestr("README", "not vectors")
    for name in ("v.txt.gz", "v.zip", "v.zip:glove.3d.txt"):
        by_word = WordVectors(str(tmp_path / name)).find(["zebra"])
        assert by_word["zebra"].tolist() == pytest.approx([0.1, 0, 0])


def test_of_several_files_in_an_archive_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "glove.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("glove.2d.txt", "a 1 2\n")
        archive.writestr("glove.3d.txt", "a 1 2 3\n")
    with pytest.raises(WordVectorsError, match=r"2 text files: glove\.2d\.txt, glove\.3d\.txt"):
        WordVectors(str(path))
    with pytest.raises(WordVectorsError, match="name the one"):
        WordVectors(f"{path}:glove.4d.txt")
    vectors = WordVectors(f"{path}:glove.3d.txt")
    assert vectors.find(["a"])["a"].tolist() == [1, 2, 3]
    assert vectors.name == f"{path}:glove.3d.txt"


@pytest.mark.parametrize(
    "line",
    [
        "dog 1 2",
        "dog 1 2 x",
        "dog 1 2 nan",
        "dog 1 2 inf",
        "dog",
        "dog 1 2  3x",
        "dog 1 2 1_0",
        "dog 1 2 \u0661",
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    source = _write(tmp_path / "v.txt", f"a 1 2 3\nb 1 2 3\nc 1 2 3\n{line}\ne 1 2 3\n")
    with pytest.raises(WordVectorsError, match=r"v\.txt:4: not a word and 3 numbers"):
        WordVectors(source).find(["dog"])


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("", None, "no word vectors"),
        ("\n\n", None, "no word vectors"),
        ("word\nother\n", None, "no word vectors"),
        (TEXT, 50, "have 3 numbers, but 50 are needed"),
        ("a 1 2 3\nb 1 2 3\nc 1 2 3\nd 1", None, r"v\.txt:4"),  # cut off, whatever is asked for
        (None, None, "no such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str | None, dimension: int | None, message: str
) -> None:
    if text is not None:
        _write(tmp_path / "v.txt", text)
    with pytest.raises(WordVectorsError, match=message):
        WordVectors(str(tmp_path / "v.txt"), dimension).find(["a"])


def test_a_missing_or_changed_file_has_no_vectors(tmp_path: Path) -> None:
    vectors = WordVectors(str(tmp_path / "no.txt"), dimension=3, sha256="ab" * 32)
    assert (vectors.missing, vectors.find(["a"]), vectors.sha256) == (True, {}, "ab" * 32)
    source = _write(tmp_path / "v.txt")
    checksum = hashlib.sha256(TEXT.encode()).hexdigest()
    assert WordVectors(source).sha256 == checksum
    assert not WordVectors(source, 3, checksum).missing
    changed = WordVectors(source, 3, "00" * 32)
    assert (changed.missing, changed.find(["the"])) == (True, {})


def test_vectors_are_shared_until_the_file_changes(tmp_path: Path) -> None:
    source = _write(tmp_path / "v.txt")
    first = word_vectors(source)
    assert word_vectors(source) is first
    _write(tmp_path / "v.txt", TEXT + "dog 9 9 9\n")
    assert word_vectors(source).find(["dog"])["dog"].tolist() == [9, 9, 9]


def test_the_embedded_vectors() -> None:
    vectors = word_vectors()
    assert vectors.path == EMBEDDED_PATH
    assert vectors.dimension == 50
    first = [float(value) for value in EMBEDDED_PATH.open().readline().split()[1:]]
    assert vectors.find(["a"])["a"].tolist() == pytest.approx(first)


def test_a_file_an_archive_and_one_of_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert located("embedded") == (EMBEDDED_PATH, None)
    assert located("v.txt") == (Path("v.txt"), None)
    assert located("~/v.vec") == (tmp_path / "v.vec", None)
    assert located("d/v.zip") == (Path("d/v.zip"), None)
    assert located("~/v.zip:in/v.50d.txt") == (tmp_path / "v.zip", "in/v.50d.txt")
    assert located("v.zip:") == (Path("v.zip:"), None)  # no member: a file of that name
