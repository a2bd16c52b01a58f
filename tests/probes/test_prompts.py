"""Items as prompts that ask for a letter."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

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
    orders = orders_of(THREE, "all")
    assert orders[0] == (0, 1, 2)
    assert sorted(orders) == sorted(permutations(range(3)))
    # The label scores 1, 2, 3 in the order 1, 2, 0 are those of the choices 1, 2 and 0.
    assert by_choice([1.0, 2.0, 3.0], (1, 2, 0)) == [3.0, 1.0, 2.0]
    five = Record("1", "Q?", ("a", "b", "c", "d", "e"), 0, position=3)
    with pytest.raises(UsageError, match="has 5 choices, but at most 4 can be"):
        orders_of(five, "all")


def test_more_choices_than_letters_are_refused() -> None:
    many = Record("1", "Q?", tuple(f"choice {i}" for i in range(27)), 0, position=3)
    with pytest.raises(RecordError, match="1@3: 27 choices, but only 26 letters"):
        Templates.read(PATH).letters(many, "mc_qa", tuple(range(27)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('mc_qa: "{question} {choice}"', "`mc_qa` must have {choices} and {question}"),
        ('mc_qa: "{choices}"', "`mc_qa` must have {choices} and {question}"),
        ('mc_qa: "{question} {choices"', "`mc_qa`: .*; write a brace as {{"),
        ('words_mc_qa: "Answer:"', "`words_mc_qa` must have {question}"),
        ('mcqa: "{question}{choices}"', "`mcqa` is not a known key .did you mean 'mc_qa'"),
    ],
)
def test_a_template_with_a_mistake_is_named(line: str, message: str, tmp_path: Path) -> None:
    sound = (
        'choice: "{label} {text}"',
        'mc_mlm: "{question}{choices}"',
        'minimal_pair: "{choices}"',
        'chat_mc_qa: "{question}"',
        'chat_mc_mlm: "{question}"',
    )
    path = tmp_path / "letters.yaml"
    path.write_text("\n".join([*sound, line]) + "\n")
    with pytest.raises(ConfigError, match=message.replace("{", r"\{").replace("}", r"\}")):
        Templates.read(path)


def test_a_question_by_words_is_put_in_its_text_and_nothing_else_is() -> None:
    templates = Templates.read(ROOT / "configs" / "prompt" / "harness.yaml")
    assert replace(templates, words_mc_qa="") == Templates.read(PATH)
    train = (Record("t", "And this? ", ("a fox", " a cow"), 1),)
    prompts = Prompts(templates, "mc_qa", None, train, 1)
    example = "Question: And this?\nAnswer: a cow\n\n"
    for stem in ("What is a {cat}?", " What is a {cat}? [MASK]"):
        record = replace(THREE, stem=stem)
        assert prompts.words(record).stem == f"{example}Question: What is a {{cat}}?\nAnswer:"
    blank = replace(THREE, stem="A [MASK] meows.")
    assert prompts.words(blank).stem == f"{example}Question: A ____ meows.\nAnswer:"
    assert prompts.words(THREE, "N/A [MASK]").stem == f"{example}Question: N/A\nAnswer:"
    assert prompts.words(THREE, "Answer:", is_prompt=True).stem == f"{example}Answer:"
    alone = replace(prompts, num_shots=0)
    assert replace(alone, in_chat=True).words(THREE).stem == "What is a cat? [MASK]"
    assert replace(alone, setup="mc_mlm").words(blank) == blank
    assert replace(alone, templates=Templates.read(PATH)).words(blank) == blank


def compared(number: int, gold: str, cluster: str) -> Record:
    choices = ("older", "younger")
    stem = f"item {number} is [MASK] than that ."
    return Record(str(number), stem, choices, choices.index(gold), {"cluster": cluster}, number)


TRAIN = tuple(
    compared(number, "older" if number % 3 else "younger", f"group {number // 4}")
    for number in range(1, 33)
)
ASKED = compared(99, "older", "another group")


def shot_prompts(**options: Any) -> Prompts:
    settings = {"group_by": "cluster", "train": TRAIN, "num_shots": 4, **options}
    return Prompts(Templates.read(PATH), "mc_mlm", **settings)


def test_examples_are_filled_sentences_before_an_item() -> None:
    prompts = shot_prompts(num_shots=2)
    first, second = prompts.shots(ASKED)
    assert prompts.words(ASKED).stem == (
        f"{first.stem.replace('[MASK]', first.gold)}\n\n"
        f"{second.stem.replace('[MASK]', second.gold)}\n\n{ASKED.stem}"
    )
    assert prompts.words(ASKED, "N/A [MASK] .").stem.endswith("\n\nN/A [MASK] .")
    question = Record("q", "What is it? ", ("a cat", " a dog"), 1)
    train = (Record("t", "And this? ", ("a fox", " a cow"), 1),)
    prompts = Prompts(Templates.read(PATH), "mc_qa", None, train, 1)
    assert prompts.words(question).stem == "And this? a cow\n\nWhat is it? "
    chat = replace(prompts, in_chat=True)
    assert chat.words(question).stem == "What is it? [MASK]"
    assert chat.words(question).turns == (("And this?", " a cow"),)
    cloze = shot_prompts(num_shots=1, in_chat=True)
    [example] = cloze.shots(ASKED)
    message = f"What fills the blank?\n{example.stem.replace('[MASK]', '____')}"
    assert cloze.words(ASKED).turns == ((message, example.gold),)
    asked = "What fills the blank?\nitem 99 is ____ than that . [MASK]"
    assert cloze.words(ASKED).stem == asked
    assert cloze.words(ASKED, "N/A [MASK] .").turns == cloze.words(ASKED).turns


def test_right_answers_and_labels_come_equally_often() -> None:
    for seed in range(5):
        p = shot_prompts(seed=seed)
        assert Counter(example.gold for example in p.shots(ASKED)) == {"older": 2, "younger": 2}
        *examples, question = p.letters(ASKED, (1, 0)).stem.split("\n\n")
        assert question.endswith("A. younger\nB. older\nAnswer: [MASK]")
        assert Counter(text[-1] for text in examples) == {"A": 2, "B": 2}
        in_chat = replace(p, in_chat=True).letters(ASKED, (1, 0))
        assert [" ".join(turn) for turn in in_chat.turns] == examples
        assert in_chat.stem == question
        for text, example in zip(examples, p.shots(ASKED), strict=True):
            assert f"{text[-1]}. {example.gold}" in text  # the label that follows is the right one


def test_an_item_is_asked_behind_examples_of_other_groups() -> None:
    prompts = shot_prompts()
    usual = prompts.shots(ASKED)
    for group in {example.meta["cluster"] for example in TRAIN}:
        item = compared(100, "older", group)
        shots = prompts.shots(item)
        assert group not in {example.meta["cluster"] for example in shots}
        assert Counter(example.gold for example in shots) == {"older": 2, "younger": 2}
        if group not in {example.meta["cluster"] for example in usual}:
            assert shots == usual
    with pytest.raises(UsageError, match="the train split has only 28 items outside the group"):
        shot_prompts(num_shots=29).shots(compared(100, "older", "group 2"))


def test_a_draw_is_that_of_its_seed_and_not_of_the_order_of_the_file() -> None:
    usual = shot_prompts().shots(ASKED)
    assert shot_prompts(train=TRAIN[::-1]).shots(ASKED) == usual
    assert len({shot_prompts(seed=seed).shots(ASKED) for seed in range(8)}) > 1
    assert shot_prompts(num_shots=2).shots(ASKED) == usual[:2]


def test_questions_of_the_same_words_and_other_choices_are_examples() -> None:
    train = tuple(
        Record(str(n), "Which is right?", (f"{n} cats sleep", f"{n} cats sleeps"), 0)
        for n in range(3)
    )
    question = Record("x", "Which is right?", ("dogs bark", "dogs barks"), 0)
    assert len(Prompts(Templates.read(PATH), "mc_qa", None, train, 3).shots(question)) == 3


def test_few_examples_do_not_always_have_the_first_labels() -> None:
    choices = tuple("pqrst")
    train = tuple(Record(str(n), f"Question {n}?", choices, n % 5) for n in range(20))
    question = Record("x", "And this?", choices, 0)
    gold_labels = set()
    for seed in range(30):
        prompts = Prompts(Templates.read(PATH), "mc_qa", None, train, 2, seed)
        *examples, _ = prompts.letters(question, (0, 1, 2, 3, 4)).stem.split("\n\n")
        labels = [text[-1] for text in examples]
        assert len({*labels}) == 2
        gold_labels |= {*labels}
    assert gold_labels == {*"ABCDE"}


def test_an_item_is_not_asked_behind_itself() -> None:
    train = tuple(
        Record(str(n), f"Is  snow {word}?", ("yes", "no"), 0)
        for n, word in enumerate(["cold", "warm", "wet"])
    )
    question = Record("another id", "is snow cold?", ("yes", "no"), 0)
    for seed in range(5):
        shots = Prompts(Templates.read(PATH), "mc_qa", None, train, 2, seed).shots(question)
        assert {example.id for example in shots} == {"1", "2"}


def test_a_mask_in_a_text_is_not_taken_for_the_blank() -> None:
    train = (Record("t", "What hides a word?", ("the [MASK] token", "a sign"), 0),)
    question = Record("d", "Is fire hot?", ("yes", "a [MASK]"), 0)
    prompts = Prompts(Templates.read(PATH), "mc_qa", None, train, 1)
    assert prompts.words(question).stem == "What hides a word? the ____ token\n\nIs fire hot?"
    assert prompts.letters(question, (0, 1)).stem.count("[MASK]") == 1
    chat = replace(prompts, in_chat=True)
    assert chat.words(question).stem.count("[MASK]") == 1
    inside = Record("d", "A [MASK] is a young cat.", ("kitten", "pup"), 0)
    assert replace(chat, num_shots=0).words(inside).stem == "A ____ is a young cat. [MASK]"
    assert replace(chat, num_shots=0).words(inside, "N/A [MASK]").stem == "N/A [MASK]"
