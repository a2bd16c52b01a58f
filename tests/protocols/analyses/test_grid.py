"""The jobs of the analyses: what their keys are made of, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probelight.build.prediction_grids import age_grids
from probelight.io.errors import UsageError
from probelight.models.checkpoint_files import EMBEDDED_DIR
from probelight.protocols import cli
from probelight.protocols.analyses.grid import (
    GridSettings,
    fill_grid,
    grid_job,
    grid_matrix,
    grid_rows,
)
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import RunContext, TrainerSettings, make_run
from probelight.results.run_folder import CommandFolder, RunFolder
from tests.fixtures.rows import read_results

SMALL = ["--grid.first_age", "18", "--grid.last_age", "24", "--grid.first_year", "1990"]
SMALL += ["--grid.last_year", "1996", "--grid.step", "3", "--trainer.progress_bar", "false"]


def test_rows_and_matrix_of_a_grid_worked_out_by_hand() -> None:
    grid = age_grids(ages=(20, 30, 40), years=(1960, 1990))[0]
    # Pairs in order: (20,30) (20,40) (30,20) (30,40) (40,20) (40,30); right: y y o y o o.
    scores = [[1, 0], [0, 1], [-1, 0], [2, 0], [3, 0], [3, 0]]
    said = Predictions("A", grid.records, scores)
    rows = {row.metric: row for row in grid_rows(said, grid, ModelSettings().row)}
    assert rows["accuracy"].value == pytest.approx(3 / 6)
    assert rows["accuracy"].perturbation == "A"
    assert rows["accuracy"].probe == "age_comparison"
    assert rows["share_younger"].value == pytest.approx(4 / 6)
    assert rows["share_older"].value == pytest.approx(2 / 6)
    # Only for {20, 30} is "younger" likelier where it is right: 1 > -1, but -1 < 3 and 2 < 3.
    assert rows["order_accuracy"].value == pytest.approx(1 / 3)
    assert rows["order_accuracy"].num_items == 3
    matrix = grid_matrix(said, grid)
    assert matrix["values"] == [20, 30, 40]
    assert matrix["axes"] == ["AGE-1", "AGE-2"]
    assert matrix["prediction"] == [[None, 0, 1], [1, None, 0], [0, 0, None]]
    assert matrix["answer"] == [[None, 0, 0], [1, None, 0], [1, 1, None]]
    assert matrix["probability"][0][1] == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert matrix["probability"][1][0] == pytest.approx(1 / (1 + math.e), abs=1e-6)


def test_a_constant_output_says_both_words_half_the_time() -> None:
    grid = age_grids(ages=(20, 30, 40), years=(1960, 1990))[0]
    said = Predictions("A", grid.records, [[-math.inf, -math.inf], *[[2.0, 2.0]] * 5])
    rows = {row.metric: row.value for row in grid_rows(said, grid, ModelSettings().row)}
    assert rows["accuracy"] == rows["order_accuracy"] == 0.5
    assert rows["share_younger"] == rows["share_older"] == 0.5
    assert rows["tied_share"] == 1.0
    matrix = grid_matrix(said, grid)
    assert matrix["prediction"] == [[None] * 3] * 3
    assert matrix["probability"] == [[None, 0.5, 0.5], [0.5, None, 0.5], [0.5, 0.5, None]]


def test_a_skipped_item_leaves_a_hole() -> None:
    grid = age_grids(ages=(20, 30), years=(1960, 1990))[0]
    said = Predictions("A", grid.records[:1], [[1000.0, -1000.0]])
    assert grid_matrix(said, grid)["probability"] == [[None, 1.0], [None, None]]


def test_candidates_that_a_model_splits_are_said(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["grid", "--output_dir", str(tmp_path), *SMALL, "--grid.panels", "[A]"]
    command += ["--model.name_or_path", str(tiny_model)]
    assert cli.main(command) != 0
    assert "younger" in capsys.readouterr().err
    command[2] = str(tmp_path / "skip")
    assert cli.main([*command, "--model.multi_token", "skip"]) == cli.FAILURE
    assert "grid A: no records to batch (6 were skipped" in capsys.readouterr().err


def test_the_command_fills_what_the_full_model_says_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["grid", "--output_dir", str(tmp_path), *SMALL, "--grid.panels", "[A, C, sizes]"]
    assert cli.main(command) == 0
    [path] = tmp_path.glob("runs/grid-A-*/grid.json")
    matrix = json.loads(path.read_text())
    assert matrix["values"] == [18, 21, 24]
    model = AutoModelForMaskedLM.from_pretrained(EMBEDDED_DIR, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_DIR)
    ids = tokenizer.convert_tokens_to_ids(["younger", "older"])
    for i, first in enumerate(matrix["values"]):
        for j, second in enumerate(matrix["values"]):
            stem = f"A {first} year old person is [MASK] than me in age, If I am a {second}"
            inputs = tokenizer(f"{stem} year old person.", return_tensors="pt")
            place = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
            with torch.no_grad():
                logits = model(**inputs).logits[0, place, ids]
            if i != j:
                expected = float(logits.softmax(dim=0)[0])
                assert matrix["probability"][i][j] == pytest.approx(expected, abs=1e-5)
                assert matrix["prediction"][i][j] == int(logits.argmax())
    rows = read_results(tmp_path / "results.csv")
    sizes = {r["perturbation"]: r["num_items"] for r in rows if r["metric"] == "accuracy"}
    assert sizes == {"A": "6", "C": "6", "sizes": "56"}
    stamp = path.stat().st_mtime_ns
    assert cli.main(command) == 0
    assert capsys.readouterr().out.count(", embedded: complete\n") == 3
    assert path.stat().st_mtime_ns == stamp


def test_several_models_and_both_wordings(tmp_path: Path) -> None:
    command = ["grid", "--output_dir", str(tmp_path), *SMALL, "--random_weights", "true"]
    command += [
        "--models",
        "embedded",
        "--grid.panels",
        "[A]",
        "--grid.wordings",
        "[paper, released]",
    ]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "results.csv")
    assert {(r["model"], r["subset"]) for r in rows} == {
        (model, f"wording={wording}")
        for model in ("embedded", "embedded (random weights)")
        for wording in ("paper", "released")
    }


def test_a_causal_model_fills_a_grid_by_the_likelihood_of_what_follows(
    causal_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    model = ModelSettings(str(causal_folder("gpt2")), kind="causal")
    grid = age_grids(ages=(20, 30), years=(1960, 1990))[0]
    context = RunContext(TrainerSettings(accelerator="cpu", progress_bar=False))
    job = grid_job(model, grid, context.trainer)
    run = RunFolder(tmp_path, job.name, job.config)
    make_run(fill_grid, run, job.config, context)
    record = run.result()
    assert record is not None
    assert {row.mode for row in record.rows} == {"causal_likelihood"}
    reference = AutoModelForCausalLM.from_pretrained(model.name_or_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(model.name_or_path)
    matrix = json.loads((run.path / "grid.json").read_text())
    for item, (i, j) in zip(grid.records, ((0, 1), (1, 0)), strict=True):
        before, after = item.stem.split(" [MASK]")
        sums = []
        for choice in item.choices:
            ids = tokenizer(f"{before} {choice}{after}", return_tensors="pt")["input_ids"]
            begin = len(tokenizer(before)["input_ids"])
            with torch.no_grad():
                logs = reference(ids).logits[0].log_softmax(dim=1)
            sums.append(sum(float(logs[at - 1, ids[0, at]]) for at in range(begin, ids.shape[1])))
        expected = 1 / (1 + math.exp(sums[1] - sums[0]))
        assert matrix["probability"][i][j] == pytest.approx(expected, abs=1e-5)


def test_the_grids_are_those_of_each_wording_asked_for() -> None:
    grids = GridSettings(
        panels=["A", "sizes"], first_age=20, last_age=40, step=10, wordings=["paper", "released"]
    ).grids()
    assert [(one.name, one.wording) for one in grids] == [
        ("A", "paper"),
        ("sizes", "paper"),
        ("A", "released"),
        ("sizes", "released"),
    ]
    assert [int(value) for value in grids[0].values] == [20, 30, 40]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_age": 30, "last_age": 20}, "--grid.first_age 30"),
        ({"first_year": 1990, "last_year": 1995, "step": 10}, "--grid.first_year 1990"),
    ],
)
def test_values_that_make_no_grid_are_a_usage_error(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GridSettings(**settings)  # type: ignore[arg-type]


MODEL = ModelSettings("somewhere/bert")


def test_a_grid_is_another_one_with_other_values_or_sentences() -> None:
    grids = [
        age_grids(ages=(20, 30), years=(1960, 1990))[0],
        age_grids(ages=(20, 40), years=(1960, 1990))[0],
        age_grids(ages=(20, 30), years=(1960, 1990), wording="released")[0],
    ]
    jobs = [grid_job(MODEL, grid, TrainerSettings()) for grid in grids]
    assert jobs[0].config["values"] == [20, 30]
    assert len({job.key for job in jobs}) == 3
    again = age_grids(ages=(20, 30), years=(1800, 1801))[0]
    assert grid_job(MODEL, again, TrainerSettings(max_eval_tokens=9)).key == jobs[0].key


def test_sentences_that_changed_behind_the_plan_are_refused(tmp_path: Path) -> None:
    job = grid_job(MODEL, age_grids(ages=(20, 30))[0], TrainerSettings())
    config = {**job.config, "stems": "0" * 64}
    run = CommandFolder(tmp_path, {}).run(job.name, config)
    with pytest.raises(UsageError, match=r"grid A \(paper wording\): changed since it was planned"):
        make_run(job.runner, run, config, RunContext())


QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
GRID = ["grid", "--grid.panels=[A]", "--grid.first_age=20", "--grid.last_age=40", "--grid.step=10"]


def test_a_grid_is_filled_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*GRID, f"--output_dir={tmp_path}", *QUIET]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "results.csv")
    [accuracy] = [row for row in rows if row["metric"] == "accuracy"]
    # Three ages in both orders: six sentences about three pairs.
    assert (accuracy["num_items"], accuracy["num_groups"]) == ("6", "3")
    before = (tmp_path / "results.csv").read_bytes()
    capsys.readouterr()
    assert cli.main(command) == 0
    assert "complete" in capsys.readouterr().out
    assert (tmp_path / "results.csv").read_bytes() == before


def test_a_baseline_has_no_answers_before_it_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*GRID, "--models=esim", f"--output_dir={tmp_path / 'out'}", *QUIET]
    assert cli.main(command) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("train.py grid: error: ")
    assert "ESIM" in line
    assert not (tmp_path / "out").exists()
