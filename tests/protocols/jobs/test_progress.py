"""Time left, worked out by hand."""

from __future__ import annotations

import pytest

from probelight.io.process import this_process
from probelight.protocols.jobs.cells import Cell, CellStatus, State
from probelight.protocols.jobs.fencing import Attempt
from probelight.protocols.jobs.outlook import Progress, duration, last_line


def status_of(key: str, state: State, num_steps: int, seconds: float | None = None) -> CellStatus:
    left = None if seconds is None else 1000.0 + seconds
    attempt = Attempt(1, 1, this_process(), 1000.0, left)
    return CellStatus(Cell(key, "module:run", num_steps=num_steps), state, attempt)


def test_time_left_follows_the_steps_and_how_many_run_at_once() -> None:
    finished = [
        status_of("a", State.DONE, 10, 20),
        status_of("b", State.DONE, 30, 100),
        status_of("score", State.DONE, 0, 7),
        status_of("of-a-killed-worker", State.DONE, 1000),
    ]
    left = [
        status_of("c", State.RUNNING, 20),
        status_of("d", State.RUNNING, 20),
        status_of("e", State.WAITING, 10),
        status_of("f", State.WAITING, 0),
    ]
    # 120 s for 40 steps are 3 s a step: 50 steps and one cell without any, on two places or three.
    assert Progress([*finished, *left]).seconds_left() == pytest.approx((50 * 3 + 7) / 2)
    assert Progress([*finished, *left]).seconds_left(at_once=3) == pytest.approx((50 * 3 + 7) / 3)
    # More places than cells are of no use.
    assert Progress([*finished, *left]).seconds_left(at_once=64) == pytest.approx((50 * 3 + 7) / 4)
    assert Progress(left).seconds_left() is None
    assert Progress(finished).seconds_left() == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.25, "1.2 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (273600, "3 d 4 h")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_last_line_of_a_traceback_is_the_error() -> None:
    assert last_line("Traceback:\n  line 1\nValueError: no\n\n") == "ValueError: no"
    assert last_line("") == ""
