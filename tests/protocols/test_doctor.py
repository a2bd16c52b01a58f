from __future__ import annotations

import socket
from pathlib import Path

import pytest

from probelight.io.package import version
from probelight.protocols import cli, doctor


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What `doctor` prints in an empty folder, without a network and a cache."""

    def refused(*_: object) -> None:
        raise AssertionError("it reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setenv("PROBELIGHT_CACHE", str(tmp_path / "none" / "cache"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setitem(doctor.OPTIONAL, "no_such_package", ("nothing", "none"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor"]) == 0
    assert list(tmp_path.iterdir()) == []
    return " ".join(capsys.readouterr().out.split())


def test_it_shows_versions_devices_folders_and_what_is_missing(said: str) -> None:
    assert f"probelight {version()} in " in said
    assert "configs: " in said
    assert said.count(" files, whole") == 2
    for name in ("torch 2.", "CPU cores ", "MPS ", "cache: not there yet", "offline mode "):
        assert name in said
    assert "--wandb.project offline" in said
    assert "no_such_package missing, for nothing: pip install 'probelight[none]'" in said


def test_damaged_files_of_the_package_are_named(tmp_path: Path) -> None:
    for name, content in (("a.yaml", b"a: [b\n"), ("b.gz", b"x"), ("c.txt", b""), ("d.txt", b"d")):
        (tmp_path / name).write_bytes(content)
    assert doctor._broken(sorted(tmp_path.iterdir())) == "damaged: a.yaml, b.gz, c.txt"
    assert doctor._broken([]) == "missing"


def test_a_folder_that_cannot_be_used_is_shown_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PROBELIGHT_CACHE", str(tmp_path / "file"))
    assert cli.main(["doctor"]) == 0
    assert "file: cannot be written to (Not a directory)" in capsys.readouterr().out
