"""Verdicts by hand, and what they promise in simulated checks of ten probes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probelight.metrics.forgetting import changes
from probelight.metrics.intervals import Interval
from probelight.metrics.verdicts import (
    ChangeEvidence,
    ChangeVerdict,
    holm,
    mean_change,
    verdicts,
)

NUM_PROBES, NUM_CHOICES = 10, 4


def evidence(
    loss: float = 0.0,
    half: float = 0.03,
    p: float = 1.0,
    bound: float | None = None,
    above: float = 0.2,
    least: float = -0.1,
    groups: int = 300,
) -> ChangeEvidence:
    interval = Interval(loss, loss - half, loss + half)
    loss_bound = loss + half * 1.6449 / 1.96 if bound is None else bound
    return ChangeEvidence(interval, loss_bound, p, above, least, 300, groups)


def words(*family: ChangeEvidence, margin: float = 0.05) -> list[str]:
    return [verdict.word for verdict in verdicts(family, margin)]


def test_p_values_are_adjusted_as_holm_did() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, never falling.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_verdicts_come_in_their_order() -> None:
    assert words(evidence(groups=39, p=0.001, loss=0.3)) == ["cannot tell"]
    # What was at chance before can be gained, but neither lost nor kept.
    assert words(evidence(loss=-0.2, p=0.01, above=-0.05)) == ["gained"]
    assert words(evidence(loss=0.2, p=0.01, above=0.0)) == ["not known before"]
    assert words(evidence(loss=0.0, above=-0.01)) == ["not known before"]
    assert words(evidence(loss=0.2, p=0.01)) == ["forgot"]
    assert words(evidence(loss=0.01)) == ["kept"]
    assert words(evidence(loss=0.01, half=0.06)) == ["cannot tell"]
    assert words(evidence(loss=0.01), margin=0.03) == ["cannot tell"]


def test_what_is_clear_alone_need_not_be_clear_among_several() -> None:
    lost = evidence(loss=0.06, half=0.055, p=0.03)
    assert words(lost) == ["forgot"]
    assert words(lost, evidence(), evidence()) == ["cannot tell", "kept", "kept"]
    [first, second] = verdicts([lost, evidence(loss=0.2, p=0.001)])
    assert (first.adjusted_p, second.adjusted_p) == pytest.approx((0.03, 0.002))
    # One without an interval makes no claim, and still is one of the family.
    assert verdicts([lost, evidence(groups=5)])[0].adjusted_p == pytest.approx(0.06)


def test_notes_say_how_far_a_verdict_goes() -> None:
    small = verdicts([evidence(loss=0.03, half=0.015, p=0.001)])[0]
    assert (small.word, small.below_margin) == ("forgot", True)
    hidden = verdicts([evidence(loss=0.0, least=0.02)])[0]
    assert (hidden.word, hidden.hidden_loss) == ("kept", True)
    # The one-sided reach is 0.05 at 300 items. With power 80% it takes (1 + 0.8416 / 1.6449)^2
    # times as many items to bring it within 0.05, and four times those within 0.025.
    factor = (1 + 0.8416212 / 1.6448536) ** 2
    needed = verdicts([evidence(bound=0.05, half=0.06)], margin=0.05)[0].items_needed
    assert needed == math.ceil(300 * factor)
    assert verdicts([evidence(bound=0.05)], 0.025)[0].items_needed == math.ceil(1200 * factor)
    # The loss itself is near the margin: more items than there are would not be needed without it.
    near = verdicts([evidence(loss=0.04, bound=0.055, half=0.02)])[0]
    assert near == ChangeVerdict("cannot tell", 1.0, 0.05)
    with pytest.raises(ValueError, match="margin=0"):
        verdicts([evidence()], 0)


def test_the_mean_of_independent_changes_is_narrower_than_each() -> None:
    mean = mean_change([Interval(0.1, 0.0, 0.2), Interval(-0.1, -0.2, 0.0)])
    assert mean == pytest.approx((0.0, -math.sqrt(0.02) / 2, math.sqrt(0.02) / 2))
    assert mean_change([Interval(0.1, 0.0, 0.3)]) == pytest.approx((0.1, 0.0, 0.3))


class _Simulation:
    """Models that know some items, and guess the others anew each time they are asked."""

    def __init__(self, num_groups: int, group_size: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shape = num_groups, group_size
        self.groups = np.repeat(np.arange(num_groups), group_size)
        self.num_items = num_groups * group_size

    def asked(self, known: np.ndarray) -> np.ndarray:
        """Return (N,) scores of one pass over the items."""
        guessed = self.rng.random(self.num_items) < 1 / NUM_CHOICES
        return (known | guessed).astype(float)

    def known(self, share: float) -> np.ndarray:
        """Return (N,) which items are known; those of a group are alike, but for some."""
        of_group = self.rng.random(self.shape[0]) < share
        own = self.rng.random(self.num_items) < share
        is_own = self.rng.random(self.num_items) < 0.5
        return np.where(is_own, own, np.repeat(of_group, self.shape[1]))

    def probe(self, share: float, lost: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return scores before and after, where a share of all items is lost by groups and items.

        The accuracy falls by `lost`: a known item that is lost is guessed.
        """
        known = self.known(share)
        still = self.known(1 - lost / (1 - 1 / NUM_CHOICES) / share) if lost else True
        return self.asked(known), self.asked(known & still)

    def check(self, pairs: list[tuple[np.ndarray, np.ndarray]], margin: float) -> list[str]:
        choices = [NUM_CHOICES] * self.num_items
        family = [changes({0: old}, {0: new}, choices, self.groups).evidence for old, new in pairs]
        return [verdict.word for verdict in verdicts(family, margin)]


