"""configs/sweep/wandb.yaml: its parameters are options of `train.py inoculate`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonargparse import ArgumentParser

from probelight.protocols.inoculation.command import inoculate

ROOT = Path(__file__).parents[3]


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "sweep" / name).read_text("utf-8"))
    return found


def arguments(place: int) -> list[str]:
    """What the agent puts for ${args}: here the first or the last value of each parameter."""
    values = {
        name: spec["values"][place] if "values" in spec else spec["value"]
        for name, spec in load("wandb.yaml")["parameters"].items()
    }
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.parametrize("place", [0, -1])
def test_parameters_are_options_of_inoculate(
    place: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    *_, script, zero, args = load("wandb.yaml")["command"]
    assert (zero, args) == ("train.py", "${args}")
    words = shlex.split(script)
    assert words[:5] == ["exec", "python", "-m", "probelight", "inoculate"]
    # The shell sees to these.
    at, original = words.index("$@"), words.index("${ORIGINAL:+--original.checkpoint")
    given = [*words[5:at], *arguments(place), *words[at + 1 : original]]
    parser = ArgumentParser()
    parser.add_argument("--config", action="config")
    parser.add_function_arguments(inoculate)
    parsed = parser.parse_args([*given, "--original.checkpoint", str(tmp_path)])
    assert parsed.dose == (100, 1000)[place]
    assert parsed.learning_rate == (5e-5, 1e-4)[place]
    assert parsed.extra == ("none", "x1")[place]
    assert parsed.original.reserved_share == 0.335
    assert parsed.wandb.project == "probelight"
    assert parsed.output_dir == "runs/wandb/$WANDB_RUN_ID"


def test_it_is_the_grid_of_the_sweep() -> None:
    parameters, released = load("wandb.yaml")["parameters"], load("released.yaml")["grid"]
    row = released["rows"][0]
    assert row["probe"]["name"] == "hypernymy"
    for name, names in (
        ("dose", "doses"),
        ("learning_rate", "learning_rates"),
        ("extra", "extras"),
        ("seed", "seeds"),
    ):
        assert parameters[name]["values"] == row[names]
    original = released["originals"][row["original"]]
    for name in ("report_share", "selection_share", "reserved_share", "epochs"):
        assert parameters[f"original.{name}"]["value"] == original[name]


def test_it_maximises_what_a_run_reports() -> None:
    from probelight.callbacks.aggregate_checkpoint import AGGREGATE

    sweep = load("wandb.yaml")
    assert sweep["metric"] == {"name": AGGREGATE, "goal": "maximize"}
    assert sweep["method"] == "grid"
    assert sweep["program"] == "train.py"
