from __future__ import annotations

from probelight.reports.kit.measured import Estimate


def test_a_cost_seen_as_a_gain_has_its_ends_exchanged() -> None:
    assert Estimate(0.02, -0.01, 0.05).negative == Estimate(-0.02, -0.05, 0.01)
    assert Estimate(0.02).negative == Estimate(-0.02)
