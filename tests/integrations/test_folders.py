"""The folder of a training's scores: which one, after what earlier trainings and kills left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.integrations.folders import training_folder
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, ConfigConflictError

CONFIG = {"command": "watch", "probes": ["a"]}
OTHER = {"command": "watch", "probes": ["b"]}


def opened(path: Path, config: Any = CONFIG, step: int = 0, resume: bool = False) -> CommandFolder:
    return training_folder(path, config, [], step=step, resume=resume)


def score(command: CommandFolder, *steps: int) -> None:
    """Write scores as those of some steps of a training."""
    for step in steps:
        run = command.run(f"step{step}", {"step": step})
        record = RunRecord.of(Row(protocol="watch", model="m", probe="a"), [], [], counts={})
        run.finish(replace(record, source=ModelSource(revision=f"step{step}")))
    command.write_results()


def test_each_training_has_a_folder_and_a_resumed_one_goes_on_in_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "looks"
    for name, config in (("looks", CONFIG), ("looks-2", CONFIG), ("looks-3", OTHER)):
        command = opened(folder, config)
        assert command.path.name == name
        score(command, 0, 2, 4)
    assert opened(folder).path.name == "looks-4"
    (tmp_path / "looks-20261128").mkdir()  # a date, and no number of ours
    (tmp_path / "looks-02").mkdir()
    assert opened(folder).path.name == "looks-4"
    assert opened(folder, step=4).path.name == "looks-2"
    assert opened(folder, OTHER, step=4).path.name == "looks-3"
    assert opened(folder, resume=True).path.name == "looks-2"
    # What was only begun, or not yet scored up to the step, is no training that resumes there.
    score(opened(folder), 0)
    assert opened(folder).path.name == "looks-5"
    assert opened(folder, step=4).path.name == "looks-2"
    assert opened(folder, step=1).path.name == "looks-4"
    assert opened(folder, resume=True).path.name == "looks-4"
    with pytest.raises(ConfigConflictError, match="made with another config"):
        opened(folder, {"command": "watch", "probes": ["c"]}, step=4)


def test_a_training_that_resumes_without_earlier_scores_begins_a_folder(tmp_path: Path) -> None:
    assert opened(tmp_path / "looks", step=4).path.name == "looks"
    assert opened(tmp_path / "others", resume=True).path.name == "others"


@pytest.mark.parametrize("config", [CONFIG, OTHER])
@pytest.mark.parametrize("killed_after", ["mkdir", "format", "config", "run", "metrics"])
def test_what_a_kill_left_of_a_folder_is_used_or_left_alone(
    killed_after: str, config: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "looks"
    score(opened(folder), 0, 6)
    if killed_after == "mkdir":
        (tmp_path / "looks-2" / "runs").mkdir(parents=True)
    else:
        command = opened(folder)
        if killed_after == "format":
            (command.path / "config.yaml").unlink()
        if killed_after in {"run", "metrics"}:
            run = command.run("step0", {"step": 0})
            if killed_after == "metrics":
                run.write_metrics([])
        del command  # with its claim
    begun = opened(folder, config)
    assert begun.path.name == ("looks-3" if killed_after == "metrics" else "looks-2")
    score(begun, 0)
    assert len(begun.finished()) == 1
    assert [record.source.revision for record in opened(folder, step=6).finished()] == [
        "step0",
        "step6",
    ]


def test_a_folder_that_another_callback_has_begun_is_not_taken_from_it(tmp_path: Path) -> None:
    begun = opened(tmp_path / "looks")  # and still there
    other = opened(tmp_path / "looks", OTHER)
    assert (begun.path.name, other.path.name) == ("looks", "looks-2")
