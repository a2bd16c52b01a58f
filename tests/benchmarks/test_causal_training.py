from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.causal_training import measure


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_quick_step_has_the_gradients_of_the_peers(tuning: str) -> None:
    chosen = {"mirror": None, "probe": None, "model": None, "tuning": tuning}
    chosen |= {"rounds": 1, "layers": 2, "hidden": 64}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    assert 0 < figures["largest relative difference of a gradient"] < 1e-5
    assert figures["seconds a step, ours"] > 0
