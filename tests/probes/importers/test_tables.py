from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.file import read_file, told_setup
from probelight.probes.importers.tables import read_table
from probelight.probes.record import Record
from probelight.probes.source import FILE_SPLIT, load_file, load_files, load_probe

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
    read = read_table(write(tmp_path / "mine.CSV", text), "mc_mlm")
    meta = {"cluster": "w", "hops": "2"}
    assert read.records == (
        Record("one", 'a "whale", it is [MASK] .', ("big", "small"), 0, meta, 2),
        Record("mine-4", "Él es [MASK] .", ("big, very", "small"), 1, {"cluster": "m"}, 4),
    )
    assert "columns that are not read: comment, column 8" in read.notices
    assert "1 blank lines skipped (lines 3)" in read.notices
    assert read.choices == ()


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
    other = load_file(path, "mc_mlm", ("big", "small"))
    assert data.files[0] == other.files[0]
    assert data.files[1].sha256 != other.files[1].sha256
    parts = load_files("a", {"train": path, "dev": path}, "mc_qa", ("big", "small"))
    assert parts["dev"].records[0].choices == ("big", "small")


def test_a_config_may_name_a_table(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", f"sentence,gold\n{WHALE},small\n")
    text = "setup: mc_mlm\nnum_choices: 2\nchance: 0.5\ncandidates: [big, small]\n"
    config = write(tmp_path / "mine.yaml", text + "files: {dev: a.csv}\n")
    assert load_probe(config, "dev").records[0].answer == 1


def test_tables_alone_need_no_setup() -> None:
    assert told_setup(["a.csv", "b.tsv.gz"]) == "mc_mlm"
    assert told_setup(["a.csv", "b.jsonl"]) is None
    assert told_setup(["a.csv.jsonl"]) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", HEAD, ":1: the file is empty"),
        ("a.csv", "sentense,gold,choices\n", ":1: no column is the sentence: .* It has sentense"),
        ("a.csv", f"{WHALE},big,big|small\n", ":1: no column is the sentence: the first line must"),
        ("a.csv", "sentence,gold\n", ":1: no column is the choices: .*those of all items"),
        ("a.csv", "text,stem,gold,choices\n", ":1: text and stem are both the sentence"),
        ("a.csv", "sentence_good,sentence_bad\n", ":1: these are columns of minimal pairs"),
        ("a.csv", "sentence;gold;choices\n", ":1: this line has semicolons between its cells"),
        ("a.csv", "sentence\tgold\tchoices\n", ":1: this line has tabs between its cells"),
        ("a.tsv", HEAD, ":1: this line has commas between its cells, and .* parted by tabs"),
        ("a.csv", f"{HEAD}so, {WHALE},big,big|small\n", r":2: 4 cell\(s\), where the header has 3"),
        ("a.csv", f"{HEAD}{WHALE},big\n", r":2: 2 cell\(s\)"),
        ("a.csv", f'{HEAD}"{WHALE},big,big|small\n', ":2: unexpected end of data; each item is"),
        ("a.csv", f"{HEAD}{WHALE},,big|small\n", ":2: no gold: its cell is empty"),
        ("a.csv", f"{HEAD}{WHALE},bigg,big|small\n", r":2: the gold 'bigg' is none .* mean 'big'"),
        ("a.csv", f"{HEAD}{WHALE},0,big|small\n", ":2: the gold '0' is none .* big, small; write"),
        ("a.csv", f"{HEAD}{WHALE},big,big\n", r":2: 1 choice\(s\) in 'big'; at least 2"),
        ("a.csv", f"{HEAD}{WHALE},big,big|small;red\n", r":2: .* both \| and ; between them"),
        ("a.csv", f"{HEAD}{WHALE},big,big||small\n", ":2: a choice is empty"),
        ("a.csv", f"{HEAD}{WHALE},big,big|big\n", ":2: the gold choice 'big' appears twice"),
        ("a.csv", f"{HEAD}{WHALE},big,[big\n", r":2: the choices '\[big' are no JSON list"),
        ("a.csv", f'{HEAD}{WHALE},big,"[""big"",1]"\n', ":2: .* are not all texts"),
        ("a.csv", f"{HEAD},big,big|small\n", r":2: no \[MASK\] in the sentence; .* mc_qa"),
        ("a.csv", f"{HEAD}a <mask> .,big,big|small\n", r":2: .*write \[MASK\] in place of '<mask>"),
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
