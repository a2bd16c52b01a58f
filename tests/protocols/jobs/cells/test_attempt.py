"""Who may write in a run folder: numbers that grow, one result, one process inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.process import process, this_process
from probelight.protocols.jobs.fencing import (
    ATTEMPT,
    LOST,
    Attempt,
    AttemptLostError,
    DriverLostError,
    FencedRunFolder,
    begin_attempt,
    check_attempt,
    drive_alone,
    end_attempt,
    inside,
    newest_attempt,
)
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from tests.fixtures.checkout import ROOT
from tests.protocols.jobs.harness import wait_until

CONFIG = {"number": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RunFolder(tmp_path / "runs", "cell", CONFIG).path


@pytest.fixture
def driver(folder: Path) -> Iterator[int]:
    with drive_alone(folder.parent.parent, take_over=False) as number:
        yield number


def test_each_attempt_has_the_next_number_and_ends_the_right_of_the_one_before(
    folder: Path, driver: int
) -> None:
    assert newest_attempt(folder) is None
    with pytest.raises(AttemptLostError, match="attempt 1 was lost, none is in charge"):
        check_attempt(folder, 1)
    first = begin_attempt(folder, driver)
    assert first == Attempt(1, driver, this_process(), first.since)
    assert abs(first.since - time.time()) < 60
    check_attempt(folder, 1)
    second = begin_attempt(folder, driver)
    assert second.number == 2
    with pytest.raises(AttemptLostError, match=rf"{folder.name}: attempt 1 .*, attempt 2 is in c"):
        check_attempt(folder, 1)


def test_only_the_newest_attempt_notes_that_it_has_ended(folder: Path, driver: int) -> None:
    first = begin_attempt(folder, driver)
    second = begin_attempt(folder, driver)
    end_attempt(folder, first)
    assert newest_attempt(folder) == second
    end_attempt(folder, second)
    ended = newest_attempt(folder)
    assert ended is not None
    assert ended.left is not None
    assert ended == replace(second, left=ended.left)
    assert ended.left >= second.since


def test_a_lost_driver_begins_nothing(folder: Path) -> None:
    with drive_alone(folder.parent.parent, take_over=False) as lost:
        pass
    with (
        drive_alone(folder.parent.parent, take_over=False),
        pytest.raises(DriverLostError, match=f"driver {lost} was lost"),
    ):
        begin_attempt(folder, lost)
    assert not (folder / ATTEMPT).exists()


def test_a_folder_that_is_gone_is_not_made_again(folder: Path, driver: int) -> None:
    folder.rename(folder.with_name("away"))
    with pytest.raises(FileNotFoundError, match=str(folder)):
        begin_attempt(folder, driver)
    assert not folder.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"number": 1, "owner": {"host": "a"}}'])
def test_a_damaged_attempt_is_named(folder: Path, text: str) -> None:
    (folder / ATTEMPT).write_text(text)
    with pytest.raises(ValueError, match=rf"{folder.name}/attempt\.json"):
        newest_attempt(folder)


def test_a_result_is_left_once_and_by_the_newest_attempt_alone(folder: Path, driver: int) -> None:
    first = begin_attempt(folder, driver)
    old = FencedRunFolder(folder, CONFIG, first.number)
    old.write("before.json", {"a": 1})
    new = FencedRunFolder(folder, CONFIG, begin_attempt(folder, driver).number)
    for name in ("before.json", "result.json"):
        with pytest.raises(AttemptLostError, match="attempt 1 was lost"):
            old.write(name, {"a": 2})
    assert json.loads((folder / "before.json").read_text()) == {"a": 1}
    assert not new.result_path.exists()
    new.finish(RunRecord(protocol="test", facts={"by": 2}))
    left = new.result_path.read_bytes()
    late = FencedRunFolder(folder, CONFIG, begin_attempt(folder, driver).number)
    with pytest.raises(AttemptLostError, match=r"result\.json: another attempt finished it"):
        late.finish(RunRecord(protocol="test", facts={"by": 3}))
    assert new.result_path.read_bytes() == left
    assert list(folder.glob(".*.tmp")) == []


def test_of_a_ddp_cells_processes_the_first_one_writes(
    folder: Path, driver: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FencedRunFolder(folder, CONFIG, begin_attempt(folder, driver).number)
    monkeypatch.setenv("LOCAL_RANK", "1")
    run.write("before.json", {})
    assert not (folder / "before.json").exists()
    monkeypatch.setenv("LOCAL_RANK", "0")
    run.write("before.json", {})
    assert (folder / "before.json").exists()


def test_a_config_that_was_changed_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.yaml was changed after the cell was planned"):
        FencedRunFolder(folder, {"number": 4}, 1)


HOLDS = """
import sys, time
from pathlib import Path
from probelight.protocols.jobs.fencing import inside
with inside(Path(sys.argv[1]), 1, print):
    print("inside", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that is inside of a folder."""
    found = subprocess.Popen(
        [sys.executable, "-c", HOLDS, folder],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.stdout is not None
    assert found.stdout.readline() == "inside\n"
    return found


def test_who_comes_with_a_newer_attempt_ends_the_process_that_is_still_inside(
    folder: Path, driver: int
) -> None:
    begin_attempt(folder, driver)
    with holder(folder) as before:
        assert json.loads((folder / ".lock").read_text())["pid"] == before.pid
        old = process(before.pid)
        said: list[str] = []
        attempt = begin_attempt(folder, driver)
        with inside(folder, attempt.number, said.append):
            assert before.wait(timeout=10) == -9
            assert json.loads((folder / ".lock").read_text())["pid"] == os.getpid()
        assert said == [f"waiting until {old} has left {folder.name}"]


def test_who_is_not_the_newest_does_not_come_in(folder: Path, driver: int) -> None:
    for _ in range(2):
        begin_attempt(folder, driver)
    with pytest.raises(AttemptLostError), inside(folder, 1, print):
        pytest.fail("it came in")
    with (
        inside(folder, 2, print),
        pytest.raises(AttemptLostError),
        inside(folder, 1, print),  # nor does it end the one that is inside
    ):
        pytest.fail("it came in")


WATCHES = """
import sys, time
from pathlib import Path
from probelight.protocols.jobs.fencing import watch_attempt
watch_attempt(Path(sys.argv[1]), 1, 0.05)
print("watching", flush=True)
time.sleep(60)
"""


def test_a_process_whose_attempt_is_lost_ends_whatever_it_does(folder: Path, driver: int) -> None:
    begin_attempt(folder, driver)
    command = [sys.executable, "-c", WATCHES, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        path = folder / ATTEMPT
        path.rename(folder / "away")  # a shared file system loses sight of it for a moment
        (folder / ATTEMPT).write_text("{")
        time.sleep(0.3)
        assert process.poll() is None
        (folder / "away").rename(path)
        begin_attempt(folder, driver)
        wait_until(lambda: process.poll() is not None, seconds=10)
        assert process.returncode == LOST
