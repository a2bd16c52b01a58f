from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import resolve_name

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
    said = "`probelight sweep plan`, probelight fit; ./train.py of my/train.py is train.py."
    assert package.as_typed(text) == said


def test_a_shipped_file_stands_in_for_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = "configs/experiment/demo.yaml"
    assert package.shipped_path(demo) == str(package.PACKAGE / demo)
    for other in ("configs/none.yaml", "demo.yaml", "configs/../train.py", str(tmp_path / demo)):
        assert package.shipped_path(other) == other
    (tmp_path / "configs" / "experiment").mkdir(parents=True)
    (tmp_path / demo).touch()
    assert package.shipped_path(demo) == demo


OLD = "lightning_modules.masked_choice.MaskedChoice"
NEW = package.current_class_path(OLD)


@pytest.mark.parametrize(("old", "name"), package.ALIASES, ids=str)
def test_what_an_old_name_leads_to_exists(old: str, name: str) -> None:
    assert callable(resolve_name(f"{package.ALIASES[old, name]}:{name}"))


def test_an_old_class_path_or_runner_becomes_the_present_one() -> None:
    assert NEW.startswith("probelight.lightning_modules.")
    assert package.current_class_path(NEW) == NEW
    assert package.current_class_path("mine.MaskedChoice") == "mine.MaskedChoice"
    curve = "probelight.callbacks.learning_curve.LearningCurve"
    assert package.current_class_path(curve) == "probelight.callbacks.run_metrics.LearningCurve"
    assert (
        resolve_name(package.current_runner("protocols.zero_shot.run:score_set")).__name__
        == "score_set"
    )
    assert package.current_runner("mine.runs:run_job") == "mine.runs:run_job"


def test_class_paths_are_found_anywhere_in_a_config_and_nothing_else_is_changed() -> None:
    config = {
        "model": {"class_path": OLD, "init_args": {"mode": OLD}},
        "trainer": {"callbacks": [{"class_path": "callbacks.patience.Patience"}, 3]},
    }
    found = package.with_current_class_paths(config)
    assert found["model"] == {"class_path": NEW, "init_args": {"mode": OLD}}
    assert found["trainer"]["callbacks"][0]["class_path"].startswith("probelight.callbacks.")
    assert config["model"] == {"class_path": OLD, "init_args": {"mode": OLD}}


@pytest.mark.parametrize("module", ["masked_choice", "other"])
def test_a_module_of_the_user_comes_first_where_it_has_the_old_name(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lightning_modules"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / f"{module}.py").write_text("class MaskedChoice: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("lightning_modules")]:
        monkeypatch.delitem(sys.modules, name)
    assert package.current_class_path(OLD) == (OLD if module == "masked_choice" else NEW)
    sys.modules.pop("lightning_modules", None)
