"""One driver a folder: who has it, who may take it, and what a lost one is told."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.process import Process, host_id, this_process
from probelight.protocols.jobs.fencing import (
    DRIVER,
    Driver,
    DriverLostError,
    check_driver,
    drive_alone,
    last_driver,
    refuse_driven,
    without_driver,
)

OTHER_HOST = Process("elsewhere/1/2", 7, 1)
DEAD = Process(host_id(), 2**22 + 1, 1)  # beyond the largest number that Linux gives out


def left_by(folder: Path, process: Process, number: int = 4) -> Driver:
    driver = Driver(number, process, since=0.0)
    (folder / DRIVER).write_text(json.dumps(asdict(driver)))
    return driver


def test_a_driver_says_who_it_is_and_when_it_has_ended(tmp_path: Path) -> None:
    assert last_driver(tmp_path) is None
    with drive_alone(tmp_path, take_over=False) as number:
        at_work = last_driver(tmp_path)
        assert at_work is not None
        assert (number, at_work.number, at_work.process) == (1, 1, this_process())
        assert abs(at_work.since - time.time()) < 60
        assert not at_work.is_gone
        check_driver(tmp_path, 1)
    ended = last_driver(tmp_path)
    assert ended is not None
    assert ended.ended is not None
    assert ended == replace(at_work, ended=ended.ended)
    assert ended.is_gone
    with pytest.raises(ValueError, match="of the block"), drive_alone(tmp_path, take_over=False):
        raise ValueError("of the block")
    after = last_driver(tmp_path)
    assert after is not None
    assert (after.number, after.is_gone) == (2, True)


def test_a_second_one_is_told_who_has_the_folder(tmp_path: Path) -> None:
    with drive_alone(tmp_path, take_over=False):
        before = (tmp_path / DRIVER).read_bytes()
        for take_over in (False, True):  # who lives on this host is not taken over
            with (
                pytest.raises(
                    UsageError, match=f"{this_process()} is already at work on it, since"
                ),
                drive_alone(tmp_path, take_over),
            ):
                pytest.fail("it took the folder")
        assert (tmp_path / DRIVER).read_bytes() == before


def test_a_killed_one_of_this_host_is_followed_at_once(tmp_path: Path) -> None:
    assert left_by(tmp_path, DEAD).is_gone
    with drive_alone(tmp_path, take_over=False) as number:
        assert number == 5


def test_one_of_another_host_is_taken_over_only_by_who_says_so(tmp_path: Path) -> None:
    assert not left_by(tmp_path, OTHER_HOST).is_gone
    with (
        pytest.raises(UsageError, match=r"7 on elsewhere is already .*--engine\.take_over true"),
        drive_alone(tmp_path, take_over=False),
    ):
        pytest.fail("it took the folder")
    with drive_alone(tmp_path, take_over=True) as number:
        assert number == 5
        with pytest.raises(DriverLostError, match=f"driver 4 was lost, .* by {this_process()}"):
            check_driver(tmp_path, 4)


def test_one_that_has_ended_elsewhere_is_followed_by_anybody(tmp_path: Path) -> None:
    driver = replace(left_by(tmp_path, OTHER_HOST), ended=1.0)
    (tmp_path / DRIVER).write_text(json.dumps(asdict(driver)))
    with drive_alone(tmp_path, take_over=False) as number:
        assert number == 5


def test_who_keeps_drivers_out_leaves_no_sign_of_its_own(tmp_path: Path) -> None:
    with without_driver(tmp_path, take_over=False) as before:
        assert before is None
        with (
            pytest.raises(UsageError, match="another process is just beginning there; try again"),
            drive_alone(tmp_path, take_over=False),
        ):
            pytest.fail("it took the folder")
    assert not (tmp_path / DRIVER).exists()
    last = left_by(tmp_path, DEAD)
    with without_driver(tmp_path, take_over=False) as before:
        assert before == last
        with (
            pytest.raises(UsageError, match="another process is just beginning there; try again"),
            without_driver(tmp_path, take_over=False),
        ):
            pytest.fail("two at once")
    with (
        drive_alone(tmp_path, take_over=False),
        pytest.raises(UsageError, match="is already at work on it"),
        without_driver(tmp_path, take_over=False),
    ):
        pytest.fail("a driver is there")


def test_what_runs_in_this_process_keeps_away_from_a_driver(tmp_path: Path) -> None:
    refuse_driven(tmp_path)
    with (
        drive_alone(tmp_path, take_over=False),
        pytest.raises(UsageError, match=f"{this_process()} is already .*; wait for it, or stop it"),
    ):
        refuse_driven(tmp_path)
    refuse_driven(tmp_path)  # it has ended
    left_by(tmp_path, DEAD)
    refuse_driven(tmp_path)
    left_by(tmp_path, OTHER_HOST)
    with pytest.raises(UsageError, match=rf"If it is lost, remove {tmp_path / DRIVER}$"):
        refuse_driven(tmp_path)


def test_where_nothing_can_be_locked_the_file_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_locks(descriptor: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with drive_alone(tmp_path, take_over=False) as number:
        assert number == 1
        with (
            pytest.raises(UsageError, match="as far as can be told from here"),
            drive_alone(tmp_path, take_over=False),
        ):
            pytest.fail("it took the folder")


@pytest.mark.parametrize("text", ["", "[1", "[]", "{}", '{"number": 1, "process": {}}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / DRIVER).write_text(text)
    with pytest.raises(UsageError, match=r"driver\.json is damaged .*; remove it if nothing runs"):
        last_driver(tmp_path)


def test_a_folder_that_goes_while_it_is_driven_is_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with drive_alone(folder, take_over=False) as number:
        shutil.rmtree(folder)
        with pytest.raises(DriverLostError, match=f"driver {number} was lost, .* taken away"):
            check_driver(folder, number)
    assert not folder.exists()
