from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from benchmarks.learning_curve import Grid, measure


def test_quick_grid_agrees_with_the_peers_and_says_so(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    chosen = Namespace(quick=True, device="cpu", max_tokens=512, output=str(output), threads=1)
    figures = measure(chosen)
    assert figures["runs"] == 2 * 2 * 3 * 2  # sizes, seeds, controls, modes
    # 4 epochs of ceil(20 / 16) and ceil(40 / 16) steps, 2 seeds, 3 controls, 2 modes
    assert figures["steps"] == 4 * (2 + 3) * 2 * 3 * 2
    assert figures["largest difference of a score"] < 1e-8
    assert json.loads(output.read_text())["figures"] == figures


def test_the_grid_of_the_paper_has_252_runs_and_71712_steps() -> None:
    grid = Grid()
    assert len(grid.sizes) * grid.num_seeds * 3 * 2 == 252
    assert sum(grid.num_steps(size) for size in grid.sizes) * grid.num_seeds * 3 * 2 == 71712
