from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from probelight.protocols import cli
from probelight.results.folder_claim import FolderClaim
from probelight.results.run_folder import CommandFolder, ConfigConflictError
from tests.fixtures.checkout import ROOT

FIRST, SECOND = {"command": "curve", "n": 1}, {"command": "curve", "n": 2}


def config_of(folder: Path) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((folder / "config.yaml").read_text())
    return found


def test_a_config_that_computed_nothing_gives_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = CommandFolder(tmp_path, FIRST).run("a", {"n": 1})
    run.checkpoint_dir.mkdir()
    (run.path / ".config.yaml.77-0a0b0c0d.tmp").touch()  # of a write that was killed
    (tmp_path / "nohup.out").touch()
    CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == SECOND
    said = f"{tmp_path / 'config.yaml'}: replaced, as the config before computed nothing"
    assert said in capsys.readouterr().out
    assert not (run.path / "config.yaml").exists()
    assert (tmp_path / "nohup.out").exists()


@pytest.mark.parametrize(
    "left",
    [
        "runs/a/result.json",
        "runs/a/before.json",
        "runs/a/checkpoints/last.ckpt",
        "runs/a/checkpoints/config.yaml",
        "runs/a/metrics.csv",
        "results.csv",
        "driver.json",
        "planned.json",
    ],
)
def test_states_results_and_plans_keep_their_config(tmp_path: Path, left: str) -> None:
    CommandFolder(tmp_path, FIRST)
    (tmp_path / left).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / left).touch()
    with pytest.raises(ConfigConflictError, match="was made with another config"):
        CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == FIRST
    assert (tmp_path / left).exists()


WAITS = """
import sys
from pathlib import Path
from probelight.results.run_folder import CommandFolder
folder = CommandFolder(Path(sys.argv[1]), {"command": "curve", "n": 1})
print("there", flush=True)
sys.stdin.read()
"""


def test_a_process_that_has_not_computed_yet_keeps_its_config(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", WAITS, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"there\n"
        with pytest.raises(ConfigConflictError, match="another process is at work"):
            CommandFolder(tmp_path, SECOND)
        CommandFolder(tmp_path, FIRST)  # the same command may be there twice
        assert config_of(tmp_path) == FIRST
    finally:
        other.kill()
        other.communicate()
    CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == SECOND


def test_who_replaces_a_config_keeps_others_out_until_it_is_written(tmp_path: Path) -> None:
    first, second = FolderClaim(tmp_path), FolderClaim(tmp_path)
    assert not first.alone()
    second.close()
    assert first.alone()
    first.share()
    assert not FolderClaim(tmp_path).alone()


def test_a_failed_first_try_does_not_lock_the_folder(tmp_path: Path) -> None:
    command = ["zero-shot", "--probes=age_small", f"--output_dir={tmp_path / 'out'}"]
    quiet = "--trainer.progress_bar=false"
    missing = f"--model.name_or_path={tmp_path / 'nowhere'}"
    assert cli.main([*command, quiet, missing]) != 0
    assert cli.main([*command, quiet]) == 0
