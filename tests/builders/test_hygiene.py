from __future__ import annotations

import pytest

from probelight.builders.hygiene import (
    answer_words,
    answers_in_stem,
    asked_stems,
    asked_word_in_answers,
    check_records,
    check_splits,
    repeated_choices,
    repeated_questions,
    unbalanced_positions,
)
from probelight.probes.record import Record


def item(stem: str, *choices: str, answer: int = 0, name: str = "", **meta: str) -> Record:
    return Record(name or stem, stem, choices, answer, meta)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("report (or account), defined as 'what is said'", {"report", "account"}),
        ("run (or go, move) event, defined as 'it (x), defined as'", {"run", "go", "move"}),
        ("the act of saying", {"the act of saying"}),
    ],
)
def test_words_of_an_answer(text: str, words: set[str]) -> None:
    assert answer_words(text) == words


def test_an_answer_in_its_stem() -> None:
    gold = "report (or account), defined as 'what is said'"

    def checks(stem: str, *choices: str) -> list[str]:
        return [finding.check for finding in answers_in_stem(item(stem, *choices))]

    assert checks("In 'an Account of it', 'it' is", gold, "b, defined as 'c'") == [
        "answer in the stem"
    ]
    assert checks("In 'accounts of it', 'it' is", gold, "b, defined as 'c'") == []
    # Where a wrong choice is there too, it tells nothing.
    assert checks("an 18 year old and a 20 year old", "18", "20") == []
    gold, wrong = "while, defined as 'a period'", "cold spell (or cold snap), defined as 'cold'"
    snap = "In 'a cold snap in May', the word 'snap' is a type of"
    assert checks(snap, gold, wrong) == ["wrong answer in the stem"]
    assert checks("In 'a snap', 'snap' is a type of", gold, wrong) == []
    assert checks("In 'a while of cold snap', it is", gold, wrong) == []


def test_repeated_questions_and_contradictions() -> None:
    first = item("q?", "a", "b", name="1")
    assert not [*repeated_questions([first, item("q?", "a", "c", name="2")])]
    [finding] = repeated_questions([first, item("Q ?", "b", "a", answer=1, name="3")])
    assert (finding.check, finding.text) == ("repeated question", "the same question as 1@0")
    [finding] = repeated_questions([first, item("q?", "c", "a", name="4")])
    assert finding.check == "right elsewhere"
    [finding] = repeated_questions([first, item("q?", "b", "a", name="4")])  # the same choices
    text = "'a' is right for the same stem in 1@0"
    assert (finding.check, finding.text) == ("right elsewhere", text)
    [finding] = repeated_questions([first, item("q?", "c", "d", name="5")])
    assert finding.check == "stem with two answers"


def test_minimal_pairs_repeat_by_their_right_sentence() -> None:
    first, second = (item("", f"{noun} run", f"{noun} runs", name=noun) for noun in ("We", "They"))
    assert check_records([first, second]) == []
    assert check_splits({"train": [first], "dev": [second]}) == []
    [finding] = repeated_questions([first, item("", "We runs", "We run", answer=1, name="3")])
    assert finding.check == "repeated question"
    assert "question in two splits" in {
        finding.check for finding in check_splits({"train": [first], "dev": [first]})
    }


def test_choices_that_say_the_same() -> None:
    assert [f.check for f in repeated_choices(item("q", "a", "b", "B."))] == ["repeated choice"]
    record = item("q", "run (or go), defined as 'x'", "walk (or go), defined as 'y'")
    assert [f.check for f in repeated_choices(record)] == ["synonym of the gold"]


def test_golds_that_favour_a_position_are_found() -> None:
    # 100 items of 2: the deviation is 5, so 75 at one place are just within five of them.
    items = [item(str(n), "a", "b", answer=n % 4 == 0) for n in range(100)]
    assert not [*unbalanced_positions(items)]
    findings = unbalanced_positions([*items, item("x", "a", "b"), item("y", "a", "b")])
    texts = ["the gold is choice 1 in 77 of 102 items", "the gold is choice 2 in 25 of 102 items"]
    assert [finding.text for finding in findings] == texts


