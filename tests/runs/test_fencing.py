from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.process import Process, process, this_process
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs import fencing
from tests.fixtures.checkout import ROOT
from tests.runs.harness import DEAD, wait_until

OTHER_HOST = Process("elsewhere/1/2", 7, 1)


def left_by(folder: Path, process: Process, ended: float | None = None) -> fencing.Driver:
    driver = fencing.Driver(4, process, since=0.0, ended=ended)
    (folder / fencing.DRIVER).write_text(json.dumps(asdict(driver)))
    return driver


def refused(folder: Path, take_over: bool = False) -> str:
    with pytest.raises(UsageError) as error, fencing.drive_alone(folder, take_over):
        pytest.fail("it took the folder")
    return str(error.value)


def test_a_driver_says_who_it_is_and_when_it_has_ended(tmp_path: Path) -> None:
    assert fencing.last_driver(tmp_path) is None
    with fencing.drive_alone(tmp_path, take_over=False) as number:
        at_work = fencing.last_driver(tmp_path)
        assert (number, at_work.number, at_work.process) == (1, 1, this_process())
        assert abs(at_work.since - time.time()) < 60
        assert not at_work.is_gone
        fencing.check_driver(tmp_path, 1)
    ended = fencing.last_driver(tmp_path)
    assert ended.ended is not None
    assert ended == replace(at_work, ended=ended.ended)
    assert ended.is_gone
    with (
        pytest.raises(ValueError, match="of the block"),
        fencing.drive_alone(tmp_path, take_over=False),
    ):
        raise ValueError("of the block")
    driver = fencing.last_driver(tmp_path)
    assert (driver.number, driver.is_gone) == (2, True)


def test_a_second_driver_is_told_who_has_the_folder(tmp_path: Path) -> None:
    with fencing.drive_alone(tmp_path, take_over=False):
        content = (tmp_path / fencing.DRIVER).read_bytes()
        for take_over in (False, True):  # who lives on this host is not taken over
            message = refused(tmp_path, take_over)
            assert f": {this_process()} has been working on it since " in message
            assert message.endswith("; wait for it, or stop it first (Ctrl-C, or SIGTERM to it)")
        assert (tmp_path / fencing.DRIVER).read_bytes() == content


@pytest.mark.parametrize(("owner", "ended"), [(DEAD, None), (OTHER_HOST, 1.0)])
def test_a_driver_that_has_ended_is_followed_at_once(
    tmp_path: Path, owner: Process, ended: float | None
) -> None:
    assert left_by(tmp_path, owner, ended).is_gone
    with fencing.drive_alone(tmp_path, take_over=False) as number:
        assert number == 5


def test_a_driver_on_another_host_is_replaced_only_by_who_says_so(tmp_path: Path) -> None:
    assert not left_by(tmp_path, OTHER_HOST).is_gone
    message = refused(tmp_path)
    assert "process 7 on elsewhere has been working on it" in message
    assert message.endswith("take over the folder with --engine.take_over true")
    with fencing.drive_alone(tmp_path, take_over=True) as number:
        assert number == 5
        with pytest.raises(
            fencing.DriverLostError, match=rf"taken by {this_process()}, so .*\(driver 4\) stops"
        ):
            fencing.check_driver(tmp_path, 4)


def test_who_keeps_drivers_out_leaves_no_sign_of_its_own(tmp_path: Path) -> None:
    beginning = "another process is just starting there; try again"
    with fencing.without_driver(tmp_path, take_over=False) as driver:
        assert driver is None
        assert beginning in refused(tmp_path)
    assert not (tmp_path / fencing.DRIVER).exists()
    last = left_by(tmp_path, DEAD)
    with fencing.without_driver(tmp_path, take_over=False) as driver:
        assert driver == last
        assert beginning in refused(tmp_path)


def test_what_runs_in_this_process_keeps_away_from_a_driver_that_may_live(tmp_path: Path) -> None:
    left_by(tmp_path, DEAD)
    fencing.refuse_driven(tmp_path)
    left_by(tmp_path, OTHER_HOST)
    with pytest.raises(UsageError, match=rf"If it has ended, remove {tmp_path / fencing.DRIVER}$"):
        fencing.refuse_driven(tmp_path)


def test_where_nothing_can_be_locked_the_file_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_locks(descriptor: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with fencing.drive_alone(tmp_path, take_over=False) as number:
        assert number == 1
        assert "as far as this machine can see" in refused(tmp_path)


@pytest.mark.parametrize("text", ["", "[1", "[]", "{}", '{"number": 1, "process": {}}'])
def test_a_damaged_driver_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / fencing.DRIVER).write_text(text)
    with pytest.raises(UsageError, match=r"driver\.json is damaged .*; remove it if nothing runs"):
        fencing.last_driver(tmp_path)


def test_a_folder_that_goes_while_it_is_driven_is_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with fencing.drive_alone(folder, take_over=False) as number:
        shutil.rmtree(folder)
        with pytest.raises(
            fencing.DriverLostError, match=rf"taken away, so .*\(driver {number}\) stops"
        ):
            fencing.check_driver(folder, number)
    assert not folder.exists()


