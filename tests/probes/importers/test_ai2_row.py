from __future__ import annotations

import json
from typing import Any

import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.ai2_row import parse_row, record_from_row
from probelight.probes.record import Record, Setup
from tests.probes.importers.rows import choices, row


def read(line: Any, setup: Setup | None = "mc_mlm") -> Record:
    """The record of a line, or of a row that is written as one."""
    text = line if isinstance(line, str) else json.dumps(line)
    return record_from_row(parse_row(text), setup, default_id="mine-4", position=4)


def test_a_row_becomes_a_record() -> None:
    assert read(row()) == Record("x", "He is [MASK] than me", ("older", "younger"), 1, {}, 4)


@pytest.mark.parametrize(("label", "key"), [("0", "1"), (0, 1), (0, "1"), ("0", 1)])
def test_labels_and_keys_are_strings_or_integers(label: Any, key: Any) -> None:
    texts = [{"label": label, "text": "a"}, {"label": type(label)(1), "text": "b"}]
    assert read(row(question={"choices": texts}, answerKey=key)).gold == "b"


@pytest.mark.parametrize(("given", "name"), [(7, "7"), ("x", "x"), (None, "mine-4")])
def test_an_id_is_a_string_or_an_integer_or_the_name_of_the_place(given: Any, name: str) -> None:
    assert read(row(id=given)).id == name


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
    "not JSON": ('{"id": ', "invalid JSON: Expecting value at character 8"),
    "NaN": (json.dumps(row(notes={"a": float("nan")})), "NaN is not a JSON value"),
    "a number of 5,000 digits": ('{"id": ' + "9" * 5000 + "}", "invalid JSON: .*4300"),
    "a thousand brackets": ("[" * 100_000, "invalid JSON"),
    "a list": ("[1]", "a list, where an object"),
    "a string": ('"x"', "a string, where an object"),
    "null": ("null", "missing or null, where an object"),
    "key twice": (TWO_KEYS, "'answerKey' is given twice"),
    "no question": ({"id": "1"}, "`question` is missing"),
    "question is text": ({"question": "why?"}, "`question` is a string"),
    "no stem": ({"question": {"choices": []}}, "`question.stem` is missing"),
    "stem is a number": (row(question={"stem": 3}), "`question.stem` is a number"),
    "empty stem": (row(question={"stem": " "}), "the stem is empty"),
    "half a surrogate": (row(question={"stem": "\ud800 [MASK]"}), "half of a character"),
    "no choices": (row(question={"choices": None}), "`question.choices` is missing or null"),
    "one choice": (row(question=choices("a")), r"1 choice\(s\); 2 to 5"),
    "six choices": (row(question=choices(*"abcdef")), r"6 choice\(s\); 2 to 5"),
    "choice is text": (row(question={"choices": ["a", "b"]}), "choice 1 is a string"),
    "choice without text": (
        row(question={"choices": [{"label": "A"}, {"label": "B"}]}),
        "the text of choice 1 is missing",
    ),
    "choice without label": (
        row(question={"choices": [{"text": "A"}, {"text": "B"}]}),
        "the label of choice 1 is missing",
    ),
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
    "the gold twice": (
        row(question=choices("a", "b", "a "), answerKey="0"),
        "the gold choice 'a' appears twice",
    ),
    "id is a list": (row(id=["x"]), "`id` is a list"),
    "empty id": (row(id=""), "`id` is empty"),
    "notes is a list": (row(notes=[1]), "`notes` is a list"),
    "hops are a word": (row(notes={"hops": "two"}), "`hops` in `notes` is 'two'; a whole number"),
    "hops are a list": (
        row(notes={"distractor_hops": [1]}),
        r"`distractor_hops` in `notes` is \[1\]",
    ),
    "no mask": (row(question={"stem": "He is"}), r"0 \[MASK\] in the stem"),
    "two masks": (row(question={"stem": "[MASK] [MASK]"}), r"2 \[MASK\] in the stem"),
}


@pytest.mark.parametrize(("bad", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_row_says_what_is_wrong(bad: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read(bad)


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    with pytest.raises(RecordError, match=r"\\ud800 is half of a character; write the whole"):
        parse_row('{"id": "\\ud800"}')


HUB = {"text": ["older", "younger"], "label": ["A", "B"]}
MEANT = {
    "CSV": (
        "id,question,A,B,answer",
        r"CSV: each item is one JSON object on one line, such as \{",
    ),
    "TSV": ("1\tHe is [MASK] than me\tolder", r"CSV: each item"),
    "a sentence": ("He is [MASK] than me", r"on one line, such as \{\"id"),
    "an array in one line": ([row()], "a list, where .*looks like a JSON array: each item is one"),
    "an array over lines": ("[", "looks like a JSON array: .* with no bracket or comma around it"),
    "an object over lines": ("{", "invalid JSON: .*; each item is one JSON object on one line$"),
    "a row of the Hub": (
        {"id": "x", "question": "He is [MASK]", "choices": HUB, "answerKey": "B"},
        r"`question` is a string.*as data sets of the Hub have it: write \"question\": \{\"stem\"",
    ),
    "a row of the Hub, nested": (row(question={"choices": HUB}), "choices` is an object.*the Hub"),
    "OpenBookQA": ({"question_stem": "He is", "choices": HUB}, "missing .*as data sets of the Hub"),
    "another mask": (
        row(question={"stem": "He is <mask>"}),
        r"\[MASK\] in place of '<mask>'",
    ),
    "a small mask": (row(question={"stem": "He is [mask]"}), r"in place of '\[mask\]'; it becomes"),
    "a line": (row(question={"stem": "He is ____ ."}), "in place of '____'"),
}


@pytest.mark.parametrize(("bad", "message"), MEANT.values(), ids=MEANT.keys())
def test_another_format_is_told_what_is_expected(bad: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        read(bad)
    assert "\n" not in str(caught.value)
