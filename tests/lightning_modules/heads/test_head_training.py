from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from probelight.lightning_modules.base import adamw_groups, slanted_triangular
from probelight.lightning_modules.heads import head_training
from probelight.lightning_modules.heads.head_training import (
    HeadPlan,
    Sample,
    sample_orders,
    train_stack,
)
from probelight.lightning_modules.heads.stacked_heads import CachedItems, StackedHeads
from probelight.models.candidate_head import CandidateHead

NUM_ITEMS, HIDDEN, VOCAB = 40, 16, 30


@pytest.fixture
def model() -> BertForMaskedLM:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    return BertForMaskedLM(config).double().eval()


def items(seed: int) -> CachedItems:
    """Separable items: the sign of the first feature says which of two words is right."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(NUM_ITEMS, HIDDEN, generator=generator, dtype=torch.float64)
    labels = (features[:, 0] > 0).long()
    candidates = torch.tensor([7, 9]).repeat(NUM_ITEMS, 1)
    candidates[::2] = candidates[::2].flip(1)
    labels[::2] = 1 - labels[::2]
    return CachedItems(features, candidates, torch.ones_like(candidates, dtype=torch.bool), labels)


def test_samples_are_nested_and_seeded() -> None:
    small, large = sample_orders(100, 10, 2, 3), sample_orders(100, 30, 2, 3)
    assert small.shape == (2, 10)
    assert set(small[0]) == set(small[1]) <= set(large[0])
    assert set(small[0]) != set(sample_orders(100, 10, 2, 4)[0])


def test_the_model_itself_is_left_alone(model: BertForMaskedLM, tmp_path: Path) -> None:
    initial = copy.deepcopy(model.state_dict())
    plan = HeadPlan(1e-1, epochs=1, batch_size=8)
    heads = StackedHeads([CandidateHead(model)], "mlp")
    train_stack(heads, [items(0)], sample_orders(NUM_ITEMS, 16, 1, 0)[None], plan)
    assert all(torch.equal(value, initial[name]) for name, value in model.state_dict().items())


def open_items(seed: int, num_words: int = 12) -> CachedItems:
    """Items with other candidates each, two or three of them; the third's place is filled by 0."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(NUM_ITEMS, HIDDEN, generator=generator, dtype=torch.float64)
    picks = [torch.randperm(num_words, generator=generator)[:3] + 4 for _ in range(NUM_ITEMS)]
    candidates = torch.stack(picks)
    exists = torch.ones_like(candidates, dtype=torch.bool)
    exists[::3, 2] = False
    candidates[~exists] = 0
    labels = (features[:, 0] > 0).long()
    return CachedItems(features, candidates, exists, labels)


def train_alone(
    model: BertForMaskedLM, train: CachedItems, order: np.ndarray, plan: HeadPlan, mode: str
) -> torch.Tensor:
    """One run with the whole V x H decoder, of which each item reads its own choices."""
    model = copy.deepcopy(model)
    head = CandidateHead(model)
    head.untie()
    model.requires_grad_(False)
    trained = [*head.decoder_parameters()]
    if mode == "mlp":
        trained += list(head.transform_parameters())
    for parameter in trained:
        parameter.requires_grad_(True)
    groups = adamw_groups(model, plan.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98))
    starts = range(0, order.shape[1], plan.batch_size)
    factor = slanted_triangular(plan.epochs * len(starts))
    for step, (epoch, start) in enumerate((e, s) for e in range(plan.epochs) for s in starts):
        for group in optimizer.param_groups:
            group["lr"] = plan.learning_rate * factor(step)
        chosen = order[epoch, start : start + plan.batch_size].tolist()
        losses = []
        for item in chosen:
            logits = head.full_logits(train.features[item])  # (V,)
            words = train.candidates[item][train.choice_mask[item]]
            losses.append(F.cross_entropy(logits[words][None], train.labels[item][None]))
        torch.stack(losses).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        scores = head.score(train.features, train.candidates)
    return scores.masked_fill(~train.choice_mask, float("-inf"))


