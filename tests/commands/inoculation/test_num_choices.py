"""Questions with fewer than five choices: scored as they are, or padded as the paper has it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml

from probelight import cli
from probelight.commands.inoculation.data import Splits
from probelight.commands.inoculation.rows import cost_interpretable
from probelight.commands.inoculation.runs import inoculation_jobs
from probelight.commands.inoculation.settings import Setting, Subject
from probelight.commands.inoculation.sweep import SweepGrid
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import HEAD_SETTINGS
from probelight.probes.catalog import ProbeConfig
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import load_results
from probelight.results.measured import Predictions
from tests.commands.inoculation.conftest import run, run_context
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.fixtures.tiny import COLOURS

MIXED = (2, 3, 4, 5)
LONG = " ".join(["w1"] * 40)  # more than the tiny model's 32 tokens


def questions(name: str, num_items: int, counts: tuple[int, ...], seed: int) -> list[Record]:
    rng = random.Random(seed)
    records = []
    for i in range(num_items):
        choices = rng.sample(COLOURS, counts[i % len(counts)])
        stem = f"what {name} w{i % 40} is the colour {i} {LONG if i % 2 else ''}"
        records.append(Record(f"{name}{seed}-{i}", stem, tuple(choices), rng.randrange(2)))
    return records


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """An original task with two to five choices, and own files of a probe with four."""
    for split, num_items, seed in (("train", 80, 1), ("test", 24, 2)):
        write_ai2(tmp_path / f"mixed-{split}.jsonl", questions("mixed", num_items, MIXED, seed))
        write_ai2(tmp_path / f"four-{split}.jsonl", questions("four", num_items, (4,), seed + 2))
    config = {
        "setup": "mc_qa",
        "num_choices": 5,
        "chance": 0.3208,
        "chance_note": "two to five choices",
        "files": {split: f"mixed-{split}.jsonl" for split in ("train", "test")},
    }
    (tmp_path / "mixed.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def inoculate(config: dict[str, Any], folder: Path, num_choices: int | None) -> Path:
    task = {"sets": [f"{folder}/mixed.yaml"], "report_sets": [f"{folder}/mixed.yaml"], "epochs": 1}
    options = {} if num_choices is None else {"num_choices": num_choices}
    files = {split: f"{folder}/four-{split}.jsonl" for split in ("train", "test")}
    changed = {
        "original": {**config["original"], **task, **options},
        "probe": {"selection_items": 20},
        "data": {**files, "setup": "mc_qa"},
        "epochs": 1,
    }
    assert run({**config, **changed}, folder / "out", folder) == 0
    return folder / "out"


def score_alone(out: Path, folder: Path, run: str = "original") -> Path:
    """Where `zero-shot` scores the probe with the model that a run of an inoculation has left."""
    [model] = out.glob(f"runs/{run}-*/checkpoints/best")
    command = ["zero-shot", f"--data.path={folder}/four-test.jsonl", "--data.setup=mc_qa"]
    command += [f"--model.name_or_path={model}", "--trainer.progress_bar=false"]
    assert cli.main([*command, f"--output_dir={folder / run}"]) == 0
    return folder / run


def assert_same_scores(out: Path, alone: Path, reported: str) -> None:
    rows = read_predictions(out, "inoculate-*")
    by_id = {row["id"]: row["scores"] for row in rows if row["set"] == reported}
    again = {row["id"]: row["scores"] for row in read_predictions(alone)}
    assert by_id.keys() == again.keys()
    for item, scores in by_id.items():
        assert again[item] == pytest.approx(scores, abs=1e-5)


def levels(out: Path) -> dict[str, float]:
    rows = read_results(out / "results.csv")
    prefixes = ("chance", "floor")
    return {
        row["metric"]: float(row["value"])
        for row in rows
        if row["metric"].startswith(prefixes) and not row["subset"] and row["split"] != "selection"
    }


@pytest.mark.thorough
def test_every_question_is_scored_with_its_distinct_choices(
    inoculation_config: dict[str, Any], mixed: Path
) -> None:
    out = inoculate(inoculation_config, mixed, None)
    rows = [row for row in read_predictions(out, "inoculate-*") if row["set"].startswith("report")]
    choices = {record.id: record.choices for record in questions("mixed", 24, MIXED, 2)}
    choices |= {record.id: record.choices for record in questions("four", 24, (4,), 4)}
    assert len(rows) == 4 * 24
    for row in rows:
        assert tuple(row["choices"]) == choices[row["id"]]
        assert len(row["scores"]) == len(choices[row["id"]])
    chance = fmean((1 / 2, 1 / 3, 1 / 4, 1 / 5))  # of the original task, as many of each
    assert levels(out) == {
        "chance": pytest.approx(chance),
        "chance_original": pytest.approx(chance),
        "chance_probe": 0.25,
    }
    for head in out.glob(f"runs/*/checkpoints/best/{HEAD_SETTINGS}"):
        assert json.loads(head.read_text())["num_choices"] is None
    # What was cut is said: half of the questions are longer than the model takes.
    notices = read_result(out, "inoculate-*")["notices"]
    cut = (
        "12 of 24 questions were cut to 32 tokens per pair, the longer of question and answer first"
    )
    assert f"report_probe: {cut}" in notices
    assert any(n.startswith("training items: ") and "were cut to 32 tokens" in n for n in notices)
    alone = score_alone(out, mixed)
    assert levels(alone) == {"chance": 0.25}
    assert_same_scores(out, alone, "report_probe_before")


@pytest.mark.thorough
def test_empty_choices_compete_where_they_are_asked_for(
    inoculation_config: dict[str, Any], mixed: Path
) -> None:
    out = inoculate(inoculation_config, mixed, 5)
    assert {len(row["scores"]) for row in read_predictions(out, "inoculate-*")} == {5}
    floor = pytest.approx(fmean((1 / 2, 1 / 3, 1 / 4, 1 / 5)))
    expected = {"chance": 0.2, "chance_original": 0.2, "chance_probe": 0.2}
    expected |= {"floor": floor, "floor_original": floor, "floor_probe": 0.25}
    assert levels(out) == {name: pytest.approx(value) for name, value in expected.items()}
    notice = (
        "report_probe: 24 of 24 questions have fewer than 5 choices and were filled up "
        "with empty ones, which compete (num_choices 5): chance is 20.0% among all choices, "
        "25.0% among the real ones"
    )
    assert notice in read_result(out, "inoculate-*")["notices"]
    # The models say of themselves that they are scored so.
    for name, reported in (("inoculate", "report_probe"), ("original", "report_probe_before")):
        alone = score_alone(out, mixed, name)
        assert levels(alone) == {"chance": pytest.approx(0.2), "floor": 0.25}
        assert_same_scores(out, alone, reported)
    [entry] = zero_shots(load_results(alone)).itertuples()
    assert (entry.chance, entry.floor) == (pytest.approx(0.2), 0.25)


def test_a_checkpoint_is_asked_as_it_was_saved(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    settings = {"format": 1, "head": "mlp", "num_choices": 6, "max_length": 32}
    (tmp_path / HEAD_SETTINGS).write_text(json.dumps(settings))
    (tmp_path / "model.safetensors").touch()
    task = replace(grid.originals["colours"], checkpoint=str(tmp_path))
    subject = Subject(grid.models["tiny"], task, grid.rows[0].probe)
    setting = Setting(8, "none", 0)
    [job] = inoculation_jobs(subject, [setting], run_context(mirror))
    assert job.spec.subject.original.num_choices == 6
    shorter = replace(subject, model=replace(subject.model, max_length=24))
    fewer = replace(subject, original=replace(task, num_choices=5))
    for variant, message in (
        (shorter, "was saved with max_length 32, so max_length=24 does not fit"),
        (fewer, f"{tmp_path} was saved with num_choices 6, so num_choices=5 does not fit"),
    ):
        with pytest.raises(PretrainedError, match=message):
            inoculation_jobs(variant, [setting], run_context(mirror))


def test_the_floor_of_a_cost_is_that_of_the_real_choices() -> None:
    """Of 1,000 questions with four choices and an empty one 240 are right: above 1/5 alone."""
    records = [Record(str(i), f"{i}?", ("a", "b", "c", "d"), 0) for i in range(1000)]
    records = [replace(record, meta={"source_set": "p"}) for record in records]
    data = ProbeData(ProbeConfig("p", "mc_qa", 4, 0.25), tuple(records), (), ())
    splits = Splits((), (), tuple(records), (), (data,))
    right, empty = [1.0, 0, 0, 0, 0], [0.0, 0, 0, 0, 1]
    output = Predictions("p", records, [right] * 240 + [empty] * 760)
    assert (output.chance, output.floor, output.accuracy) == (pytest.approx(0.2), 0.25, 0.24)
    assert not cost_interpretable(splits, output)
    assert cost_interpretable(splits, replace(output, scores=[right] * 300 + [empty] * 700))
