from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.protocols.diagnostics.jobs import recorded_job
from probelight.results.importers.recorded import find_recorded
from tests.fixtures.diagnostics import write_recorded, write_released


def test_the_key_is_of_the_set_the_model_and_what_it_said(tmp_path: Path) -> None:
    data = load_set("cprag", write_released(tmp_path / "mirror"))
    names = [source.recorded_as for source in SETS.values()]
    [one] = find_recorded(write_recorded(tmp_path / "outputs"), names)
    job = recorded_job(data, one)
    assert job.key.startswith("diagnose-cprag-bert-")
    assert recorded_job(data, replace(one, model="other")).key != job.key
    write_recorded(tmp_path / "outputs", probabilities=[0.1] * 6)
    assert recorded_job(data, one).key != job.key
