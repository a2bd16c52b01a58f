from __future__ import annotations

import sys
from pathlib import Path

import pytest

from probelight.io import package
from tests.fixtures.checkout import ROOT


def test_an_installed_package_is_run_by_its_own_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert package.checkout() == ROOT
    assert package.PACKAGE == ROOT / "probelight"
    assert f'version = "{package.version()}"' in (ROOT / "pyproject.toml").read_text()
    # As if the package lay elsewhere than in a checkout, next to another distribution's train.py.
    monkeypatch.setattr(package, "PACKAGE", tmp_path / "site-packages" / "probelight")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "train.py").touch()
    assert package.checkout() is None
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "train.py")])  # of the user's own
    assert package.program() == "probelight"


def test_texts_name_the_program_and_leave_files_of_that_name_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "`train.py sweep plan`, python train.py fit; ./train.py of my/train.py is train.py."
    assert package.as_typed(text) == text
    monkeypatch.setattr(sys, "argv", ["probelight"])
    expected = "`probelight sweep plan`, probelight fit; ./train.py of my/train.py is train.py."
    assert package.as_typed(text) == expected


def test_a_shipped_file_stands_in_for_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = "configs/experiment/demo.yaml"
    assert package.shipped_path(demo) == str(package.PACKAGE / demo)
    for path in ("configs/none.yaml", "demo.yaml", "configs/../train.py", str(tmp_path / demo)):
        assert package.shipped_path(path) == path
    (tmp_path / "configs" / "experiment").mkdir(parents=True)
    (tmp_path / demo).touch()
    assert package.shipped_path(demo) == demo
