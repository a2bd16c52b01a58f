"""The table of a sweep's status, from its folder alone."""

from __future__ import annotations

import io
import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from probelight.io.process import Process, host_id, this_process
from probelight.protocols.jobs import status
from probelight.protocols.jobs.cells import Cell, CellStatus, Failure, State
from probelight.protocols.jobs.fencing import DRIVER, Attempt, Driver
from probelight.protocols.jobs.outlook import Progress
from probelight.protocols.jobs.status import how_far, show_status, status_view

DEAD = Process(host_id(), 2**22 + 1, 1)  # beyond the largest number that Linux gives out


def shown(folder: Path, *statuses: CellStatus) -> list[str]:
    """The lines of a status."""
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(status_view(folder, Progress(statuses)), soft_wrap=True)
    return console.export_text().splitlines()


def status_of(
    key: str,
    state: State,
    needs: tuple[str, ...] = (),
    seconds: float | None = None,
    failure: Failure | None = None,
    since: float = 100.0,
) -> CellStatus:
    left = None if seconds is None else since + seconds
    attempt = Attempt(1, 1, this_process(), since, left)
    return CellStatus(Cell(key, "module:run", needs, num_steps=10), state, attempt, failure)


def row_of(lines: list[str], key: str) -> list[str]:
    [line] = [line for line in lines if f" {key} " in line]
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_numbers_time_left_and_a_table_of_what_runs(tmp_path: Path) -> None:
    driver = Driver(1, this_process(), since=time.time() - 3600)
    (tmp_path / DRIVER).write_text(json.dumps(asdict(driver)))
    metrics = tmp_path / "runs" / "b" / "metrics.csv"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("step,epoch,metric,value\n3,0,train/loss,0.5\n4,1,train/loss,0.4\n")
    lines = shown(
        tmp_path,
        status_of("a", State.DONE, seconds=50),
        status_of("b", State.RUNNING, since=time.time() - 120),
        status_of("c", State.RUNNING, since=time.time() - 5),
        status_of("d", State.WAITING),
    )
    # 5 s a step; 30 steps are left, two cells run at once.
    assert lines[0] == "4 cells: 1 done, 2 running, 1 waiting, 0 failed; about 1 min 15 s left"
    assert lines[1] == f"{this_process()} has been at work on it for 1 h 0 min"
    assert row_of(lines, "b") == [
        "b",
        str(this_process()),
        "2 min 0 s ago",
        "step 5 of 10, epoch 2",
    ]
    assert row_of(lines, "c")[3] == "started"
    assert not any("error" in line for line in lines)


def test_what_failed_is_told_from_what_is_tried_again_and_what_is_behind_it(tmp_path: Path) -> None:
    once, often = Failure(1, 3, "Traceback\nValueError: x\n"), Failure(3, 3, "OSError: disk full")
    lines = shown(
        tmp_path,
        status_of("a", State.FAILED, failure=often),
        status_of("b", State.WAITING, failure=once),
        status_of("c", State.WAITING, needs=("a",)),
        status_of("d", State.WAITING, needs=("c", "b")),
    )
    assert lines[0] == (
        "4 cells: 0 done, 0 running, 1 waiting, 1 failed, 2 not started behind a failed one"
    )
    assert lines[1] == f"not started yet: train.py sweep run --output_dir {tmp_path}"
    tried, failed = (lines.index(title) for title in _titles(lines))
    assert tried < failed
    assert row_of(lines[tried:failed], "b") == ["b", "1", "ValueError: x"]
    assert row_of(lines[failed:], "a") == ["a", "3", "OSError: disk full"]
    assert lines[-1] == f"tracebacks: {tmp_path}/runs/<cell>/error.txt"


def _titles(lines: list[str]) -> list[str]:
    wanted = ("failed, and tried again", "failed for good")
    return [line for want in wanted for line in lines if line.strip() == want]


def test_of_many_failures_the_first_are_shown(tmp_path: Path) -> None:
    failure = Failure(1, 1, "ValueError: [red]no[/red]")
    lines = shown(tmp_path, *(status_of(f"c{i}", State.FAILED, failure=failure) for i in range(25)))
    assert lines[0] == "25 cells: 0 done, 0 running, 0 waiting, 25 failed"
    assert row_of(lines, "c19")[2] == "ValueError: [red]no[/red]"
    assert not any(" c20 " in line for line in lines)
    assert lines[-1].startswith("and 5 more; tracebacks: ")


@pytest.mark.parametrize(
    ("process", "ended", "state", "said"),
    [
        (this_process(), 30.0, State.WAITING, "ended 30 s ago; to go on: train.py sweep run --out"),
        (this_process(), 30.0, State.DONE, "ended 30 s ago"),
        (DEAD, None, State.WAITING, "was killed; to go on: train.py sweep run --output_dir"),
    ],
)
def test_who_has_gone_is_told_with_how_to_go_on(
    tmp_path: Path, process: Process, ended: float | None, state: State, said: str
) -> None:
    now = time.time()
    driver = Driver(1, process, now - 60, None if ended is None else now - ended)
    (tmp_path / DRIVER).write_text(json.dumps(asdict(driver)))
    line = shown(tmp_path, status_of("a", state))[1]
    assert line.startswith(f"nobody is at work on it, {process} {said}")
    assert ("to go on" in line) == (state is State.WAITING)


@pytest.mark.parametrize(
    ("text", "num_steps", "said"),
    [
        (None, 5, "started"),
        ("step,epoch,metric,value\n", 5, "started"),
        ("step,epoch,metric,value\n0,0,a,1\n", 0, "step 1, epoch 1"),
        ("step,epoch,metric,value\n9,,a,1\n4,2,a,1\n", 20, "step 10 of 20, epoch 3"),
        ("step,epoch,metric,value\n0,,a,1\n", 20, "step 1 of 20"),
    ],
)
def test_how_far_a_cell_is_stands_in_its_metrics(
    tmp_path: Path, text: str | None, num_steps: int, said: str
) -> None:
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    assert how_far(tmp_path, num_steps) == said


def test_watching_ends_with_the_sweep_also_where_cells_wait_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = [Cell("a", "module:run"), Cell("b", "module:run", ("a",))]
    (tmp_path / "runs" / "a").mkdir(parents=True)
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        assert len(looks) < 5
        if len(looks) == 3:
            Failure(1, 1, "ValueError: no").keep(tmp_path / "runs" / "a")

    monkeypatch.setattr(status.time, "sleep", sleep)
    show_status(tmp_path, plan, watch=True)
    assert looks == [2.0] * 3
    assert "2 cells: 0 done, 0 running, 0 waiting, 1 failed" in capsys.readouterr().out
