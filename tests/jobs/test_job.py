"""A job's key is of its config alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from jobs.cells.attempt import AttemptLostError
from jobs.context import RunContext
from jobs.job import DRAWN_NAME, Job, drawn_config, load_runner, make_run
from results.record import RunRecord
from results.run_folder import RunFolder, run_key
from tests.jobs.trivial import RUNNER, run


def test_the_key_is_of_the_config_alone() -> None:
    job = Job("square of 3", {"number": 3}, RUNNER)
    assert job.key == run_key("square of 3", {"number": 3})
    assert job.key.startswith("square-of-3-")
    moved = replace(job, runner="elsewhere:run", needs=("a",), num_steps=5, follows=("b",))
    moved = replace(moved, weights_bytes=7)
    assert moved.key == job.key
    assert replace(job, config={"number": 4}).key != job.key


def test_a_job_is_told_what_was_drawn_for_it(tmp_path: Path) -> None:
    config = {"setting": {"dose": 8}, "trial": 0}
    assert drawn_config(config, tmp_path) == config
    (tmp_path / DRAWN_NAME).write_text(json.dumps({"learning_rate": 0.1}))
    assert drawn_config(config, tmp_path)["setting"] == {"dose": 8, "learning_rate": 0.1}


def test_a_runner_is_found_by_its_name() -> None:
    assert load_runner(RUNNER) is run
    with pytest.raises(ModuleNotFoundError):
        load_runner("protocols.nowhere:run")


ENDS: dict[str, BaseException] = {
    "failed": ValueError("no"),
    "stopped": KeyboardInterrupt(),
    "lost": AttemptLostError("another one"),
}


def end(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Ends as the config says."""
    if config["end"] in ENDS:
        raise ENDS[config["end"]]
    run.finish(RunRecord(protocol="end"))


def told(tmp_path: Path, how: str, wandb: WandbSettings, *listeners: Any) -> None:
    """Makes a run that ends so."""
    folder = RunFolder(tmp_path, how, {"end": how})
    folder.listeners += listeners
    arguments = "tests.jobs.test_job:end", folder, folder.config, RunContext(wandb=wandb)
    if how not in ENDS:
        return make_run(*arguments)
    with pytest.raises(type(ENDS[how])):
        make_run(*arguments)


@pytest.mark.parametrize(("how", "expected"), [("failed", 1), ("stopped", 1), ("lost", 0)])
def test_who_listens_to_a_run_is_told_what_ended_it(
    how: str, expected: int, tmp_path: Path
) -> None:
    heard: list[Any] = []
    told(tmp_path, how, DEFAULT_WANDB, heard.append)
    assert heard == [ENDS[how]] * expected


@pytest.mark.parametrize(
    ("how", "has_begun", "expected"),
    [
        ("failed", False, 1),
        ("stopped", False, 0),
        ("lost", False, 0),
        ("finished", False, 0),
        ("failed", True, 1),
        ("stopped", True, 1),
        ("lost", True, 0),
        ("finished", True, 1),
    ],
)
def test_what_fails_is_a_run_in_wandb_and_what_was_one_ends_there(
    how: str, has_begun: bool, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []

    def follow(run: RunFolder, wandb: WandbSettings) -> None:
        run.listeners = [heard.append]

    monkeypatch.setattr("callbacks.wandb.ending.follow", follow)
    if has_begun:
        folder = RunFolder(tmp_path, how, {"end": how}).path
        (folder / "wandb").mkdir()
    told(tmp_path, how, WandbSettings(project="p"))
    assert len(heard) == expected
