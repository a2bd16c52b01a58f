from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.items import read_file, write_ai2
from probelight.probes.record import Record, Setup


def row(**changes: Any) -> dict[str, Any]:
    """A row in which nothing is wrong, with other values for some keys."""
    choices = [{"label": "A", "text": "older"}, {"label": "B", "text": "younger"}]
    question = {"stem": "He is [MASK] than me", "choices": choices} | changes.pop("question", {})
    return {"id": "x", "question": question, "answerKey": "B"} | changes


def choices(*texts: str) -> dict[str, Any]:
    """A question's choices, labelled 0, 1, ..."""
    return {"choices": [{"label": str(n), "text": text} for n, text in enumerate(texts)]}


def write(path: Path, *rows: Any, end: str = "\n") -> Path:
    lines = [text if isinstance(text, str) else json.dumps(text) for text in rows]
    path.write_bytes((end.join(lines)).encode())
    return path


def test_line_ends_blank_lines_bom_and_missing_last_newline(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "\ufeff" + json.dumps(row()), "", row(id=2), end="\r\n")
    read = read_file(path)
    assert [record.position for record in read.records] == [1, 3]
    assert read.notices == ("1 blank lines skipped (lines 2)",)


def test_rows_without_an_id_are_named_by_file_and_line(tmp_path: Path) -> None:
    without = {key: value for key, value in row().items() if key != "id"}
    path = write(tmp_path / "mine.jsonl", row(id=7), without, row(id=None))
    assert [record.id for record in read_file(path).records] == ["7", "mine-2", "mine-3"]
    assert read_file(path, name="probe").records[1].id == "probe-2"
    assert "2 rows have no id and are named by their line numbers" in read_file(path).notices


@pytest.mark.parametrize(("first_id", "second_id"), [("x", "x"), (7, "7"), (None, "a-1")])
def test_an_id_that_repeats_is_counted_or_an_error_that_names_both_lines(
    tmp_path: Path, first_id: Any, second_id: Any
) -> None:
    path = write(tmp_path / "a.jsonl", row(id=first_id), "", row(id="y"), row(id=second_id))
    with pytest.raises(RecordError, match=r"a\.jsonl:4: line 1 has the id '.*' too.*ids_"):
        read_file(path)
    read = read_file(path, ids_repeat=True)
    assert "1 ids repeat" in read.notices
    assert len({record.name for record in read.records}) == 3
    assert len(read_file(path, leave_out=[1]).records) == 2


def test_a_repeated_distractor_is_kept_counted_and_said(tmp_path: Path) -> None:
    odd = row(question=choices("a", "b", "a"), answerKey="1")
    read = read_file(write(tmp_path / "a.jsonl", row(), odd | {"id": "odd"}))
    assert read.records[1].choices == ("a", "b", "a")
    assert read.notices[-1] == "1 row repeats a choice that is not the gold one (lines 2)"


def test_a_malformed_row_is_an_error_with_file_and_line_unless_it_is_left_out(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "bad.jsonl", row(), "", row(question={"stem": 3}))
    with pytest.raises(RecordError, match=r"bad\.jsonl:3: `question\.stem` is a number; a string"):
        read_file(path, "mc_mlm")
    assert len(read_file(path, "mc_mlm", leave_out=[3]).records) == 1
    unmasked = write(tmp_path / "a.jsonl", row(question={"stem": "no mask"}))
    assert read_file(unmasked, "mc_qa").records[0].stem == "no mask"


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"empty\.jsonl:1: the file is empty"):
        read_file(path)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.jsonl")


