from __future__ import annotations

import pytest

from probelight.build.dictionary_probe.entries import clean_definition, forms, read_entries
from probelight.build.sources.gcide import Sense


def sense(word: str, definition: str, *examples: str, part: str = "n", number: int = 1) -> Sense:
    return Sense(word, part, number, definition, examples, "1913 Webster")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hence, (Law) royal power; rule", "Royal power; rule"),
        ("To tilt sidewise; -- said of a flying machine", "To tilt sidewise"),
        ("To set apart; often with from", "To set apart"),
        ("(a) A face of coal. (b) A deposit of ore", "A deposit of ore"),
        ("A gift of property, esp. of money. Also Fig", "A gift of property, esp. of money"),
        ("The grain from a tub. See Mash", "The grain from a tub"),
        ("Same as present, which see", None),
        ("Too short", None),
        ("An unbalanced (parenthesis of its own", None),
        ("A" * 161, None),
    ],
)
def test_definitions_are_cut_to_what_the_word_means(text: str, expected: str | None) -> None:
    assert clean_definition(text) == expected


@pytest.mark.parametrize(
    ("word", "part", "shown"),
    [
        ("carry", "v", "carried"),
        ("stop", "v", "stopped"),
        ("bake", "v", "baking"),
        ("city", "n", "cities"),
        ("long", "a", "long"),
    ],
)
def test_words_are_found_in_their_forms(word: str, part: str, shown: str) -> None:
    assert shown in forms(word, part)
    assert "longs" not in forms("long", "a")


def test_entries_have_a_usage_that_shows_the_word_and_not_its_meaning() -> None:
    senses = [
        sense("Gift", "A bribe that is never shown in use"),
        sense("Gift", "Some striking talent or power", "the power of gift", "a gift for speaking"),
        sense("Gift", "Any thing offered or sent", "the present of a title"),
        sense("Gift", 'A right over a benefice. "The gift of a living." Hume'),
        sense("Gift", "Some striking talent or power", "a second gift of the same"),
        sense("Give", "To be given or to be giving", "to give way to fear", part="v"),
        sense("Gift", "A prefix of no part of speech", "a gift horse", part="pron"),
        sense("Gift-wrap", "To wrap what is presented", "to gift-wrap a book", part="v"),
    ]
    found = [(e.name, e.shown, e.usage, e.definition) for e in read_entries(senses)]
    assert found == [
        ("gift.n.2", "gift", "a gift for speaking", "Some striking talent or power"),
        ("gift.n.4", "gift", "The gift of a living", "A right over a benefice"),
    ]


def test_usages_are_cut_before_they_explain_themselves() -> None:
    senses = [
        sense("Under", "In a lower condition", "to bring under, to reduce", part="adv"),
        sense("Crown", "Royal power; rule", "an act of the crown, etc"),
        sense("Trauma", "A wound of some kind", "the brewers' trauma", "trauma. n. A medicine"),
        sense("Drain", "What is left in a tub", "a drain of the tub"),
        sense("Pull", "A motion of the arm", "the pull, or peristaltic motion"),
    ]
    assert [e.usage for e in read_entries(senses)] == [
        "to bring under",
        "an act of the crown",
        "the brewers' trauma",
    ]
