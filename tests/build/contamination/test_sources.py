"""Texts that are read in parts: items with their wrong answers, files of any length and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probelight.build.contamination import overlap
from probelight.build.contamination.grams import probe_grams
from probelight.build.contamination.overlap import (
    Overlap,
    Scan,
    scan_records,
    scan_text,
    shared_concepts,
)
from probelight.io import files
from probelight.io.errors import RecordError
from probelight.probes.record import Record

ASKED = Record("1", "What is a red, round fruit?", ("an apple", "a pear"), 0)


def scan() -> Scan:
    return Scan(probe_grams([ASKED], ["1"], 4))


def in_text(path: Path) -> Overlap:
    looked = scan()
    assert scan_text(looked, path) == []
    [found] = looked.overlaps()
    return found


def test_items_are_read_with_all_their_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_MOST_WORDS", 3)  # each item is fed alone
    others = [
        Record("7", "A red, round", ("fruit", "thing"), 1),
        Record("8", "Is it a round fruit?", ("No, an apple", "round fruit, an apple"), 0),
    ]
    looked = scan()
    scan_records(looked, others)
    # Of 5 four-grams a-red-round-fruit and round-fruit-an-apple; nothing goes on to the next item.
    assert looked.overlaps() == [Overlap(2 / 5, 1 / 3, 1 / 2, 4, "a red round fruit", "7@0")]
    looked = scan()
    scan_records(looked, others, wrong_choices=False)
    assert [one.share for one in looked.overlaps()] == [0.0]


def test_words_go_on_over_lines_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "It’s\r\n\n “a RED,\nround\n\tfruit?” – an\u00ad apple\n"
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    found = in_text(path)
    assert found == Overlap(3 / 5, 1 / 3, 1.0, 6, "a red round fruit an apple", f"{path}:3")
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert in_text(packed).piece == found.piece
    for size in (1, 2, 3, 7, 11):
        monkeypatch.setattr(files, "BLOCK", size)
        assert in_text(path).share == found.share
    monkeypatch.setattr(files, "BLOCK", 3)
    monkeypatch.setattr(overlap, "_LONGEST", 5)  # a word of more is cut, and nothing else
    path.write_text(f"{'x' * 20} a red round fruit")
    assert in_text(path).longest == 4


def test_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a red\xff round\n")
    assert scan_text(scan(), path) == [
        f"{path}: 1 places are not UTF-8; they end words like a blank"
    ]
    for data, said in (
        (b"", "no words"),
        (b" ?!\n", "no words"),
        ("a red".encode("utf-16"), "UTF-16"),
        (bytes(range(128, 200)), "no text in UTF-8"),
        (gzip.compress(b"a red round fruit" * 99)[:40], "cut off"),
    ):
        path.write_bytes(data)
        with pytest.raises(RecordError, match=said):
            scan_text(scan(), path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan_text(scan(), tmp_path / "none")


def test_concepts_are_named_in_notes() -> None:
    def about(concept: str, arrow: str = "", answer: str = "") -> Record:
        meta = {"cluster": concept, "chain": f"{concept}{arrow}{answer}"}
        return Record("1", "q", ("a", "b"), 0, meta if concept else {})

    theirs = [about("dog.n.01", "=>", "animal.n.01"), about("pup.n.01", "<=", "pup.n.01")]
    ours = [about("dog.n.01", "<=", "pup.n.01"), about("cat.n.01", "=>", "dog.n.01"), about("")]
    found = shared_concepts(ours, theirs)
    assert [one.concept for one in found] == [True, False, None]
    assert [one.answer for one in found] == [True, False, None]
    assert {one.concept for one in shared_concepts(ours, [about("")])} == {None}
    sense = Record("1", "q", ("a", "b"), 0, {"cluster": "run", "sense": "run.v.1"})
    [found_sense] = shared_concepts([sense], [sense])
    assert (found_sense.concept, found_sense.answer) == (True, True)