def test_written_records_come_back_and_bytes_are_the_same(tmp_path: Path) -> None:
    records = (
        Record("1", 'A "quoted" [MASK]', ("é", "b", "c"), 2, {"cluster": "k", "hops": 1}, 1),
        Record("1", "B [MASK]", ("x", "y"), 0, {}, 2),
        Record("26", "C [MASK]", tuple("abcdefghijklmnopqrstuvwxyz"), 25, {}, 3),
        Record("27", "D [MASK]", tuple(map(str, range(27))), 26, {}, 4),
    )
    checksums = set()
    for name in ("a.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        write_ai2(tmp_path / name, records)
        read = read_file(tmp_path / name, ids_repeat=True)
        assert read.records == records
        assert pickle.loads(pickle.dumps(read)) == read
        checksums.add(read.files[0].sha256)
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.jsonl").read_bytes()
    assert len(checksums) == 1


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"1001 choice\(s\); 2 to 1,000"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "s", ("a",) * 1001, 0)])
    with pytest.raises(RecordError, match="the stem is empty"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "", ("a", "b"), 0)])
    with pytest.raises(RecordError, match="no stem"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "s", ("a", "b"), 0)], "minimal_pair")
    assert not (tmp_path / "a.jsonl").exists()


def test_minimal_pairs_are_written_as_they_are_read(tmp_path: Path) -> None:
    pair = Record("1", "", ("Cats sleeps.", "Cats sleep."), 1, {"paradigm": "agreement"}, 1)
    write_ai2(tmp_path / "a.jsonl", [pair], "minimal_pair")
    assert read_file(tmp_path / "a.jsonl", "minimal_pair").records == (pair,)


def read(folder: Path, line: Any, setup: Setup | None = "mc_mlm") -> Record:
    """The record of a line, or of a row that is written as one."""
    [record] = read_file(write(folder / "mine.jsonl", line), setup).records
    return record


@pytest.mark.parametrize(("label", "key"), [("0", "1"), (0, 1), (0, "1"), ("0", 1)])
def test_labels_and_keys_are_strings_or_integers(label: Any, key: Any, tmp_path: Path) -> None:
    texts = [{"label": label, "text": "a"}, {"label": type(label)(1), "text": "b"}]
    assert read(tmp_path, row(question={"choices": texts}, answerKey=key)).gold == "b"


def test_notes_keep_their_names_and_give_the_named_fields(tmp_path: Path) -> None:
    wordnet = {"gold_synset": "tea.n.03", "hops": 2, "distractor_type": "sister", "pos": "n"}
    dictionary = {"gold_synset": "old.u.8", "word": "old", "sense_choices": 5}
    assert read(tmp_path, row(notes=wordnet)).meta == wordnet | {"cluster": "tea.n.03"}
    sense = {"cluster": "old", "sense": "old.u.8"}
    assert read(tmp_path, row(notes=dictionary)).meta == dictionary | sense
    assert read(tmp_path, row(notes=None)).meta == {}
    # What is named already is not named anew.
    assert read(tmp_path, row(notes=dictionary | {"cluster": "own"})).meta["cluster"] == "own"


