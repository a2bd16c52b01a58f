"""A control is a function and its registration: curves and the report then take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import CONTROLS, Control
from probelight.probes.record import Record
from probelight.protocols import cli
from tests.fixtures.rows import read_results

CURVE = ["--grid.sizes=[16]", "--grid.seeds=[1]", "--grid.modes=[mlp]", "--grid.epochs=1"]


def shouted(record: Record, config: ProbeConfig, words: Mapping[str, str]) -> Record:
    assert words == {}
    return replace(record, stem=record.stem.replace(" is ", " IS "))


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLS, "shouted", Control(shouted))


def curve(folder: Path, curve_model: Path, curve_probes: Path, controls: str) -> int:
    named = [f"--probes={curve_probes / 'pairs.yaml'}", f"--models={curve_model}"]
    named += [f"--mirror={curve_probes / 'mirror'}", "--random_weights=false"]
    quiet = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
    chosen = [f"--grid.controls={controls}", f"--output_dir={folder}"]
    return cli.main(["curve", *named, *CURVE, *chosen, *quiet])


@pytest.mark.usefixtures("_registered")
def test_a_registered_control_is_measured_and_reported(
    tmp_path: Path, curve_model: Path, curve_probes: Path
) -> None:
    assert curve(tmp_path, curve_model, curve_probes, "[standard, shouted]") == 0
    rows = [row for row in read_results(tmp_path / "results.csv") if row["metric"] == "accuracy"]
    found = {(row["control"], row["num_train"]) for row in rows if not row["subset"]}
    assert found == {(c, n) for c in ("standard", "shouted") for n in ("0", "16")}
    assert cli.main(["report", str(tmp_path)]) == 0
    table = (tmp_path / "tables" / "learning_curve.csv").read_text("utf-8")
    assert "shouted" in table
    assert "shouted" in (tmp_path / "figures" / "learning_curve.svg").read_text("utf-8")
