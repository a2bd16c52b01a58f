"""A baseline is never replaced by a transformer, nor measured before it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import train
from jobs.context import RunContext
from protocols.engine.kinds import check_questions
from protocols.engine.models import module_for
from protocols.engine.settings import ModelSettings
from protocols.inoculation.cells import SweepGrid, SweepRow, enumerate_cells
from protocols.inoculation.settings import InoculatedProbe, OriginalTask
from results.provenance import ROOT
from storage.errors import UsageError

ADVICE = {
    "mlm_baseline": "`train.py curve --models mlm_baseline --probes ...`",
    "esim": "`train.py curve --models esim --setup mc_qa --probes ...`",
}


@pytest.mark.parametrize("kind", ["mlm_baseline", "esim"])
@pytest.mark.parametrize(
    "command",
    [
        ["zero-shot", "--probes", "age_small,definitions_small"],
        ["zero-shot", "--probes", "definitions_small", "--ranks", "true"],
        ["grid", "--grid.panels", "[A]"],
        ["demo"],
    ],
)
def test_a_baseline_is_refused_where_nothing_is_trained(
    kind: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = ["--config", str(ROOT / "configs" / "model" / f"{kind}.yaml")]
    given = [f"--plan.model.kind={kind}"] if command == ["demo"] else preset
    folder = tmp_path / "out"
    assert train.main([*command, *given, f"--output_dir={folder}"]) == train.USAGE_ERROR
    said = capsys.readouterr().err
    assert f"model.kind {kind}" in said
    assert ADVICE[kind] in said
    assert not folder.exists()


def test_a_grid_of_several_models_computes_none_before_it_refuses_one(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = ["grid", "--models=embedded,mlm_baseline", f"--output_dir={folder}"]
    assert train.main(command) == train.USAGE_ERROR
    assert not folder.exists()


def original(checkpoint: str | None = None) -> dict[str, Any]:
    return {"name": "task", "sets": ["definitions_small"], "checkpoint": checkpoint}


@pytest.mark.parametrize("command", ["inoculate", "original"])
def test_the_mlm_baseline_is_no_original_task_model(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"original": original(), "model": {"kind": "mlm_baseline"}}
    if command == "inoculate":
        config["probe"] = {"name": "hypernymy_small"}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    folder = tmp_path / "out"
    assert train.main([command, f"--config={path}", f"--output_dir={folder}"]) == train.USAGE_ERROR
    assert "choose model.kind esim" in capsys.readouterr().err
    assert not folder.exists()


def test_a_sweep_refuses_it_when_it_is_planned() -> None:
    grid = SweepGrid(
        {"mine": ModelSettings(kind="mlm_baseline")},
        {"task": OriginalTask(**original())},
        [SweepRow("mine", "task", InoculatedProbe("hypernymy_small"))],
    )
    with pytest.raises(UsageError, match=r"rows: number 1: model\.kind mlm_baseline"):
        enumerate_cells(grid, RunContext())


def test_a_checkpoint_is_called_what_it_is(tmp_path: Path) -> None:
    pairs = ModelSettings(kind="esim")
    folder = str(tmp_path / "esim")
    module_for(pairs, "mc_qa").save_pretrained(folder)
    check_questions(pairs, folder)
    with pytest.raises(UsageError, match=r"holds a model of kind esim.*called embedded.*kind esim"):
        check_questions(ModelSettings(), folder)
    (tmp_path / "transformer").mkdir()
    check_questions(ModelSettings(), str(tmp_path / "transformer"))
    with pytest.raises(UsageError, match=r"kind transformer.*called ESIM"):
        check_questions(pairs, str(tmp_path / "transformer"))
