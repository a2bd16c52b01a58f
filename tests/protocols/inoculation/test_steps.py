from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from jobs.cells.attempt import FencedRunFolder, begin_attempt
from jobs.cells.driver_claim import drive_alone
from jobs.context import RunContext
from probes.record import Record
from protocols.engine.evaluation import Predictions
from protocols.engine.settings import ModelSettings
from protocols.inoculation.rows import SELECTED_PROBE
from protocols.inoculation.settings import InoculatedProbe, OriginalTask, Subject
from protocols.inoculation.steps import BEFORE_FILE, InoculationSteps
from results.record import RunRecord
from results.run_folder import RunFolder

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


def test_scores_before_that_are_no_numbers_are_read_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = InoculationSteps(SUBJECT, RunContext())
    monkeypatch.setattr(steps, "_all_sets", lambda: {SELECTED_PROBE: RECORDS})
    run = RunFolder(tmp_path, "cell", {"a": 1})
    scores = [[-math.inf, 1 / 3], [math.nan, 0.1]]
    steps.keep(run, {SELECTED_PROBE: Predictions("selection_probe", RECORDS, scores)})
    text = (run.path / BEFORE_FILE).read_text()
    json.loads(text, parse_constant=pytest.fail)  # as other languages read it
    found = steps.kept(run)[SELECTED_PROBE]
    assert found.scores[0] == [-math.inf, 1 / 3]
    assert found.best == [(1,), ()]  # nothing was said where a score is no number


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"selection_probe": [[0.1, 0.7]]}'])
def test_damaged_scores_before_are_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = InoculationSteps(SUBJECT, RunContext())
    monkeypatch.setattr(steps, "_all_sets", lambda: {SELECTED_PROBE: RECORDS})
    run = RunFolder(tmp_path, "cell", {"a": 1})
    steps.keep(run, SCORED)
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"^{run.path / BEFORE_FILE}: .*; remove {run.path}"):
        steps.kept(run)
    steps.keep(run, SCORED)  # what is there is kept, damaged or not
    (run.path / BEFORE_FILE).unlink()
    steps.keep(run, SCORED)
    run.finish(RunRecord(protocol="p"))
    assert steps.kept(run) == SCORED
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"{BEFORE_FILE}: changed since the run ended"):
        steps.kept(run)
