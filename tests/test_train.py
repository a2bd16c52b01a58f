from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from probelight.protocols import cli
from probelight.protocols.cli import dispatch
from probelight.protocols.cli.errors import FAILURE
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
    assert all(f"  {command}" in out for command in (*dispatch.PROTOCOLS, *dispatch.LIGHTNING))


def test_a_mistyped_command_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["zeroshot"]) == cli.USAGE_ERROR
    assert "did you mean 'zero-shot'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("probes: a\nmodel: [x\n", "line 2: not readable as YAML: while parsing a flow sequence"),
        ("probes: a\nprobes: b\n", "line 2: not readable as YAML: the key 'probes' is given twice"),
        ("a: &a [x]\nb: &b [*a, *b]\n", "line 2: not readable as YAML: an alias holds itself"),
        (None, "a device or a pipe, where a file on the disk is needed"),
    ],
)
@pytest.mark.parametrize("form", ["--config {}", "--config={}"])
def test_a_config_that_cannot_be_read_is_named_before_anything_starts(
    text: str | None, message: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.symlink_to("/dev/zero") if text is None else path.write_text(text)
    for command in ("zero-shot", "fit"):
        assert cli.main([command, *form.format(path).split()]) == cli.USAGE_ERROR
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(f"train.py {command}: error: {path}: {message}")


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


def test_a_wrong_config_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "configs" / "experiment" / "inoculate_hypernymy.yaml").read_text()
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace("selection_items", "selection_itms"))
    with pytest.raises(SystemExit, match="2"):
        cli.main(["inoculate", f"--config={path}", f"--output_dir={tmp_path}"])
    assert "selection_itms" in capsys.readouterr().err


def test_the_report_of_an_empty_folder_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path)]) == FAILURE
    assert str(tmp_path) in capsys.readouterr().err
