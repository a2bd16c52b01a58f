"""The jobs of the analyses: what their keys are made of, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.build.prediction_grids import age_grids
from probelight.io.errors import UsageError
from probelight.protocols.analyses.jobs import distance_job, grid_job
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.protocols.jobs.job import load_runner
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder

MODEL = ModelSettings("somewhere/bert")


def test_a_grid_is_another_one_with_other_values_or_sentences() -> None:
    grids = [
        age_grids(ages=(20, 30), years=(1960, 1990))[0],
        age_grids(ages=(20, 40), years=(1960, 1990))[0],
        age_grids(ages=(20, 30), years=(1960, 1990), wording="released")[0],
    ]
    jobs = [grid_job(MODEL, grid, TrainerSettings()) for grid in grids]
    assert jobs[0].config["values"] == [20, 30]
    assert len({job.key for job in jobs}) == 3
    again = age_grids(ages=(20, 30), years=(1800, 1801))[0]
    assert grid_job(MODEL, again, TrainerSettings(max_eval_tokens=9)).key == jobs[0].key


def test_sentences_that_changed_behind_the_plan_are_refused(tmp_path: Path) -> None:
    job = grid_job(MODEL, age_grids(ages=(20, 30))[0], TrainerSettings())
    config = {**job.config, "stems": "0" * 64}
    run = CommandFolder(tmp_path, {}).run(job.name, config)
    with pytest.raises(UsageError, match=r"grid A \(paper wording\): changed since it was planned"):
        load_runner(job.runner)(run, config, RunContext())


def test_what_was_measured_is_the_answers_and_they_must_not_change(tmp_path: Path) -> None:
    source = RunFolder(tmp_path / "runs", "zero-shot-taxonomy_small-m", {"a": 1})
    source.write_lines("predictions.jsonl", [{"id": "1"}])
    about = {"protocol": "zero_shot", "model": "m", "probe": "taxonomy_small"}
    rows = (Row(**about, metric="accuracy", value=0.5, split="dev"),)
    answered = RunRecord(**about, key=source.key, rows=rows)
    source.finish(answered)
    job = distance_job(source.path, answered, "database")
    assert job.key.startswith("taxonomy-distance-taxonomy_small-m-")
    assert (job.config["run"], job.config["wordnet"]) == (source.key, "database")
    # Finished anew, as by another start: whole in itself, but not what was planned.
    source.write_lines("predictions.jsonl", [{"id": "2"}])
    source.finish(answered)
    context = RunContext(paths={"results": str(tmp_path), "wordnet": "nowhere"})
    run = CommandFolder(tmp_path / "out", {}).run(job.name, job.config)
    with pytest.raises(UsageError, match=r"predictions\.jsonl: changed since it was planned"):
        load_runner(job.runner)(run, job.config, context)
    source.write_lines("predictions.jsonl", [{"id": "three"}])
    with pytest.raises(ValueError, match=r"predictions\.jsonl: changed since the run ended"):
        distance_job(source.path, answered, "database")
