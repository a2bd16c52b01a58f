from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from probelight.io.package import version
from tests.fixtures.checkout import ROOT

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
MODULE, FUNCTION = SCRIPTS["probelight"].split(":")
WAYS = {
    "train.py": [str(ROOT / "train.py")],
    "module": ["-m", "probelight"],
    "command": ["bin/probelight"],
}


def started(entry: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program in a folder; the command as pip writes it into its file."""
    (folder / "bin").mkdir(exist_ok=True)
    text = f"import sys\nfrom {MODULE} import {FUNCTION}\nsys.exit({FUNCTION}())\n"
    (folder / "bin" / "probelight").write_text(text)
    return subprocess.run(
        [sys.executable, *WAYS[entry], *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "path"), str(ROOT)])},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("entry", WAYS)
def test_each_way_in_tells_the_version(entry: str, tmp_path: Path) -> None:
    done = started(entry, tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"probelight {version()}\n")


@pytest.mark.thorough
@pytest.mark.parametrize("entry", WAYS)
def test_help_and_mistakes_name_the_program_that_was_started(entry: str, tmp_path: Path) -> None:
    name = "train.py" if entry == "train.py" else "probelight"
    done = started(entry, tmp_path, "zero-shot", "--help")
    assert done.stdout.startswith(f"usage: {name} zero-shot ")
    assert f"\n  {name} zero-shot --probes" in done.stdout
    for arguments in (["zero-shot", "--probez=a"], ["zero-shot", "--output_dir=out"], ["zeroshot"]):
        done = started(entry, tmp_path, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(name)


@pytest.mark.thorough
@pytest.mark.parametrize("entry", WAYS)
def test_files_of_the_current_folder_stand_for_no_library(entry: str, tmp_path: Path) -> None:
    for name in ("datasets", "yaml", "jsonargparse", "metrics"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    config = "--config=configs/experiment/dictionary_qa_curve.yaml"
    done = started(entry, tmp_path, "curve", config, "--output_dir=out", "--print_config")
    assert done.returncode == 0, done.stderr
    assert "output_dir: out" in done.stdout


@pytest.mark.parametrize("entry", WAYS)
def test_a_signal_is_answered_before_the_slow_imports(entry: str, tmp_path: Path) -> None:
    # The first of them signals the process as soon as it is looked for.
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'yaml':\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    done = started(entry, tmp_path, "zero-shot", "--help")
    assert done.returncode == 143
    assert "terminated" in done.stderr


@pytest.mark.thorough
def test_a_project_with_its_own_metrics_and_callbacks_uses_probelight(tmp_path: Path) -> None:
    """The rooms that lie at the top of a checkout take no names away from other projects."""
    names = ("metrics", "callbacks", "datamodules", "lightning_modules", "results", "probes")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n")
    (tmp_path / "train.py").write_text(
        f"import {', '.join(names)}\n"
        "import probelight\n"
        "from probelight.integrations.transformers import ProbeTrainerCallback\n"
        "watch = ProbeTrainerCallback(['age_small'])\n"
        "print(probelight.score('dictionary-lm', 'age_small'))\n"
        f"assert all(part.OWN for part in ({', '.join(names)}))\n"
    )
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dictionary-lm on age_small: ")
