from __future__ import annotations

from argparse import Namespace

from benchmarks.causal_training import measure


def test_a_quick_step_has_the_gradients_of_the_peers() -> None:
    chosen = {"mirror": None, "rounds": 1, "layers": 2, "hidden": 64}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    assert 0 < figures["largest relative difference of a gradient"] < 1e-5
    assert figures["seconds a step, ours"] > 0
