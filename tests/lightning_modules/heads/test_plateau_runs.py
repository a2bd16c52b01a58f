from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from probelight.lightning_modules.heads import head_training
from probelight.lightning_modules.heads.head_training import PlateauPlan, sample_orders, train_stack
from probelight.lightning_modules.heads.stacked_heads import CachedItems, StackedHeads

NUM_ITEMS, NUM_HELD_OUT, HIDDEN, VOCAB, EPOCHS = 40, 24, 8, 12, 30
PLAN = PlateauPlan(5e-3, EPOCHS, 8, weight_decay=0.1, max_grad_norm=0.5, patience=5)


class FreshHead(nn.Module):
    """dense, GELU, norm and a decoder; in double precision, so that rounding decides nothing."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.weight = nn.Parameter(0.1 * torch.randn(VOCAB, HIDDEN))
        self.bias = nn.Parameter(torch.zeros(VOCAB))
        self.double()

    def transform_steps(self) -> list[object]:
        return [self.dense, F.gelu, self.norm]

    def logits(self, items: CachedItems) -> torch.Tensor:
        """(N, V) of the whole vocabulary, -inf for all words but an item's candidates."""
        z = self.norm(F.gelu(self.dense(items.features)))
        words = z @ self.weight.T + self.bias
        allowed = torch.full_like(words, float("-inf"))
        for row, (some, there) in enumerate(zip(items.candidates, items.choice_mask, strict=True)):
            allowed[row, some[there]] = 0.0
        return words + allowed

    @torch.no_grad()
    def scores(self, items: CachedItems) -> torch.Tensor:
        """(N, K) of each item's choices, -inf where there is none."""
        logits = self.logits(items).gather(1, items.candidates)
        return logits.masked_fill(~items.choice_mask, float("-inf"))


def items(seed: int, number: int) -> CachedItems:
    """Noisy items with two or three of the words 2 to 9; nobody learns all of them."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(number, HIDDEN, generator=generator, dtype=torch.float64)
    noise = torch.randn(number, generator=generator, dtype=torch.float64)
    labels = (features[:, 0] + 0.5 * noise > 0).long()
    picks = [torch.randperm(3, generator=generator) for _ in range(number)]
    candidates = torch.stack([torch.tensor([2, 3, 9])[pick].sort().values for pick in picks])
    candidates[1::2, 0] = 4  # a word that half of the items have
    exists = torch.ones_like(candidates, dtype=torch.bool)
    exists[::3, 2] = False
    candidates[~exists] = 0
    return CachedItems(features, candidates, exists, labels)


@dataclass
class Alone:
    head: FreshHead
    best_epoch: int
    last_epoch: int
    rate: float


def train_alone(
    head: FreshHead, train: CachedItems, held_out: CachedItems, order: np.ndarray, plan: PlateauPlan
) -> Alone:
    """The reference: torch's Adam, clipping and scheduler, and early stopping written out."""
    head = copy.deepcopy(head)
    optimizer = torch.optim.Adam(
        head.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", factor=0.5, patience=0
    )
    best, best_accuracy, best_epoch, epoch = copy.deepcopy(head), -1.0, 0, 0
    for epoch in range(1, plan.epochs + 1):
        for start in range(0, order.shape[1], plan.batch_size):
            batch = train.at(torch.from_numpy(order[epoch - 1, start : start + plan.batch_size]))
            gold = batch.candidates.gather(1, batch.labels[:, None])[:, 0]
            optimizer.zero_grad()
            F.cross_entropy(head.logits(batch), gold).backward()
            if plan.max_grad_norm is not None:
                nn.utils.clip_grad_norm_(head.parameters(), plan.max_grad_norm)
            optimizer.step()
        if plan.patience is None:
            best, best_epoch = head, epoch
            continue
        with torch.no_grad():
            gold = held_out.candidates.gather(1, held_out.labels[:, None])[:, 0]
            accuracy = (head.logits(held_out).argmax(dim=1) == gold).double().mean().item()
        scheduler.step(accuracy)
        if accuracy > best_accuracy:
            best, best_accuracy, best_epoch = copy.deepcopy(head), accuracy, epoch
        if epoch - best_epoch >= plan.patience:
            break
    return Alone(best, best_epoch, epoch, optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize("budget", [2**30, 1])
def test_each_run_halves_and_stops_by_itself(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_training, "_CPU_STATE_BYTES", budget)
    seeds = (1, 2, 3, 4, 5)
    first, second = items(0, NUM_ITEMS), items(1, NUM_ITEMS)
    train = [first, first, second, second, first]
    watched = [items(2, NUM_HELD_OUT), items(3, NUM_HELD_OUT)]
    held_out = [watched[0], watched[0], watched[1], watched[1], watched[1]]
    heads = [FreshHead(seed) for seed in seeds]
    orders = np.stack([sample_orders(NUM_ITEMS, 20, EPOCHS, seed) for seed in seeds])
    stack = StackedHeads(heads, "mlp")
    epochs = train_stack(stack, train, orders, PLAN, held_out)
    measured = items(4, 16)
    scores = stack.scores([measured] * len(seeds))
    alone = [train_alone(*run, PLAN) for run in zip(heads, train, held_out, orders, strict=True)]
    # The case says something only if runs differ in their best epoch, their end and their rate.
    assert len({run.best_epoch for run in alone}) >= 3
    assert len({run.last_epoch for run in alone}) >= 3
    assert len({run.rate for run in alone}) >= 2
    assert epochs == [run.best_epoch for run in alone]
    for row, run in zip(scores, alone, strict=True):
        torch.testing.assert_close(row, run.head.scores(measured), rtol=1e-7, atol=1e-9)


def test_without_patience_the_rate_stays_and_the_last_epoch_is_kept() -> None:
    plan = PlateauPlan(1e-2, 3, 8, max_grad_norm=None, patience=None)
    data, head = items(0, NUM_ITEMS), FreshHead(1)
    order = sample_orders(NUM_ITEMS, 20, 3, 1)
    stack = StackedHeads([head], "mlp")
    assert train_stack(stack, [data], order[None], plan) == [3]
    alone = train_alone(head, data, data, order, plan).head
    torch.testing.assert_close(stack.scores([data])[0], alone.scores(data), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(head.weight, FreshHead(1).weight, rtol=0, atol=0)
