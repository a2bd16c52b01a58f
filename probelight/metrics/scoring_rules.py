"""The rules by which an untrained model's log-likelihoods become scores of choices.

All are functions of one item. Log-likelihoods are natural logarithms, one of each of its K choices,
each summed over the choice's tokens as the scorer says (`probelight.models.scorer`).

- `sum`: the log-likelihood itself.
- `mean_token`: divided by the number of tokens that were summed.
- `mean_char`: divided by the number of the choice's characters (code points), without the white
  space around it. What a model type sums behind the blank is in the sum and not in the number.
- `pmi` (Holtzman et al. 2021, PMI_DC): less the same choice's log-likelihood behind a stem that
  asks for the kind of answer alone.
- `letter` (Robinson et al. 2023): the log-probability of the choice's label behind a prompt that
  lists all choices with labels (`probelight.probes.prompts`).
- `calibrated` (Zhao et al. 2021): probabilities over the item's choices, divided by their mean over
  stems without content, and renormalised. Zhao et al. have one set of labels for all items, and a
  softmax of the quotients in place of renormalising, which gives the same order.

Where -inf is compared with -inf the score is NaN (see `probelight.metrics.choices`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LETTER = "letter"
RULES = ("sum", "mean_token", "mean_char", "pmi", "calibrated", LETTER)
# Those that take whole sentences too.
OF_THE_ITEM = ("sum", "mean_token", "mean_char", LETTER)
DEBIASED = "letter_debiased"  # the mean of `letter` over several orders, listed next to it


def divided(sums: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return (K,) log-likelihoods divided by the sizes of their choices."""
    return [total / size for total, size in zip(sums, sizes, strict=True)]


def pmi(sums: Sequence[float], in_domain: Sequence[float]) -> list[float]:
    """Return (K,) log P(choice | stem) - log P(choice | domain stem)."""
    return [total - prior for total, prior in zip(sums, in_domain, strict=True)]


def calibrated(sums: Sequence[float], content_free: Sequence[Sequence[float]]) -> list[float]:
    """Return (K,) probabilities of the choices, calibrated by stems without content.

    In logarithms, so that probabilities too small for a number are divided all the same.

    Args:
        sums: (K,) log-likelihoods behind the item's stem.
        content_free: (S, K) the same behind each stem without content.
    """
    stems = [log_normalised(stem) for stem in content_free]
    means = [_log_sum(choice) - math.log(len(stems)) for choice in zip(*stems, strict=True)]
    given = log_normalised(sums)
    quotients = [log - mean for log, mean in zip(given, means, strict=True)]
    return [math.exp(log) for log in log_normalised(quotients)]


def same_order(sizes: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> bool:
    """Return whether dividing by either sizes, (K,) for each item, gives the same order of choices.

    It does where they are in proportion within each item: every choice one token, say. The sizes
    of the sum are all 1.
    """
    return all(
        own * other[0] == one[0] * another
        for one, other in zip(sizes, others, strict=True)
        for own, another in zip(one, other, strict=True)
    )


def log_normalised(logs: Sequence[float]) -> list[float]:
    """Return the logarithms of probabilities (K,) that sum to 1."""
    total = _log_sum(logs)
    return [log - total for log in logs]


def _log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    highest = max(logs)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(math.exp(log - highest) for log in logs))
