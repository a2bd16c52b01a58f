from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from probelight.lightning_modules.baselines.partial_input import (
    ChoiceOnly,
    ChoiceToChoice,
    PartialInput,
    QuestionToChoice,
)
from probelight.models.checkpoint_errors import PretrainedError
from probelight.probes.record import Record
from probelight.training.modules import saved_module
from tests.lightning_modules.baselines.words import WORDS, scores

ANIMALS = WORDS[:10]
KINDS: list[type[PartialInput]] = [ChoiceOnly, ChoiceToChoice, QuestionToChoice]
RECORDS = [
    Record("one", "which is a cat", ("dog", "a cat not a dog", "zebra"), 0),
    Record("two", "fox", ("which is a hen a hen", ""), 0),
]


def by_hand(module: PartialInput, record: Record) -> Tensor:
    """(K,) logits of one item, text by text and pair by pair, by the cell's own equations."""

    def run(lstm: torch.nn.LSTM, tokens: Tensor) -> list[Tensor]:
        hidden = cell = torch.zeros(lstm.hidden_size)
        states = []
        for token in tokens:
            gates = lstm.weight_ih_l0 @ token + lstm.bias_ih_l0
            gates = gates + lstm.weight_hh_l0 @ hidden + lstm.bias_hh_l0
            take, keep, new, give = gates.chunk(4)
            cell = keep.sigmoid() * cell + take.sigmoid() * new.tanh()
            hidden = give.sigmoid() * cell.tanh()
            states.append(hidden)
        return states

    def represented(text: str) -> Tensor:
        if not text:
            return torch.zeros(2 * module.read.onward.hidden_size)
        tokens = module.words(torch.from_numpy(module.words.ids(text.split()))[None])[0]
        onward = run(module.read.onward, tokens)
        backwards = run(module.read.backwards, tokens.flip(0))[::-1]
        states = [torch.cat(pair) for pair in zip(onward, backwards, strict=True)]
        return torch.stack(states).max(dim=0).values

    weights = module.weigh.weight[0]

    def att(u: Tensor, v: Tensor) -> Tensor:
        return weights @ torch.cat([u, v, u * v, (u - v).abs()])

    question, choices = represented(record.stem), [represented(c) for c in record.choices]
    if isinstance(module, ChoiceOnly):
        return torch.stack([weights @ choice for choice in choices])
    if isinstance(module, QuestionToChoice):
        return torch.stack([att(question, choice) for choice in choices])
    return torch.stack(
        [
            -torch.stack([att(choice, rival) for rival in choices if rival is not choice]).sum()
            for choice in choices
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_the_equations(kind: type[PartialInput], vectors: str) -> None:
    module = kind(vectors, hidden_size=3)
    logits = scores(module, RECORDS)
    with torch.no_grad():
        for row, record in zip(logits, RECORDS, strict=True):
            size = len(record.choices)
            torch.testing.assert_close(row[:size], by_hand(module, record), rtol=1e-5, atol=1e-6)
    assert logits[1, 2] == -torch.inf
    for row, record in zip(logits, RECORDS, strict=True):
        alone = scores(module, [record])[0]
        torch.testing.assert_close(row[: len(alone)], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_choice_and_none_that_is_a_text_give_numbers(
    kind: type[PartialInput], vectors: str
) -> None:
    module = kind(vectors, hidden_size=3, num_choices=4)
    module.train()
    records = [Record("one", "", ("",), 0), Record("two", "né 猫 \u200b", ("cat",), 0)]
    batch = module.encoder().encode(records).collate([0, 1])
    logits = module(batch)
    assert torch.isfinite(logits).all()
    assert logits.shape == (2, 4)
    logits.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters() if p.grad is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_one_answers_alike_without_its_file(
    kind: type[PartialInput], vectors: str, tmp_path: Path
) -> None:
    module = kind(vectors, hidden_size=3, num_choices=4, seed=3)
    expected = scores(module, RECORDS)
    module.save_pretrained(tmp_path / "saved")
    Path(vectors).unlink()
    again = saved_module(tmp_path / "saved")
    assert type(again) is kind
    assert torch.equal(scores(again, RECORDS), expected)
    with pytest.raises(PretrainedError, match="num_choices"):
        saved_module(tmp_path / "saved", num_choices=5)


def leaking(size: int) -> list[Record]:
    """Questions whose right answer is the one with "not", at a random place."""
    draw = random.Random(1)
    records = []
    for i in range(size):
        names = draw.sample(ANIMALS, 3)
        gold = draw.randrange(3)
        choices = [f"a {name}" if j != gold else f"not {name}" for j, name in enumerate(names)]
        records.append(Record(str(i), f"which is a {draw.choice(ANIMALS)}", tuple(choices), gold))
    return records


def odd_one_out(size: int) -> list[Record]:
    """Questions whose right answer is the one of its sort, which may be either sort."""
    draw = random.Random(2)
    records = []
    for i in range(size):
        names, gold, sort = draw.sample(ANIMALS, 3), draw.randrange(3), draw.choice("ab")
        words = {"a": ("not", "which"), "b": ("which", "not")}[sort]
        choices = [f"{words[j == gold]} {name}" for j, name in enumerate(names)]
        records.append(Record(str(i), "is", tuple(choices), gold))
    return records


def matching(size: int) -> list[Record]:
    """Questions that say which of two words the right answer has: each choice is as often right."""
    draw = random.Random(3)
    records = []
    for i in range(size):
        word, gold = draw.choice(["not", "which"]), draw.randrange(2)
        wrong = {"not": "which", "which": "not"}[word]
        choices = [word if j == gold else wrong for j in range(2)]
        records.append(Record(str(i), f"is a {word}", tuple(choices), gold))
    return records


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("task", "learned"),
    [
        (leaking, {ChoiceOnly, ChoiceToChoice, QuestionToChoice}),
        (odd_one_out, {ChoiceToChoice}),
        (matching, {QuestionToChoice}),
    ],
)
def test_each_learns_what_it_sees_and_nothing_else(
    task: Callable[[int], list[Record]], learned: set[type[PartialInput]], vectors: str
) -> None:
    records = task(110)
    for kind in KINDS:
        module = kind(vectors, hidden_size=8, dropout=0.1).train()
        batch = module.encoder().encode(records[:60]).collate(range(60))
        optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        for _ in range(30):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(batch), batch["labels"]).backward()
            optimizer.step()
        best = scores(module, records[60:]).argmax(dim=1)
        right = sum(int(b) == r.answer for b, r in zip(best, records[60:], strict=True)) / 50
        if kind in learned:
            assert right == 1
        else:
            assert right < 0.7
