from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probelight.io.files import write_text_atomic
from probelight.io.folders import mend_folder
from probelight.io.leftovers import DAY, is_abandoned, part_of, remove_leftovers, writer
from probelight.results.run_folder import CommandFolder
from tests.fixtures.checkout import ROOT

KILLED = """
import os, sys
from pathlib import Path
from probelight.io.files import write_bytes_atomic
from probelight.io.folders import whole_folder
os.fsync = lambda descriptor: os.kill(os.getpid(), int(sys.argv[2]))
folder = Path(sys.argv[1])
with whole_folder(folder / "best") as fresh:
    (fresh / "weights").write_text("half")
    write_bytes_atomic(folder / "result.json", b"{}")
"""


def killed_in(folder: Path, signum: int = signal.SIGKILL) -> None:
    """Leaves what a process leaves that is killed in the middle of two writes."""
    done = subprocess.run([sys.executable, "-c", KILLED, folder, str(int(signum))], cwd=ROOT)
    assert done.returncode == -signum


def test_what_a_killed_process_was_writing_goes_at_the_next_start(tmp_path: Path) -> None:
    run = CommandFolder(tmp_path, {"a": 1}).runs_dir / "run-1"
    run.mkdir()
    killed_in(run)
    assert len(list(run.glob("*.tmp"))) == 2
    (run / "mine.tmp").write_text("somebody's own")
    CommandFolder(tmp_path, {"a": 1})
    assert [path.name for path in run.iterdir()] == ["mine.tmp"]


def test_what_a_living_process_is_writing_stays(tmp_path: Path) -> None:
    mine = part_of(tmp_path / "result.json")
    mine.write_text("")
    folder = tmp_path / f"best.{writer()}.tmp"
    folder.mkdir()
    remove_leftovers(tmp_path)
    mend_folder(tmp_path)
    assert mine.exists()
    assert folder.exists()


def test_another_host_has_a_day(tmp_path: Path) -> None:
    name = re.sub(r"[0-9a-f]{8}-", "00000000-", part_of(tmp_path / "a").name, count=1)
    path = tmp_path / name
    path.write_text("")
    assert not is_abandoned(path)
    folder = tmp_path / "best.00000000-1-1.tmp"
    folder.mkdir()
    (folder / "weights").write_text("")
    for old in (path, folder):
        os.utime(old, times=(time.time() - 2 * DAY,) * 2)
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [folder]  # written to today


def test_a_process_that_has_the_number_of_a_dead_one_is_another(tmp_path: Path) -> None:
    host, pid, started = writer().split("-")
    path = tmp_path / f".a.{host}-{pid}-{int(started) + 1}-0123abcd.tmp"
    path.write_text("")
    assert is_abandoned(path)


@pytest.mark.parametrize("name", ["a.tmp", ".a.tmp", ".a.12.tmp", "best.old"])
def test_names_of_others_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    os.utime(tmp_path / name, times=(0, 0))
    remove_leftovers(tmp_path)
    assert (tmp_path / name).exists()


def test_a_write_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    write_text_atomic(tmp_path / "a", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
