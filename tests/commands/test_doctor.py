from __future__ import annotations

import socket
from pathlib import Path

import pytest

from probelight import cli
from probelight.commands import doctor
from probelight.io.package import version


@pytest.fixture
def printed(
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


def test_it_shows_versions_devices_folders_and_what_is_missing(printed: str) -> None:
    assert f"probelight {version()} in " in printed
    assert "configs: " in printed
    assert printed.count(" files, intact") == 2
    for name in ("torch 2.", "CPU cores ", "MPS ", "cache: does not exist yet", "offline mode "):
        assert name in printed
    assert "--wandb.project offline" in printed
    assert "no_such_package missing, for nothing: pip install 'probelight[none]'" in printed


def test_damaged_files_and_folders_are_shown_and_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in (("a.yaml", b"a: [b\n"), ("b.gz", b"x"), ("c.txt", b""), ("d.txt", b"d")):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(doctor, "CONFIGS", tmp_path)
    monkeypatch.setattr(doctor, "ASSETS", tmp_path / "none")
    monkeypatch.setenv("PROBELIGHT_CACHE", str(tmp_path / "d.txt"))
    assert cli.main(["doctor"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{tmp_path}: damaged: a.yaml, b.gz, c.txt " in printed
    assert f"{tmp_path / 'none'}: missing " in printed
    assert "d.txt: cannot be written to (Not a directory)" in printed
