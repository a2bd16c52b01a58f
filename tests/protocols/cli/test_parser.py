from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols.cli.parser import OneLineErrors, given_configs


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config", "a.yaml", "--seed", "1", "--config=b.yaml"],
        ["-c", "a.yaml", "-c", "b.yaml"],
        ["fit", "--config=a.yaml", "--config", "b.yaml"],
    ],
)
def test_the_configs_of_a_command_line_in_its_order(arguments: list[str]) -> None:
    assert list(given_configs(arguments)) == ["a.yaml", "b.yaml"]


def test_a_mistake_is_one_line_and_the_code_of_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = OneLineErrors(prog="train.py x")
    parser.add_argument("--epochs", type=int, default=1)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--epoch", "3"])
    assert capsys.readouterr().err == (
        "train.py x: error: there is no option --epoch (did you mean --epochs?); "
        "--help_all shows all\n"
    )


def test_a_mistake_in_a_config_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("epoch: 3\n")
    parser = OneLineErrors(prog="train.py x")
    parser.add_argument("--config", action="config")
    parser.add_argument("--epochs", type=int, default=1)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"--config={path}"])
    assert f"error: {path}: there is no key epoch (did you mean epochs?)" in capsys.readouterr().err
