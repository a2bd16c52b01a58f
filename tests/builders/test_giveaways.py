from __future__ import annotations

import math

import pytest

from probelight.builders.giveaways import (
    SMOOTHING,
    TRAIN,
    WORDFREQ,
    associations,
    commonness,
    most_telling,
    surface_rules,
    whole_answer,
    word_frequency,
    word_set,
)
from probelight.probes.record import Record


def item(answer: int, *choices: str) -> Record:
    return Record("1", "what?", choices, answer)


ITEMS = [
    item(0, "a kind of dog", "the sea"),
    item(1, "the moon", "a kind of cat"),
    item(0, "a kind of a kind", "the kind"),  # "a" once, though it is there twice
    item(0, "the sun", "the day", "of the", "of a"),
]


def test_words_of_answers_are_counted_as_by_hand() -> None:
    counts = associations(ITEMS)
    a = counts["a"]  # items 1 to 3 have it in one of two choices, item 4 in one of four
    assert (a.num_items, a.num_right, a.expected) == (4, 3, 1.75)
    added = SMOOTHING * 1.75 / 4
    assert a.pmi == pytest.approx(math.log2((3 + added) / (1.75 + added)))
    the = counts["the"]  # the last item has it in three of four choices
    assert (the.num_items, the.num_right, the.expected) == (4, 1, 2.25)
    assert the.pmi < 0
    kind = counts["kind"]  # of item 3 both choices have it, which tells nothing
    assert (kind.num_items, kind.num_right, kind.expected) == (2, 2, 1.0)
    assert list(counts) == sorted(counts)


def test_it_is_the_pmi_of_choices_where_each_item_has_the_word_once() -> None:
    items = [item(n % 4 == 0, "the x", "no") for n in range(4_000)]
    right_given_word, right = 0.75, 0.5
    unsmoothed = math.log2(right_given_word / right)
    assert associations(items)["the"].pmi == pytest.approx(unsmoothed, abs=2e-3)


def test_answers_are_counted_as_a_whole_too() -> None:
    items = [item(0, "Yes.", "no"), item(0, "yes", "NO"), item(1, "yes", "no")]
    counts = associations(items, whole_answer)
    assert (counts["yes"].num_items, counts["yes"].num_right, counts["yes"].expected) == (3, 2, 1.5)
    assert set(counts) == {"yes", "no"}
    assert set(associations([item(0, "+", "-")], whole_answer)) == {"+", "-"}


def test_the_most_telling_of_both_ends() -> None:
    features = list(associations(ITEMS).values())
    # (1 + 2.5) / (0.25 + 2.5) of "sun" is more than (3 + 4.375) / (1.75 + 4.375) of "a".
    assert [word.feature for word in most_telling(features, 1, least_items=1)] == ["sun", "the"]
    assert [word.feature for word in most_telling(features, 1, least_items=2)] == ["a", "the"]
    assert most_telling([], 3) == []


def test_words_are_those_of_any_script_without_marks() -> None:
    assert word_set("Zürich's naïve  «Ärger», 東京") == {"zürich", "s", "naïve", "ärger", "東京"}
    assert word_set("--") == set()


ITEM = Record("1", "what?", ("a long answer", "short one", "x"), 0)


def test_surface_rules_score_as_by_hand() -> None:
    train = [Record("1", "is it?", ("short yes", "no"), 0), Record("2", "a b", ("x", "yes"), 1)]
    rules = surface_rules(word_frequency(TRAIN, train), associations(train), 4)
    scores = {name: rule(ITEM) for name, rule in rules.items()}
    assert scores["the longest answer"] == [13, 9, 1]
    assert scores["the shortest answer"] == [-13, -9, -1]
    assert scores["the most words"] == [3, 2, 1]
    log_2, none = math.log10(2), 0.0
    # "a" is in one of the train items, as "short" does, and "x".
    assert scores["the commonest words"] == pytest.approx([log_2 / 3, log_2 / 2, log_2])
    assert scores["the rarest words"] == pytest.approx([-log_2 / 3, -log_2 / 2, -log_2])
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
    assert commonness("…", word_frequency(TRAIN, [ITEM])) == 0.0  # of marks alone


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
