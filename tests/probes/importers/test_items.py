from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.items import parse_row, read_ai2, record_from_row, write_ai2
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
    read = read_ai2(path)
    assert [record.position for record in read.records] == [1, 3]
    assert read.notices == ("1 blank lines skipped (lines 2)",)


def test_rows_without_an_id_are_named_by_file_and_line(tmp_path: Path) -> None:
    without = {key: value for key, value in row().items() if key != "id"}
    path = write(tmp_path / "mine.jsonl", row(id=7), without, row(id=None))
    assert [record.id for record in read_ai2(path).records] == ["7", "mine-2", "mine-3"]
    assert read_ai2(path, name="probe").records[1].id == "probe-2"
    assert "2 rows have no id and are named by their line numbers" in read_ai2(path).notices


@pytest.mark.parametrize(("one", "other"), [("x", "x"), (7, "7"), (None, "a-1")])
def test_an_id_that_repeats_is_counted_or_an_error_that_names_both_lines(
    tmp_path: Path, one: Any, other: Any
) -> None:
    path = write(tmp_path / "a.jsonl", row(id=one), "", row(id="y"), row(id=other))
    with pytest.raises(RecordError, match=r"a\.jsonl:4: line 1 has the id '.*' too.*ids_"):
        read_ai2(path)
    read = read_ai2(path, ids_repeat=True)
    assert "1 ids repeat" in read.notices
    assert len({record.name for record in read.records}) == 3
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
    unmasked = write(tmp_path / "a.jsonl", row(question={"stem": "no mask"}))
    assert read_ai2(unmasked, "mc_qa").records[0].stem == "no mask"


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
    checksums = set()
    for name in ("a.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        write_ai2(tmp_path / name, records)
        read = read_ai2(tmp_path / name, ids_repeat=True)
        assert read.records == records
        assert pickle.loads(pickle.dumps(read)) == read
        checksums.add(read.files[0].sha256)
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.jsonl").read_bytes()
    assert len(checksums) == 1


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="more than 5 choices"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "s", tuple("abcdef"), 0)])
    with pytest.raises(RecordError, match="the stem is empty"):
        write_ai2(tmp_path / "a.jsonl", [Record("1", "", ("a", "b"), 0)])
    assert not (tmp_path / "a.jsonl").exists()


def read(line: Any, setup: Setup | None = "mc_mlm") -> Record:
    """The record of a line, or of a row that is written as one."""
    text = line if isinstance(line, str) else json.dumps(line)
    return record_from_row(parse_row(text), setup, default_id="mine-4", position=4)


@pytest.mark.parametrize(("label", "key"), [("0", "1"), (0, 1), (0, "1"), ("0", 1)])
def test_labels_and_keys_are_strings_or_integers(label: Any, key: Any) -> None:
    texts = [{"label": label, "text": "a"}, {"label": type(label)(1), "text": "b"}]
    assert read(row(question={"choices": texts}, answerKey=key)).gold == "b"


def test_notes_keep_their_names_and_give_the_named_fields() -> None:
    wordnet = {"gold_synset": "tea.n.03", "hops": 2, "distractor_type": "sister", "pos": "n"}
    dictionary = {"gold_synset": "old.u.8", "word": "old", "sense_choices": 5}
    assert read(row(notes=wordnet)).meta == wordnet | {"cluster": "tea.n.03"}
    assert read(row(notes=dictionary)).meta == dictionary | {"cluster": "old", "sense": "old.u.8"}
    assert read(row(notes=None)).meta == {}
    # What is named already is not named anew.
    assert read(row(notes=dictionary | {"cluster": "own"})).meta["cluster"] == "own"


