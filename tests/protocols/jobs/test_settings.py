"""The options of engines: their ranges, the fractions that Ray gives, and a newcomer's typos."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from probelight.io.ranges import RangeError
from probelight.protocols import cli
from probelight.protocols.jobs.job import EngineSettings, RaySettings

PLAN = ["sweep", "plan", "--config=configs/sweep/released.yaml"]
RUN = ["sweep", "run"]
CURVE, ZERO_SHOT = ([name, "--probes=age_small"] for name in ("curve", "zero-shot"))


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


TYPOS = {
    "adress": "address",
    "cpu_per_cell": "cpus_per_cell",
    "gpus_per_cel": "gpus_per_cell",
    "memory_per_cells": "memory_per_cell",
    "max_retry": "max_retries",
    "stop_second": "stop_seconds",
    "takeover": "take_over",
}
FRACTION = (
    r"{} 2\.0001 is more than one and no whole number.* choose a fraction below 1, or a whole"
)
# Command, option, a pattern of what it answers.
REFUSED = [
    *(
        (RUN, f"{typo}=1", rf"--engine\.{typo} .*--engine\.{meant}\?")
        for typo, meant in TYPOS.items()
    ),
    (PLAN, "adress=1", r"--engine\.adress .*--engine\.address\?"),
    (RUN, "cpus_per_cell=0", r" error: --engine\.cpus_per_cell 0\S*: give "),
    (RUN, "cpus_per_cell=-1", r" error: --engine\.cpus_per_cell -1\S*: give "),
    (RUN, "cpus_per_cell=.nan", r" error: --engine\.cpus_per_cell \S+: give "),
    (RUN, "gpus_per_cell=-0.5", r" error: --engine\.gpus_per_cell -0\.5: give "),
    (RUN, "gpus_per_cell=1025", r" error: --engine\.gpus_per_cell 1025\S*: give "),
    (RUN, "memory_per_cell=0", r" error: --engine\.memory_per_cell 0\S*: give "),
    (RUN, "memory_per_cell=1e9", r" error: --engine\.memory_per_cell \S+: give "),
    (RUN, "max_retries=-1", r" error: --engine\.max_retries -1: give "),
    (RUN, "max_retries=1001", r" error: --engine\.max_retries 1001: give "),
    (RUN, "stop_seconds=0", r" error: --engine\.stop_seconds 0\S*: give "),
    (RUN, "stop_seconds=.inf", r" error: --engine\.stop_seconds \S+: give "),
    (RUN, "cpus_per_cell=many", r"engine\.cpus_per_cell.*many"),
    (RUN, "gpus_per_cell=two", r"engine\.gpus_per_cell.*two"),
    (RUN, "memory_per_cell=8GB", r"engine\.memory_per_cell.*8GB"),
    (RUN, "max_retries=1.5", r"engine\.max_retries.*1\.5"),
    (RUN, "take_over=perhaps", r"engine\.take_over.*perhaps"),
    (RUN, "cpus_per_cell=2.0001", FRACTION.format(r"engine\.cpus_per_cell")),
    (RUN, "gpus_per_cell=2.0001", FRACTION.format(r"engine\.gpus_per_cell")),
    (CURVE, "kind=rey", r"--engine\.kind rey: give one of here, ray \(did you mean 'ray'\?\)"),
    (CURVE, "kid=ray", r"there is no option --engine\.kid \(did you mean --engine\.kind\?\)"),
    (
        CURVE,
        "adress=auto",
        r"there is no option --engine\.adress \(did you mean --engine\.addre",
    ),
    (
        CURVE,
        "address=auto",
        r"engine\.address is for Ray alone; add --engine\.kind ray, or leave",
    ),
    (CURVE, "gpus_per_cell=1", r"engine\.gpus_per_cell is for Ray alone; add --engine\.kind ray"),
    (CURVE, "max_retries=0", r"engine\.max_retries is for Ray alone; add --engine\.kind ray"),
    (CURVE, "max_retries=-1", r"--engine\.max_retries -1: give "),
    (ZERO_SHOT, "take_over=true", r"engine\.take_over is for Ray alone; add --engine\.kind ray"),
]


@pytest.mark.parametrize(("command", "option", "pattern"), REFUSED)
def test_an_option_that_cannot_be_used_is_refused_by_name(
    command: list[str],
    option: str,
    pattern: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert re.search(pattern, refused(command, f"--engine.{option}", tmp_path, capsys))


def test_a_plan_of_what_ray_does_not_give_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(PLAN, "--trainer.devices=-1", tmp_path, capsys)
    assert "trainer.devices -1: a cell is given its devices by Ray" in line


def test_both_engines_take_the_same_options() -> None:
    assert {*TYPOS.values()} <= (names := {item.name for item in fields(RaySettings)})
    assert {item.name for item in fields(EngineSettings)} == {*names, "kind"}
    given: dict[str, Any] = {"cpus_per_cell": 0.25, "gpus_per_cell": 8, "take_over": True}
    assert RaySettings(**given) == RaySettings(**{**given, "gpus_per_cell": 8.0})
    assert EngineSettings(kind="ray", **given).take_over
    with pytest.raises(RangeError):
        RaySettings(max_retries=-1)
