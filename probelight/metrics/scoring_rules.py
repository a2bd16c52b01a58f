"""The scoring rules: how an untrained model's log-likelihoods become scores of choices.

Each rule is a function of one item. It takes the log-likelihoods of the item's K choices: natural
logarithms, summed over the choice's tokens by the scorer (`probelight.models.scorer`).

- `sum`: the log-likelihood itself (acc of lm-evaluation-harness).
- `mean_token`: the log-likelihood divided by the number of tokens in the sum.
- `mean_char` (acc_norm): the log-likelihood divided by the number of characters (code points) of
  the choice, without white space around it. Some model types also sum over text after the blank,
  which does not count as characters.
- `pmi` (Holtzman et al. 2021, PMI_DC): the log-likelihood minus that of the same choice after a
  stem that asks only for the type of answer.
- `letter` (Robinson et al. 2023): the log-probability of the choice's label after a prompt that
  lists all choices with labels (`probelight.probes.prompts`).
- `calibrated` (Zhao et al. 2021): the probabilities over the item's choices, divided by their mean
  over stems without content, and renormalised. Zhao et al. have one set of labels for all items,
  and apply a softmax to the quotients instead of renormalising; the order is the same.

If -inf is subtracted from -inf, the score is NaN (see `probelight.metrics.choices`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LETTER = "letter"
RULES = ("sum", "mean_token", "mean_char", "pmi", "calibrated", LETTER)
HARNESS = "harness"  # those of a probe in lm-evaluation-harness, in its texts
# Those that take whole sentences too.
OF_THE_ITEM = ("sum", "mean_token", "mean_char", LETTER)
DEBIASED = "letter_debiased"  # the mean of `letter` over several orders, listed next to it


def divided(sums: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return (K,) log-likelihoods divided by the sizes of the choices.

    Args:
        sums: (K,) log-likelihoods.
        sizes: (K,) numbers of tokens or characters.
    """
    return [total / size for total, size in zip(sums, sizes, strict=True)]


def pmi(sums: Sequence[float], in_domain: Sequence[float]) -> list[float]:
    """Return (K,) log P(choice | stem) - log P(choice | domain stem).

    Args:
        sums: (K,) log-likelihoods after the item's stem.
        in_domain: (K,) log-likelihoods after the domain stem.
    """
    return [total - prior for total, prior in zip(sums, in_domain, strict=True)]


def calibrated(sums: Sequence[float], content_free: Sequence[Sequence[float]]) -> list[float]:
    """Return (K,) probabilities of the choices, calibrated with stems without content.

    It computes with logarithms, so that probabilities too small for a float can be divided too.

    Args:
        sums: (K,) log-likelihoods after the item's stem.
        content_free: (S, K) log-likelihoods after each stem without content.
    """
    stems = [log_normalised(stem) for stem in content_free]
    means = [_log_sum(choice) - math.log(len(stems)) for choice in zip(*stems, strict=True)]
    log_probabilities = log_normalised(sums)
    quotients = [log - mean for log, mean in zip(log_probabilities, means, strict=True)]
    return [math.exp(log) for log in log_normalised(quotients)]


def same_order(sizes: Sequence[Sequence[int]], other_sizes: Sequence[Sequence[int]]) -> bool:
    """Return whether dividing by one or the other sizes must order the choices of items alike.

    This is so if they are in proportion within each item, for example if every choice is one token.

    Args:
        sizes: For each item, (K,) sizes of its choices; all 1 for the rule `sum`.
        other_sizes: For each item, (K,) the other sizes of its choices.
    """
    return all(
        size * other_row[0] == row[0] * other_size
        for row, other_row in zip(sizes, other_sizes, strict=True)
        for size, other_size in zip(row, other_row, strict=True)
    )


def log_normalised(logs: Sequence[float]) -> list[float]:
    """Return (K,) log-probabilities, normalised so that the probabilities sum to 1.

    Args:
        logs: (K,) log-likelihoods.
    """
    total = _log_sum(logs)
    return [log - total for log in logs]


def _log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    highest = max(logs)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(math.exp(log - highest) for log in logs))
