"""Time left, worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from jobs.progress import Progress, duration, last_line
from jobs.queue.entry import COMPLETE, RUNNING, WAITING, Entry

START = datetime(2020, 1, 1)


def done(key: str, seconds: float, num_steps: int) -> Entry:
    ended = START + timedelta(seconds=seconds)
    return Entry(1, 1, key, (), COMPLETE, started=START, ended=ended, num_steps=num_steps)


def test_time_left_follows_the_steps_and_the_workers() -> None:
    finished = [done("a", 20, 10), done("b", 100, 30), done("score", 7, 0)]
    left = [
        Entry(4, 4, "c", (), RUNNING, num_steps=20),
        Entry(5, 5, "d", (), RUNNING, num_steps=20),
        Entry(6, 6, "e", (), WAITING, num_steps=10),
        Entry(7, 7, "f", (), WAITING),
    ]
    # 120 s for 40 steps are 3 s a step: 50 steps and one cell without any, on two workers or three.
    assert Progress([*finished, *left]).seconds_left() == pytest.approx((50 * 3 + 7) / 2)
    assert Progress([*finished, *left]).seconds_left(between=1) == pytest.approx((50 * 3 + 7) / 3)
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
