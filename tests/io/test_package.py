from __future__ import annotations

import sys
from pathlib import Path

import pytest

from probelight.io import package
from probelight.io.package import PACKAGE, as_typed, checkout, program, shipped_path, version
from tests.fixtures.checkout import ROOT


def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lets the package look as if it lay elsewhere than in a checkout."""
    monkeypatch.setattr(package, "PACKAGE", tmp_path / "site-packages" / "probelight")


def test_the_tests_run_in_a_checkout() -> None:
    assert checkout() == ROOT
    assert PACKAGE == ROOT / "probelight"
    assert f'version = "{version()}"' in (ROOT / "pyproject.toml").read_text()


def test_an_installed_package_is_no_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed(monkeypatch, tmp_path)
    assert checkout() is None
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "train.py").touch()  # of another distribution
    assert checkout() is None


@pytest.mark.parametrize(
    ("started", "name"),
    [
        (str(ROOT / "train.py"), "train.py"),
        ("train.py", "train.py"),
        ("/usr/bin/probelight", "probelight"),
        (str(PACKAGE / "__main__.py"), "probelight"),
        ("/x/pytest/__main__.py", "train.py"),
    ],
)
def test_the_program_is_what_was_started(
    started: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [started])
    assert program() == name


def test_an_installed_package_is_run_by_its_own_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "train.py")])  # of the user's own
    assert program() == "probelight"


def test_texts_name_the_program_and_leave_files_of_that_name_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "`train.py sweep plan`, python train.py fit; ./train.py of my/train.py is train.py."
    assert as_typed(text) == text
    monkeypatch.setattr(sys, "argv", ["probelight"])
    said = "`probelight sweep plan`, probelight fit; ./train.py of my/train.py is train.py."
    assert as_typed(text) == said


def test_a_shipped_file_stands_in_for_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = "configs/experiment/demo.yaml"
    assert shipped_path(demo) == str(PACKAGE / demo)
    for other in ("configs/none.yaml", "demo.yaml", "configs/../train.py", str(tmp_path / demo)):
        assert shipped_path(other) == other
    (tmp_path / "configs" / "experiment").mkdir(parents=True)
    (tmp_path / demo).touch()
    assert shipped_path(demo) == demo
