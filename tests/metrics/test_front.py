from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from probelight.metrics.front import Cut, TradeOff, cost_bounds, cut_at, edges, influences
from probelight.metrics.intervals import Floats


def test_neighbours_differ_in_one_coordinate() -> None:
    assert edges([(2.0, 1.0)]) == [(None, 0)]
    assert edges([(5.0, 1.0), (2.0, 1.0), (9.0, 1.0)]) == [(None, 1), (1, 0), (0, 2)]
    # Two strengths at two rates: along each, from what holds back most.
    square = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]
    along = {(None, 0), (0, 2), (None, 1), (1, 3)} | {(0, 1), (None, 2), (2, 3)}
    pairs = edges(square)
    assert {*pairs} == along
    assert len(pairs) == len(along)


def test_a_place_that_was_not_tried_parts_nobody() -> None:
    holed = [(1.0, 1.0), (3.0, 1.0), (2.0, 2.0)]
    assert {*edges(holed)} == {(None, 0), (0, 1), (None, 2), (None, 1)}


def test_the_cost_is_interpolated_between_neighbours() -> None:
    points = [TradeOff((1.0,), 0.1, 0.02, 0.0), TradeOff((2.0,), 0.3, 0.1, 0.0)]
    # A quarter of the way from 10 to 30 points of gain, and so from 2 to 10 points of cost.
    assert cut_at(points, 0.15) == pytest.approx(Cut(0, 1, 0.25, 0.4, 0.04))
    # Half of the way from the model before.
    first, *numbers = cut_at(points, 0.05)
    assert first is None
    assert numbers == pytest.approx([0, 0.5, 0.2, 0.01])
    # The second point itself; a third of about its gain would make the curve there upright.
    points.append(TradeOff((3.0,), 0.3001, 0.2, 0.0))
    first, *numbers = cut_at(points, 0.3)
    assert first is None
    assert numbers == pytest.approx([1, 1.0, 0.1 / 0.3, 0.1])
    with pytest.raises(ValueError, match="is not between any two neighbours"):
        cut_at(points, 0.4)


@pytest.mark.parametrize(("selected", "second"), [((0.01, 0.02), 0), ((0.02, 0.01), 1)])
def test_selection_items_say_which_neighbours(selected: tuple[float, float], second: int) -> None:
    """Of two strengths at two rates; the reported costs would have the first, always."""
    costs = (0.0, 0.5)
    points = [TradeOff((0.0 + i, 0.0 + i), 0.2, costs[i], selected[i]) for i in range(2)]
    cut = cut_at(points, 0.1)
    assert (cut.first, cut.second, cut.cost) == (None, second, costs[second] / 2)


def test_influences_by_hand() -> None:
    """Two items of either task and two seeds; halfway between two settings."""
    cut = Cut(0, 1, 0.5, 2.0, 0.0)
    lost = [{1: np.array([0.0, 1.0]), 2: np.array([0.0, 0.0])},
            {1: np.array([1.0, 1.0]), 2: np.array([0.0, 0.0])}]  # fmt: skip
    gained = [{1: np.array([1.0, 0.0]), 2: np.array([0.0, 0.0])},
              {1: np.array([1.0, 0.0]), 2: np.array([1.0, 1.0])}]  # fmt: skip
    of_lost, of_gained = influences(cut, lost, gained)
    # Halfway: 0.5 and 1, then 0 and 0, which are 0.375 on average.
    assert of_lost[1] == pytest.approx([0.125, 0.625])
    assert of_lost[2] == pytest.approx([-0.375, -0.375])
    # Halfway: 1 and 0, then 0.5 and 0.5; each point of gain less is two points of cost more.
    assert of_gained[1] == pytest.approx([-1.0, 1.0])
    assert of_gained[2] == pytest.approx([0.0, 0.0])
    # From the model before, which has gained and lost nothing.
    of_lost, _ = influences(cut._replace(first=None), lost[:1], gained[:1])
    assert of_lost[1] == pytest.approx([-0.125, 0.375])


def test_one_group_of_a_task_tells_nothing() -> None:
    nothing = {1: np.zeros(4)}
    bounds = cost_bounds(0.1, [(1.0, (nothing, nothing))], ([0, 1, 2, 3], [0, 0, 0, 0]))
    assert bounds == (-1.0, 1.0)


SEEDS, NUM_OLD, NUM_NEW = 30, 300, 240
GROUPS = ([item // 2 for item in range(NUM_OLD)], [item // 3 for item in range(NUM_NEW)])
GAIN = 0.3
Answers = Mapping[tuple[str, str, int], Floats]  # (S, N) by method, task and setting


def simulated() -> Answers:
    """Changes of groups and seeds of two methods, whose settings gain some 20 and 40 points."""
    rng = np.random.default_rng(3)
    correct = {}
    hard = {
        task: rng.normal(size=groups[-1] + 1)[groups]
        for task, groups in zip("on", GROUPS, strict=True)
    }
    for method, lost in (("none", 0.4), ("kept", 0.2)):
        luck = rng.normal(size=(SEEDS, 1))
        for task in "on":
            for setting in range(2):
                share = 0.2 * (1 + setting) * (lost if task == "o" else 1.0)
                noise = rng.normal(size=(SEEDS, len(hard[task])))
                score = hard[task] + 0.3 * luck + 0.6 * noise
                correct[method, task, setting] = 1.0 * (score > np.quantile(score, 1 - share))
    return correct


def cost(answers: Answers, method: str) -> tuple[float, Cut]:
    (gain_a, gain_b), (cost_a, cost_b) = (
        [float(answers[method, task, setting].mean()) for setting in range(2)] for task in "no"
    )
    weight, slope = (GAIN - gain_a) / (gain_b - gain_a), (cost_b - cost_a) / (gain_b - gain_a)
    value = cost_a + (GAIN - gain_a) * slope
    return value, Cut(0, 1, weight, slope, value)


def test_interval_is_as_wide_as_a_bootstrap_over_groups_and_seeds() -> None:
    answers = simulated()
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(1500):
        seeds = rng.integers(SEEDS, size=SEEDS)
        items = {}
        for task, groups in zip("on", GROUPS, strict=True):
            members = np.arange(len(groups)).reshape(groups[-1] + 1, -1)
            items[task] = members[rng.integers(len(members), size=len(members))].ravel()
        again = {key: scores[seeds][:, items[key[1]]] for key, scores in answers.items()}
        drawn.append([cost(again, method)[0] for method in ("none", "kept")])
    none, kept_items = np.array(drawn).T
    terms, values = [], []
    for method in ("none", "kept"):
        value, cut = cost(answers, method)
        lost, gained = (
            [dict(enumerate(answers[method, task, setting])) for setting in range(2)]
            for task in "on"
        )
        terms.append(influences(cut, lost, gained))
        values.append(value)
    for value, weighted, spread in (
        (values[0], [(1.0, terms[0])], none.std()),
        (values[1], [(1.0, terms[1])], kept_items.std()),
        (values[1] - values[0], [(1.0, terms[1]), (-1.0, terms[0])], (kept_items - none).std()),
    ):
        low, high = cost_bounds(value, weighted, GROUPS)
        assert (low + high) / 2 == pytest.approx(value, abs=1e-9)
        # 2.045 is Student's quantile of 30 seeds, and 1.97 that of the groups.
        assert (high - low) / 2 == pytest.approx(2.01 * spread, rel=0.12)
    apart = np.hypot(none.std(), kept_items.std())
    assert (kept_items - none).std() < 0.9 * apart  # items and seeds are paired
