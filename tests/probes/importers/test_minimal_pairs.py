from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.minimal_pairs import read_pairs
from probelight.probes.record import Record

# The fields of a released row, with what is not read.
BLIMP = {
    "sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "field": "syntax",
    "UID": "agreement", "simple_LM_method": True, "pairID": "7",
}  # fmt: skip


def write(path: Path, *lines: str | dict[str, Any]) -> Path:
    text = "".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines)
    path.write_text(text, encoding="utf-8")
    return path


def sentences(path: Path) -> list[tuple[str, ...]]:
    read = read_pairs(path)
    assert all(record.stem == "" and record.answer == 0 for record in read.records)
    return [record.choices for record in read.records]


def test_blimps_fields(tmp_path: Path) -> None:
    other = {**BLIMP, "UID": "islands"}
    read = read_pairs(write(tmp_path / "a.jsonl", BLIMP, other))
    expected = Record("agreement-7", "", ("Cats sleep.", "Cats sleeps."), 0, {}, 1)
    assert read.records[0] == Record(**{**vars(expected), "meta": {"paradigm": "agreement"}})
    assert [record.id for record in read.records] == ["agreement-7", "islands-7"]
    assert read.notices == ()


def test_more_wrong_sentences_own_ids_and_facts_are_kept(tmp_path: Path) -> None:
    row = {"sentence_good": "a b", "sentence_bad": ["b a", "a a"], "id": 5, "cluster": "c"}
    ai2 = {
        "id": "q", "answerKey": "2", "notes": {"paradigm": "order"}, "question": {
            "stem": "", "choices": [{"label": "1", "text": "x y"}, {"label": "2", "text": "y x"}]
        },
    }  # fmt: skip
    first, second = read_pairs(write(tmp_path / "a.jsonl", row, ai2)).records
    assert (first.id, first.choices, first.meta) == ("5", ("a b", "b a", "a a"), {"cluster": "c"})
    assert (second.gold, second.meta) == ("y x", {"paradigm": "order"})


def test_two_columns_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'She said "no".\tShe say "no".', "", "Él durmió.\tÉl dormió.")
    expected = [('She said "no".', 'She say "no".'), ("Él durmió.", "Él dormió.")]
    assert sentences(path) == expected
    read = read_pairs(path)
    assert [record.name for record in read.records] == ["a-1@1", "a-3@3"]
    assert any("no header: its first column is read as the right" in n for n in read.notices)
    packed = tmp_path / "a.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert sentences(packed) == expected


def test_a_header_says_what_the_columns_are(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.CSV", "\ufeffUID,Sentence Bad,sentence_good,bad_2,comment",
        'order,"b, a",a b,a a,x', "order,d c,c d,,",
    )  # fmt: skip
    with pytest.raises(RecordError, match=r"a\.CSV:3: a sentence is empty"):
        read_pairs(path)
    path = write(path, *path.read_text().splitlines()[:2])
    read = read_pairs(path)
    assert read.records[0].choices == ("a b", "b, a", "a a")
    assert read.records[0].meta == {"paradigm": "order"}
    assert "columns that are not read: comment" in read.notices


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.jsonl", ["{}"], ":1: `sentence_good` is missing"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": None}], ":1: `sentence_bad` is missing or null;"),
        ("a.jsonl", [{"sentence_goood": "a"}], r"`sentence_good`.* \(did you mean 'sentence_goo"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": 3}], "choice 2 is a number"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": " "}], "a sentence is empty"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": list("abcde")}], "6 sentences; 2 to 5"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": ["x", "x "]}], ":1: the same sentence twice"),
        ("a.jsonl", [{**BLIMP, "UID": {}}], "`UID` is an object"),
        ("a.jsonl", [BLIMP, BLIMP], ":2: the id 'agreement-7' is that of line 1 too"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": "a [MASK]"}], r"\[MASK\] in the sentence 'a \[MAS"),
        ("a.jsonl", [], ":1: the file is empty"),
        ("a.jsonl", ["a b\tb a"], "this looks like CSV"),
        ("a.tsv", [], ":1: the file is empty"),
        ("a.tsv", ["a b\tb a", "a b"], r":2: 1 cell\(s\), where there are 2 columns with tabs"),
        ("a.tsv", ["a b\tb a\tc"], r":1: 3 cell\(s\).*needs a header"),
        ("a.tsv", ["right\twrong", "a b\tb a"], ":1: right, wrong: are these sentences, or names"),
        ("a.tsv", ["good\tsentence_bda", "a b\tb a"], r"0 named sentence_bad \(did you mean"),
        ("a.tsv", ["good\tbad\tid\tid", "a b\tb a\t1\t2"], "two columns for id"),
        ("a.csv", ['"a b,b a'], ":1: unexpected end of data; each pair is on one line"),
        ("a.csv", ["a b;b a"], "1 cell.*with commas between"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, name: str, lines: list[Any], message: str
) -> None:
    with pytest.raises(RecordError, match=rf"a\.{name[2:]}:.*{message}|a\.{name[2:]}{message}"):
        read_pairs(write(tmp_path / name, *lines))


def test_all_lines_with_the_same_sentence_twice_are_named_at_once(tmp_path: Path) -> None:
    same = {**BLIMP, "sentence_bad": "Cats sleep. "}
    rows = [{**same, "pairID": 1}, BLIMP, {**same, "pairID": 3}]
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(RecordError, match=r":1: the same .*\(lines 1, 3\)\..*<split>: \[1, 3\]\}"):
        read_pairs(path)
    read = read_pairs(path, leave_out=(1, 3))
    assert [record.position for record in read.records] == [2]
    assert read.notices == ("2 rows left out by the config (lines 1, 3)",)
