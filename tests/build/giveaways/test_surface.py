from __future__ import annotations

import math

import pytest

from probelight.build.giveaways import (
    TRAIN,
    WORDFREQ,
    associations,
    commonness,
    surface_rules,
    word_frequency,
)
from probelight.probes.record import Record

ITEM = Record("1", "what?", ("a long answer", "short one", "x"), 0)


def test_the_rules_by_hand() -> None:
    train = [Record("1", "is it?", ("short yes", "no"), 0), Record("2", "a b", ("x", "yes"), 1)]
    rules = surface_rules(word_frequency(TRAIN, train), associations(train), 4)
    scores = {name: rule(ITEM) for name, rule in rules.items()}
    assert scores["the longest answer"] == [13, 9, 1]
    assert scores["the shortest answer"] == [-13, -9, -1]
    assert scores["the most words"] == [3, 2, 1]
    one, none = math.log10(2), 0.0
    # "a" stands in one of the train items, as "short" does, and "x".
    assert scores["the commonest words"] == pytest.approx([one / 3, one / 2, one])
    assert scores["the rarest words"] == pytest.approx([-one / 3, -one / 2, -one])
    short, x = (associations(train)[word].pmi for word in ("short", "x"))
    assert scores["words that are right in train"] == [none, short, x]
    assert short == pytest.approx(math.log2(6 / 5.5))
    assert scores["the answer at place 2"] == [0, 1, 0]
    assert scores["the answer at place 4"] == [0, 0, 0]  # there is none: chance


def test_a_glossed_answer_goes_by_its_names() -> None:
    frequency = {"ounce": 2.0, "snow": 4.0, "leopard": 3.0}.__getitem__
    answer = "ounce (or snow leopard), defined as 'a large cat of the mountains'"
    assert commonness(answer, frequency) == 3.5
    assert commonness("ounce", frequency) == 2.0


def test_an_answer_of_marks_alone_has_a_frequency() -> None:
    assert commonness("…", word_frequency(TRAIN, [ITEM])) == 0.0


def test_frequencies_of_english() -> None:
    pytest.importorskip("wordfreq")
    frequency = word_frequency(WORDFREQ, [])
    assert frequency("the") > frequency("dog") > frequency("quokka") > 0


def test_rules_of_the_questions_words_by_hand() -> None:
    stem = "In 'he poked the fire', what is 'poked'?"
    choices = ("a poke in the side", "a fire", "pokes and poking at a fire", "x")
    item = Record("1", stem, choices, 0, {"surface_form": "poked"})
    rules = surface_rules(word_frequency(TRAIN, []), {}, 4)
    assert rules["an answer with the asked word"](item) == [1, 0, 1, 0]
    assert rules["an answer without the asked word"](item) == [-1, 0, -1, 0]
    # "poke" and "fire" are the question's content words.
    assert rules["the most words of the question"](item) == [1, 1, 2, 0]
    assert rules["the fewest words of the question"](item) == [-1, -1, -2, 0]