CONFIG = {"number": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RunFolder(tmp_path / "runs", "run", CONFIG).path


def test_attempts_are_numbered_and_only_the_newest_may_write(folder: Path, driver: int) -> None:
    assert fencing.newest_attempt(folder) is None
    with pytest.raises(
        fencing.AttemptLostError, match=r"attempt 1 stops, because attempt\.json is missing"
    ):
        fencing.check_attempt(folder, 1)
    first = fencing.begin_attempt(folder, driver)
    assert first == fencing.Attempt(1, driver, this_process(), first.since)
    assert abs(first.since - time.time()) < 60
    fencing.check_attempt(folder, 1)
    second = fencing.begin_attempt(folder, driver)
    assert second.number == 2
    with pytest.raises(
        fencing.AttemptLostError, match=rf"{folder.name}: attempt 1 .*, because attempt 2 re"
    ):
        fencing.check_attempt(folder, 1)
    fencing.end_attempt(folder, first, 5.0)
    assert fencing.newest_attempt(folder) == second
    fencing.end_attempt(folder, second, 12.5)
    assert fencing.newest_attempt(folder) == replace(second, left=second.since + 12.5)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"number": 1, "owner": {"host": "a"}}'])
def test_a_damaged_attempt_is_named(folder: Path, text: str) -> None:
    (folder / fencing.ATTEMPT).write_text(text)
    with pytest.raises(ValueError, match=rf"{folder.name}/attempt\.json"):
        fencing.newest_attempt(folder)


def test_a_result_is_left_once_and_by_the_newest_attempt_alone(folder: Path, driver: int) -> None:
    first = fencing.begin_attempt(folder, driver)
    old = fencing.FencedRunFolder(folder, CONFIG, first.number)
    old.write("before.json", {"a": 1})
    new = fencing.FencedRunFolder(folder, CONFIG, fencing.begin_attempt(folder, driver).number)
    for name in ("before.json", "result.json"):
        with pytest.raises(fencing.AttemptLostError, match="attempt 1 stops"):
            old.write(name, {"a": 2})
    assert json.loads((folder / "before.json").read_text()) == {"a": 1}
    assert not new.result_path.exists()
    new.finish(RunRecord(protocol="test", facts={"by": 2}))
    content = new.result_path.read_bytes()
    late = fencing.FencedRunFolder(folder, CONFIG, fencing.begin_attempt(folder, driver).number)
    with pytest.raises(
        fencing.AttemptLostError, match=r"result\.json: another attempt finished it"
    ):
        late.finish(RunRecord(protocol="test", facts={"by": 3}))
    assert new.result_path.read_bytes() == content
    assert list(folder.glob(".*.tmp")) == []


def test_of_the_processes_of_ddp_the_first_one_writes(
    folder: Path, driver: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fencing.FencedRunFolder(folder, CONFIG, fencing.begin_attempt(folder, driver).number)
    for rank, is_written in (("1", False), ("0", True)):
        monkeypatch.setenv("LOCAL_RANK", rank)
        run.write("before.json", {})
        assert (folder / "before.json").exists() == is_written


BEGINNING = """
import sys, time
from pathlib import Path
from probelight.runs import fencing
folder = Path(sys.argv[1])
"""


@contextmanager
def started(source: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", f"{BEGINNING}{source}", folder],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process


HOLDS = """
with fencing.inside(folder, 1, print):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_newer_attempt_ends_the_process_that_is_still_inside(folder: Path, driver: int) -> None:
    fencing.begin_attempt(folder, driver)
    with started(HOLDS, folder) as holder:
        assert json.loads((folder / ".lock").read_text())["pid"] == holder.pid
        old = process(holder.pid)
        lines: list[str] = []
        attempt = fencing.begin_attempt(folder, driver)
        with fencing.inside(folder, attempt.number, lines.append):
            assert holder.wait(timeout=10) == -9
            assert json.loads((folder / ".lock").read_text())["pid"] == os.getpid()
        assert lines == [f"waiting for {old} to leave {folder.name}"]


def test_who_is_not_the_newest_does_not_come_in(folder: Path, driver: int) -> None:
    for _ in range(2):
        fencing.begin_attempt(folder, driver)
    with pytest.raises(fencing.AttemptLostError), fencing.inside(folder, 1, print):
        pytest.fail("it came in")
    with (
        fencing.inside(folder, 2, print),
        pytest.raises(fencing.AttemptLostError),
        fencing.inside(folder, 1, print),  # nor does it end the one that is inside
    ):
        pytest.fail("it came in")


WATCHES = """
fencing.end_when_lost(folder, 1, 0.05)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_process_whose_attempt_is_lost_ends_whatever_it_does(folder: Path, driver: int) -> None:
    fencing.begin_attempt(folder, driver)
    with started(WATCHES, folder) as watching:
        path = folder / fencing.ATTEMPT
        path.rename(folder / "away")  # a shared file system loses sight of it for a moment
        path.write_text("{")
        time.sleep(0.3)
        assert watching.poll() is None
        (folder / "away").rename(path)
        fencing.begin_attempt(folder, driver)
        wait_until(lambda: watching.poll() is not None, seconds=10)
        assert watching.returncode == fencing.LOST
