from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from probelight.callbacks.checkpoint_io import AtomicCheckpointIO
from probelight.io.disk import disk_error, line_of, written_to
from probelight.io.files import write_bytes_atomic
from probelight.io.folders import whole_folder
from probelight.protocols import cli
from probelight.protocols.cli.errors import FAILURE
from tests.fixtures.small_disk import fill

WEIGHTS = {"weights": torch.zeros(100_000)}


def write_state(folder: Path) -> None:
    AtomicCheckpointIO().save_checkpoint({"state_dict": WEIGHTS}, folder / "what")


def write_folder(folder: Path) -> None:
    with whole_folder(folder / "what") as fresh:
        save_file(WEIGHTS, fresh / "model.safetensors")


def write_database(folder: Path) -> None:
    with written_to(folder / "what"), closing(sqlite3.connect(folder / "what")) as database:
        database.execute("create table t (x)")


def write_file(folder: Path) -> None:
    write_bytes_atomic(folder / "what", bytes(100_000))


WRITERS = [write_file, write_state, write_folder, write_database]


@pytest.mark.parametrize("write", WRITERS)
def test_a_full_disk_is_one_error_that_names_the_file(
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


@pytest.mark.parametrize("write", [write_file, write_state])
def test_a_read_only_disk_is_one_error_that_names_the_file(
    write: Callable[[Path], None], disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(OSError, match="Read-only file system") as raised:
        write(disk)
    assert raised.value.filename == str(disk / "what")


def test_what_libraries_say_of_a_disk() -> None:
    rust = RuntimeError('Error: IoError(Os { code: 28, kind: StorageFull, message: "..." })')
    database = sqlite3.OperationalError("attempt to write a readonly database")
    chained = RuntimeError("PytorchStreamWriter failed writing file")
    chained.__context__ = PermissionError(errno.EACCES, "Permission denied")
    for error, number in ((rust, errno.ENOSPC), (database, errno.EROFS), (chained, errno.EACCES)):
        found = disk_error(error)
        assert found is not None
        assert found.errno == number
    assert disk_error(FileNotFoundError(errno.ENOENT, "not there")) is None
    assert disk_error(RuntimeError("code: 2")) is None


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room there; the same command then goes on"),
        (errno.EDQUOT, "make room there; the same command then goes on"),
        (errno.EROFS, "make it writable, or choose another folder"),
        (errno.EACCES, "make it writable, or choose another folder"),
    ],
)
def test_a_command_that_the_disk_refuses_says_one_line(
    number: int,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(*_: object) -> None:
        with written_to("runs/x/last.ckpt"):
            try:
                raise OSError(number, os.strerror(number))
            except OSError:
                raise RuntimeError("PytorchStreamWriter failed writing file") from None

    monkeypatch.setattr(cli, "call", refused)
    assert cli.main(["report"]) == FAILURE
    said = capsys.readouterr().err
    assert said == f"train.py report: failed: runs/x/last.ckpt: {os.strerror(number)}; {advice}\n"


def test_a_line_without_a_path() -> None:
    assert line_of(OSError(errno.ENOSPC, "Full")).startswith("Full; make room")


def test_a_report_into_a_full_disk_says_one_line(
    disk: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    zero = ["zero-shot", "--probes=age_small", f"--output_dir={disk / 'out'}"]
    fill(disk / "ballast")
    assert cli.main([*zero, "--trainer.progress_bar=false"]) == FAILURE
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith("train.py zero-shot: failed: ")
    assert str(disk / "out") in said[-1]
    assert "make room" in said[-1]
    assert not any("Traceback" in line for line in said)
