"""The options of engines: their ranges, the fractions that Ray gives, and a newcomer's typos."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.io.ranges import RangeError
from probelight.protocols import cli
from probelight.protocols.jobs.job import EngineSettings, RaySettings

PLAN = ["sweep", "plan", "--config=configs/sweep/released.yaml"]
RUN = ["sweep", "run"]


def refused(command: list[str], option: str, folder: Path, capsys: Any) -> str:
    """The one line that a command says to an option, before it makes anything."""
    try:
        code = cli.main([*command, f"--output_dir={folder / 'out'}", option])
    except SystemExit as stop:  # said by the parser
        code = int(stop.code or 0)
    assert code == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert not (folder / "out").exists()
    return str(line)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("adress", "address"),
        ("cpu_per_cell", "cpus_per_cell"),
        ("gpus_per_cel", "gpus_per_cell"),
        ("memory_per_cells", "memory_per_cell"),
        ("max_retry", "max_retries"),
        ("stop_second", "stop_seconds"),
        ("takeover", "take_over"),
    ],
)
@pytest.mark.parametrize("command", [PLAN, RUN], ids=lambda command: command[1])
def test_a_mistyped_option_is_answered_with_the_right_one(
    command: list[str], typo: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert meant in {one.name for one in fields(RaySettings)}
    line = refused(command, f"--engine.{typo}=1", tmp_path, capsys)
    assert f"--engine.{typo}" in line
    assert f"--engine.{meant}" in line


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("cpus_per_cell", "0"),
        ("cpus_per_cell", "-1"),
        ("cpus_per_cell", ".nan"),
        ("gpus_per_cell", "-0.5"),
        ("gpus_per_cell", "1025"),
        ("memory_per_cell", "0"),
        ("memory_per_cell", "1e9"),
        ("max_retries", "-1"),
        ("max_retries", "1001"),
        ("stop_seconds", "0"),
        ("stop_seconds", ".inf"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(RUN, f"--engine.{option}={value}", tmp_path, capsys)
    assert f" error: --engine.{option} " in line
    assert ": give " in line


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("cpus_per_cell", "many"),
        ("gpus_per_cell", "two"),
        ("memory_per_cell", "8GB"),
        ("max_retries", "1.5"),
        ("take_over", "perhaps"),
    ],
)
def test_what_is_no_number_at_all_is_refused_by_name(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(RUN, f"--engine.{option}={value}", tmp_path, capsys)
    assert f"engine.{option}" in line
    assert value in line


@pytest.mark.parametrize("option", ["cpus_per_cell", "gpus_per_cell"])
@pytest.mark.parametrize("value", [1.5, 2.0001])
def test_more_than_one_is_whole(
    option: str, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(RUN, f"--engine.{option}={value}", tmp_path, capsys)
    assert f"engine.{option} {value} is more than one and no whole number" in line
    with pytest.raises(UsageError, match="choose a fraction below 1, or a whole number"):
        RaySettings(**{option: value})


def test_fractions_of_one_and_whole_numbers_are_taken() -> None:
    for value in (0.25, 0.5, 1, 2.0, 8):
        assert RaySettings(cpus_per_cell=value, gpus_per_cell=value).gpus_per_cell == value
    assert RaySettings(gpus_per_cell=0).gpus_per_cell == 0
    with pytest.raises(RangeError):
        RaySettings(max_retries=-1)


def test_both_engines_take_the_same_options() -> None:
    own = {one.name: one.default for one in fields(RaySettings)}
    assert {one.name: one.default for one in fields(EngineSettings)} == {**own, "kind": "here"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("kind=rey", "--engine.kind rey: give one of here, ray (did you mean 'ray'?)"),
        ("kid=ray", "there is no option --engine.kid (did you mean --engine.kind?)"),
        ("adress=auto", "there is no option --engine.adress (did you mean --engine.address?)"),
        ("address=auto", "engine.address is for Ray alone; add --engine.kind ray, or leave it"),
        ("max_retries=0", "engine.max_retries is for Ray alone; add --engine.kind ray"),
        ("max_retries=-1", "--engine.max_retries -1: give "),
    ],
)
@pytest.mark.parametrize("command", ["curve", "zero-shot"])
def test_other_commands_take_them_with_the_kind_ray_alone(
    command: str, option: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused([command, "--probes=age_small"], f"--engine.{option}", tmp_path, capsys)
    assert said in line


def test_a_plan_of_what_ray_does_not_give_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(PLAN, "--trainer.devices=-1", tmp_path, capsys)
    assert "trainer.devices -1: a cell is given its devices by Ray" in line
