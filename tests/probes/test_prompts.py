"""Items as prompts that ask for a letter."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.probes.prompts import Prompts, Templates, by_choice, orders_of
from probelight.probes.record import Record
from tests.fixtures.checkout import ROOT

PATH = ROOT / "configs" / "prompt" / "default.yaml"
THREE = Record("1", "What is a cat?", ("a tree", "an animal", "a stone"), 1, position=7)


def test_a_question_in_another_order_asks_for_the_label_of_its_answer() -> None:
    prompt = Prompts(Templates.read(PATH), "mc_qa").letters(THREE, (1, 2, 0))
    assert prompt.stem == (
        "Question: What is a cat?\nA. an animal\nB. a stone\nC. a tree\nAnswer: [MASK]"
    )
    assert (prompt.choices, prompt.answer) == (("A", "B", "C"), 0)


def test_a_sentence_shows_its_blank_and_a_pair_both_sentences() -> None:
    templates = Templates.read(PATH)
    cloze = Record("1", "A {whale} is [MASK].", ("big", "small"), 0)
    assert templates.letters(cloze, "mc_mlm", (0, 1)) == (
        "Which choice fills the blank?\nA {whale} is ____.\nA. big\nB. small\nAnswer:"
    )
    pair = Record("1", "", ("Cats sleep.", "Cats sleeps."), 0)
    assert templates.letters(pair, "minimal_pair", (1, 0)) == (
        "Which sentence is acceptable?\nA. Cats sleeps.\nB. Cats sleep.\nAnswer:"
    )


def test_orders_begin_with_that_of_the_file() -> None:
    assert orders_of(THREE, "one") == [(0, 1, 2)]
    assert orders_of(THREE, "cyclic") == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    found = orders_of(THREE, "all")
    assert found[0] == (0, 1, 2)
    assert sorted(found) == sorted(permutations(range(3)))
    # The label scores 1, 2, 3 in the order 1, 2, 0 are those of the choices 1, 2 and 0.
    assert by_choice([1.0, 2.0, 3.0], (1, 2, 0)) == [3.0, 1.0, 2.0]
    five = Record("1", "Q?", ("a", "b", "c", "d", "e"), 0, position=3)
    with pytest.raises(UsageError, match="has 5 choices, and all orders are for 4 at most"):
        orders_of(five, "all")


def test_more_choices_than_letters_are_refused() -> None:
    many = Record("1", "Q?", tuple(f"choice {i}" for i in range(27)), 0, position=3)
    with pytest.raises(RecordError, match="1@3: 27 choices; letters are for 26"):
        Templates.read(PATH).letters(many, "mc_qa", tuple(range(27)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('mc_qa: "{question} {choice}"', "`mc_qa` must have {choices} and {question}"),
        ('mc_qa: "{choices}"', "`mc_qa` must have {choices} and {question}"),
        ('mc_qa: "{question} {choices"', "`mc_qa`: .*; write a brace as {{"),
        ('mcqa: "{question}{choices}"', "`mcqa` is no key .did you mean 'mc_qa'"),
    ],
)
def test_a_template_with_a_mistake_is_named(line: str, message: str, tmp_path: Path) -> None:
    kept = (
        'choice: "{label} {text}"',
        'mc_mlm: "{question}{choices}"',
        'minimal_pair: "{choices}"',
    )
    path = tmp_path / "letters.yaml"
    path.write_text("\n".join([*kept, line]) + "\n")
    with pytest.raises(ConfigError, match=message.replace("{", r"\{").replace("}", r"\}")):
        Templates.read(path)
