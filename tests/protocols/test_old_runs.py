"""Folders that the code of 07ea6b0 left, and keys that it gave: what is made of them today.

The folders are in tests/fixtures/old_runs: a zero-shot of questions and of masked sentences, a
curve, an inoculation, an audit, diagnostics, a comparison of the models of the first, a fit of a
tiny BERT.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight.io.package import current_model
from probelight.protocols import cli
from probelight.results.load import load_results
from tests.fixtures.checkout import ROOT

COMMANDS = ["questions", "zero_shot", "curve", "inoculate", "audit", "diagnose", "compared"]
ON_CPU = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]


@pytest.fixture
def old_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, in the current folder."""
    folder = tmp_path / "old_runs"
    shutil.copytree(ROOT / "tests" / "fixtures" / "old_runs", folder)
    monkeypatch.chdir(folder)
    return folder


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def in_result_file(folder: Path) -> list[dict[str, Any]]:
    [path] = folder.glob("runs/*/result.json")
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["rows"]
    return rows


@pytest.mark.parametrize("command", COMMANDS)
def test_every_row_of_an_old_result_file_is_read_as_it_is(old_runs: Path, command: str) -> None:
    files = list((old_runs / command).glob("runs/*/result.json"))
    written = [row for path in files for row in json.loads(path.read_text("utf-8"))["rows"]]
    read = load_results(old_runs / command)
    assert written
    assert Counter((r.metric, r.value, r.num_items, r.ci_low, r.ci_high) for r in read.rows) == (
        Counter(
            (r["metric"], r["value"], r.get("num_items"), r.get("ci_low"), r.get("ci_high"))
            for r in written
        )
    )


def test_a_page_of_old_runs_has_their_tables_and_numbers(old_runs: Path) -> None:
    assert cli.main(["report", *COMMANDS, "--output_dir=page"]) == 0
    assert "<html" in (old_runs / "page" / "report.html").read_text("utf-8")
    [inoculation] = table(old_runs / "page", "inoculation")
    assert inoculation["inoculation_cost"] == "0.125"
    shown = table(old_runs / "page", "zero_shot")
    found = {row["model"]: row["accuracy"] for row in shown if row["probe"] == "questions"}
    for path in (old_runs / "questions" / "runs").glob("*/result.json"):
        record = json.loads(path.read_text("utf-8"))
        [accuracy] = [row["value"] for row in record["rows"] if row["metric"] == "accuracy"]
        assert float(found[current_model(record["model"])]) == accuracy
    made = {path.stem for path in (old_runs / "page" / "tables").glob("*.csv")}
    assert made >= {
        *("audit", "audit_rules", "compared", "diagnostics_accuracy", "diagnostics_sensitivity"),
        *("inoculation", "learning_curve", "original_task", "zero_shot_ranks", "zero_shot_rules"),
    }


def test_a_comparison_of_old_runs_has_the_numbers_that_it_had(old_runs: Path) -> None:
    assert cli.main(["compare", "questions", "--output_dir=compared_again"]) == 0
    again = in_result_file(old_runs / "compared_again")
    before = in_result_file(old_runs / "compared")
    assert [row["metric"] for row in again] == [row["metric"] for row in before]
    for row, other in zip(again, before, strict=True):
        assert row["value"] == pytest.approx(other["value"], abs=1e-12)
        assert row.get("ci_low") == pytest.approx(other.get("ci_low"), abs=1e-12)


def test_an_old_command_finds_its_runs_complete(
    old_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data.path=items/questions.jsonl", "--data.setup=mc_qa"]
    models = ["--models=embedded,vec_similarity"]
    results = (old_runs / "questions").glob("runs/*/result.json")
    before = {path: path.stat().st_mtime_ns for path in results}
    assert cli.main(["zero-shot", *models, *data, "--output_dir=questions", *ON_CPU]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [
        "questions, dictionary-lm: complete",
        "questions, VecSimilarity (word_vectors): complete",
    ]
    results = (old_runs / "questions").glob("runs/*/result.json")
    assert {path: path.stat().st_mtime_ns for path in results} == before


def test_an_old_checkpoint_is_validated_under_its_old_config(old_runs: Path) -> None:
    """The config names classes as that code did, such as `lightning_modules.masked_choice`."""
    given = ["--config=fitted/config.yaml", "--ckpt_path=fitted/checkpoints/last.ckpt"]
    assert cli.main(["validate", *given, "--output_dir=validated"]) == 0
    with (old_runs / "validated" / "metrics.csv").open(encoding="utf-8") as file:
        scores = {row["metric"]: float(row["value"]) for row in csv.DictReader(file)}
    before = json.loads((old_runs / "fitted" / "result.json").read_text("utf-8"))["scores"]
    assert scores == {name: before[name] for name in ("val/accuracy", "val/probe_accuracy")}


def test_commands_plan_runs_under_the_keys_that_they_had(tmp_path: Path) -> None:
    """Computed by the code of 07ea6b0 on the probes that are shipped since.

    The counts of an audit (`giveaways`) alone are those of later code: they came to find a word of
    the question in an answer by its stem, and their key says so.
    """
    fixtures = ROOT / "tests" / "fixtures"
    shutil.copytree(fixtures / "run_keys", tmp_path / "inputs")
    program = [sys.executable, ROOT / "tests" / "protocols" / "planned_keys.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    made = subprocess.run([*program, tmp_path / "inputs"], env=environment, stdout=subprocess.PIPE)
    assert made.returncode == 0
    assert json.loads(made.stdout) == json.loads((fixtures / "run_keys.json").read_text("utf-8"))