def test_leaks_between_splits() -> None:
    train = [item("q1", "g1", "a", "b", cluster="c1"), item("q2", "g2", "a", "c", cluster="c2")]
    dev = [item("q3", "g3", "a", "d", cluster="c3")]
    assert check_splits({"train": train, "dev": dev}) == []
    leaks = [
        item("Q1", "g4", "e", "f"),
        item("q5", "g2", "e", "g"),
        item("q6", "g6", "b", "a"),
        item("q7", "g7", "h", "i", cluster="c2"),
    ]
    findings = check_splits({"train": train, "dev": [*dev, *leaks]})
    assert [(f.check, f.where, f.text) for f in findings] == [
        ("question in two splits", "train and dev", "q1"),
        ("gold in two splits", "train and dev", "g2"),
        ("distractors in two splits", "train and dev", "a | b"),
        ("concept in two splits", "train and dev", "c2"),
    ]


def test_an_answer_that_stands_in_every_stem_tells_nothing() -> None:
    stems = ("It was [MASK] warm, it was really hot.", "It was [MASK] cold, it was really hot.")
    items = [Record(stem, stem, ("not", "really"), n) for n, stem in enumerate(stems)]
    assert check_records(items) == []
    record = Record("3", "It was [MASK] cold, it was hot.", ("not", "really"), 0)
    assert [finding.check for finding in check_records([*items, record])] == ["answer in the stem"]
    assert [finding.check for finding in check_records(items[1:])] == ["answer in the stem"]


def test_golds_of_a_closed_set_and_numbers_are_no_leak() -> None:
    closed = [[item(f"{split}{n}", "older", "younger") for n in range(30)] for split in "qr"]
    assert check_splits({"train": closed[0], "dev": closed[1]}) == []
    split = [item(f"q{n}", str(1950 + n), str(1951 + n)) for n in range(30)]
    dev = [item(f"r{n}", str(1950 + n), str(1951 + n)) for n in range(30)]
    assert check_splits({"train": split, "dev": dev}) == []
    named = item("s", "Oslo", "Bergen")
    [finding] = check_splits({"train": [*split, named], "dev": [*dev, item("t", "Oslo", "Rome")]})
    assert (finding.check, finding.text) == ("gold in two splits", "Oslo")


def test_an_asked_word_in_an_answer() -> None:
    stem = "In 'he was poking the fire', the word 'poking' is best defined as"

    def checks(*choices: str, **meta: str) -> list[str]:
        return [finding.check for finding in asked_word_in_answers(item(stem, *choices, **meta))]

    notes = {"surface_form": "poking"}
    assert checks("a poke", "a hole", **notes) == ["asked word in the right answer"]
    assert checks("a push", "two pokes", **notes) == ["asked word in a wrong answer"]
    assert checks("a poke", "a poker, or poking", **notes) == []  # tells nothing
    assert checks("a push", "a poker", **notes) == []
    assert checks("a poke", "a hole") == []  # notes name no word
    assert checks("a poke", "a hole", surface_form="prod") == []  # it is not asked about


def test_words_that_are_asked_about() -> None:
    record = item("In 'a snow leopard', 'snow leopard' is", "x", surface_form="snow leopard")
    assert asked_stems(record) == {"snow", "leopard"}
    assert asked_stems(item("'to have it': 'have' is", "x", word="have")) == {"have"}
    notes = {"arguments": ["swan", "calf"]}
    stem = "A swan and a calf are both a type of [MASK]."
    assert asked_stems(Record("1", stem, ("x",), 0, notes)) == {"swan", "calf"}
    assert asked_stems(item(stem, "x")) == set()
    synonymy = "'a group of things' best defines the following collection of words:"
    assert asked_stems(item(synonymy, "x", surface_form="collection")) == set()
