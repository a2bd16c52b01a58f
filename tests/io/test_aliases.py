from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from probelight.io.aliases import (
    ALIASES,
    current_class_path,
    current_runner,
    with_current_class_paths,
)

OLD = "lightning_modules.masked_choice.MaskedChoice"
NEW = current_class_path(OLD)


@pytest.mark.parametrize(("old", "name"), ALIASES, ids=str)
def test_what_an_old_name_leads_to_exists(old: str, name: str) -> None:
    assert callable(resolve_name(f"{ALIASES[old, name]}:{name}"))


def test_an_old_class_path_becomes_the_present_one() -> None:
    assert NEW.startswith("probelight.lightning_modules.")
    assert current_class_path(NEW) == NEW
    assert current_class_path("mine.MaskedChoice") == "mine.MaskedChoice"


def test_an_old_runner_becomes_the_present_one() -> None:
    assert resolve_name(current_runner("protocols.zero_shot.run:score_set")).__name__ == "score_set"
    assert current_runner("mine.runs:run_job") == "mine.runs:run_job"


def test_class_paths_are_found_anywhere_in_a_config_and_nothing_else_is_changed() -> None:
    config = {
        "model": {"class_path": OLD, "init_args": {"mode": OLD}},
        "trainer": {"callbacks": [{"class_path": "callbacks.patience.Patience"}, 3]},
    }
    found = with_current_class_paths(config)
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
    assert current_class_path(OLD) == (OLD if module == "masked_choice" else NEW)
    sys.modules.pop("lightning_modules", None)