def share_by_chance(limit: float, number: int) -> float:
    """Return what a share of at most `limit` may be in so many trials, by three standard errors."""
    return limit + 3 * math.sqrt(limit * (1 - limit) / number)


@pytest.mark.slow
@pytest.mark.parametrize(("num_groups", "group_size"), [(40, 1), (300, 1), (40, 4), (300, 2)])
def test_of_checks_without_a_change_few_name_anything(num_groups: int, group_size: int) -> None:
    """Ten probes of which a model knows from none to nine in ten items, guesses drawn anew."""
    simulation, number = _Simulation(num_groups, group_size, seed=1), 2000
    shares = np.linspace(0.05, 0.9, NUM_PROBES)
    false_alarms = false_gains = 0
    for _ in range(number):
        named = simulation.check([simulation.probe(share) for share in shares], 0.05)
        false_alarms += "forgot" in named
        false_gains += "gained" in named
    groups = f"{num_groups} groups of {group_size}"
    print(f"{groups}, nothing changed: forgot in {false_alarms / number:.1%} of checks")
    assert false_alarms / number <= share_by_chance(0.05, number)
    assert (false_alarms + false_gains) / number <= share_by_chance(0.05, number)


@pytest.mark.slow
@pytest.mark.parametrize(("num_groups", "group_size"), [(100, 1), (300, 1), (300, 2)])
def test_a_loss_above_the_smallest_detectable_one_is_named(
    num_groups: int, group_size: int
) -> None:
    """1.35 times the smallest detectable loss, in one of ten probes, is named in 80%."""
    simulation, number = _Simulation(num_groups, group_size, seed=2), 300
    choices = [NUM_CHOICES] * simulation.num_items
    measured = [simulation.probe(0.7) for _ in range(100)]
    smallest = np.mean(
        [
            changes({0: old}, {0: new}, choices, simulation.groups).smallest_loss
            for old, new in measured
        ]
    )
    others = np.linspace(0.2, 0.9, NUM_PROBES - 1)
    num_named = 0
    for _ in range(number):
        lost = simulation.probe(0.7, 1.35 * float(smallest))
        named = simulation.check([lost, *map(simulation.probe, others)], 0.05)
        num_named += named[0] == "forgot"
    groups = f"{num_groups} groups of {group_size}"
    print(
        f"{groups}, a loss of {1.35 * smallest:.1%}: forgot in {num_named / number:.1%} of checks"
    )
    assert num_named / number >= 0.8 - 3 * math.sqrt(0.8 * 0.2 / number)


@pytest.mark.slow
@pytest.mark.parametrize(("num_groups", "group_size"), [(40, 1), (300, 1), (300, 2)])
def test_a_loss_at_the_margin_is_rarely_called_kept(num_groups: int, group_size: int) -> None:
    """A true loss of just the margin: "kept" is wrong, and said in at most 5%."""
    simulation, number = _Simulation(num_groups, group_size, seed=3), 2000
    for margin in (0.05, 0.2):
        num_kept = sum(
            simulation.check([simulation.probe(0.6, margin)], margin) == ["kept"]
            for _ in range(number)
        )
        groups = f"{num_groups} groups of {group_size}"
        print(f"{groups}, a loss of {margin:.0%}: kept in {num_kept / number:.1%}")
        assert num_kept / number <= share_by_chance(0.05, number)
