"""The benchmark of probes in a training loop."""

from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.watching import measure, share


@pytest.mark.thorough
def test_a_quick_run_measures_looks_and_steps() -> None:
    chosen = Namespace(quick=True, every=100, items=60, steps=4, device="cpu", output=None)
    figures = measure(chosen)
    assert 0 < figures["sentences scored"] <= 60
    assert all(value > 0 for value in figures.values())


def test_the_share_is_of_looks_and_steps_together() -> None:
    assert share(1.0, 3.0) == pytest.approx(25)
