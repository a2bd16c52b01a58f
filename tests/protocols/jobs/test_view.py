"""What a run says, line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from probelight.io.process import this_process
from probelight.protocols.jobs.cells import Cell, Schedule
from probelight.protocols.jobs.fencing import Attempt
from probelight.protocols.jobs.status import RunView
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from tests.protocols.jobs.trivial import cells


class Run:
    """A run of five trivial cells of 10 steps each, of which the last needs the one before."""

    def __init__(self, folder: Path, terminal: bool = False, bar: bool = True) -> None:
        self.runs_dir = folder / "runs"
        self.jobs = cells(5)
        self.runs = [RunFolder(self.runs_dir, job.name, job.config) for job in self.jobs]
        self.keys = [job.key for job in self.jobs]
        self.out = io.StringIO()
        console = Console(
            file=self.out, force_terminal=terminal, soft_wrap=True, highlight=False, width=60
        )
        self.view = RunView(bar, console)

    def schedule(self, max_retries: int = 0) -> Schedule:
        own = [Cell(key, "module:run", num_steps=10) for key in self.keys[:4]]
        last = Cell(self.keys[4], "module:run", (self.keys[3],), num_steps=10)
        return Schedule(self.runs_dir, [*own, last], max_retries)

    def finish(self, number: int, seconds: float) -> str:
        """Leaves a result that took so long; the cell's key."""
        run = self.runs[number]
        attempt = Attempt(1, 1, this_process(), since=100.0, left=100.0 + seconds)
        (run.path / "attempt.json").write_text(
            '{"number": 1, "driver": 1, "owner": {"host": "h", "pid": 1, "started": 1}, '
            f'"since": {attempt.since}, "left": {attempt.left}}}'
        )
        run.finish(RunRecord(protocol="test"))
        return run.key

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


def test_each_end_of_a_cell_is_a_line_with_what_is_left(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.finish(0, 20)
    schedule = run.schedule(max_retries=1)
    first, second, bad, last = run.keys[0], run.keys[1], run.keys[3], run.keys[4]
    with run.view.shown(schedule):
        run.view.at_once = 2
        run.view.finished(run.finish(1, 40))
        for times in (1, 2):
            run.view.failed(bad, schedule.fail(bad, f"Traceback\nValueError: no {times}\n"))
        run.view.finished(run.finish(2, 30))
        run.view.say(f"not [bold]styled[/bold]: {last}")
    # 20 s and 40 s for 10 steps each are 3 s a step: 30 steps are 90 s, two at once 45 s. The cell
    # that failed for good and the one behind it take none of the time.
    assert run.lines == [
        "1 of 5 cells are finished",
        f"{second}: finished in 40 s. 2 of 5 done, about 45 s left",
        f"{bad}: failed 1 of 2 times: ValueError: no 1",
        f"{bad}: failed for good: ValueError: no 2",
        f"{run.keys[2]}: finished in 30 s. 3 of 5 done, 1 failed",
        f"not [bold]styled[/bold]: {last}",
    ]
    assert first not in run.out.getvalue()


def test_control_characters_of_an_error_do_not_reach_the_terminal(tmp_path: Path) -> None:
    run = Run(tmp_path)
    schedule = run.schedule()
    with run.view.shown(schedule):
        run.view.failed(run.keys[0], schedule.fail(run.keys[0], "ValueError: \x1b[31mred\x07"))
    assert "\x1b" not in run.out.getvalue()
    assert "\x07" not in run.out.getvalue()
    assert "red" in run.lines[-1]


@pytest.mark.parametrize(("terminal", "bar"), [(True, True), (True, False), (False, True)])
def test_a_bar_is_shown_on_a_terminal_unless_it_is_not_wanted(
    tmp_path: Path, terminal: bool, bar: bool
) -> None:
    run = Run(tmp_path, terminal, bar)
    with run.view.shown(run.schedule()):
        run.view.tick()
        run.view.finished(run.finish(0, 20))
        run.view.tick()
    text = run.out.getvalue()
    assert ("\x1b" in text) == ("━" in text) == ("1/5" in text) == (terminal and bar)
    assert f"{run.keys[0]}: finished in 20 s. 1 of 5 done, about 1 min 20 s left" in text
