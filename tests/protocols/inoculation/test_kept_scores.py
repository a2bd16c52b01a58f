"""The scores before inoculation: read as they were written, or named where they are damaged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from probelight.probes.record import Record
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.inoculation.inoculate import BEFORE_FILE, keep_scores, kept_scores
from probelight.protocols.inoculation.rows import SELECTED_PROBE
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder

RECORDS = [Record(f"r{i}", "red or blue", ("red", "blue"), 0) for i in range(2)]
SETS = {SELECTED_PROBE: RECORDS}
SCORED = {SELECTED_PROBE: Predictions("selection_probe", RECORDS, [[0.1, 0.7], [0.9, 0.2]])}


def test_scores_before_that_are_no_numbers_are_read_as_they_were(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "cell", {"a": 1})
    scores = [[-math.inf, 1 / 3], [math.nan, 0.1]]
    keep_scores(run, {SELECTED_PROBE: Predictions("selection_probe", RECORDS, scores)})
    text = (run.path / BEFORE_FILE).read_text()
    json.loads(text, parse_constant=pytest.fail)  # as other languages read it
    found = kept_scores(run, SETS)[SELECTED_PROBE]
    assert found.scores[0] == [-math.inf, 1 / 3]
    assert found.best == [(1,), ()]  # nothing was said where a score is no number


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"selection_probe": [[0.1, 0.7]]}'])
def test_damaged_scores_before_are_named(text: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "cell", {"a": 1})
    keep_scores(run, SCORED)
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"^{run.path / BEFORE_FILE}: .*; remove {run.path}"):
        kept_scores(run, SETS)
    keep_scores(run, SCORED)  # what is there is kept, damaged or not
    (run.path / BEFORE_FILE).unlink()
    keep_scores(run, SCORED)
    run.finish(RunRecord(protocol="p"))
    assert kept_scores(run, SETS) == SCORED
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"{BEFORE_FILE}: changed since the run ended"):
        kept_scores(run, SETS)