TWO_KEYS = json.dumps(row())[:-1] + ', "answerKey": "A"}'
MALFORMED = {
    "a number of 5,000 digits": ('{"id": ' + "9" * 5000 + "}", "invalid JSON: .*4300"),
    "key twice": (TWO_KEYS, "'answerKey' is given twice"),
    "no question": ({"id": "1"}, "`question` is missing"),
    "question is text": ({"question": "why?"}, "`question` is a string"),
    "no stem": ({"question": {"choices": []}}, "`question.stem` is missing"),
    "stem is a number": (row(question={"stem": 3}), "`question.stem` is a number"),
    "empty stem": (row(question={"stem": " "}), "the stem is empty"),
    "half a surrogate": (row(id="\ud800"), r"\\ud800 is half of a character; write the whole"),
    "no choices": (row(question={"choices": None}), "`question.choices` is missing or null"),
    "one choice": (row(question=choices("a")), r"1 choice\(s\); 2 to 5"),
    "six choices": (row(question=choices(*"abcdef")), r"6 choice\(s\); 2 to 5"),
    "choice is text": (row(question={"choices": ["a", "b"]}), "choice 1 is a string"),
    "choice without text": (row(question={"choices": [{"label": "A"}] * 2}), "text of choice 1 is"),
    "choice without label": (row(question={"choices": [{"text": "A"}] * 2}), "label of choice 1"),
    "empty choice": (row(question=choices("a", " "), answerKey="0"), "a choice is empty"),
    "duplicate label": (
        row(question={"choices": [{"label": 0, "text": "a"}, {"label": "0", "text": "b"}]}),
        "duplicate label '0'",
    ),
    "no gold": ({"question": row()["question"]}, "no gold: `answerKey` is missing"),
    "null gold": (row(answerKey=None), "no gold: `answerKey` is null"),
    "true as gold": (row(answerKey=True), "`answerKey` is true or false"),
    "a float as gold": (row(answerKey=1.0), "`answerKey` is a number; a string or an integer"),
    "gold is no label": (row(answerKey="C"), "no gold: `answerKey` 'C' is not one of A, B"),
    "two golds": (row(answerKey=["A", "B"]), "2 golds"),
    "the gold twice": (row(question=choices("a", "b", "a "), answerKey="0"), "'a' appears twice"),
    "id is a list": (row(id=["x"]), "`id` is a list"),
    "empty id": (row(id=""), "`id` is empty"),
    "notes is a list": (row(notes=[1]), "`notes` is a list"),
    "hops are a word": (row(notes={"hops": "two"}), "`hops` in `notes` is 'two'; a whole number"),
    "hops are a list": (row(notes={"distractor_hops": [1]}), r"`distractor_hops` in .* is \[1\]"),
    "a template is a list": (
        row(notes={"template": ["a"]}),
        "`template` in `notes` is a list; a",
    ),
    "a cluster is an object": (row(notes={"cluster": {}}), "`cluster` in `notes` is an object"),
    "arguments are a number": (row(notes={"arguments": 5}), "`arguments` .* is a number; a list"),
    "deep notes": (row(notes={"x": json.loads(f"{'[' * 800}{']' * 800}")}), "more than 50 levels"),
    "no mask": (row(question={"stem": "He is"}), r"0 \[MASK\] in the stem"),
    "two masks": (row(question={"stem": "[MASK] [MASK]"}), r"2 \[MASK\] in the stem"),
}


HUB = {"text": ["older", "younger"], "label": ["A", "B"]}
MEANT = {
    "CSV": ("id,question,A,B,answer", r"CSV: each item is one JSON object on one line, such as \{"),
    "TSV": ("1\tHe is [MASK] than me\tolder", r"CSV: each item"),
    "a sentence": ("He is [MASK] than me", r"on one line, such as \{\"id"),
    "an array in one line": ([row()], "a list, where .*looks like a JSON array: each item is one"),
    "an array over lines": ("[", "looks like a JSON array: .* with no bracket or comma around it"),
    "an object over lines": ("{", "invalid JSON: .*; each item is one JSON object on one line$"),
    "a row of the Hub": (
        {"id": "x", "question": "He is [MASK]", "choices": HUB, "answerKey": "B"},
        r"`question` is a string.*like a row of a Hub dataset: write \"question\": \{\"stem\"",
    ),
    "a row of the Hub, nested": (row(question={"choices": HUB}), "choices` is an object.*a Hub"),
    "OpenBookQA": ({"question_stem": "He is", "choices": HUB}, "missing .*row of a Hub dataset"),
    "another mask": (row(question={"stem": "He is <mask>"}), r"\[MASK\] instead of '<mask>'"),
    "a small mask": (row(question={"stem": "He is [mask]"}), r"instead of '\[mask\]'; it becomes"),
    "a line": (row(question={"stem": "He is ____ ."}), "instead of '____'"),
}


@pytest.mark.parametrize(
    ("bad", "message"), (MALFORMED | MEANT).values(), ids=(MALFORMED | MEANT).keys()
)
def test_a_malformed_row_or_another_format_is_told_what_is_wrong(bad: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        read(bad)
    assert "\n" not in str(caught.value)
