"""The frames of numbers and of items, from runs that are made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from probelight.results import frames
from probelight.results.frames import ITEMS, NUMBERS, items_frame, results_frame
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.record import ModelSource
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.rows import LINE

ROWS = (
    Row(protocol="curve", model="m", probe="p", metric="accuracy", value=0.5, seed=3, num_items=8),
    Row(protocol="curve", metric="accuracy", value=0.25, subset=subsets.template("both"),
        ci_low=0.125, ci_high=0.5, learning_rate=1e-3),
)  # fmt: skip


SHOWN = ["run", "path", "place", "value", "control_of", "model_sha256", "subset", "subset_kind"]


def folder_of(tmp_path: Path, *lines: str) -> Results:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/predictions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = Run(protocol="zero_shot", model="m", probe="p", key="k", path="run")
    return Results("made", (run,), (), tmp_path)


def test_each_number_is_a_row_with_its_run() -> None:
    source = ModelSource(loaded_from="m", control_of="big")
    run = Run(
        protocol="curve", rows=ROWS, key="k1", path="a/runs/k1", source=source, model_sha256="abc"
    )
    grid = Run(protocol="grid", rows=(Row(metric="accuracy", value=1.0),), key="k2", path="runs/k2")
    frame = results_frame(Results("made", (run, grid)))
    assert list(frame) == list(NUMBERS)
    assert frame[SHOWN].to_numpy().tolist() == [
        ["k1", "a/runs/k1", 0, 0.5, "big", "abc", "", ""],
        ["k1", "a/runs/k1", 1, 0.25, "big", "abc", "template=both", "template"],
        ["k2", "runs/k2", 0, 1.0, "", "", "", ""],
    ]
    assert [part and part["name"] for part in frame.part] == [None, "both", None]


def test_whole_numbers_stay_whole_and_what_is_not_there_is_missing() -> None:
    run = Run(protocol="curve", rows=ROWS, key="k1", path="runs/k1")
    frame = results_frame(Results("made", (run,)))
    first, second = frame.to_dict("records")
    assert (first["seed"], first["num_items"], first["model"]) == (3, 8, "m")
    assert isinstance(first["seed"], int)
    assert frame[["seed", "num_items"]].isna().all(axis=1).tolist() == [False, True]
    assert frame.ci_low.isna().tolist() == [True, False]
    assert (second["ci_low"], second["learning_rate"], second["model"]) == (0.125, 1e-3, "")


def test_without_runs_the_columns_and_their_types_are_there() -> None:
    empty = Results("made", ())
    assert list(results_frame(empty)) == list(NUMBERS)
    assert {str(results_frame(empty)[name].dtype) for name in frames.WHOLE} == {"Int64"}
    assert str(results_frame(empty).value.dtype) == "float64"
    assert list(items_frame(empty)) == list(ITEMS)


def test_each_item_is_a_row_with_its_run(tmp_path: Path) -> None:
    results = folder_of(tmp_path, json.dumps(LINE), json.dumps({**LINE, "id": "m2", "correct": 0}))
    frame = items_frame(results)
    assert list(frame) == list(ITEMS)
    assert frame.id.tolist() == ["m1", "m2"]
    assert frame.correct.tolist() == [1.0, 0.0]
    of_run = frame[["run", "path", "protocol", "model", "probe"]].drop_duplicates()
    assert of_run.to_numpy().tolist() == [["k", "run", "zero_shot", "m", "p"]]
    assert frame.scores[0] == (0.5, None)


def test_damaged_predictions_are_named(tmp_path: Path) -> None:
    results = folder_of(tmp_path, json.dumps(LINE), json.dumps({**LINE, "answer": 7}))
    with pytest.raises(UnreadableResultError, match=r"run/predictions.jsonl:2"):
        items_frame(results)


def test_the_same_results_are_read_once() -> None:
    results = Results("made", ())
    assert results_frame(results) is results_frame(results)


def test_columns_of_other_rows_are_missing_where_no_row_is_of_the_place() -> None:
    frame = pd.DataFrame({"path": ["a", "a", "b"], "seed": [1, None, 1], "value": [3, 4, 5]})
    rows = pd.DataFrame({"path": ["a", "a"], "seed": [None, 1], "value": [6, 7], "more": [8, 9]})
    found = frames.with_columns(frame, rows, {"value": "other"}, ["path", "seed"])
    assert found.columns.tolist() == ["path", "seed", "value", "other"]
    assert found.other.tolist()[:2] == [7, 6]  # no seed is the same as no seed
    assert found.other.isna().tolist() == [False, False, True]
