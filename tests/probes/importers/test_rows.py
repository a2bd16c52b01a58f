"""Every layout of items through every door: the same records, notices and refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import openpyxl
import pandas as pd
import pytest

from probelight.io.errors import RecordError
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.items import read_file, read_hub, read_items, write_ai2
from probelight.probes.importers.rows import ItemFile
from probelight.probes.record import GoldForm, Record, Setup
from probelight.probes.source import load_file, load_items

Rows = list[dict[str, Any]]
Door = Callable[..., ItemFile]


def cells(rows: Rows, listed: Callable[[Any], str] = "|".join) -> list[list[str]]:
    """The cells of a table: wrong sentences are columns, other lists and objects are cells."""
    several = [key for key, cell in rows[0].items() if key == "sentence_bad" and cell != str(cell)]
    columns = [c for key in rows[0] for c in [key] * (len(rows[0][key]) if key in several else 1)]
    table = [columns]
    for row in rows:
        table.append([])
        for key, cell in row.items():
            is_list = isinstance(cell, list)
            table[-1] += cell if key in several else [listed(cell) if is_list else cell]
    return [[json.dumps(c) if isinstance(c, dict) else str(c) for c in line] for line in table]


def table(rows: Rows, path: Path, delimiter: str = ",", **options: Any) -> Path:
    """The rows as a table of text."""
    lines = cells(rows, **options)
    if path.suffix == ".tsv":
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    else:
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(lines)
        path.write_text(text.getvalue(), encoding="utf-8")
    return path


def excel(rows: Rows, path: Path) -> Path:
    book = openpyxl.Workbook()
    for line in cells(rows):
        book.active.append(line)
    book.save(path)
    return path


def parquet(rows: Rows, path: Path) -> Path:
    pd.DataFrame(rows).to_parquet(path)
    return path


def array(rows: Rows, path: Path) -> Path:
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def lines(rows: Rows, path: Path) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def hub(rows: Rows, folder: Path, setup: Setup, **options: Any) -> ItemFile:
    (folder / "data").mkdir(exist_ok=True)
    lines(rows, folder / "data" / "train.json")
    source = HubSource(str(folder / "data"), {"train": "train"})
    config = replace(ProbeConfig("items", setup, 5, 0.2, hub=source), **options)
    return read_hub(config, "train", cache_dir=folder / "cache")


DOORS: dict[str, Door] = {
    "csv": lambda rows, at, setup, **o: read_file(table(rows, at / "items.csv"), setup, **o),
    "tsv": lambda rows, at, setup, **o: read_file(table(rows, at / "items.tsv"), setup, **o),
    ";": lambda rows, at, setup, **o: read_file(table(rows, at / "items.csv", ";"), setup, **o),
    "as Python writes lists": lambda rows, at, setup, **o: read_file(
        table(rows, at / "items.csv", listed=str), setup, **o
    ),
    "as numpy prints lists": lambda rows, at, setup, **o: read_file(
        table(rows, at / "items.csv", listed=lambda cell: str(np.array(cell, object))), setup, **o
    ),
    "xlsx": lambda rows, at, setup, **o: read_file(excel(rows, at / "items.xlsx"), setup, **o),
    "parquet": lambda rows, at, setup, **o: read_file(
        parquet(rows, at / "items.parquet"), setup, **o
    ),
    "json": lambda rows, at, setup, **o: read_file(array(rows, at / "items.json"), setup, **o),
    "jsonl": lambda rows, at, setup, **o: read_file(lines(rows, at / "items.jsonl"), setup, **o),
    "gz": lambda rows, at, setup, **o: read_file(lines(rows, at / "items.jsonl.gz"), setup, **o),
    "list": lambda rows, at, setup, **o: read_items(rows, setup, **o),
    "DataFrame": lambda rows, at, setup, **o: read_items(pd.DataFrame(rows), setup, **o),
    "Dataset": lambda rows, at, setup, **o: read_items(
        datasets.Dataset.from_list(rows), setup, **o
    ),
    "Hub": hub,
}
TABLES = [DOORS[name] for name in ("csv", "tsv", ";", "xlsx")]
TABLES += [DOORS[f"as {name} lists"] for name in ("Python writes", "numpy prints")]
every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)

WHALE = "A whale is [MASK] than a mouse."
SIZES = ("larger", "smaller")
CAT = ("tree", "animal", "stone")
SCIQ = {"question": "What gas?", "correct_answer": "oxygen"}
SCIQ |= {f"distractor{number}": gas for number, gas in enumerate(("argon", "neon", "xenon"), 1)}
RACE = {"example_id": "high1", "article": "It rained.", "question": "The day was _ ."}
RACE |= {"options": ["dry", "wet"], "answer": "B"}
PAIR = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps."}
LABELLED = [{"label": "1", "text": "tree"}, {"label": "2", "text": "animal"}]


def item(stem: str, choices: tuple[str, ...], answer: int, **meta: Any) -> Record:
    return Record("", stem, choices, answer, meta)


def without_ids(records: tuple[Record, ...]) -> list[Record]:
    """Records without their place, and without the id that only says it."""
    assert all(record.position for record in records)
    defaults = {record: f"items-{record.position}" for record in records}
    return [replace(r, id="" if r.id == defaults[r] else r.id, position=0) for r in records]


# Rows, their setup, and their records: the second of two rows makes the form of golds plain.
LAYOUTS: dict[str, tuple[Rows, Setup, list[Record]]] = {
    "texts": (
        [{"sentence": WHALE, "choices": [*SIZES], "gold": "smaller", "group": "w", "hops": 2}],
        "mc_mlm",
        [item(WHALE, SIZES, 1, cluster="w", hops=2)],
    ),
    "own ids, other names": (
        [{"ID": 7, "Text": WHALE, "candidates": "larger|smaller", "label": "larger"}],
        "mc_mlm",
        [Record("7", WHALE, SIZES, 0)],
    ),
    "letters": (
        [{"question": "A cat?", "choices": [*CAT], "answer": "C"}],
        "mc_qa",
        [item("A cat?", CAT, 2)],
    ),
    "numbers from 0": (
        [{"stem": "A cat?", "choices": [*CAT], "answer": number} for number in (1, 0)],
        "mc_qa",
        [item("A cat?", CAT, 1), item("A cat?", CAT, 0)],
    ),
    "numbers from 1": (
        [{"stem": "A cat?", "choices": [*CAT], "answer": number} for number in (1, 3)],
        "mc_qa",
        [item("A cat?", CAT, 0), item("A cat?", CAT, 2)],
    ),
    "a Hub's labels": (
        [
            {
                "id": "q",
                "question_stem": "A cat?",
                "choices": {"text": [*CAT], "label": ["A", "B", "C"]},
                "answerKey": "B",
            }
        ],
        "mc_qa",
        [Record("q", "A cat?", CAT, 1)],
    ),
    "AI2": (
        [
            {
                "id": "q",
                "question": {"stem": "A cat?", "choices": LABELLED},
                "answerKey": "2",
                "notes": {"cluster": "c", "pos": "n"},
            }
        ],
        "mc_qa",
        [Record("q", "A cat?", CAT[:2], 1, {"cluster": "c", "pos": "n"})],
    ),
    # In the order of `printf "What gas?\0xenon" | sha256sum` and so on: 2929, 2dbb, 4001, 81cd.
    "SciQ": ([SCIQ], "mc_qa", [item("What gas?", ("xenon", "oxygen", "argon", "neon"), 1)]),
    "RACE": (
        [RACE],
        "mc_qa",
        [
            item(
                "It rained.",
                ("The day was dry .", "The day was wet ."),
                1,
                source="high1",
                question="The day was _ .",
            )
        ],
    ),
    "BLiMP": (
        [{**PAIR, "UID": "agreement", "pairID": "3"}],
        "minimal_pair",
        [Record("agreement-3", "", tuple(PAIR.values()), 0, {"paradigm": "agreement"})],
    ),
    "several wrong sentences": (
        [{**PAIR, "sentence_bad": ["Cats sleeps.", "Cat sleep."]}],
        "minimal_pair",
        [item("", ("Cats sleep.", "Cats sleeps.", "Cat sleep."), 0)],
    ),
    "numbered wrong sentences": (
        [{"Grammatical sentence": "a b", "bad_1": "b a", "bad-2": "a a"}],
        "minimal_pair",
        [item("", ("a b", "b a", "a a"), 0)],
    ),
    "columns of choices": (
        [
            {"question": "A cat?", "B": "animal", "A": "tree", "C": "stone", "answer": "B"},
            {"question": "A dog?", "B": "animal", "A": "tree", "C": "", "answer": "A"},
        ],
        "mc_qa",
        [item("A cat?", CAT, 1), item("A dog?", CAT[:2], 0)],
    ),
    "MedMCQA": (
        [
            {"question": q, "opa": "tree", "opb": "animal", "opc": "stone", "cop": gold, "exp": "x"}
            for q, gold in (("A cat?", 1), ("A rock?", 0))
        ],
        "mc_qa",
        [item("A cat?", CAT, 1), item("A rock?", CAT, 0)],
    ),
    "PIQA": (
        [{"goal": "To sit", "sol1": "Use a chair.", "sol2": "Use a pin.", "label": 0}],
        "mc_qa",
        [item("To sit", ("Use a chair.", "Use a pin."), 0)],
    ),
    "HellaSwag": (
        [
            {"ind": 4, "ctx_a": "A man", "ctx": "A man sits. He", "endings": [*CAT], "label": "0"},
            {"ind": 5, "ctx_a": "A man", "ctx": "A man runs. He", "endings": [*CAT], "label": "2"},
        ],
        "mc_qa",
        [item("A man sits. He", CAT, 0), item("A man runs. He", CAT, 2)],
    ),
    "COPA": (
        [
            {
                "premise": "It rained.",
                "choice1": "I got wet.",
                "choice2": "It was May.",
                "question": relation,
                "label": label,
                "idx": label,
            }
            for relation, label in (("effect", 0), ("cause", 1))
        ],
        "mc_qa",
        [
            item("It rained so", ("i got wet.", "it was May."), 0),
            item("It rained because", ("i got wet.", "it was May."), 1),
        ],
    ),
    "SocialIQA": (
        [
            {
                "context": "Al ran.",
                "question": "Why?",
                "answerA": "a",
                "answerB": "b",
                "answerC": "c",
                "label": label,
            }
            for label in ("1", "3")
        ],
        "mc_qa",
        [item("Al ran. Why?", ("a", "b", "c"), 0), item("Al ran. Why?", ("a", "b", "c"), 2)],
    ),
    "BoolQ": (
        [
            {"passage": "Cats mew. ", "question": "do cats mew", "answer": True},
            {"passage": "Cats mew.", "question": "do dogs mew?", "answer": False},
        ],
        "mc_qa",
        [
            item("Cats mew. do cats mew?", ("no", "yes"), 1, passage="Cats mew."),
            item("Cats mew. do dogs mew?", ("no", "yes"), 0, passage="Cats mew."),
        ],
    ),
    "BoolQ of SuperGLUE": (
        [{"passage": "Cats mew.", "question": "do cats mew", "label": 1, "idx": 3}],
        "mc_qa",
        [item("Cats mew. do cats mew?", ("no", "yes"), 1, passage="Cats mew.")],
    ),
    "TruthfulQA": (
        [{"question": "A cat?", "mc1_targets": {"choices": [*CAT], "labels": [0, 1, 0]}}],
        "mc_qa",
        [item("A cat?", CAT, 1)],
    ),
    "TruthfulQA's own file": (
        [{"question": "A cat?", "mc1_targets": {"tree": 0, "animal": 1, "stone": 0}}],
        "mc_qa",
        [item("A cat?", CAT, 1)],
    ),
    "thirty choices": (
        [{"question": "A cat?", "choices": [f"c{n}" for n in range(30)], "answer": "c29"}],
        "mc_qa",
        [item("A cat?", tuple(f"c{n}" for n in range(30)), 29)],
    ),
}


@every_door
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_makes_the_same_records_through_each_door(
    door: Door, layout: str, tmp_path: Path
) -> None:
    rows, setup, expected = LAYOUTS[layout]
    if layout == "AI2" and door in TABLES:
        pytest.skip("a cell holds no objects within objects")
    records = door(rows, tmp_path, setup).records
    assert without_ids(records) == expected
    if setup != "minimal_pair":
        write_ai2(tmp_path / "again.jsonl", records)
        again = read_file(tmp_path / "again.jsonl", setup).records
        assert [(r.choices, r.answer, r.meta) for r in again] == [
            (r.choices, r.answer, r.meta) for r in expected
        ]


Q, CHOICES = "A cat?", [*CAT]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two answers": ({"answer": "tree", "label": "tree"}, "answer and label both name the gold"),
    "a nested and another": ({"answerKey": "tree", "gold": 1}, "answerKey and gold both name the"),
    "one name twice": ({"gold": "tree", "Gold ": "stone"}, "gold and Gold both name the gold"),
    "two questions": ({"gold": "tree", "text": "Why?"}, "question and text are two texts; write"),
    "a context": ({"gold": "tree", "context": "It mews."}, "question and context are two texts"),
    "two sets of choices": ({"gold": "tree", "options": "a|b"}, "choices and options both hold"),
    "more wrong choices": ({"gold": "tree", "distractor1": "x"}, "choices and distractor1 both"),
    "two groups": ({"gold": "tree", "group": "a", "cluster": "b"}, "group and cluster both name"),
    "no gold": ({"gold": ""}, "no gold: `gold` is missing or null"),
    "no column for the gold": ({"correct": "tree"}, "no column for the gold: .* choices, correct"),
    "a gold that is none": ({"gold": "tre"}, r"the gold 'tre' is not .* \(did you mean 'tree'"),
    "a column and columns": ({"gold": "tree", "A": "x", "B": "y"}, "choices and A both hold"),
    "hops": ({"gold": "tree", "hops": "2.5"}, "`hops` is '2.5'; a whole number is needed"),
}


@every_door
@pytest.mark.parametrize(("row", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_be_read_in_two_ways_is_refused_through_each_door(
    door: Door, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    row = {"question": Q, "choices": CHOICES, **row}
    with pytest.raises(RecordError, match=message):
        door([row], tmp_path, "mc_qa")


COLUMNS: dict[str, tuple[str, str]] = {
    "two sets": ("question,A,B,choice1,choice2,answer", "A, B and choice1, choice2 both hold"),
    "one missing": ("question,A,B,D,answer", "the columns A, B, D hold choices, but one between"),
    "no first": ("question,option_b,option_c,answer", "option_b, option_c hold choices, but"),
    "one twice": ("question,option_a,optionA,optionB,answer", "option_a and optionA both name one"),
    "a single one": ("question,choice1,answer", "no column for the choices"),
    "another set about passages": ("passage,question,A,B,answer", "passage and question are two"),
    "BoolQ and choices": ("passage,question,choices,answer", "passage and question are two"),
    "COPA without its question": ("premise,choice1,choice2,label", "no column for the"),
}


@pytest.mark.parametrize(("header", "message"), COLUMNS.values(), ids=COLUMNS)
def test_columns_that_may_be_read_in_two_ways_are_refused(
    header: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{','.join('x' for _ in header.split(','))}\n", encoding="utf-8")
    with pytest.raises(RecordError, match=rf"a\.csv:1: .*{message}"):
        read_file(path)


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "a hole": ({"question": Q, "A": "x", "B": "", "C": "y", "answer": "A"}, "`B` is empty"),
    "one left": ({"question": Q, "A": "x", "B": "", "answer": "A"}, r"1 choice\(s\)"),
    "a fraction": ({"question": Q, "A": 0.5, "B": 1, "answer": "A"}, "`A` is a number; a string"),
    "no boolean": (
        {"passage": "x", "question": "y", "answer": "May"},
        "the answer 'May' is not true or false",
    ),
    "no answer": ({"passage": "x", "question": "y", "answer": None}, "no gold"),
    "no relation": (
        {"premise": "x", "question": "why", "choice1": "a", "choice2": "b", "label": 0},
        "`question` is 'why', not cause or effect",
    ),
    "two truths": (
        {"question": Q, "mc1_targets": {"choices": ["a", "b"], "labels": [1, 1]}},
        "must have the label 1 for one choice",
    ),
    "too few labels": (
        {"question": Q, "mc1_targets": {"choices": ["a", "b", "c"], "labels": [1, 0]}},
        "two lists of the same length",
    ),
}


@pytest.mark.parametrize(("row", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_row_of_a_released_set_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=f"items:1: .*{message}"):
        read_items([row])


@every_door
def test_what_is_not_read_is_named_through_each_door(door: Door, tmp_path: Path) -> None:
    row = {"question": Q, "choices": CHOICES, "answer": "B", "colour": "red", "UID": "u"}
    read = door([row], tmp_path, "mc_qa")
    assert "columns ignored: colour, UID" in read.notices
    assert "1 rows have no id and are named by their line numbers" in read.notices
    assert "each gold is read as a letter (A is the first choice)" in read.notices


def test_a_group_counts_in_memory_as_it_does_in_a_file(tmp_path: Path) -> None:
    rows = [
        {"sentence": WHALE, "choices": [*SIZES], "gold": "larger", "group": group}
        for group in ("a", "a", "b")
    ]
    sets = [load_items(rows), load_file(lines(rows, tmp_path / "a.jsonl"))]
    sets.append(load_file(table(rows, tmp_path / "a.csv")))
    assert {probe.config.group_by for probe in sets} == {"cluster"}
    assert {tuple(r.meta["cluster"] for r in probe.records) for probe in sets} == {("a", "a", "b")}


def rows_of(choices: str, *golds: object) -> Rows:
    return [{"question": Q, "choices": choices.split("|"), "gold": gold} for gold in golds]


# The choices of all rows and their golds, how they are said to be read, and the right indices.
READ: dict[str, tuple[Rows, GoldForm | None, list[int]]] = {
    "texts": (rows_of("tree|animal", "animal", "tree"), None, [1, 0]),
    "texts, one of which is a number": (rows_of("2|1|0|many", 0, "many"), None, [2, 3]),
    "both ways make the same items": (rows_of("0|1|2", 0, 2), None, [0, 2]),
    "letters as texts in their order": (rows_of("A|B", "A", "B"), None, [0, 1]),
    "letters": (rows_of("b|a|B", "A", "C"), None, [0, 2]),
    "0 is never a number from 1": (rows_of("a|b|c", 1, 0), None, [1, 0]),
    "nor 3 of 3 from 0": (rows_of("a|b|c", 1, "3"), None, [0, 2]),
    "MMLU's answer, from 0": (rows_of("1|2|3|4", 3), "index", [3]),
    "MMLU's answer, as a text": (rows_of("1|2|3|4", 3), "text", [2]),
    "from 1": (rows_of("4|3|2|1", 3), "index1", [2]),
    "letters that are texts": (rows_of("B|A", "A"), "letter", [0]),
    "texts that are letters": (rows_of("B|A", "A"), "text", [1]),
}


@every_door
@pytest.mark.parametrize(("rows", "form", "answers"), READ.values(), ids=READ)
def test_golds_are_read_in_the_one_way_that_fits_all(
    door: Door, rows: Rows, form: GoldForm | None, answers: list[int], tmp_path: Path
) -> None:
    many_types = (DOORS["list"], DOORS["jsonl"], DOORS["json"])
    rows = rows if door in many_types else one_type(rows)
    assert [r.answer for r in door(rows, tmp_path, "mc_qa", gold=form).records] == answers


def one_type(rows: Rows) -> Rows:
    """The rows with golds as texts, where a column has one type."""
    return [row | {"gold": str(row["gold"])} for row in rows]


TWO_WAYS: dict[str, tuple[Rows, GoldForm | None, str]] = {
    "0+0?": (
        rows_of("2|1|0", 0),
        None,
        r"'0' can be the text of a choice, '0' or a number from 0 \(0 is the first choice\), '2',"
        " and .*--data.gold text or --data.gold index ",
    ),
    "MMLU": (rows_of("1|2|3|4", 3), None, "text of a choice, '3' or a number from 0 .*, '4'"),
    "letters": (rows_of("B|A", "A"), None, "give --data.gold text or --data.gold letter"),
    "0 or 1": (rows_of("a|b|c", 1, 2), None, "'1' can be a number from 0 .*, 'b' or .* from 1"),
    "several forms": (rows_of("a|b|c", "a", 0), None, "several ways.*index: 'a'.*text: '0'"),
    "from 0 and from 1": (rows_of("a|b", 0, 2), None, "index1: '0' .*, index: '2'|index: '2'"),
    "not as it is said": (rows_of("a|b", 2), "index", "'2' is not one .* as a number from 0"),
}


@every_door
@pytest.mark.parametrize(("rows", "form", "message"), TWO_WAYS.values(), ids=TWO_WAYS)
def test_golds_that_can_be_read_in_two_ways_are_refused(
    door: Door, rows: Rows, form: GoldForm | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=message):
        door(one_type(rows), tmp_path, "mc_qa", gold=form)


def test_a_label_is_a_label_whatever_the_choices_say() -> None:
    choices = [{"label": "1", "text": "2"}, {"label": "2", "text": "1"}]
    row = {"question": {"stem": "1+1?", "choices": choices}, "answerKey": 1}
    read = read_items([row])
    assert read.records[0].gold == "2"
    assert not any("gold is read" in notice for notice in read.notices)
