"""What each job does, that a sweep of one gives what one command gives, and kept scores."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from probelight.commands.inoculation import inoculate as inoculations
from probelight.commands.inoculation.command import inoculate
from probelight.commands.inoculation.data import REPORT, SELECTED_PROBE
from probelight.commands.inoculation.inoculate import (
    BEFORE_FILE,
    InoculationRun,
    best_candidate,
    read_scores_before,
    write_scores_before,
)
from probelight.commands.inoculation.settings import (
    IntermediateTask,
    Keeping,
    ProbeOrFiles,
    Setting,
)
from probelight.commands.inoculation.sweep import SweepGrid, sweep_jobs
from probelight.io.errors import UsageError
from probelight.io.settings import RangeError
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.registry import ModelSettings
from probelight.models.tuning import Tuning
from probelight.probes.record import Record
from probelight.results.details import InoculationDetails
from probelight.results.measured import Predictions
from probelight.results.record import ModelSource, RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.fencing import FencedRunFolder, begin_attempt, drive_alone
from tests.commands.inoculation.conftest import TRAINER, run_context, with_a_line_less
from tests.fixtures.tiny import make_runs
from tests.runs.runner_spec import folder_of


def details_of(record: RunRecord) -> InoculationDetails:
    details = record.detail(InoculationDetails)
    assert details is not None
    return details


def reported(record: RunRecord) -> dict[str, float]:
    return {row.metric: row.value for row in record.rows if row.split == REPORT}


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
    stage = IntermediateTask("race", [str(tiny_probes / "second.yaml")])
    task = replace(grid.originals["colours"], first=stage)
    cells = sweep_jobs(replace(grid, originals={"colours": task}), run_context(mirror))
    cell = next(cell for cell in cells if cell.spec.protocol == protocol)
    path = with_a_line_less(mirror, tmp_path / "mirror", probe)
    run = folder_of(cell, tmp_path / "runs")
    with pytest.raises(UsageError, match=f"{path}: changed since the run was planned; rerun the"):
        cell.spec.make(run, run_context(str(tmp_path / "mirror")))


def test_a_cell_refuses_another_given_model_than_it_was_planned_with(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    task = replace(grid.originals["colours"], checkpoint=str(folder))
    given_grid = replace(grid, originals={"colours": task})
    with pytest.raises(PretrainedError, match=r"rows: number 1: .*there is no folder .*given, and"):
        sweep_jobs(given_grid, run_context(mirror))
    shutil.copytree(grid.models["tiny"].name_or_path, folder)
    path = folder / "model.safetensors"
    older = path.with_name("pytorch_model.bin")  # is in the key as well, next to a saved head
    torch.save(load_file(path), older)
    path.unlink()
    save_file({"a": torch.ones(2)}, path.with_name("head.safetensors"))
    assert sorted(sweep_jobs(given_grid, run_context(mirror))[0].spec.subject.checkpoint) == [
        "head.safetensors", "pytorch_model.bin"
    ]  # fmt: skip
    older.unlink()
    with pytest.raises(PretrainedError, match=r"rows: number 1: .*given has no weights: model"):
        sweep_jobs(given_grid, run_context(mirror))
    path.with_name("head.safetensors").unlink()
    save_file({"a": torch.zeros(2)}, path)
    cell = sweep_jobs(given_grid, run_context(mirror))[0]
    assert (cell.spec.protocol, cell.needs) == ("before", ())  # no original task to train
    run = folder_of(cell, tmp_path / "runs")
    for change in (partial(save_file, {"a": torch.ones(2)}, path), path.unlink):
        change()
        with pytest.raises(UsageError, match=f"{path}: changed since the run was planned"):
            cell.spec.make(run, run_context(mirror))
        if path.exists():
            assert sweep_jobs(given_grid, run_context(mirror))[0].key != cell.key


def test_no_setting_is_chosen_as_long_as_one_of_them_has_no_result(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    jobs = {job.key: job for job in sweep_jobs(grid, run_context(mirror))}
    *_, last = jobs.values()
    run, first = (folder_of(job, tmp_path) for job in (last, jobs[last.needs[0]]))
    missing = f"{run.key} needs {first.result_path}, which is missing"
    with pytest.raises(FileNotFoundError, match=missing):
        last.spec.make(run, run_context(mirror))
    first.finish(RunRecord(protocol="something else"))
    with pytest.raises(ValueError, match=f"{first.result_path}: not the result of an inocul"):
        last.spec.make(run, run_context(mirror))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("keeping", "updates", "examples"),
    [
        (Keeping(), 3, 24),
        (Keeping("replay", 0.25), 4, 24 + 4 * 2),
        (Keeping("l2_sp"), 3, 24),
        (Keeping("distillation", 2.0), 6, 24 + 6 * 4),
    ],
)
def test_a_run_says_how_it_kept_and_what_it_saw(
    keeping: Keeping, updates: int, examples: int, grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    [row] = grid.rows
    record = inoculate(
        str(tmp_path / "out"),
        grid.originals["colours"],
        ProbeOrFiles(**asdict(row.probe)),
        model=grid.models["tiny"],
        dose=24,
        epochs=2,
        batch_size=8,
        learning_rate=1e-3,
        keeping=keeping,
        mirror=mirror,
        trainer=TRAINER,
    )
    assert record is not None
    [epoch] = {r.epoch for r in record.rows if r.split == REPORT and r.metric == "num_updates"}
    assert epoch in (1, 2)
    assert reported(record)["num_updates"] == epoch * updates
    assert reported(record)["num_examples"] == epoch * examples
    method = "" if keeping.method == "none" else keeping.method
    assert {(r.keeping, r.strength) for r in record.rows} == {(method, keeping.strength)}
    metrics = (tmp_path / "out").glob("runs/inoculate-*/metrics.csv")
    has_penalty = "train/penalty" in next(metrics).read_text()
    assert has_penalty == (keeping.method == "l2_sp")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "l2sp"}, "method"),
        ({"strength": 1.0}, "strength 1 needs a method against forgetting: give method"),
        ({"method": "replay", "strength": 1.0}, "strength 1: for replay it is a share"),
        ({"method": "l2_sp", "strength": 0.0}, "strength 0.0: give"),
        ({"method": "l2_sp", "share": 0.2}, "share 0.2 is for distillation only"),
    ],
)
def test_a_way_of_keeping_that_there_is_not_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises((UsageError, RangeError), match=message):
        Keeping(**options)


@pytest.mark.parametrize(
    ("options", "method", "ending"),
    [
        ({}, ("", None), ""),
        ({"keeping": Keeping("replay")}, ("replay", 0.5), "-replay0.5"),
        (
            {"keeping": Keeping("distillation", 3.0, 0.25)},
            ("distillation (share 0.25)", 3.0),
            "-distillation3",
        ),
        ({"tuning": Tuning("lora", rank=4)}, ("lora", 4.0), "-lora4"),
        ({"tuning": Tuning("lora", alpha=32)}, ("lora (alpha 32.0)", 8.0), "-lora8"),
        (
            {"tuning": Tuning("lora", rank=4), "keeping": Keeping("l2_sp", 2.0)},
            ("l2_sp+lora (rank 4)", 2.0),
            "-l2_sp2-lora4",
        ),
        (
            {"tuning": Tuning("peft.IA3Config", target_modules=["value"])},
            ('peft.IA3Config (target_modules ["value"])', None),
            "-peft.IA3Config",
        ),
    ],
)
def test_settings_that_differ_are_called_differently(
    options: dict[str, Any], method: tuple[str, float | None], ending: str
) -> None:
    setting = Setting(10, "none", 0, **options)
    assert setting.method_and_strength == method
    assert setting.name_suffix == ending
    assert Setting(**json.loads(json.dumps(asdict(setting)))) == setting


def test_without_reserved_questions_nothing_is_replayed(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    [row] = grid.rows
    task = replace(grid.originals["colours"], reserved_share=0.0)
    with pytest.raises(UsageError, match="keeping replay needs reserved original-task examples"):
        inoculate(
            str(tmp_path / "out"),
            task,
            ProbeOrFiles(**asdict(row.probe)),
            model=grid.models["tiny"],
            dose=24,
            keeping=Keeping("replay"),
            mirror=mirror,
            trainer=TRAINER,
        )


@pytest.mark.thorough
def test_the_cells_give_what_one_command_gives(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    [row] = grid.rows
    small = replace(grid, rows=[replace(row, doses=[12], extras=["x1"])])
    cells = sweep_jobs(small, run_context(mirror))
    results = make_runs(cells, tmp_path / "sweep", run_context(mirror))
    chosen = results[cells[-1].key]
    candidates = {key: results[key] for key in cells[-1].needs}
    averages = {
        key: max(scores["val/aggregate"] for scores in details_of(record).history)
        for key, record in candidates.items()
    }
    best = details_of(chosen).chosen
    assert averages[best] == max(averages.values())
    setting = details_of(candidates[best]).setting
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
    assert [[getattr(r, n) for n in numbers] for r in chosen.rows] == [
        [getattr(r, n) for n in numbers] for r in alone.rows
    ]
    assert chosen.model_sha256 == alone.model_sha256
    untrained = results[cells[1].key]
    assert reported(untrained)["probe_accuracy"] == reported(alone)["probe_accuracy_before"]


@pytest.mark.thorough
def test_esim_is_taught_and_inoculated_like_a_transformer(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    row = replace(grid.rows[0], doses=[12], learning_rates=[4e-4], extras=["x1"])
    small = replace(grid, models={"tiny": ModelSettings(kind="esim", max_length=12)}, rows=[row])
    cells = sweep_jobs(small, run_context(mirror))
    results = make_runs(cells, tmp_path, run_context(mirror))
    original, untrained, trained, chosen = (results[cell.key] for cell in cells)
    assert chosen.model == "ESIM (word_vectors)"
    assert chosen.model_sha256 == trained.model_sha256 != original.model_sha256
    scores, start = reported(chosen), reported(untrained)
    assert scores["original_accuracy_before"] == start["original_accuracy"]
    cost = scores["original_accuracy_before"] - scores["original_accuracy_after"]
    assert scores["inoculation_cost"] == pytest.approx(cost)


def test_the_best_epoch_of_all_settings_is_chosen_and_ties_go_to_the_lower_cost() -> None:
    def result(rate: float, *scores: tuple[float, float]) -> InoculationDetails:
        history = tuple(
            {
                "epoch": epoch,
                "val/probe_accuracy": probe,
                "val/original_accuracy": original,
                "val/aggregate": (probe + original) / 2,
            }
            for epoch, (probe, original) in enumerate(scores, start=1)
        )
        return InoculationDetails(setting={"learning_rate": rate}, history=history)

    low = result(1e-5, (0.5, 0.5), (0.6, 0.5))
    high = result(5e-5, (0.9, 0.1), (0.7, 0.4))
    costly = result(1e-6, (0.7, 0.4))
    assert best_candidate({"low": low, "high": high}) == "low"  # 0.55 both; 0.5 is left of low's
    assert best_candidate({"costly": costly, "high": high}) == "costly"  # the smaller rate
    with pytest.raises(ValueError, match="no checkpoints"):
        best_candidate({"empty": InoculationDetails(setting=asdict(TRAINER))})


def test_scores_before_that_are_made_again_keep_their_notices(
    grid: SweepGrid, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sweep_jobs(grid, run_context(mirror))[1]
    folder = folder_of(job, tmp_path / "runs")
    run = InoculationRun(folder, job.spec.subject, run_context(mirror))
    scored = {
        key: Predictions(key.text, records, [[0.1, 0.7, 0.3, 0.0, 0.5]] * len(records), ("cut",))
        for key, records in run.tasks.sets.items()
    }
    module = torch.nn.Identity()
    module.notices = ()
    monkeypatch.setattr(inoculations, "load_module", lambda *_: module)
    monkeypatch.setattr(inoculations, "score_sets", lambda *_: scored)
    monkeypatch.setattr(InoculationRun, "original_dir", lambda run: tmp_path)
    monkeypatch.setattr(inoculations, "original_source", lambda *_: (ModelSource(), None))
    first, again = (run.score_before().notices for _ in range(2))
    assert "selection_probe: cut" in first
    assert again == first


@pytest.mark.parametrize("rank", [0, 1])
def test_each_process_has_the_scores_before_as_soon_as_they_are_there(
    rank: int, grid: SweepGrid, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sweep_jobs(grid, run_context(mirror))[1]
    folder = folder_of(job, tmp_path / "runs").path
    with drive_alone(tmp_path, take_over=False) as driver:
        begin_attempt(folder, driver)
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    run = InoculationRun(
        FencedRunFolder(folder, job.spec.to_config(), 1), job.spec.subject, run_context(mirror)
    )
    scored = {
        key: Predictions(key.text, records, [[0.1, 0.7, 1 / 3, 0.0, 0.5] for _ in records])
        for key, records in run.tasks.sets.items()
    }
    monkeypatch.setattr(inoculations, "original_model_scores", lambda *_: scored)
    # Of the processes the first one writes; another need not wait for it.
    assert run.scores_before(tmp_path) == scored
    assert (folder / BEFORE_FILE).exists() == (rank == 0)
    if rank == 0:
        assert run.scores_before(tmp_path) == scored


RECORDS = [Record(f"r{i}", "red or blue", ("red", "blue"), 0) for i in range(2)]
SETS = {SELECTED_PROBE: RECORDS}
SCORED = {SELECTED_PROBE: Predictions("selection_probe", RECORDS, [[0.1, 0.7], [0.9, 0.2]])}


def test_scores_before_that_are_no_numbers_are_read_as_they_were(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "run", {"a": 1})
    scores = [[-math.inf, 1 / 3], [math.nan, 0.1]]
    write_scores_before(run, {SELECTED_PROBE: Predictions("selection_probe", RECORDS, scores)})
    text = (run.path / BEFORE_FILE).read_text()
    json.loads(text, parse_constant=pytest.fail)  # as other languages read it
    predictions = read_scores_before(run, SETS)[SELECTED_PROBE]
    assert predictions.scores[0] == [-math.inf, 1 / 3]
    assert predictions.best == [(1,), ()]  # nothing was said where a score is no number


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"selection_probe": [[0.1, 0.7]]}'])
def test_damaged_scores_before_are_named(text: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "run", {"a": 1})
    write_scores_before(run, SCORED)
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"^{run.path / BEFORE_FILE}: .*; remove {run.path}"):
        read_scores_before(run, SETS)
    write_scores_before(run, SCORED)  # what is there is kept, damaged or not
    (run.path / BEFORE_FILE).unlink()
    write_scores_before(run, SCORED)
    run.finish(RunRecord(protocol="p"))
    assert read_scores_before(run, SETS) == SCORED
    (run.path / BEFORE_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"{BEFORE_FILE}: changed since the run ended"):
        read_scores_before(run, SETS)
