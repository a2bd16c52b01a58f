"""Accuracy over batches and processes, weighted so that items that pad a batch do not count."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor
from torchmetrics import Metric

from probelight.metrics.choices import best_choices

MOST_TIED = 64  # choices that share a best score, up to which sums are exact


def weighted_scores(logits: Tensor, labels: Tensor, weights: Tensor, choice_mask: Tensor) -> Tensor:
    """Sum the weights of the items whose gold choice is one of n best choices, for each n.

    Args:
        logits: (B, K) scores of the choices.
        labels: (B,) index of each item's gold choice.
        weights: (B,) weight of each item, 0 for padding.
        choice_mask: (B, K) whether an item has a choice.

    Returns:
        (MOST_TIED,) weights; element n - 1 is for items whose gold choice is one of n best ones,
            each of which counts 1 / n (see `metrics.choices`)
    """
    best = best_choices(logits, choice_mask)
    right = best.gather(1, labels[:, None])[:, 0]
    num_best = best.sum(dim=1)
    # More than MOST_TIED go to the last element with the weight that makes their score 1 / n.
    capped_num_best = num_best.clamp(min=1, max=MOST_TIED)
    shares = torch.where(num_best > MOST_TIED, weights * MOST_TIED / num_best, weights)
    scores = torch.zeros(MOST_TIED, dtype=weights.dtype, device=weights.device)
    return scores.index_add_(0, capped_num_best - 1, shares * right)


def score_sum(scores: Tensor) -> Tensor:
    """Return the sum of the items' scores, a scalar.

    Args:
        scores: (MOST_TIED,) weights, as `weighted_scores` returns them.
    """
    return (scores / torch.arange(1, MOST_TIED + 1, device=scores.device)).sum()


class WeightedAccuracy(Metric):
    """Mean score of the items, over batches and processes.

    An item scores 1/n if its gold choice is one of n best choices, else 0. With whole-number
    weights and fewer than 2**24 items the sums are exact: the result equals that of `math.fsum`,
    however the items are batched or divided among processes. It is NaN if the weights sum to 0.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    scores: Tensor
    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        # Single precision, because not every accelerator has double; the division is on the CPU.
        self.add_state("scores", default=torch.zeros(MOST_TIED), dist_reduce_fx="sum")
        self.add_state("total", default=torch.zeros(()), dist_reduce_fx="sum")

    def update(self, logits: Tensor, labels: Tensor, weights: Tensor, choice_mask: Tensor) -> None:
        """Add a batch.

        Args:
            logits: (B, K) scores of the choices.
            labels: (B,) index of each item's gold choice.
            weights: (B,) weight of each item, 0 for padding.
            choice_mask: (B, K) whether an item has a choice.
        """
        weights = weights.float()
        self.scores += weighted_scores(logits, labels, weights, choice_mask)
        self.total += weights.sum()

    def compute(self) -> Tensor:
        """Return the accuracy, a double-precision scalar between 0 and 1, on the CPU."""
        by_number = enumerate(self.scores.tolist(), start=1)
        total = sum(Fraction(weight) * Fraction(1 / n) for n, weight in by_number)
        return torch.tensor(float(total), dtype=torch.float64) / self.total.cpu().double()
