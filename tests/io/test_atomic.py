from __future__ import annotations

import errno
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from probelight import cli
from probelight.callbacks.last_state import AtomicCheckpointIO
from probelight.io import atomic
from probelight.results.run_folder import CommandFolder
from tests.fixtures.checkout import ROOT
from tests.fixtures.small_disk import fill

WEIGHTS = {"weights": torch.zeros(100_000)}


def write_state(folder: Path) -> None:
    AtomicCheckpointIO().save_checkpoint({"state_dict": WEIGHTS}, folder / "what")


def write_folder(folder: Path) -> None:
    with atomic.whole_folder(folder / "what") as fresh:
        save_file(WEIGHTS, fresh / "model.safetensors")


def write_database(folder: Path) -> None:
    with atomic.written_to(folder / "what"), closing(sqlite3.connect(folder / "what")) as database:
        database.execute("create table t (x)")


def write_file(folder: Path) -> None:
    atomic.write_bytes_atomic(folder / "what", bytes(100_000))


WRITERS = [write_file, write_state, write_folder, write_database]


@pytest.mark.parametrize("write", WRITERS)
def test_a_full_or_read_only_disk_is_one_error_that_names_the_file(
    write: Callable[[Path], None], disk: Path
) -> None:
    fill(disk / "ballast")
    with pytest.raises(OSError, match="No space left on device") as raised:
        write(disk)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(disk / "what"))
    (disk / "ballast").unlink()
    (disk / "what").unlink(missing_ok=True)  # an empty database
    assert list(disk.iterdir()) == []
    write(disk)
    assert (disk / "what").exists()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    if write in (write_file, write_state):
        with pytest.raises(OSError, match="Read-only file system") as raised:
            write(disk)
        assert raised.value.filename == str(disk / "what")


def test_what_libraries_say_of_a_disk() -> None:
    rust = RuntimeError('Error: IoError(Os { code: 28, kind: StorageFull, message: "..." })')
    database = sqlite3.OperationalError("attempt to write a readonly database")
    chained = RuntimeError("PytorchStreamWriter failed writing file")
    chained.__context__ = PermissionError(errno.EACCES, "Permission denied")
    for error, number in ((rust, errno.ENOSPC), (database, errno.EROFS), (chained, errno.EACCES)):
        disk_error = atomic.disk_error(error)
        assert disk_error is not None
        assert disk_error.errno == number
    assert atomic.disk_error(FileNotFoundError(errno.ENOENT, "not there")) is None
    assert atomic.disk_error(RuntimeError("code: 2")) is None


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room there, then rerun the same command to resume"),
        (errno.EDQUOT, "make room there, then rerun the same command to resume"),
        (errno.EROFS, "make it writable, or choose another folder"),
        (errno.EACCES, "make it writable, or choose another folder"),
    ],
)
def test_a_refusal_of_the_disk_is_one_line_with_advice(number: int, advice: str) -> None:
    hidden = RuntimeError("PytorchStreamWriter failed writing file")
    hidden.__context__ = OSError(number, os.strerror(number))
    with pytest.raises(OSError, match="ckpt") as raised, atomic.written_to("runs/x/last.ckpt"):
        raise hidden
    assert atomic.error_line(raised.value) == f"runs/x/last.ckpt: {os.strerror(number)}; {advice}"
    assert atomic.error_line(OSError(number, "Full")) == f"Full; {advice}"


