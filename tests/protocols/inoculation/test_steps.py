"""The scores before inoculation in runs of several processes, of which one writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.inoculation.inoculate import BEFORE_FILE, InoculationRun
from probelight.protocols.inoculation.sweep import SweepGrid, sweep_jobs
from probelight.protocols.jobs.fencing import FencedRunFolder, begin_attempt, drive_alone
from probelight.results.run_folder import RunFolder
from tests.protocols.inoculation.conftest import under


@pytest.mark.parametrize("rank", [0, 1])
def test_each_process_has_the_scores_before_as_soon_as_they_are_there(
    rank: int, grid: SweepGrid, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sweep_jobs(grid, under(mirror))[1]
    folder = RunFolder(tmp_path / "runs", before.name, before.config).path
    with drive_alone(tmp_path, take_over=False) as driver:
        begin_attempt(folder, driver)
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    run = InoculationRun(FencedRunFolder(folder, before.config, 1), before.config, under(mirror))
    scored = {
        one: Predictions(one.text, records, [[0.1, 0.7, 1 / 3, 0.0, 0.5] for _ in records])
        for one, records in {**run.selected, **run.reported}.items()
    }
    monkeypatch.setattr(run, "score", lambda folder, sets: scored)
    # Of the processes the first one writes; another need not wait for it.
    assert run.before(tmp_path) == scored
    assert (folder / BEFORE_FILE).exists() == (rank == 0)
    if rank == 0:
        assert run.before(tmp_path) == scored
