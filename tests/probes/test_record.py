from __future__ import annotations

import pytest

from probelight.io.errors import RecordError
from probelight.probes.record import Record, RepeatedSentenceError, validate


def test_a_record_knows_its_gold_and_a_name_of_its_own() -> None:
    record = Record("x", "Is it [MASK]?", ("a", "b"), 1, {"hops": 2}, 7)
    assert (record.gold, record.name) == ("b", "x@7")
    assert validate(record, "mc_mlm") is record
    assert record.where == "x@7"
    read = Record("x", "Is it [MASK]?", ("a", "b"), 1, {"hops": 2}, 7, "my/file.jsonl")
    assert (read.where, read.name, read) == ("my/file.jsonl:7", "x@7", record)
    assert hash(record) == hash(Record("x", "Is it [MASK]?", ("a", "b"), 1, {}, 7))


@pytest.mark.parametrize(
    ("stem", "choices", "answer", "message"),
    [
        (" ", ("a", "b"), 0, "the stem is empty"),
        ("[MASK]", ("a",), 0, r"1 choice\(s\)"),
        ("[MASK]", ("a", " "), 0, "a choice is empty"),
        ("[MASK]", ("a", "b"), 2, "the answer 2 is not one of 2 choices"),
        ("[MASK]", ("a", "b"), -1, "the answer -1"),
        ("[MASK]", ("a", "b", " a"), 0, "the gold choice 'a' appears twice"),
        ("mask", ("a", "b"), 0, r"0 \[MASK\] in the stem"),
    ],
)
def test_what_is_wrong_is_said(
    stem: str, choices: tuple[str, ...], answer: int, message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        validate(Record("x", stem, choices, answer), "mc_mlm")


def test_a_minimal_pair_is_whole_sentences_that_differ() -> None:
    pair = Record("x", "", ("Cats sleep.", "Cats sleeps."), 0)
    assert validate(pair, "minimal_pair") is pair
    with pytest.raises(RecordError, match="the stem is empty"):
        validate(pair)


@pytest.mark.parametrize(
    ("stem", "choices", "message"),
    [
        ("Cats", ("sleep.", "sleeps."), "has no stem .* here is one: 'Cats'"),
        ("", ("Cats sleep.",), r"1 sentence\(s\)"),
        ("", ("Cats sleep.", "  "), "a sentence is empty"),
        ("", ("Cats [MASK].", "Cats sleeps."), r"\[MASK\] in the sentence"),
    ],
)
def test_what_is_wrong_with_a_minimal_pair_is_said(
    stem: str, choices: tuple[str, ...], message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        validate(Record("x", stem, choices, 0), "minimal_pair")


def test_a_minimal_pair_of_the_same_sentences_is_an_error() -> None:
    with pytest.raises(RepeatedSentenceError, match="twice: 'Cats sleep'"):
        validate(Record("x", "", ("Cats sleep", "Cats sleep "), 0), "minimal_pair")