def test_a_report_into_a_full_disk_says_one_line(
    disk: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    zero = ["zero-shot", "--probes=age_small", f"--output_dir={disk / 'out'}"]
    fill(disk / "ballast")
    assert cli.main([*zero, "--trainer.progress_bar=false"]) == cli.FAILURE
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("train.py zero-shot: failed: ")
    assert str(disk / "out") in lines[-1]
    assert "make room" in lines[-1]
    assert not any("Traceback" in line for line in lines)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def killed_half_way() -> None:
        with atomic.whole_folder(tmp_path / "out") as fresh:
            (fresh / "half").touch()
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        killed_half_way()
    assert names(tmp_path) == []
    with atomic.whole_folder(tmp_path / "out") as fresh:
        (fresh / "all").touch()
    assert names(tmp_path) == ["out", "out/all"]
    with pytest.raises(RuntimeError, match="killed"):
        killed_half_way()
    assert names(tmp_path) == ["out", "out/all"]


def test_a_folder_may_be_written_whole_inside_another(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with atomic.whole_folder(tmp_path / "out") as outer:
            with atomic.whole_folder(outer) as inner:
                (inner / "all").write_text(text)
            (outer / "more").touch()
        assert names(tmp_path) == ["out", "out/all", "out/more"]
    assert (tmp_path / "out" / "all").read_text() == "second"


def test_the_old_folder_stays_if_the_new_one_can_not_take_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(OSError, match="no"), atomic.whole_folder(tmp_path / "out") as fresh:
        (fresh / "new").touch()
    assert names(tmp_path) == ["out", "out/old"]


def test_everything_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic.whole_folder(tmp_path / "out") as fresh:
        (fresh / "part").mkdir()
        (fresh / "part" / "file").touch()
    fresh_names = [fresh / "part", fresh / "part" / "file", fresh, tmp_path]
    assert synced == [str(path) for path in fresh_names]


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    host, pid, _ = atomic.writer().split("-")
    dead = f"{host}-{pid}-1"  # another process of this number, which began when the host did
    (tmp_path / f".last.ckpt.{dead}-0123abcd.tmp").touch()
    (tmp_path / f"best.{dead}.tmp" / f"deep.{dead}.tmp").mkdir(parents=True)
    (tmp_path / f"best.{dead}.old" / "weights").mkdir(parents=True)
    (tmp_path / "best" / f"part.{dead}.tmp").mkdir(parents=True)
    (tmp_path / "notes.old").touch()
    atomic.mend_folder(tmp_path)
    assert names(tmp_path) == ["best", "notes.old"]
    atomic.mend_folder(tmp_path / "missing")
    # A folder that was being replaced gets its name back: the newest.
    (tmp_path / "best").rmdir()
    for age, name in ((100, f"best.{dead}.old"), (50, f"best.{host}-{pid}-2.old")):
        (tmp_path / name).mkdir()
        (tmp_path / name / str(age)).touch()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    atomic.mend_folder(tmp_path)
    assert names(tmp_path) == ["best", "best/50", "notes.old"]


KILLED = """
import os, sys
from pathlib import Path
from probelight.io.atomic import write_bytes_atomic
from probelight.io.atomic import whole_folder
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
    mine = atomic.temporary_path(tmp_path / "result.json")
    mine.write_text("")
    folder = tmp_path / f"best.{atomic.writer()}.tmp"
    folder.mkdir()
    host, pid, started = atomic.writer().split("-")
    later = tmp_path / f".a.{host}-{pid}-{int(started) + 1}-0123abcd.tmp"
    later.write_text("")  # of a dead process that had the same number
    atomic.remove_leftovers(tmp_path)
    atomic.mend_folder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, folder])


def test_another_host_has_a_day(tmp_path: Path) -> None:
    name = re.sub(r"[0-9a-f]{8}-", "00000000-", atomic.temporary_path(tmp_path / "a").name, count=1)
    path = tmp_path / name
    path.write_text("")
    assert not atomic.is_abandoned(path)
    folder = tmp_path / "best.00000000-1-1.tmp"
    folder.mkdir()
    (folder / "weights").write_text("")
    for old in (path, folder):
        os.utime(old, times=(time.time() - 2 * atomic.DAY,) * 2)
    atomic.remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [folder]  # written to today


@pytest.mark.parametrize("name", ["a.tmp", ".a.tmp", ".a.12.tmp", "best.old"])
def test_names_of_others_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    os.utime(tmp_path / name, times=(0, 0))
    atomic.remove_leftovers(tmp_path)
    assert (tmp_path / name).exists()
