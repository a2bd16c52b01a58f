"""The spec of one inoculation, however it is asked for: typed, from a printed config, in Python."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import probelight
from probelight import cli
from probelight.commands.inoculation.runs import InoculationSpec
from probelight.results.run_folder import RunFolder
from probelight.runs.spec import spec_from, spec_type

SMALL: dict[str, Any] = {"report_items": 24, "selection_items": 24}
ORIGINAL: dict[str, Any] = {"name": "definitions", "sets": ["definitions_small"], "epochs": 1}
ORIGINAL |= {"train_items": 48, **SMALL}
PROBE: dict[str, Any] = {"name": "hypernymy_small", **SMALL}
SETTING: dict[str, Any] = {"dose": 16, "epochs": 1, "learning_rate": 1e-4}
TRAINER: dict[str, Any] = {"accelerator": "cpu", "threads": 1}


def typed() -> list[str]:
    groups = {"original": ORIGINAL, "probe": PROBE, "trainer": TRAINER}
    options = {f"{group}.{name}": v for group, of in groups.items() for name, v in of.items()}
    return [
        f"--{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in options.items()
    ] + [f"--{name}={value}" for name, value in SETTING.items()]


def spec_in(folder: Path) -> InoculationSpec:
    [run] = folder.glob("runs/inoculate-*")
    return InoculationSpec.from_config(RunFolder.at(run).config)


@pytest.mark.slow
def test_one_inoculation_has_one_spec_however_it_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
        cli.main(["inoculate", *typed(), "--output_dir=unused", "--print_config"])
    config = yaml.safe_load(printed.getvalue()) | {"output_dir": str(tmp_path / "printed")}
    path = tmp_path / "printed.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert cli.main(["inoculate", f"--config={path}"]) == 0
    probelight.inoculate(
        {"name_or_path": "bookshelf-lm"},
        PROBE,
        ORIGINAL,
        **SETTING,
        trainer=TRAINER,
        output_dir=tmp_path / "python",
    )
    on_ray = ["--engine.kind=ray", "--engine.cpus_per_cell=1", f"--output_dir={tmp_path / 'ray'}"]
    assert cli.main(["inoculate", *typed(), *on_ray]) == 0
    specs = {name: spec_in(tmp_path / name) for name in ("printed", "python", "ray")}
    assert specs["printed"] == specs["python"] == specs["ray"]
    assert specs["ray"].setting.dose == 16
    assert specs["ray"].setting.learning_rate == 1e-4
    assert specs["ray"].subject.probe.report_items == 24
    # As the process of an attempt reads it.
    run = RunFolder.at(tmp_path / "ray" / "runs" / specs["ray"].key)
    assert spec_from(spec_type(specs["python"]), run.config) == specs["python"]
    rows = [probelight.load(tmp_path / name).frame["value"].tolist() for name in specs]
    assert rows[0] == rows[1] == rows[2]
