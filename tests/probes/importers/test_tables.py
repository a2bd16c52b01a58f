from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.items import read_file
from probelight.probes.record import Record
from probelight.probes.source import (
    FILE_SPLIT,
    load_file,
    load_files,
    load_probe,
)

HEAD = "sentence,gold,choices\n"
WHALE = "a whale is [MASK] ."


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_a_spreadsheets_table_is_read_by_its_header(tmp_path: Path) -> None:
    text = (
        "\ufeffGold,Text,Candidates,group,hops,ID,comment,\r\n"
        'big,"a ""whale"", it is [MASK] .",big|small,w,2,one,x,\r\n'
        '\r\nsmall,Él es [MASK] .,"[""big, very"", ""small""]",m,,,,\r\n'
    )
    read = read_file(write(tmp_path / "mine.CSV", text), "mc_mlm")
    meta = {"cluster": "w", "hops": 2}
    assert read.records == (
        Record("one", 'a "whale", it is [MASK] .', ("big", "small"), 0, meta, 2),
        Record("mine-4", "Él es [MASK] .", ("big, very", "small"), 1, {"cluster": "m"}, 4),
    )
    assert "columns ignored: comment, column 8" in read.notices
    assert "1 blank lines skipped (lines 3)" in read.notices
    assert len(read.files) == 1  # no choices of all items


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_csv_may_have_semicolons_or_tabs_and_cells_of_several_lines(
    mark: str, tmp_path: Path
) -> None:
    lines = [
        f"{mark}sentence{mark}gold{mark}choices",
        f'0{mark}"a, [MASK]\nb"{mark}big{mark}big|wet',
    ]
    lines += [f"{mark * 3}", f"1{mark}a [MASK]{mark}wet{mark}big|wet"]
    read = read_file(write(tmp_path / "a.csv", "\r\n".join(lines)), "mc_mlm")
    assert [(r.stem, r.gold, r.id) for r in read.records] == [
        ("a, [MASK]\nb", "big", "a-2"),
        ("a [MASK]", "wet", "a-5"),
    ]
    assert "1 blank lines skipped (lines 4)" in read.notices
    assert "the unnamed first column (a pandas index?) is ignored" in read.notices


def test_tabs_part_the_cells_of_tsv_and_quotation_marks_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b'question\tlabel\tchoices\nwho said "a, b?\tyou\tme;you\n'))
    [record] = read_file(path, "mc_qa").records
    assert (record.stem, record.choices, record.answer) == ('who said "a, b?', ("me", "you"), 1)


def test_the_choices_of_all_items_are_told_once_and_are_a_part_of_the_data(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"sentence,gold\n{WHALE},big\n")
    choices = ("tall", "big", "red", "old", "wet", "new")  # more than the AI2 format has letters
    data = load_file(path, "mc_mlm", choices)
    assert data.records[0].choices == data.config.candidates == choices
    again = load_probe(data.config, FILE_SPLIT)  # as the process of a run reads it
    assert (again.records, again.files) == (data.records, data.files)
    reversed_data = load_file(path, "mc_mlm", ("big", "small"))
    assert data.files[0] == reversed_data.files[0]
    assert data.files[1].sha256 != reversed_data.files[1].sha256
    splits = load_files("a", {"train": path, "dev": path}, "mc_qa", ("big", "small"))
    assert splits["dev"].records[0].choices == ("big", "small")


