from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.context import RunContext
from probes.diagnostics.sets import SETS, load_set
from protocols.diagnostics.jobs import RECORDED, recorded_job
from protocols.diagnostics.run import measure_recorded
from results.importers.recorded import find_recorded
from results.run_folder import RunFolder
from storage.errors import UsageError
from tests.fixtures.diagnostics import write_recorded, write_released


def planned(tmp_path: Path, **outputs: list[object]) -> tuple[RunFolder, RunContext]:
    mirror = write_released(tmp_path / "mirror")
    write_recorded(tmp_path / "outputs", **outputs)  # type: ignore[arg-type]
    names = [source.recorded_as for source in SETS.values()]
    [one] = find_recorded(tmp_path / "outputs", names)
    job = recorded_job(load_set("cprag", mirror), one)
    context = RunContext(mirror=str(mirror), paths={RECORDED: str(tmp_path / "outputs")})
    return RunFolder(tmp_path / "runs", job.name, job.config), context


def test_the_run_of_a_model(tmp_path: Path) -> None:
    run, context = planned(tmp_path, probabilities=[0.2, "nan", 0.1, 0.5, 0.4, 0.1])
    measure_recorded(run, run.config, context)
    record = run.result()
    assert record is not None
    assert (record.protocol, record.probe, record.model) == ("diagnose", "cprag", "bert")
    assert record.counts == {"items": 2, "prompts": 6}
    assert [use.path for use in record.data] == [
        "CPRAG-102.tsv", "modelpreds-cprag-bert.txt", "modeltgtprobs-cprag-bert.txt",
    ]  # fmt: skip
    assert record.notices[1].startswith("bert on CPRAG-102: 1 of 2 comparisons left out")
    lines = (run.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert json.loads(lines[0])["expected"] == ["football"]
    assert json.loads(lines[1]) == {
        "context": "He caught the pass. He loved",
        "target": "baseball",
        "expected": [],
        "predictions": ["it", "football"],
        "probability": None,
    }


def test_outputs_that_changed_since_they_were_planned(tmp_path: Path) -> None:
    run, context = planned(tmp_path)
    write_recorded(tmp_path / "outputs", probabilities=[0.1] * 6)
    with pytest.raises(UsageError, match=r"modeltgtprobs-cprag-bert\.txt: changed since"):
        measure_recorded(run, run.config, context)
    write_recorded(tmp_path / "other", model="other")
    gone = RunContext(mirror=context.mirror, paths={RECORDED: str(tmp_path / "other")})
    with pytest.raises(UsageError, match="other: changed since"):
        measure_recorded(run, run.config, gone)
