from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.grids.figures.cells import shades

WriteRun = Callable[..., Path]


def test_the_shades_jump_at_a_half_and_are_ordered_in_grey() -> None:
    colours = shades()([0.0, 0.49, 0.51, 1.0])
    grey = [float(c[:3] @ [0.299, 0.587, 0.114]) for c in colours]
    assert grey == sorted(grey, reverse=True)
    assert grey[1] - grey[2] > 0.2
    assert grey[0] - grey[1] < 0.2