def test_a_config_may_name_a_table(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", f"sentence,gold\n{WHALE},small\n")
    text = "setup: mc_mlm\nnum_choices: 2\nchance: 0.5\ncandidates: [big, small]\n"
    config = write(tmp_path / "mine.yaml", text + "files: {dev: a.csv}\n")
    assert load_probe(config, "dev").records[0].answer == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", HEAD, ":1: the file is empty"),
        (
            "a.csv",
            "sentense,gold,choices\n",
            ":1: no column for the sentence: .* There are sentense",
        ),
        ("a.csv", f"{WHALE},big,big|small\n", ":1: no column for the sentence: .*the first line"),
        ("a.csv", "sentence,gold\n", ":1: no column for the choices: .*for all items"),
        ("a.csv", "text,stem,gold,choices\n", ":1: text and stem are two texts; write them in one"),
        ("a.csv", "sentence_good,sentence_bad\n", ":1: these are columns of minimal pairs"),
        ("a.tsv", HEAD, ":1: this line has commas between its cells, not tabs: save it as .csv"),
        ("a.csv", f"{HEAD}so, {WHALE},big,big|small\n", r":2: 4 cell\(s\), but the header has 3"),
        ("a.csv", f"{HEAD}{WHALE},big\n", r":2: 2 cell\(s\)"),
        (
            "a.csv",
            f'{HEAD}"{WHALE},big,big|small\n',
            ":2: unexpected end of data; put a cell with a comma, a line",
        ),
        ("a.csv", f"{HEAD}{WHALE},,big|small\n", ":2: no gold: `gold` is missing"),
        (
            "a.csv",
            f"{HEAD}{WHALE},bigg,big|small\n",
            r":2: the gold 'bigg' is not one .* mean 'big'",
        ),
        (
            "a.csv",
            f"{HEAD}{WHALE},3,big|small\n",
            ":2: the gold '3' is not one .* big, small; write",
        ),
        (
            "a.csv",
            f"{HEAD}{WHALE},big,big\n",
            r":2: 'big' is read as 1 choice\(s\), but at least 2",
        ),
        ("a.csv", f"{HEAD}{WHALE},big,big|small;red\n", r":2: .* both \| and ; between them"),
        ("a.csv", f"{HEAD}{WHALE},big,big||small\n", ":2: a choice is empty"),
        ("a.csv", f"{HEAD}{WHALE},big,big|big\n", ":2: the gold choice 'big' appears twice"),
        ("a.csv", f"{HEAD}{WHALE},big,[big\n", r":2: '\[big' is not a list or an object as"),
        (
            "a.csv",
            f'{HEAD}{WHALE},big,"[""big"",1]"\n',
            ":2: choice 2 is a number; a string is needed",
        ),
        ("a.csv", f"{HEAD},big,big|small\n", ":2: `sentence` is missing or null"),
        ("a.csv", f"{HEAD}It is.,big,big|small\n", r":2: 0 \[MASK\] in the stem; .* mc_qa"),
        ("a.csv", f"{HEAD}a <mask> .,big,big|small\n", r":2: .*write \[MASK\] instead of '<mask>"),
        ("a.csv", f"id,hops,{HEAD}1,two,{WHALE},big,big|small\n", ":2: `hops` .* whole number"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(RecordError, match=rf"{name[1:]}{message}"):
        load_file(path, "mc_mlm")


def test_choices_that_the_items_have_are_not_told_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"{HEAD}{WHALE},big,big|small\n")
    with pytest.raises(RecordError, match="have choices of their own; leave"):
        load_file(path, "mc_mlm", ("big", "small"))


# The fields of a released row, with what is not read.
BLIMP = {
    "sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "field": "syntax",
    "UID": "agreement", "simple_LM_method": True, "pairID": "7",
}  # fmt: skip


def write_pairs(path: Path, *lines: str | dict[str, Any]) -> Path:
    text = "".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines)
    path.write_text(text, encoding="utf-8")
    return path


def sentences(path: Path) -> list[tuple[str, ...]]:
    read = read_file(path, "minimal_pair")
    assert all(record.stem == "" and record.answer == 0 for record in read.records)
    return [record.choices for record in read.records]


