"""Where choices stand in a whole vocabulary (Talmor 2020, section 4.5), for any scorer with one.

Shapes: B items, K choices, V entries of a vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from probelight.models.batches import Batch, mask_choices
from probelight.models.scorers.base import Question, Scorer


def candidate_ranks(scorer: Scorer) -> Question:
    """(B, K): the rank of each choice in the whole vocabulary.

    Rank 1 is the model's first guess; words of the same log-probability share the better rank, -inf
    stands where an item has no such choice.

    Raises:
        UsageError: If the scorer's kind has no log-probabilities over a vocabulary.
    """
    asked = scorer.vocabulary()

    def answer(batch: Batch) -> Tensor:
        whole = asked.answer(batch)  # (B, V)
        own = whole.gather(1, batch["candidate_ids"].to(whole.device))  # (B, K)
        # One choice after the other: all at once would be (B, K, V).
        # "Not at most" rather than "above": what is no number is not the first guess.
        ranks = [1 + (~(whole <= own[:, k, None])).sum(dim=1) for k in range(own.shape[1])]
        found = torch.stack(ranks, dim=1).float().to(batch["choice_mask"].device)
        return mask_choices(found, batch["choice_mask"])

    return replace(asked, answer=answer)


def log_probabilities(logits: Tensor) -> Tensor:
    """The softmax's logarithm over the last dimension, in double precision.

    So two logits that differ never become one log-probability, and ranks are those of the logits.
    """
    exact = logits.cpu() if logits.device.type == "mps" else logits  # it has no doubles
    return exact.double().log_softmax(dim=-1)
