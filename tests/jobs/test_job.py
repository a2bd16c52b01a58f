"""A job's key is of its config alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.job import DRAWN_NAME, Job, drawn_config, load_runner
from results.run_folder import run_key
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
