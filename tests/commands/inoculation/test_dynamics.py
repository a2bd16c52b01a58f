"""Training dynamics and forgetting events, by hand; other sets that are scored along."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from probelight.commands.inoculation.data import ScoredSet, Splits, Tasks
from probelight.commands.inoculation.rows import dynamics_lines, dynamics_rows, watched_items
from probelight.metrics.knowledge import knowledge_class
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.reports.items import _initially_visible, read_probes
from probelight.results.frames import items_frame
from probelight.results.load import load_results
from probelight.results.measured import Predictions
from probelight.results.row import Row
from tests.commands.inoculation.conftest import run
from tests.fixtures.rows import read_predictions, read_results

RIGHT, WRONG, TIE = [math.log(0.8), math.log(0.2)], [math.log(0.4), math.log(0.6)], [0.0, 0.0]


def record(name: str, index: int) -> Record:
    return Record(str(index), f"{name} {index}?", ("a", "b"), 0, {"source_set": name}, index)


def splits(name: str) -> Splits:
    data = ProbeData(ProbeConfig(name, "mc_qa", 2, 0.5), (), (), ())
    return Splits((), (), (), (), (data,))


def test_confidence_variability_and_events_by_hand() -> None:
    tasks = Tasks(splits("probe"), splits("original"))
    probe, original, dose = ([record(n, 1)] for n in ("probe", "original", "probe"))
    scores_before = {
        ScoredSet("selection", "probe"): Predictions("p", probe, [RIGHT]),
        ScoredSet("selection", "original"): Predictions("o", original, [WRONG]),
    }
    epochs = {
        1: {"dose": {0: WRONG}, "probe": {0: WRONG}, "original": {0: RIGHT}},
        2: {"dose": {0: RIGHT}, "probe": {0: RIGHT}, "original": {0: TIE}},
        3: {"dose": {0: TIE}, "probe": {0: WRONG}, "original": {0: WRONG}},
    }
    lines = dynamics_lines(tasks, dose, scores_before, epochs, chosen=2)
    assert [line.set for line in lines] == ["dose", "selection_probe", "selection_original"]
    first, _, third = lines
    assert first.scores == pytest.approx(RIGHT, abs=1e-6)  # of the chosen epoch
    assert first.confidence == pytest.approx((0.4 + 0.8 + 0.5) / 3, abs=1e-6)
    mean = 1.7 / 3
    squares = ((0.4 - mean) ** 2 + (0.8 - mean) ** 2 + (0.5 - mean) ** 2) / 3
    assert first.variability == pytest.approx(math.sqrt(squares), abs=1e-6)
    assert first.correctness == pytest.approx((0 + 1 + 0.5) / 3)
    # The dose is not looked at before: wrong, right, tie. The others begin with what was before.
    events = [line.forgetting_events for line in lines]
    assert events == [1, 2, 2]
    assert third.confidence is None
    rows = {row.metric: row for row in dynamics_rows(Row(), lines)}
    assert rows["dose_confidence"].value == first.confidence
    assert rows["original_forgetting_events"].value == 2
    assert rows["original_forgetting_events"].split == "selection"
    assert rows["probe_forgotten_share"].value == 1


def test_a_large_dose_is_watched_in_part() -> None:
    assert watched_items(500, 1040) == 254  # a tenth of 3 x 500 + 1040
    assert watched_items(100, 40) == 100  # small doses whole


@pytest.mark.thorough
def test_other_sets_are_scored_before_and_after(
    inoculation_config: dict[str, Any], tiny_probes: Path, tmp_path: Path
) -> None:
    config = dict(inoculation_config)
    extra_set = f"{tiny_probes / 'first.yaml'}:train"
    config["probe"] = {**config["probe"], "others": [extra_set]}
    assert run(config, tmp_path / "out", tmp_path) == 0
    lines = [
        line
        for line in read_predictions(tmp_path / "out", "inoculate-*")
        if line["set"] == "report_other_first:train"
    ]
    rows = {
        row["metric"]: float(row["value"])
        for row in read_results(tmp_path / "out" / "results.csv")
        if row["split"] == "report" and not row["subset"] and row["protocol"] == "inoculation"
    }
    assert len(lines) == 80
    lost = sum(line.get("before", 0.0) * (1 - line["correct"]) for line in lines)
    assert rows["other_first:train_lost"] == pytest.approx(lost)
    accuracy = fmean(line["correct"] for line in lines)
    assert rows["other_first:train_accuracy"] == pytest.approx(accuracy)
    results = load_results(tmp_path / "out")
    items = items_frame(results)
    names = items[items.set.str.startswith("report_other_first:train")].item
    assert names.str.startswith("first:train:").all()
    probes, _ = read_probes(results)
    sheets = [sheet.name for of in probes["first:train"].sheets.values() for sheet in of]
    assert any(name.endswith("/report_other_first:train") for name in sheets)
    # Shown first: the reported items after the dose and before, not those of the dose.
    [sheets_of_model] = probes["second"].sheets.values()
    first = [sheets_of_model[index].name for index in _initially_visible(sheets_of_model)]
    assert [name.rpartition("/")[2] for name in first] == ["report_probe", "report_probe_before"]
    hits = next((tmp_path / "out").glob("runs/inoculate-*/hits.json"))
    assert len(json.loads(hits.read_text())["other_first:train"]["choices"]) == 80


def test_another_set_is_there_once(
    inoculation_config: dict[str, Any], tiny_probes: Path, tmp_path: Path, capsys: Any
) -> None:
    config = dict(inoculation_config)
    entry = str(tiny_probes / "first.yaml")
    config["probe"] = {**config["probe"], "others": [f"{entry}:train", f"{entry}:train"]}
    assert run(config, tmp_path / "out", tmp_path) == 2
    assert "first.yaml:train" in capsys.readouterr().err
    config["probe"] |= {"others": [f"{entry}:tarin"]}
    assert run(config, tmp_path / "out", tmp_path) == 2
    assert "probe.others " in capsys.readouterr().err


@pytest.mark.thorough
def test_classes_come_from_the_other_phrasings_alone(
    inoculation_config: dict[str, Any], second_worded: Path, tmp_path: Path
) -> None:
    config = dict(inoculation_config)
    config["probe"] = {**config["probe"], "name": str(second_worded), "phrasings": ["all"]}
    assert run(config, tmp_path / "out", tmp_path) == 0
    [folder] = (tmp_path / "out").glob("runs/inoculate-*")
    saved = json.loads((folder / "before.json").read_text())
    lines = [
        line
        for line in read_predictions(tmp_path / "out", "inoculate-*")
        if line["set"] == "report_probe"
    ]
    scores = list(zip(saved["before_phrased_one"], saved["before_phrased_two"], strict=True))
    expected = [
        knowledge_class(of_item, line["answer"])
        for of_item, line in zip(scores, lines, strict=True)
    ]
    assert [line["known"] for line in lines] == expected
    rows = [
        r
        for r in read_results(tmp_path / "out" / "results.csv")
        if r["subset"].startswith("known=")
    ]
    for name in set(expected):
        of_class = {r["metric"]: r for r in rows if r["subset"] == f"known={name}"}
        members = [line for line, label in zip(lines, expected, strict=True) if label == name]
        assert float(of_class["class_share"]["value"]) == pytest.approx(len(members) / len(lines))
        accuracy = fmean(line["correct"] for line in members)
        assert float(of_class["probe_accuracy"]["value"]) == pytest.approx(accuracy)
        start = fmean(line.get("before", 0.0) for line in members)
        assert float(of_class["probe_accuracy_before"]["value"]) == pytest.approx(start)
