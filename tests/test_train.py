from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from probelight.protocols import cli
from tests.fixtures.checkout import ROOT

EXPERIMENTS = sorted((ROOT / "configs" / "experiment").glob("*.yaml"))
COMMANDS = {
    "inoculate": "probe",
    "original": "original",
    "curve": "grid",
    "demo": "plan",
    "diagnose": "sets",
}


def test_no_command_is_a_usage_error_and_help_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == cli.USAGE_ERROR
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {command}" in out for command in cli.SUMMARIES)


def command_of(path: Path) -> str:
    keys = yaml.safe_load(path.read_text()).keys()
    return next((command for command, key in COMMANDS.items() if key in keys), "fit")


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_is_a_valid_config(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [command_of(path), f"--config={path}", "--print_config"]
    with pytest.raises(SystemExit, match="0"):
        cli.main(arguments)
    printed = yaml.safe_load(capsys.readouterr().out)
    assert set(yaml.safe_load(path.read_text())) <= set(printed)
