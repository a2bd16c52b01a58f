"""How far a phase is: lines by a clock that stands still until it is moved, and bars."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from probelight.io import progress
from probelight.io.errors import quietly
from probelight.io.progress import LogLines, has_bars, progress_of, watched_file


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def console(file: io.StringIO) -> Console:
    return Console(file=file, force_terminal=True, force_interactive=True, width=80, _environ={})


def test_a_line_says_what_how_far_and_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = LogLines(clock)
    task_id = lines.add_task("Reading", total=8000, title="scoring age", unit="item")
    [task] = lines.tasks
    clock.now += 61
    assert lines.line(task) == "scoring age: 0 of 8,000 items (0%), 1 min 1 s so far"
    lines.advance(task_id, 1200)
    clock.now += 59
    # 120 s for 1,200 items are 0.1 s for each of the other 6,800.
    assert lines.line(task) == "scoring age: 1,200 of 8,000 items (15%), about 11 min 20 s left"
    assert capsys.readouterr() == ("", "scoring age: 8,000 items\n")


def test_steps_of_an_earlier_start_take_no_time_and_batches_of_unequal_size_do() -> None:
    clock = Clock()
    lines = LogLines(clock)
    resumed = lines.add_task("a fit", total=100, completed=40, unit="step")
    batches = lines.add_task("b", total=4, title="scoring b", unit="item", num_units=9, num_done=0)
    unknown = lines.add_task("loading c\x1b", total=None)
    clock.now += 30
    lines.update(resumed, completed=50)
    lines.update(batches, advance=1, num_done=1)
    # 10 steps took 30 s, and 50 are left; 1 of 4 batches took 30 s, although it had 1 of 9 items.
    assert [lines.line(lines.tasks[index]) for index in (resumed, batches, unknown)] == [
        "a fit: 50 of 100 steps (50%), about 2 min 30 s left",
        "scoring b: 1 of 9 items (11%), about 1 min 30 s left",
        "loading c\x1b: 30 s so far",
    ]


def test_lines_come_every_minute_and_no_more_after_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waits = Clock(), []
    lines = LogLines(clock)

    def wait(seconds: float) -> bool:
        """A minute passes; in the third the phase ends."""
        waits.append(seconds)
        clock.now += seconds
        lines.advance(task, 1)
        return len(waits) == 3

    monkeypatch.setattr(lines._stopped, "wait", wait)
    task = lines.add_task("both models\x07", total=6, unit="run")
    lines._say_each_minute()
    assert waits == [60, 60, 60]
    assert capsys.readouterr().err.splitlines() == [
        "both models\\x07: 6 runs",
        "both models\\x07: 1 of 6 runs (17%), about 5 min 0 s left",
        "both models\\x07: 2 of 6 runs (33%), about 4 min 0 s left",
    ]


def test_a_phase_of_less_than_a_minute_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_of() as shown:
        assert list(shown.track([3, 4], description="words")) == [3, 4]
    assert capsys.readouterr() == ("", "words\n")
    monkeypatch.setattr(progress, "MINUTE", 0.01)
    with progress_of() as shown:
        shown.add_task("words", total=None)
        deadline = time.monotonic() + 10
        while "so far" not in (printed := capsys.readouterr().err):
            assert time.monotonic() < deadline
    assert printed.startswith("words")


def test_nothing_is_shown_where_it_is_not_wanted_or_in_python_or_by_other_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def show(shown: bool = True) -> None:
        with progress_of(enabled=shown) as bar:
            bar.add_task("words", total=3)

    show(shown=False)
    with quietly():
        show()
    monkeypatch.setattr(progress, "parent_process", os.getppid)
    show()
    monkeypatch.setattr(progress, "parent_process", lambda: None)
    monkeypatch.setattr(progress, "is_first_process", lambda: False)
    show()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_bar_and_colours_forced_in_a_log_make_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal, log = Terminal(), io.StringIO()
    assert has_bars(console(terminal))
    assert not has_bars(console(log))
    assert not has_bars(Console(file=terminal, _environ={"TERM": "dumb"}))
    for file in (terminal, log):
        with progress_of(console=console(file)) as bar:
            bar.add_task("Answering", total=2, title="scoring age")
    assert "Answering" in terminal.getvalue()
    assert (log.getvalue(), capsys.readouterr().err) == ("", "scoring age\n")


def test_a_file_is_read_as_it_is_and_a_closed_terminal_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"one\ntwo\n")
    with watched_file(path) as stream:
        assert stream.read() == b"one\ntwo\n"
    assert capsys.readouterr().err == "corpus.txt\n"

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Closed())
    with watched_file(path, "the corpus") as stream:
        assert stream.read() == b"one\ntwo\n"
