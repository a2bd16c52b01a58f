from __future__ import annotations

from pathlib import Path

import pytest

from probelight.probes.record import Record
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.rows import SELECTED_PROBE
from probelight.protocols.inoculation.runs import BEFORE_FILE, InoculationSteps
from probelight.protocols.inoculation.settings import InoculatedProbe, OriginalTask, Subject
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.fencing import FencedRunFolder, begin_attempt, drive_alone
from probelight.results.run_folder import RunFolder

RECORDS = [Record(f"r{i}", "red or blue", ("red", "blue"), 0) for i in range(2)]
SUBJECT = Subject(ModelSettings(), OriginalTask("colours", sets=[]), InoculatedProbe("second"))
SCORED = {SELECTED_PROBE: Predictions("selection_probe", RECORDS, [[0.1, 0.7], [0.3, 1 / 3]])}


@pytest.mark.parametrize("rank", [0, 1])
def test_each_process_has_the_scores_before_as_soon_as_they_are_there(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = InoculationSteps(SUBJECT, RunContext())
    monkeypatch.setattr(steps, "_all_sets", lambda: {SELECTED_PROBE: RECORDS})
    monkeypatch.setattr(steps, "score", lambda folder, sets: SCORED)
    config = {"a": 1}
    folder = RunFolder(tmp_path / "runs", "cell", config).path
    with drive_alone(tmp_path, take_over=False) as driver:
        begin_attempt(folder, driver)
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    run = FencedRunFolder(folder, config, 1)
    # Of the processes the first one writes; another need not wait for it.
    found = steps.before(run, tmp_path)
    assert (folder / BEFORE_FILE).exists() == (rank == 0)
    assert found == SCORED
    if rank == 0:
        assert steps.before(run, tmp_path) == SCORED
