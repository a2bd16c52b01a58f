from __future__ import annotations

from pathlib import Path

import pytest

from probelight.probes.diagnostics.sets import load_set
from probelight.protocols.diagnostics.ask import Answers, Said
from probelight.protocols.diagnostics.perturbed import (
    Perturbed,
    perturbed,
    perturbed_lines,
    perturbed_rows,
)
from probelight.protocols.diagnostics.questions import Completion
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row
from tests.fixtures.diagnostics import write_released
from tests.fixtures.results import wilson

ASKED = [Completion(0, ("tea",)), Completion(1, ("bus", "car")), Completion(2, ("zebra",))]
# Three draws: the first item is right in all, the second in one, the third has no entry.
DRAWN = Perturbed("shuffled", ASKED, [[f"{i} {draw}" for i in "abc"] for draw in range(3)])
SAID = {"a 0": "tea", "a 1": "tea", "a 2": "tea", "b 0": "x", "b 1": "car", "b 2": "x"}


def answers(**said: str) -> Answers:
    contexts = [context for draw in DRAWN.contexts for context in draw]
    words = {context: (SAID | said).get(context, "no") for context in contexts}
    behind = {c: Said((word, "y"), {}, frozenset()) for c, word in words.items()}
    return Answers(behind, 2, ())


def test_mean_spread_and_what_survives() -> None:
    outputs = ModelOutputs((("tea",), ("bus",), ("no",)), 2, split=frozenset({"zebra"}))
    mean, spread, survived = perturbed_rows(DRAWN, answers(), outputs, Row(model="m"))
    # Draws: 1/2, 2/2, 1/2; their mean is 2/3, the squares of what they differ sum to 1/6.
    assert (mean.metric, mean.perturbation, mean.num_items) == ("accuracy@1", "shuffled", 2)
    assert mean.value == pytest.approx(2 / 3)
    assert (mean.ci_low, mean.ci_high) == pytest.approx(wilson(2 / 3, 2))
    assert (spread.metric, spread.ci_low) == ("accuracy@1_sd", None)
    assert spread.value == pytest.approx((1 / 6 / 2) ** 0.5)
    # Both were right before; one is right in all draws, the other in one of three.
    assert (survived.metric, survived.num_items) == ("survival@1", 2)
    assert survived.value == pytest.approx((1 + 1 / 3) / 2)


def test_what_is_not_drawn_has_no_spread_and_nothing_may_survive() -> None:
    outputs = ModelOutputs((("x",), ("x",), ("no",)), 2)
    once = Perturbed("truncated", ASKED, DRAWN.contexts[:1])
    [row] = perturbed_rows(once, answers(), outputs, Row())
    assert (row.metric, row.num_items) == ("accuracy@1", 3)
    assert row.value == pytest.approx(1 / 3)
    none = ModelOutputs(outputs.predictions, 2, split=frozenset({"tea", "bus", "car", "zebra"}))
    assert perturbed_rows(once, answers(), none, Row()) == []


def test_draws_and_lines_of_a_set(tmp_path: Path) -> None:
    data = load_set("cprag", write_released(tmp_path))
    shuffles, cuts, both = perturbed(data, 3)
    assert [len(one.contexts) for one in (shuffles, cuts, both)] == [3, 1, 3]
    assert [one.name for one in perturbed(data, 0)] == ["truncated"]
    assert cuts.words == {
        "He caught the pass. He loved": ["football"], "She lit a candle. ate the": ["cake"],
    }  # fmt: skip
    behind = dict.fromkeys(cuts.words, Said(("it", "cake"), {}, frozenset()))
    _, line = perturbed_lines(cuts, data, Answers(behind, 5, ()))
    assert line == {
        "perturbation": "truncated",
        "context": "She lit a candle. She ate the",
        "perturbed": "She lit a candle. ate the",
        "expected": ["cake"],
        "predictions": ["it", "cake"],
        "right@1": 0.0,
        "right@5": 1.0,
    }