TWO_KEYS = json.dumps(row())[:-1] + ', "answerKey": "A"}'
MALFORMED = {
    "a number of 5,000 digits": (
        '{"id": ' + "9" * 5000 + "}",
        "a number of 5,000 digits is too large",
    ),
    "key twice": (TWO_KEYS, "'answerKey' is given twice"),
    "no question": ({"id": "1"}, "no column for the sentence: .* There are id$"),
    "question is text": ({"question": "why?"}, "no column for the gold: .* There are question"),
    "question is a number": (row() | {"question": 3, "choices": "a|b"}, "`question` is a number"),
    "no stem": (row() | {"question": {}, "choices": "a|b"}, "`question` is an object; a string"),
    "stem is a number": (row(question={"stem": 3}), "`question.stem` is a number"),
    "empty stem": (row(question={"stem": " "}), "the stem is empty"),
    "half a surrogate": (row(id="\ud800"), r"\\ud800 is half of a character; write the whole"),
    "no choices": (row(question={"choices": None}), "`question.choices` is missing or null"),
    "one choice": (row(question=choices("a"), answerKey="0"), r"1 choice\(s\); 2 to 1,000"),
    "1,001 choices": (
        row(question=choices(*map(str, range(1001))), answerKey="0"),
        r"1001 choice\(s\); 2 to 1,000",
    ),
    "a choice is text": (
        row(question={"choices": [{"label": "A", "text": "a"}, "b"]}),
        "choice 2 is a string",
    ),
    "labels are too few": (
        row(question={"choices": {"text": ["a", "b"], "label": ["A"]}}),
        "`text` and `label` must be two lists of the same length",
    ),
    "choice without text": (row(question={"choices": [{"label": "A"}] * 2}), "text of choice 1 is"),
    "choice without label": (row(question={"choices": [{"text": "A"}] * 2}), "label of choice 1"),
    "empty choice": (row(question=choices("a", " "), answerKey="0"), "a choice is empty"),
    "duplicate label": (
        row(question={"choices": [{"label": 0, "text": "a"}, {"label": "0", "text": "b"}]}),
        "duplicate label '0'",
    ),
    "no gold": ({"question": row()["question"]}, "no column for the gold: .* question.stem, "),
    "null gold": (row(answerKey=None), "no gold: `answerKey` is missing or null"),
    "true as gold": (row(answerKey=True), "`answerKey` is true or false"),
    "a float as gold": (row(answerKey=1.0), "`answerKey` is a number; a string or an integer"),
    "gold is no label": (row(answerKey="C"), "no gold: `answerKey` 'C' is not one of A, B"),
    "two golds": (row(answerKey=["A", "B"]), "2 golds"),
    "the gold twice": (row(question=choices("a", "b", "a "), answerKey="0"), "'a' appears twice"),
    "id is a list": (row(id=["x"]), "`id` is a list"),
    "empty id": (row(id=""), "`id` is empty"),
    "notes is a list": (row(notes=[1]), "`notes` is a list"),
    "hops are a word": (row(notes={"hops": "two"}), "`hops` is 'two'; a whole number"),
    "hops in other digits": (row(notes={"hops": "\u0663"}), "`hops` is '\u0663'; a whole number"),
    "hops are a list": (row(notes={"distractor_hops": [1]}), r"`distractor_hops` is \[1\]"),
    "a template is a list": (
        row(notes={"template": ["a"]}),
        "`template` is a list; a",
    ),
    "a cluster is an object": (row(notes={"cluster": {}}), "`cluster` is an object"),
    "arguments are a number": (row(notes={"arguments": 5}), "`arguments` is a number; a list"),
    "deep notes": (row(notes={"x": json.loads(f"{'[' * 800}{']' * 800}")}), "more than 50 levels"),
    "no mask": (row(question={"stem": "He is"}), r"0 \[MASK\] in the stem"),
    "two masks": (row(question={"stem": "[MASK] [MASK]"}), r"2 \[MASK\] in the stem"),
}


MEANT = {
    "CSV": ("id,question,A,B,answer", r"CSV: each item is one JSON object on one line, such as \{"),
    "TSV": ("1\tHe is [MASK] than me\tolder", r"CSV: each item"),
    "a sentence": ("He is [MASK] than me", r"on one line, such as \{\"sentence"),
    "an array that is cut off": ("[", "no JSON in this item of the array: Expecting value"),
    "an object over lines": ("{", "one JSON object on one line, or of an array .* of all items$"),
    "items below a key": ({"data": [row()]}, "all items are in 'data'; keep this array alone"),
    "columns": ({"question": {"0": "a"}, "gold": {"0": "b"}}, "columns of a .*orient='records'"),
    "another mask": (row(question={"stem": "He is <mask>"}), r"\[MASK\] instead of '<mask>'"),
    "a small mask": (row(question={"stem": "He is [mask]"}), r"instead of '\[mask\]'; it becomes"),
    "a line": (row(question={"stem": "He is ____ ."}), "instead of '____'"),
}


@pytest.mark.parametrize(
    ("bad", "message"), (MALFORMED | MEANT).values(), ids=(MALFORMED | MEANT).keys()
)
def test_a_malformed_row_or_another_format_is_told_what_is_wrong(
    bad: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        read(tmp_path, bad)
    assert "\n" not in str(caught.value)
