from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.fencing import drive_alone
from probelight.runs.run import in_order, run_jobs, unfinished
from probelight.runs.settings import TrainerSettings
from probelight.runs.spec import Job
from tests.fixtures.rows import read_results
from tests.runs.runner_spec import runner_job
from tests.runs.trivial import RUNNER, cells


def square(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    number = config["number"]
    if number < 0:
        raise ValueError(f"{number} is negative")
    has_bar = int(context.trainer.progress_bar)
    row = Row(protocol="square", metric="accuracy", value=number**2, seed=has_bar)
    return RunRecord(protocol="square", rows=(row,))


def job(number: int) -> Job:
    return runner_job(f"square-{number}", {"number": number}, "tests.runs.test_run:square")


@pytest.fixture
def folder(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path, {"command": "test"})


def values(folder: CommandFolder) -> list[float]:
    return sorted(float(row["value"]) for row in read_results(folder.path / "results.csv"))


@pytest.mark.parametrize("bar", ["", "three"])
def test_rows_are_there_before_the_next_run_or_bar_begins(folder: CommandFolder, bar: str) -> None:
    plan = [*(replace(job(number), bar=bar) for number in (2, 3, 4)), job(-1)]
    with pytest.raises(ValueError, match="-1 is negative"):
        run_jobs(plan, folder, RunContext())
    assert values(folder) == [4, 9, 16]
    runs = run_jobs([*plan[:3], job(5)], folder, RunContext())
    assert [run.key for run in runs] == [job(5).key]
    assert values(folder) == [4, 9, 16, 25]
    (folder.path / "results.csv").unlink()
    assert run_jobs(plan[:3], folder, RunContext()) == []
    assert values(folder) == [4, 9, 16, 25]


@pytest.mark.parametrize("has_bar", [True, False])
def test_one_bar_over_some_jobs_takes_the_place_of_their_own(
    folder: CommandFolder, has_bar: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    context = RunContext(TrainerSettings(progress_bar=has_bar))
    run_jobs([replace(job(2), bar="two squared"), job(3)], folder, context)
    rows = read_results(folder.path / "results.csv")
    assert {row["value"]: row["seed"] for row in rows} == {"4.0": "0", "9.0": str(int(has_bar))}
    assert capsys.readouterr() == ("", "two squared: 1 run\n" if has_bar else "")


def test_what_is_missing_is_told_without_a_folder_of_it(folder: CommandFolder) -> None:
    run_jobs([job(2)], folder, RunContext())
    assert unfinished([job(2), job(3)], folder) == [job(3)]
    assert [path.name for path in folder.runs_dir.iterdir()] == [job(2).key]


def test_nothing_is_made_here_while_cells_of_the_folder_are_on_ray(folder: CommandFolder) -> None:
    with (
        drive_alone(folder.path, take_over=False),
        pytest.raises(UsageError, match=r"has been working on it since .* stop it first"),
    ):
        run_jobs([job(2)], folder, RunContext())
    assert list(folder.runs_dir.iterdir()) == []
    assert len(run_jobs([job(2)], folder, RunContext())) == 1


def test_what_others_wait_for_comes_before_them_and_all_else_as_planned() -> None:
    first, second, three = cells(3)
    last = runner_job("last", {"number": 9}, RUNNER, needs=(three.key, first.key, "elsewhere"))
    assert in_order([last, first, second, three, first]) == [three, first, last, second]
    follower = replace(last, needs=(three.key,), follows=(second.key, "elsewhere"))
    assert in_order([first, follower, second, three]) == [first, three, second, follower]


def threads(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    return RunRecord(protocol="threads", counts={"threads": context.trainer.threads or 0})


def test_what_the_key_was_made_with_holds_and_a_run_is_timed(folder: CommandFolder) -> None:
    job = runner_job("threads", {"threads": 3}, f"{__name__}:threads")
    [run] = run_jobs([job], folder, RunContext(TrainerSettings(threads=1)))
    record = run.result()
    assert record.counts == {"threads": 3}
    assert 0 <= record.seconds < 60