def test_fields_of_blimp_are_its_paradigm_and_id(tmp_path: Path) -> None:
    islands = {**BLIMP, "UID": "islands"}
    read = read_file(write_pairs(tmp_path / "a.jsonl", BLIMP, islands), "minimal_pair")
    sentences_of_row = ("Cats sleep.", "Cats sleeps.")
    meta = {"paradigm": "agreement"}
    assert read.records[0] == Record("agreement-7", "", sentences_of_row, 0, meta, 1)
    assert [record.id for record in read.records] == ["agreement-7", "islands-7"]
    assert read.notices == ("columns ignored: field, simple_LM_method",)


def test_more_wrong_sentences_own_ids_and_facts_are_kept(tmp_path: Path) -> None:
    row = {"sentence_good": "a b", "sentence_bad": ["b a", "a a"], "id": 5, "cluster": "c"}
    ai2 = {
        "id": "q", "answerKey": "2", "notes": {"paradigm": "order"}, "question": {
            "stem": "", "choices": [{"label": "1", "text": "x y"}, {"label": "2", "text": "y x"}]
        },
    }  # fmt: skip
    first, second = read_file(write_pairs(tmp_path / "a.jsonl", row, ai2), "minimal_pair").records
    assert (first.id, first.choices, first.meta) == ("5", ("a b", "b a", "a a"), {"cluster": "c"})
    assert (second.gold, second.meta) == ("y x", {"paradigm": "order"})


def test_two_columns_without_a_header(tmp_path: Path) -> None:
    path = write_pairs(
        tmp_path / "a.tsv", 'She said "no".\tShe say "no".', "", "Él durmió.\tÉl dormió."
    )
    expected = [('She said "no".', 'She say "no".'), ("Él durmió.", "Él dormió.")]
    assert sentences(path) == expected
    read = read_file(path, "minimal_pair")
    assert [record.name for record in read.records] == ["a-1@1", "a-3@3"]
    assert any("no header: its first column is read as the right" in n for n in read.notices)
    packed = tmp_path / "a.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert sentences(packed) == expected


def test_a_header_says_what_the_columns_are(tmp_path: Path) -> None:
    path = write_pairs(
        tmp_path / "a.CSV", "\ufeffUID,Sentence Bad,sentence_good,bad_2,comment",
        'order,"b, a",a b,a a,x', "order,d c,c d,,",
    )  # fmt: skip
    with pytest.raises(RecordError, match=r"a\.CSV:3: a sentence is empty"):
        read_file(path, "minimal_pair")
    path = write_pairs(path, *path.read_text().splitlines()[:2])
    read = read_file(path, "minimal_pair")
    assert read.records[0].choices == ("a b", "b, a", "a a")
    assert read.records[0].meta == {"paradigm": "order"}
    assert "columns ignored: comment" in read.notices


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.jsonl", ["{}"], ":1: minimal pairs need a column sentence_good"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": None}], ":1: a sentence is empty"),
        ("a.jsonl", [{"sentence_good": "a"}], "need .*sentence_bad, but .* are sentence_good$"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": 3}], "a sentence is a number"),
        ("a.jsonl", [{**BLIMP, "good": "x"}], "sentence_good and good cannot be columns of one"),
        ("a.jsonl", [{**BLIMP, "label": 1}], "sentence_good and label cannot be columns of one"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": " "}], "a sentence is empty"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": ["x", "x "]}], ":1: the same sentence twice"),
        ("a.jsonl", [{**BLIMP, "UID": {}}], "`UID` is an object"),
        ("a.jsonl", [BLIMP, BLIMP], ":2: line 1 has the id 'agreement-7' too"),
        ("a.jsonl", [{**BLIMP, "sentence_bad": "a [MASK]"}], r"\[MASK\] in the sentence 'a \[MAS"),
        ("a.jsonl", [], ":1: the file is empty"),
        ("a.jsonl", ["a b\tb a"], "this looks like CSV"),
        ("a.tsv", [], ":1: the file is empty"),
        ("a.tsv", ["a b\tb a", "a b"], r":2: 1 cell\(s\), but the header has 2 columns"),
        ("a.tsv", ["a b\tb a\tc"], r":1: 3 cell\(s\).*need a header"),
        ("a.tsv", ["good\tsentence_bda", "a b\tb a"], ":1: minimal pairs need .* sentence_bda$"),
        ("a.tsv", ["good\tbad\tid\tid", "a b\tb a\t1\t2"], "id and id both name the id"),
        ("a.csv", ['"a b,b a'], ":1: unexpected end of data; put a cell"),
    ],
)
def test_what_is_wrong_of_pairs_is_said_with_file_and_line(
    tmp_path: Path, name: str, lines: list[Any], message: str
) -> None:
    with pytest.raises(RecordError, match=rf"a\.{name[2:]}:.*{message}|a\.{name[2:]}{message}"):
        read_file(write_pairs(tmp_path / name, *lines), "minimal_pair")


