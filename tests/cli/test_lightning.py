from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from probelight import cli
from probelight.cli.lightning import check_options, validation_rows
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import read_metrics
from tests.fixtures.checkout import ROOT
from tests.fixtures.tiny import Refused

CONFIG = ROOT / "configs" / "experiment" / "fit_masked_choice.yaml"
QUICK = ["--trainer.accelerator=cpu", "--data.num_train=64", "--trainer.enable_progress_bar=true"]


def command(name: str, folder: Path, *more: str) -> list[str]:
    return [name, f"--config={CONFIG}", f"--output_dir={folder}", *QUICK, *more]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit") / "age"
    assert cli.main(command("fit", folder)) == 0
    return folder


@pytest.mark.thorough
def test_a_complete_fit_is_left_alone_and_one_without_its_result_leaves_the_same_again(
    fitted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics, record = (fitted / "metrics.csv").read_text(), RunRecord.read(fitted / "result.json")
    assert cli.main(command("fit", fitted)) == 0
    assert "complete" in capsys.readouterr().out
    assert (fitted / "metrics.csv").read_text() == metrics
    (fitted / "result.json").unlink()
    assert cli.main(command("fit", fitted)) == 0
    again = RunRecord.read(fitted / "result.json")
    assert (again.rows, again.facts, again.key) == (record.rows, record.facts, record.key)
    assert again.model_sha256 == record.model_sha256


def test_the_result_is_a_record_with_the_last_and_the_best_validation(fitted: Path) -> None:
    record = RunRecord.read(fitted / "result.json")
    assert record.facts["global_step"] == 8  # 64 items, batches of 16, two epochs
    assert (record.model, record.probe) == ("MaskedChoice dictionary-lm", "age_small")
    assert record.seeds == (0,)
    assert len(record.data) == 2  # train and dev
    by_metric = {(row.metric, row.extra): (row.value, row.epoch) for row in record.rows}
    metrics = read_metrics(fitted / "metrics.csv")
    first, last = [(v, int(epoch) + 1) for _, epoch, name, v in metrics if name == "val/accuracy"]
    assert by_metric["accuracy", "last"] == last
    assert by_metric["accuracy", "best"] == max(first, last, key=itemgetter(0))


@pytest.mark.thorough
def test_products_in_lower_precision_make_a_run_of_their_own(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    step = MaskedChoice.training_step

    def watched(self: MaskedChoice, *arguments: Any) -> torch.Tensor:
        seen.add(torch.get_float32_matmul_precision())
        return step(self, *arguments)

    monkeypatch.setattr(MaskedChoice, "training_step", watched)
    assert cli.main(command("fit", tmp_path, "--matmul_precision=high")) == 0
    assert seen == {"high"}
    assert torch.get_float32_matmul_precision() == "highest"
    keys = [RunRecord.read(folder / "result.json").key for folder in (fitted, tmp_path)]
    assert keys[0] != keys[1]


def test_a_report_shows_what_a_fit_scored(fitted: Path, tmp_path: Path) -> None:
    assert cli.main(["report", str(fitted), f"--output_dir={tmp_path}"]) == 0
    table = (tmp_path / "tables" / "fits.csv").read_text().splitlines()
    assert table[0].startswith("model,")
    assert len(table) == 3  # accuracy, probe_accuracy
    assert "Validation metrics of each fit" in (tmp_path / "report.html").read_text()


@pytest.mark.thorough
def test_a_damaged_state_is_said_once_and_put_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "checkpoints" / "last.ckpt"
    state.parent.mkdir()
    state.write_bytes(b"garbage")
    assert cli.main(command("fit", tmp_path)) == 0
    assert capsys.readouterr().out.count(f"{state}: not a readable training state") == 1
    assert state.with_name("last.ckpt.unreadable").read_bytes() == b"garbage"


def test_predictions_are_those_that_validation_counts(fitted: Path, tmp_path: Path) -> None:
    state = f"--ckpt_path={fitted / 'checkpoints' / 'last.ckpt'}"
    assert cli.main(command("predict", tmp_path, state)) == 0
    lines = (tmp_path / "predictions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 150
    result = json.loads((fitted / "result.json").read_text())
    share = sum(row["correct"] for row in rows) / len(rows)
    assert share == pytest.approx(result["facts"]["scores"]["val/accuracy"])


def test_a_model_of_another_kind_is_refused_in_one_line(
    curve_lm: Callable[[str], Path], refused: Refused, tmp_path: Path
) -> None:
    model = curve_lm("gpt2")
    arguments = command("fit", tmp_path / "out", f"--model.model_name_or_path={model}")
    line = refused(arguments, cli.FAILURE)
    assert line.startswith(f"train.py fit: failed: {model}: gpt2 (GPT2Config) is a causal")
    assert "Subtypes" not in line


def test_what_is_no_state_is_refused_in_one_line(refused: Refused, tmp_path: Path) -> None:
    state, out = tmp_path / "mine.ckpt", tmp_path / "out"
    state.write_bytes(b"no state")
    line = refused(command("fit", out, f"--ckpt_path={state}"), cli.FAILURE)
    assert f"{state}: not a readable training state" in line
    out.mkdir()
    os.mkfifo(out / "config.yaml")
    line = refused(command("fit", out), cli.FAILURE)
    assert f"path already exists: '{out / 'config.yaml'}'" in line


@pytest.mark.parametrize(
    "settings",
    [
        {"trainer": {"max_epochs": -1, "max_steps": -1, "devices": -1, "num_sanity_val_steps": -1}},
        {"trainer": {"devices": "auto", "limit_val_batches": 0.25, "gradient_clip_val": None}},
        {"trainer": {"devices": [0, 1], "min_epochs": None, "val_check_interval": 0.5}},
        {"trainer": None, "seed_everything": True, "checkpoint_every": 1},
    ],
)
def test_what_lightning_takes_is_taken(settings: dict[str, Any]) -> None:
    check_options(settings, "--{}".format)


SMALL = "--trainer.max_epochs=1 --data.num_train=32 --trainer.limit_val_batches=1"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options", "batch_size", "decay"),
    [("fit_mlm_baseline", "", 16, 0.1), ("fit_esim", "--model.init_args.hidden_size=8", 32, None)],
)
def test_fit_with_the_authors_settings(
    name: str, options: str, batch_size: int, decay: float | None, tmp_path: Path
) -> None:
    path = ROOT / "configs" / "experiment" / f"{name}.yaml"
    command = ["fit", f"--config={path}", f"--output_dir={tmp_path}", "--trainer.accelerator=cpu"]
    assert cli.main([*command, *SMALL.split(), *options.split()]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert 0 <= result["facts"]["scores"]["val/accuracy"] <= 1
    ran = yaml.safe_load((tmp_path / "config.yaml").read_text())
    [stop] = ran["trainer"]["callbacks"]
    assert stop["class_path"].endswith("EarlyStopping")
    assert (stop["init_args"]["patience"], stop["init_args"]["monitor"]) == (10, "val/accuracy")
    config = yaml.safe_load(path.read_text())
    model = config["model"]["init_args"]
    assert (model["learning_rate"], model["max_grad_norm"]) == (4e-4, 10.0)
    assert model.get("weight_decay") == decay
    assert config["data"]["init_args"]["batch_size"] == batch_size
    assert config["trainer"]["max_epochs"] == 75


LOGGED = [
    (3, "0", "val/accuracy", 0.7),
    (3, "0", "val/loss", 0.4),
    (3, "0", "val/f1", 0.1),
    (4, "1", "train/loss", 0.2),
    (7, "1", "val/accuracy", 0.7),
    (7, "1", "val/loss", 0.3),
    (11, "2", "val/accuracy", 0.6),
    (11, "2", "val/loss", 0.5),
]


def test_each_metric_of_the_validation_has_its_last_and_its_best_value() -> None:
    scores = {"val/accuracy": 0.6, "val/loss": 0.5, "val/f1": 0.2, "train/loss": 0.2}
    rows = list(validation_rows(Row(protocol="fit", split="val"), scores, LOGGED))
    assert [(row.metric, row.extra, row.value, row.epoch) for row in rows] == [
        ("accuracy", "last", 0.6, 3),
        ("accuracy", "best", 0.7, 1),  # the first of equal ones
        ("loss", "last", 0.5, 3),
        ("loss", "best", 0.3, 2),
        ("f1", "last", 0.2, 1),  # nobody knows which value is better
    ]
    assert {row.split for row in rows} == {"val"}
    # Without a log there is the last value alone, and no NaN.
    [row] = validation_rows(Row(), {"val/accuracy": 0.5, "val/loss": math.nan}, ())
    assert (row.metric, row.extra, row.value, row.epoch) == ("accuracy", "last", 0.5, None)