@pytest.mark.parametrize("mode", ["mlp", "linear"])
@pytest.mark.parametrize(
    ("make", "size"), [(items, 20), (open_items, 5)], ids=["two words", "words outside a sample"]
)
def test_stacked_runs_equal_runs_one_by_one_on_the_whole_decoder(
    model: BertForMaskedLM, mode: Any, make: Callable[[int], CachedItems], size: int
) -> None:
    plan = HeadPlan(1e-2, epochs=3, batch_size=8)
    sets = [make(0), make(0), make(1)]
    orders = np.stack([sample_orders(NUM_ITEMS, size, plan.epochs, seed) for seed in (1, 2, 1)])
    if make is open_items:  # each run is asked for words that it was never trained on
        for data, order in zip(sets, orders, strict=True):
            assert len(data.candidates[order].unique()) < len(data.candidates.unique())
    heads = StackedHeads([CandidateHead(model)] * 3, mode)
    train_stack(heads, sets, orders, plan)
    scores = heads.scores(sets)
    for run, data in enumerate(sets):
        alone = train_alone(model, data, orders[run], plan, mode)
        torch.testing.assert_close(scores[run], alone, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mode", ["mlp", "linear"])
def test_runs_trained_a_few_at_a_time_are_the_same(
    model: BertForMaskedLM, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = HeadPlan(1e-2, epochs=2, batch_size=8)
    sets = [items(seed % 2) for seed in range(5)]
    orders = np.stack([sample_orders(NUM_ITEMS, 20, plan.epochs, seed) for seed in range(5)])
    scores_by_size = []
    for budget in (2**30, 20_000, 1):
        monkeypatch.setattr(head_training, "_CPU_STATE_BYTES", budget)
        heads = StackedHeads([CandidateHead(model)] * 5, mode)
        train_stack(heads, sets, orders, plan)
        scores_by_size.append(heads.scores(sets))
    torch.testing.assert_close(scores_by_size[1], scores_by_size[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(scores_by_size[2], scores_by_size[0], rtol=1e-10, atol=1e-12)


def test_runs_that_share_a_set_share_its_features(model: BertForMaskedLM) -> None:
    data = items(0)
    order = torch.from_numpy(np.stack([sample_orders(NUM_ITEMS, 10, 2, seed) for seed in range(4)]))
    heads = StackedHeads([CandidateHead(model)] * 4, "mlp")
    sample = Sample(heads, slice(0, 4), [data] * 4, order)
    assert len(sample.features) == len(order.unique())
    assert torch.equal(sample.features[sample.index[3, 1]], data.features[order[3, 1]])


class PlainHead:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.dense = nn.Linear(HIDDEN, HIDDEN).double()
        self.norm = nn.GroupNorm(4, HIDDEN).double()
        self.weight = nn.Parameter(torch.randn(VOCAB, HIDDEN, dtype=torch.float64))
        self.bias = None

    def transform_steps(self) -> list[object]:
        return [self.dense, torch.tanh, self.norm]


def test_any_head_with_steps_and_rows_is_trained() -> None:
    data, head, plan = items(0), PlainHead(), HeadPlan(1e-2, epochs=2, batch_size=8)
    order = sample_orders(NUM_ITEMS, 16, 2, 1)
    heads = StackedHeads([head] * 2, "mlp")
    train_stack(heads, [data, data], np.stack([order, order]), plan)
    optimizer = torch.optim.AdamW(
        [
            {"params": [head.dense.weight, head.weight], "weight_decay": 0.1},
            {"params": [head.dense.bias, *head.norm.parameters()], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
    )
    factor = slanted_triangular(4)
    for step, chosen in enumerate(order.reshape(4, 8)):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * factor(step)
        z = head.norm(torch.tanh(head.dense(data.features[chosen])))
        logits = torch.einsum("be,bke->bk", z, head.weight[data.candidates[chosen]])
        F.cross_entropy(logits, data.labels[chosen]).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        z = head.norm(torch.tanh(head.dense(data.features)))
        expected = torch.einsum("be,bke->bk", z, head.weight[data.candidates])
    torch.testing.assert_close(heads.scores([data, data])[1], expected, rtol=1e-6, atol=1e-8)
