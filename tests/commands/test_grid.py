"""The grids of predictions: their numbers, the keys of their jobs, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from probelight import cli
from probelight.builders.prediction_grids import age_grids
from probelight.commands.grid import grid_job, grid_matrix, grid_rows
from probelight.evaluation.scorers import model_row
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.results.load import load_results
from probelight.results.measured import Predictions
from probelight.results.run_folder import CommandFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from probelight.runs.settings import TrainerSettings
from tests.fixtures.rows import read_results

SMALL = ["--grid.first_age=18", "--grid.last_age=24", "--grid.first_year=1990"]
SMALL += ["--grid.last_year=1996", "--grid.step=3", "--trainer.progress_bar=false"]
MODEL = ModelSettings("somewhere/bert", kind="transformer")
GRID = age_grids(ages=(20, 30, 40), years=(1960, 1990))[0]


def test_rows_and_matrix_of_a_grid_worked_out_by_hand() -> None:
    # Pairs in order: (20,30) (20,40) (30,20) (30,40) (40,20) (40,30); right: y y o y o o.
    scores = [[1, 0], [0, 1], [-1, 0], [2, 0], [3, 0], [3, 0]]
    answers = Predictions("A", GRID.records, scores)
    rows = {
        row.metric: row
        for row in grid_rows(answers, GRID, model_row(ModelSettings(kind="transformer")))
    }
    assert rows["accuracy"].perturbation == "A"
    # Only for {20, 30} is "younger" likelier where it is right: 1 > -1, but -1 < 3 and 2 < 3.
    by_hand = {"accuracy": 3 / 6, "share_younger": 4 / 6, "share_older": 2 / 6}
    by_hand["order_accuracy"] = 1 / 3
    assert {name: rows[name].value for name in by_hand} == pytest.approx(by_hand)
    assert rows["order_accuracy"].num_items == 3
    matrix = grid_matrix(answers, GRID)
    assert matrix["values"] == [20, 30, 40]
    assert matrix["axes"] == ["AGE-1", "AGE-2"]
    assert matrix["prediction"] == [[None, 0, 1], [1, None, 0], [0, 0, None]]
    assert matrix["answer"] == [[None, 0, 0], [1, None, 0], [1, 1, None]]
    assert matrix["probability"][0][1] == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert matrix["probability"][1][0] == pytest.approx(1 / (1 + math.e), abs=1e-6)


def test_a_constant_output_says_both_words_half_the_time() -> None:
    answers = Predictions("A", GRID.records, [[-math.inf, -math.inf], *[[2.0, 2.0]] * 5])
    rows = {
        row.metric: row.value
        for row in grid_rows(answers, GRID, model_row(ModelSettings(kind="transformer")))
    }
    assert rows["accuracy"] == rows["order_accuracy"] == 0.5
    assert rows["share_younger"] == rows["share_older"] == 0.5
    assert rows["tied_share"] == 1.0
    matrix = grid_matrix(answers, GRID)
    assert matrix["prediction"] == [[None] * 3] * 3
    assert matrix["probability"] == [[None, 0.5, 0.5], [0.5, None, 0.5], [0.5, 0.5, None]]
    skipped = Predictions("A", GRID.records[:1], [[1000.0, -1000.0]])
    assert grid_matrix(skipped, GRID)["probability"][:2] == [[None, 1.0, None], [None] * 3]


def test_several_models_and_both_wordings(
    causal_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    causal = causal_folder("gpt2")
    command = ["grid", f"--output_dir={tmp_path}", *SMALL, "--random_weights=true"]
    command += [f"--models=dictionary-lm,{causal}", "--grid.panels=[A]"]
    assert cli.main([*command, "--grid.wordings=[paper, released]"]) == 0
    rows = read_results(tmp_path / "results.csv")
    modes = {"dictionary-lm": "zero_shot", causal.name: "causal_likelihood"}
    assert {row["probe"] for row in rows} == {"age_comparison"}
    assert {(r["model"], r["role"], r["mode"], r["subset"]) for r in rows} == {
        (f"{model}{weights}", role, mode, f"wording={wording}")
        for model, mode in modes.items()
        for weights, role in (("", "model"), (" (random weights)", "control"))
        for wording in ("paper", "released")
    }
    assert len({run.model_sha256 for run in load_results(tmp_path).runs}) == 4


TINY = "--model.name_or_path=TINY --model.multi_token"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--grid.first_age=30 --grid.last_age=20", "--grid.first_age 30"),
        ("--grid.first_year=1990 --grid.last_year=1995 --grid.step=10", "--grid.first_year 1990"),
        ("--models=esim", "ESIM"),
        (f"{TINY}=error", "younger"),
        (f"{TINY}=skip", "grid A: no items to score (6 were skipped"),
    ],
)
def test_what_makes_no_grid_is_refused(
    options: str, words: str, tmp_path: Path, tiny_model: Path, refused: Callable[..., str]
) -> None:
    extra = options.replace("TINY", str(tiny_model)).split()
    small = [] if "--grid" in options else SMALL
    code = cli.FAILURE if "TINY" in options else cli.USAGE_ERROR
    command = ["grid", f"--output_dir={tmp_path / 'out'}", "--grid.panels=[A]", *small, *extra]
    assert words in refused(command, code)


def test_sentences_that_changed_behind_the_plan_are_refused(tmp_path: Path) -> None:
    job = grid_job(MODEL, age_grids(ages=(20, 30))[0], TrainerSettings())
    spec = replace(job.spec, stems="0" * 64)
    run = CommandFolder(tmp_path, {}).run(spec.name, spec.to_config())
    with pytest.raises(
        UsageError, match=r"grid A \(paper wording\): changed since the run was planned"
    ):
        make_run(spec, run, RunContext())