def test_all_lines_with_the_same_sentence_twice_are_named_at_once(tmp_path: Path) -> None:
    same = {**BLIMP, "sentence_bad": "Cats sleep. "}
    rows = [{**same, "pairID": 1}, BLIMP, {**same, "pairID": 3}]
    path = write_pairs(tmp_path / "a.jsonl", *rows)
    with pytest.raises(RecordError, match=r":1: the same .*\(lines 1, 3\)\..*<split>: \[1, 3\]\}"):
        read_file(path, "minimal_pair")
    read = read_file(path, "minimal_pair", leave_out=(1, 3))
    assert [record.position for record in read.records] == [2]
    assert read.notices[0] == "2 rows left out by the config (lines 1, 3)"


@pytest.mark.parametrize(
    ("header", "is_right_first"),
    [
        ("sentence_good\tsentence_bad", True),
        ("Ungrammatical sentence\tGrammatical sentence", False),
        ("ungrammatical-sentence\tgrammatical-sentence", False),
        ("WRONG\tRIGHT", False),
        ("Incorrect sentence\tCorrect sentence", False),
        ("Unacceptable\tAcceptable", False),
        ("good sentences\tbad sentences", True),
        ("bad.1\tgood", False),
    ],
)
def test_a_header_in_words_says_which_sentence_is_right(
    header: str, is_right_first: bool, tmp_path: Path
) -> None:
    lines = ["Cats sleep.\tCats sleeps.", "A dog barks.\tA dog bark."]
    pairs = [tuple(line.split("\t")) for line in lines]
    expected = pairs if is_right_first else [pair[::-1] for pair in pairs]
    assert sentences(write_pairs(tmp_path / "a.tsv", header, *lines)) == expected


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("Sentence one\tSentence two", ["a b c\tb a c", "d e f\te d f"]),
        ("Original\tModified", ["Cats sleep.\tCats sleeps."]),
        ("First version\tSecond version", ["Cats sleep\tCats sleeps"]),
        ("Well-formed one\tIll-formed one", ["Cats sleep.\tCats sleeps."]),
        ("not grammatical\tthe other", ["Cats sleep\tCats sleeps"]),
        ("合法\t非法", ["猫睡觉。\t猫睡睡觉。"]),
        ("Target of the pair\tFoil", ["Cats sleep\tCats sleeps"]),
        ("a b\tb a", []),
    ],
)
def test_a_first_line_that_may_be_a_header_is_refused(
    header: str, lines: list[str], tmp_path: Path
) -> None:
    path = write_pairs(tmp_path / "a.tsv", header, *lines)
    with pytest.raises(RecordError, match=r"a\.tsv:1: .*: are these sentences or names of col"):
        read_file(path, "minimal_pair")


def test_sentences_about_what_is_good_or_right_need_no_header(tmp_path: Path) -> None:
    lines = ["The good sentence is right.\tThe good sentence are right.", "It is.\tIt are."]
    expected = [tuple(line.split("\t")) for line in lines]
    assert sentences(write_pairs(tmp_path / "a.tsv", *lines)) == expected
