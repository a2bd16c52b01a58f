"""What comparisons say, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.reports.compare.facts import Difference, differences
from probelight.reports.kit.text import points_between, probability, unsigned
from probelight.results.load import Results


def compared(results: Results) -> Sequence[str]:
    """How many pairs are told apart, the largest difference, and what could not have been seen."""
    found = differences(results)
    if not found:
        return ()
    apart = [one for one in found if one.are_apart]
    if len(found) == 1:
        told = "The two systems are told apart" if apart else "The two systems are not told apart"
    else:
        verb = "tells" if len(apart) < 2 else "tell"
        told = f"Of {len(found)} comparisons, {len(apart) or 'none'} {verb} two systems apart"
    if not apart:
        return (f"{told}. {_unseen(found)}",)
    largest = max(apart, key=lambda one: abs(one.difference.value))
    return (f"{told}. The largest difference: {_said(largest)}",)


def _said(one: Difference) -> str:
    gap, better, worse = one.difference.value, one.first, one.second
    low, high = one.difference.ci_low, one.difference.ci_high
    if gap < 0:
        gap, better, worse = -gap, worse, better
        low, high = (None, None) if low is None or high is None else (-high, -low)
    return (
        f"on {one.place.text} {better} is {unsigned(gap)} points better than {worse} "
        f"(95% interval {points_between(low, high)}, adjusted p {probability(one.adjusted)})."
    )


def _unseen(found: Sequence[Difference]) -> str:
    seen = [one.smallest for one in found if one.smallest is not None]
    if not seen:
        return "With so few groups of items no difference could have been seen."
    if len(found) == 1:
        return f"A difference of {unsigned(seen[0])} points would have been seen (power 80%)."
    return (
        f"Differences from {unsigned(min(seen))} points (the best case) or {unsigned(max(seen))} "
        "points (the worst) would have been seen (power 80%)."
    )


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    return " ".join(compared(results))
