from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from probelight.protocols.jobs.job import EngineSettings, RaySettings
from tests.protocols.conftest import Refused

PLAN = ["sweep", "plan", "--config=configs/sweep/released.yaml"]
RUN = ["sweep", "run"]
CURVE, ZERO_SHOT = ([name, "--probes=age_small"] for name in ("curve", "zero-shot"))


FRACTION = "2.0001 is more than one and no whole number"
ADVICE = "choose a fraction below 1, or a whole"
RAY = "is for Ray alone; add --engine.kind ray"
# Command, option, words of what it answers next to the option's name.
REFUSED = [
    (PLAN, "trainer.devices=-1", ["-1: a cell is given its devices by Ray"]),
    (PLAN, "engine.adress=1", ["--engine.address?"]),
    (RUN, "engine.takeover=1", ["--engine.take_over?"]),
    (RUN, "engine.max_retries=-1", [" error: --engine", " -1: give "]),
    (RUN, "engine.memory_per_cell=8GB", ["8GB"]),
    (RUN, "engine.cpus_per_cell=2.0001", [FRACTION, ADVICE]),
    (RUN, "engine.gpus_per_cell=2.0001", [FRACTION, ADVICE]),
    (CURVE, "engine.kind=rey", ["rey: give one of here, ray (did you mean 'ray'?)"]),
    (CURVE, "engine.kid=ray", ["there is no option", "(did you mean --engine.kind?)"]),
    (CURVE, "engine.adress=auto", ["there is no option", "(did you mean --engine.address?)"]),
    (CURVE, "engine.address=auto", [f"{RAY}, or leave"]),
    (CURVE, "engine.gpus_per_cell=1", [RAY]),
    (CURVE, "engine.max_retries=0", [RAY]),
    (CURVE, "engine.max_retries=-1", ["-1: give "]),
    (ZERO_SHOT, "engine.take_over=true", [RAY]),
]


@pytest.mark.parametrize(("command", "option", "words"), REFUSED)
def test_an_option_that_cannot_be_used_is_refused_by_name(
    command: list[str], option: str, words: list[str], refused: Refused, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    line = refused([*command, f"--output_dir={folder}", f"--{option}"])
    assert [word for word in (option.split("=")[0], *words) if word not in line] == []
    assert not folder.exists()


def test_both_engines_take_the_same_options() -> None:
    names = {item.name for item in fields(RaySettings)}
    assert {item.name for item in fields(EngineSettings)} == {*names, "kind"}
    given: dict[str, Any] = {"cpus_per_cell": 0.25, "gpus_per_cell": 8, "take_over": True}
    assert RaySettings(**given) == RaySettings(**{**given, "gpus_per_cell": 8.0})
    assert EngineSettings(kind="ray", **given).take_over
