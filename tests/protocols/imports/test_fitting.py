"""Which item an answer is about: worked out by hand, and every way in which it is none."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from probelight.io.errors import RecordError
from probelight.io.files import DataFile
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.protocols.imports.fitting import fitted, items_of_file, with_kept_scores
from probelight.results.importers.answers import Answer, Imported

FILE = DataFile("f", "sha", 2)
CAT = Record("q1", "A cat is [MASK].", ("animal", "plant"), 0, position=1)
OAK = Record("q2", "An oak is [MASK].", ("cat", "animal", "plant"), 2, position=2)
SAYS_CAT = Answer(where="f:1", id="q1", choices=("plant", "animal"), scores=(1.0, 2.0), gold=1)
SAYS_OAK = Answer(where="f:2", id="q2", choices=("animal", "plant", "cat"), scores=(0.5, 3.0, -4.0))


def probe(*records: Record) -> ProbeData:
    return ProbeData(ProbeConfig("kinds", "mc_mlm", 3, 0.4), records, (), ())


def says(*answers: Answer) -> Imported:
    return Imported((FILE,), answers, "mine")


KINDS = probe(CAT, OAK)


def test_by_ids_or_texts_in_the_order_of_items_and_choices() -> None:
    scores = [[2.0, 1.0], [-4.0, 0.5, 3.0]]
    assert fitted(says(SAYS_OAK, SAYS_CAT), KINDS) == (scores, "ids")
    # By texts where no id is one of the probe.
    cat = replace(SAYS_CAT, id="0", texts=("Say: A cat is", "A cat\nis  [MASK]."))
    oak = replace(SAYS_OAK, id="", texts=(OAK.stem,), choices=("animal ", "plant", "cat"))
    assert fitted(says(cat, oak), KINDS) == (scores, "texts")


def test_pairs_are_known_by_their_sentences() -> None:
    pair = Record("p", "", ("Cats sleep.", "Cats sleeps."), 0, position=1)
    said = Answer(where="f:1", texts=("",), choices=("Cats sleeps.", "Cats sleep."), scores=(1, 2))
    assert fitted(says(said), probe(pair)) == ([[2, 1]], "texts")


def test_ids_that_repeat_are_told_apart_by_line() -> None:
    again = replace(OAK, id="q1")
    with pytest.raises(RecordError, match=r"f:1: it fits 2 items of kinds, q1@1, q1@2; .* ID@LINE"):
        fitted(says(SAYS_CAT), probe(CAT, again))
    said = says(replace(SAYS_CAT, id="q1@1"), replace(SAYS_OAK, id="q1@2"))
    assert fitted(said, probe(CAT, again))[0] == [[2.0, 1.0], [-4.0, 0.5, 3.0]]


def test_a_choice_that_is_there_twice_has_both_scores() -> None:
    twice = replace(OAK, choices=("cat", "plant", "cat"), answer=1)
    said = replace(SAYS_OAK, choices=("cat", "cat", "plant"), scores=(1.0, 2.0, 3.0))
    assert fitted(says(said), probe(twice))[0] == [[1.0, 3.0, 2.0]]


ROW_1 = Answer(where="f: row 1", scores=(1.0, 2.0), gold=0)
ROW_2 = Answer(where="f: row 2", scores=(1.0, 2.0, 3.0))


def test_by_order() -> None:
    assert fitted(says(ROW_1, ROW_2), KINDS) == ([[1.0, 2.0], [1.0, 2.0, 3.0]], "order")


NO_ID = replace(SAYS_CAT, id="")
OTHER = replace(SAYS_CAT, where="f:2")
GOLD = replace(ROW_1, gold=1)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((SAYS_CAT, replace(SAYS_OAK, id="q3")), "f:2: the id 'q3' is none of kinds"),
        ((SAYS_CAT, OTHER), "f:2: the item q1@1 of kinds is answered at f:1 too"),
        ((SAYS_CAT, replace(SAYS_OAK, gold=0)), "the gold is 'animal', but .*q2@2 is 'pl"),
        ((SAYS_CAT, replace(SAYS_OAK, choices=("dog", "plant", "cat"))), "q2@2: 'dog' is none of"),
        (
            (SAYS_CAT, replace(SAYS_OAK, choices=("plant", "cat"), scores=(1, 2))),
            "'animal' is missing",
        ),
        (
            (SAYS_CAT, replace(SAYS_OAK, choices=("plant", "cat", "cat", "animal"))),
            "another number of times",
        ),
        ((SAYS_CAT,), "f: 1 of 2 items of kinds are not answered: q2@2"),
        ((replace(NO_ID, texts=("A dog is",)),), "fits no item .*; an item of kinds is 'q1'"),
        ((NO_ID,), "f:1: the id '' is none of kinds"),
        ((replace(SAYS_OAK, id="", texts=(CAT.stem,)),), "not those of .* q1@1: 'cat' is none"),
        ((ROW_1,), "f: 1 rows, where kinds has 2 items"),
        ((ROW_2, ROW_1), "f: row 2: 3 scores, where the item q1@1 has 2 choices"),
        ((GOLD, ROW_2), r"f: row 1: the gold is '1', but that of .*q1@1 is 0"),
    ],
)
def test_what_does_not_fit_is_refused(answers: tuple[Answer, ...], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        fitted(says(*answers), KINDS)


def test_items_of_the_file_itself() -> None:
    cat = replace(SAYS_CAT, texts=("A cat is [MASK].",))
    oak = replace(SAYS_OAK, id="", texts=("An oak is [MASK].",), gold=1)
    data = items_of_file(says(cat, oak))
    assert [(one.id, one.stem, one.gold) for one in data.records] == [
        ("q1", "A cat is [MASK].", "animal"),
        ("item-2", "An oak is [MASK].", "plant"),
    ]
    found = (data.config.name, data.config.setup, data.config.chance)
    assert found == ("mine", "mc_mlm", pytest.approx(5 / 12))
    asked = items_of_file(says(replace(cat, texts=("What is a cat?",)), oak))
    assert asked.config.setup == "mc_qa"
    sentences = items_of_file(says(replace(cat, texts=("",), paradigm="sv")))
    assert sentences.config.setup == "minimal_pair"
    assert sentences.records[0].meta == {"paradigm": "sv"}


ASKED = replace(SAYS_CAT, texts=("A cat is",))


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((SAYS_CAT,), "f:1: the file does not say the item's question: give its probe as --probe"),
        ((replace(SAYS_OAK, texts=("x",)),), "item's gold: .* as --gold"),
        ((Answer(where="f:1", scores=(1, 2)),), "question and candidates and gold"),
        ((replace(ASKED, choices=("a", "a")),), "f:1: the gold choice 'a' appears tw"),
        ((ASKED, replace(ASKED, where="f:9")), "f:9: the id 'q1' is at f:1 too"),
    ],
)
def test_items_that_are_none_are_refused(answers: tuple[Answer, ...], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        items_of_file(says(*answers))


SAID = Answer(where="f:1", choices=("a", "b\u00e4 "), scores=(0.0, 0.25))


def test_what_is_kept() -> None:
    assert with_kept_scores([SAID], "as_given") == (SAID,)
    logarithm = (-math.inf, pytest.approx(-math.log(4)))
    assert with_kept_scores([SAID], "logarithm")[0].scores == logarithm
    assert with_kept_scores([SAID], "per_character")[0].scores == (0.0, 0.125)


@pytest.mark.parametrize(
    "words", [r"logarithm: 1\.5 is no probability", "per_character: the texts of the choices"]
)
def test_what_cannot_be_kept_is_refused(words: str) -> None:
    with pytest.raises(RecordError, match=f"f:1: --scores {words}"):
        with_kept_scores([Answer(where="f:1", scores=(0.5, 1.5))], words.partition(":")[0])
