from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from jobs.context import RunContext, TrainerSettings
from jobs.job import Job
from lightning_modules.baselines.esim import ESIM
from protocols.engine.settings import ModelSettings
from protocols.inoculation.grid import SweepGrid, SweepRow, sweep_jobs
from protocols.inoculation.jobs import weights_bytes
from protocols.inoculation.runs import best_candidate, run_job
from protocols.inoculation.settings import FirstStage, InoculatedProbe, OriginalTask, ProbeOrFiles
from protocols.inoculation.steps import REPORT
from results.provenance import ROOT
from results.run_folder import RunFolder, read_finished
from storage.config.ranges import RangeError
from storage.errors import UsageError

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False, checkpoint_every=2, threads=1)


@pytest.fixture
def grid(tiny_model: Path, tiny_probes: Path) -> SweepGrid:
    task = OriginalTask(
        "first",
        [str(tiny_probes / "first.yaml")],
        report_sets=[str(tiny_probes / "first.yaml")],
        selection_share=0.2,
        reserved_share=0.2,
        epochs=1,
        learning_rate=1e-3,
    )
    row = SweepRow(
        model="tiny",
        original="colours",
        probe=InoculatedProbe(str(tiny_probes / "second.yaml"), selection_items=20),
        doses=[8, 12],
        learning_rates=[1e-3, 1e-4],
        extras=["none", "x1"],
        seeds=[0],
        epochs=1,
        batch_size=8,
    )
    model = ModelSettings(str(tiny_model), max_length=32)
    return SweepGrid({"tiny": model}, {"colours": task}, [row])


@pytest.fixture
def mirror(tiny_probes: Path) -> str:
    return str(tiny_probes / "mirror")


def under(mirror: str) -> RunContext:
    return RunContext(TRAINER, mirror=mirror)


def kinds(cells: list[Job]) -> list[str]:
    return [cell.config["protocol"] for cell in cells]


def run_all(cells: list[Job], output_dir: Path, mirror: str) -> dict[str, dict[str, Any]]:
    for cell in cells:
        run = RunFolder(output_dir / "runs", cell.name, json.loads(json.dumps(cell.config)))
        assert run.key == cell.key
        run_job(run, run.config, under(mirror))
    paths = output_dir.glob("runs/*/result.json")
    return {path.parent.name: read_finished(path) for path in paths}


