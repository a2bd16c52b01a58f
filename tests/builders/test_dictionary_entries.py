from __future__ import annotations

import pytest

from probelight.builders.dictionary_entries import (
    DistinctSenses,
    Entry,
    check_senses,
    clean_definition,
    contains_form,
    inflections_of,
    overlap,
    read_entries,
    say_the_same,
)
from probelight.builders.sources.gcide import Sense
from probelight.probes.record import Record


@pytest.mark.parametrize(
    ("word", "definition", "expected"),
    [
        ("hitter", "One who hits or strikes", True),
        ("oddity", "That which is odd", True),
        ("unhappy", "Not in a happy mood", True),
        ("fated", "Decreed by fate", True),
        ("bank", "A band of metal", False),
        ("fall", "A false ceiling", False),
        ("part", "A part of the whole", True),  # a word that tells nothing but where it is asked
        ("ill", "The condition of being ill", True),
    ],
)
def test_words_told_by_spelling(word: str, definition: str, expected: bool) -> None:
    assert contains_form(word, definition) is expected


def test_what_definitions_share() -> None:
    # bear, pain, long | bear, loads: one of the two content words of the shorter
    assert overlap("To bear pain for long", "To bear loads") == 0.5
    assert say_the_same("To bear; to endure", "To last; to endure")
    assert not say_the_same("To bear; to endure", "To give birth to")
    assert say_the_same("Of it", "A mound of earth")  # no content word


def sense(word: str, definition: str, *examples: str, pos: str = "n", number: int = 1) -> Sense:
    return Sense(word, pos, number, definition, examples, "1913 Webster")


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


def test_words_are_found_in_their_forms() -> None:
    for form, word in {"carried": "carry", "stopped": "stop", "baking": "bake"}.items():
        assert form in inflections_of(word, "v")
    assert "cities" in inflections_of("city", "n")
    assert inflections_of("long", "a") == {"long"}


def test_entries_have_a_usage_that_shows_the_word_and_not_its_meaning() -> None:
    senses = [
        sense("Gift", "A bribe that is never shown in use"),
        sense("Gift", "Some striking talent or power", "the power of gift", "a gift for speaking"),
        sense("Gift", "Any thing offered or sent", "the present of a title"),
        sense("Gift", 'A right over a benefice. "The gift of a living." Hume'),
        sense("Gift", "Some striking talent or power", "a second gift of the same"),
        sense("Give", "To be given or to be giving", "to give way to fear", pos="v"),
        sense("Gift", "A prefix of no part of speech", "a gift horse", pos="pron"),
        sense("Gift-wrap", "To wrap what is presented", "to gift-wrap a book", pos="v"),
    ]
    entries = [(e.name, e.surface_form, e.usage, e.definition) for e in read_entries(senses)]
    assert entries == [
        ("gift.n.2", "gift", "a gift for speaking", "Some striking talent or power"),
        ("gift.n.4", "gift", "The gift of a living", "A right over a benefice"),
    ]


def test_usages_are_cut_before_they_explain_themselves() -> None:
    senses = [
        sense("Under", "In a lower condition", "to bring under, to reduce", pos="adv"),
        sense("Crown", "Royal power; rule", "an act of the crown, etc"),
        sense("Trauma", "A wound of some kind", "the brewers' trauma", "trauma. n. A medicine"),
        sense("Drain", "What is left in a tub", "a drain of the tub"),
        sense("Pull", "A motion of the arm", "the pull, or peristaltic motion"),
    ]
    usages = ["to bring under", "an act of the crown", "the brewers' trauma"]
    assert [entry.usage for entry in read_entries(senses)] == usages


def entry(word: str, definition: str) -> Entry:
    return Entry(f"{word}.n.1", word, "n", word, f"the {word} itself", definition)


def test_senses_that_the_dictionary_does_not_distinguish() -> None:
    distinct = DistinctSenses(
        [sense("Sorrow", "Grief; sadness"), sense("Bank", "A mound; a ridge")]
    )
    assert not distinct(entry("woe", "Sorrow; misery"), entry("moan", "A wail; grief"))
    assert distinct(entry("woe", "Sorrow; misery"), entry("moan", "A wail; a howl"))
    # Another word's definition that gives this word, or a synonym of it.
    assert not distinct(entry("ridge", "Raised land"), entry("dike", "A wall; bank"))
    # Two senses of one word must not share a content word; of two words they may share some.
    first = "The line at which two bodies are joined to each other"
    assert not distinct(entry("seam", first), entry("seam", "A joint union of nations and kings"))
    assert distinct(entry("seam", first), entry("league", "A joint union of nations and kings"))


def test_a_wrong_answer_that_says_what_the_right_one_says() -> None:
    choices = ("To bear; to endure", "To last; to endure", "To load the back heavily")
    record = Record("1", "Given 'to stand pain', 'stand' is", choices, 0, {"sense_choices": 3})
    [finding] = check_senses([record])
    assert finding.check == "wrong answer like the gold"
    assert "To last; to endure" in finding.text
    assert check_senses([Record("1", record.stem, choices, 0)]) == []  # of no dictionary