def test_a_grid_is_its_settings_and_what_they_share(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(grid, under(mirror))
    # One original task, one scoring before, then 2 rates x 2 extras and one choice for each dose.
    settings = ["inoculation_cell"] * 4 + ["inoculation"]
    assert kinds(cells) == ["original", "before", *settings, *settings]
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == len(keys)
    assert all(set(cell.needs) <= set(keys[:place]) for place, cell in enumerate(cells))
    # 8 examples are one step of 8, balanced with as many two; 12 are two steps, balanced three.
    assert [cell.num_steps for cell in cells[2:6]] == [1, 1, 2, 2]
    assert [cell.num_steps for cell in cells[7:11]] == [2, 2, 3, 3]


def test_a_second_row_shares_the_original_task(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    more = replace(grid, rows=[row, replace(row, doses=[8, 16])])
    alone, both = (sweep_jobs(g, under(mirror)) for g in (grid, more))
    assert [c.key for c in both[: len(alone)]] == [c.key for c in alone]
    assert kinds(both[len(alone) :]) == ["inoculation_cell"] * 4 + ["inoculation"]


def with_a_line_less(mirror: str, copy: Path, probe: str) -> Path:
    """The train file of a probe in a copy of the mirror, without its last line."""
    shutil.copytree(mirror, copy)
    path = copy / "tiny" / probe / "train.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    return path


def test_another_data_file_makes_other_cells(grid: SweepGrid, mirror: str, tmp_path: Path) -> None:
    copy = tmp_path / "mirror"
    with_a_line_less(mirror, copy, "second")
    before, after = (
        {c.name: c.key for c in sweep_jobs(grid, under(m))} for m in (mirror, str(copy))
    )
    changed = {name.split("-")[0] for name in before if before[name] != after[name]}
    assert changed == {"before", "inoculate", "chosen"}  # the original task reads another file


@pytest.mark.parametrize(
    ("protocol", "probe"),
    [
        ("first", "second"),
        ("original", "first"),
        ("before", "second"),
        ("inoculation_cell", "first"),
        ("inoculation", "second"),
    ],
)
def test_a_cell_refuses_other_data_than_it_was_planned_with(
    grid: SweepGrid, mirror: str, tiny_probes: Path, tmp_path: Path, protocol: str, probe: str
) -> None:
    stage = FirstStage("race", [str(tiny_probes / "second.yaml")])
    task = replace(grid.originals["colours"], first=stage)
    cells = sweep_jobs(replace(grid, originals={"colours": task}), under(mirror))
    cell = next(cell for cell in cells if cell.config["protocol"] == protocol)
    path = with_a_line_less(mirror, tmp_path / "mirror", probe)
    run = RunFolder(tmp_path / "runs", cell.name, cell.config)
    with pytest.raises(UsageError, match=f"{path}: changed since it was planned; run `train.py"):
        run_job(run, run.config, under(str(tmp_path / "mirror")))


def test_a_cell_refuses_another_given_model_than_it_was_planned_with(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    task = replace(grid.originals["colours"], checkpoint=str(folder))
    given = replace(grid, originals={"colours": task})
    with pytest.raises(UsageError, match=r"rows: number 1: .*given holds no \*\.safetensors"):
        sweep_jobs(given, under(mirror))
    folder.mkdir()
    path = folder / "model.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    cell = sweep_jobs(given, under(mirror))[0]
    assert cell.config["protocol"] == "before"
    run = RunFolder(tmp_path / "runs", cell.name, cell.config)
    for change in (partial(save_file, {"a": torch.ones(2)}, path), path.unlink):
        change()
        with pytest.raises(UsageError, match=f"{path}: changed since it was planned"):
            run_job(run, run.config, under(mirror))


def test_a_first_stage_comes_before_the_original_task(
    grid: SweepGrid, mirror: str, tiny_probes: Path
) -> None:
    stage = FirstStage("race", [str(tiny_probes / "second.yaml")], epochs=1, learning_rate=1e-3)
    task = replace(grid.originals["colours"], first=stage)
    cells = sweep_jobs(replace(grid, originals={"colours": task}), under(mirror))
    assert kinds(cells)[:3] == ["first", "original", "before"]
    assert cells[1].needs == (cells[0].key,)


def test_tpe_draws_its_settings_when_a_cell_is_claimed(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(replace(grid, search="tpe", num_trials=3), under(mirror))
    [trial, *_] = [cell for cell in cells if cell.search]
    assert kinds(cells).count("inoculation_cell") == 2 * 3
    assert trial.search["learning_rate"] == {"low": 1e-4, "high": 1e-3, "log": True}
    assert trial.search["extra"] == {"choices": ["none", "x1"]}
    assert "learning_rate" not in trial.config["setting"]


def test_another_search_space_makes_other_trials(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    tpe = replace(grid, search="tpe", num_trials=2)
    rows = [row, replace(row, learning_rates=[1e-3, 1e-5]), replace(row, extras=["none"])]
    plans = [sweep_jobs(replace(tpe, rows=[row]), under(mirror)) for row in rows]
    keys = [{cell.key for cell in plan if cell.search} for plan in plans]
    assert [len(found) for found in keys] == [4, 4, 4]
    assert len(set.union(*keys)) == 12
    chosen = [{c.key for c in plan if c.config["protocol"] == "inoculation"} for plan in plans]
    assert len(set.union(*chosen)) == 6


def test_cells_of_a_grid_have_the_fields_that_their_keys_were_made_of(
    grid: SweepGrid, mirror: str
) -> None:
    cells = sweep_jobs(grid, under(mirror))
    common = {"protocol", "model", "original", "data", "precision", "threads", "model_run"}
    inoculated = common | {"probe", "checkpoint"}
    more = {"before_run", "candidates", "dose", "seed"}
    assert {cell.config["protocol"]: set(cell.config) for cell in cells} == {
        "original": common,
        "before": inoculated,
        "inoculation_cell": inoculated | {"before_run", "setting"},
        "inoculation": inoculated | more,
    }


@pytest.mark.parametrize("empty", ["learning_rates", "extras", "doses", "seeds"])
def test_a_row_without_settings_is_refused(grid: SweepGrid, empty: str) -> None:
    with pytest.raises(RangeError, match=rf"SweepRow\.{empty} \[\]: give at least one"):
        replace(grid.rows[0], **{empty: []})


def test_unknown_names_and_too_many_examples_are_said(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    with pytest.raises(UsageError, match="rows: number 1: model is 'huge'; there are tiny"):
        sweep_jobs(replace(grid, rows=[replace(row, model="huge")]), under(mirror))
    with pytest.raises(UsageError, match="rows: number 1: --dose 61: only 60"):
        sweep_jobs(replace(grid, rows=[replace(row, doses=[61])]), under(mirror))


def test_weights_are_counted_in_single_precision(tmp_path: Path) -> None:
    weights = {"a": torch.zeros(2, 3, dtype=torch.float16), "b": torch.zeros(5)}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert weights_bytes(ModelSettings(str(tmp_path))) == 4 * (6 + 5)
    assert weights_bytes(ModelSettings("some/hub-model")) == 0


def test_weights_of_esim_are_those_of_the_module() -> None:
    counted = {name: p.numel() for name, p in ESIM().named_parameters() if "words" not in name}
    assert weights_bytes(ModelSettings(kind="esim")) == 4 * sum(counted.values())


def test_planning_imports_no_lightning() -> None:
    code = "import sys, protocols.inoculation.grid; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_cells_give_what_one_command_gives(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    from protocols.inoculation.command import inoculate

    [row] = grid.rows
    small = replace(grid, rows=[replace(row, doses=[12], extras=["x1"])])
    cells = sweep_jobs(small, under(mirror))
    results = run_all(cells, tmp_path / "sweep", mirror)
    chosen = results[cells[-1].key]
    candidates = {key: results[key] for key in cells[-1].needs}
    averages = {
        key: max(scores["val/aggregate"] for scores in result["history"])
        for key, result in candidates.items()
    }
    assert averages[chosen["chosen"]] == max(averages.values())
    setting = candidates[chosen["chosen"]]["setting"]
    alone = inoculate(
        str(tmp_path / "alone"),
        grid.originals["colours"],
        ProbeOrFiles(**asdict(row.probe)),
        model=grid.models["tiny"],
        **setting,
        mirror=mirror,
        trainer=TRAINER,
    )
    numbers = ("metric", "split", "subset", "epoch", "value", "ci_low", "ci_high")
    assert [[getattr(r, n) for n in numbers] for r in chosen["rows"]] == [
        [getattr(r, n) for n in numbers] for r in alone["rows"]
    ]
    assert chosen["model_sha256"] == alone["model_sha256"]
    before = results[cells[1].key]
    reported = {r.metric: r.value for r in before["rows"] if r.split == "report"}
    said = {r.metric: r.value for r in alone["rows"] if r.split == "report"}
    assert reported["probe_accuracy"] == said["probe_accuracy_before"]


def test_esim_is_taught_and_inoculated_like_a_transformer(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    row = replace(grid.rows[0], doses=[12], learning_rates=[4e-4], extras=["x1"])
    small = replace(grid, models={"tiny": ModelSettings(kind="esim", max_length=12)}, rows=[row])
    cells = sweep_jobs(small, under(mirror))
    results = run_all(cells, tmp_path, mirror)
    original, before, trained, chosen = (results[cell.key] for cell in cells)
    assert chosen["model"] == "ESIM (word_vectors)"
    assert chosen["model_sha256"] == trained["model_sha256"] != original["model_sha256"]
    scores = {r.metric: r.value for r in chosen["rows"] if r.split == REPORT}
    start = {r.metric: r.value for r in before["rows"] if r.split == REPORT}
    assert scores["original_accuracy_before"] == start["original_accuracy"]
    cost = scores["original_accuracy_before"] - scores["original_accuracy_after"]
    assert scores["inoculation_cost"] == pytest.approx(cost)


def test_the_best_epoch_of_all_settings_is_chosen_and_ties_go_to_the_lower_cost() -> None:
    def result(rate: float, *scores: tuple[float, float]) -> dict[str, Any]:
        history = [
            {
                "epoch": epoch,
                "val/probe_accuracy": probe,
                "val/original_accuracy": original,
                "val/aggregate": (probe + original) / 2,
            }
            for epoch, (probe, original) in enumerate(scores, start=1)
        ]
        return {"setting": {"learning_rate": rate}, "history": history}

    low = result(1e-5, (0.5, 0.5), (0.6, 0.5))
    high = result(5e-5, (0.9, 0.1), (0.7, 0.4))
    costly = result(1e-6, (0.7, 0.4))
    assert best_candidate({"low": low, "high": high}) == "low"  # 0.55 both; 0.5 is left of low's
    assert best_candidate({"costly": costly, "high": high}) == "costly"  # the smaller rate
    with pytest.raises(ValueError, match="no checkpoints"):
        best_candidate({"empty": {"setting": asdict(TRAINER), "history": []}})
