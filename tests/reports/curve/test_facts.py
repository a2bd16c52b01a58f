from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.curve.facts import curves
from probelight.reports.curve.parts import curve_parts_table
from probelight.reports.curve.summary import peers, summaries
from probelight.reports.curve.tables import curve_table
from probelight.results.load import load_results
from tests.fixtures import subsets

WriteRun = Callable[..., Path]


def test_learning_rates_and_modes_are_curves_of_their_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    mlp = rows.curve("p", "standard", {0: [50], 62: [60]}, 100)
    other_rate = {**mlp[1], "learning_rate": 1e-4, "value": 0.7}
    write_run(tmp_path, "a", [*mlp, other_rate])
    write_run(tmp_path, "b", rows.curve("p", "standard", {62: [61]}, 100, mode="linear"))
    found = curves(load_results(tmp_path))
    settings = [(curve.mode, curve.learning_rate, curve.sizes) for curve in found]
    # The untrained point has no rate and belongs to both.
    assert settings == [("linear", 1e-3, [62]), ("mlp", 1e-4, [0, 62]), ("mlp", 1e-3, [0, 62])]


def test_train_accuracy_is_no_curve(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = [{**row, "split": "train"} for row in rows.curve("p", "standard", {62: [60]}, 100)]
    write_run(tmp_path, "a", found)
    assert curves(load_results(tmp_path)) == ()


def test_other_train_rows_and_stages_are_curves_of_their_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    own, lent = "train of p", "train of q, not the probe's own"
    for name, right, facts in (
        ("a", 60, {"train": own}),
        ("b", 80, {"train": lent}),
        ("c", 70, {"train": own, "first_stage": True}),
    ):
        [row] = rows.curve("p", "standard", {62: [right]}, 100)
        write_run(tmp_path / name, name, [row, {**row, "subset": subsets.template("t")}], **facts)
    results = load_results(tmp_path)
    found = curves(results)
    assert [(curve.means(), curve.where) for curve in found] == [
        ({62: 0.6}, f"dev: {own}"),
        ({62: 0.7}, f"dev: {own}, after a first stage"),
        ({62: 0.8}, f"dev: {lent}"),
    ]
    first, *others = summaries(results)
    assert peers(first, others) == []
    parts = curve_parts_table(results)
    assert parts is not None
    assert [record["trained"] for record in parts.records] == [0.6, 0.7, 0.8]


def test_what_a_scorer_said_is_n_0_of_each_curve_of_its_model(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name, sizes, mode in (
        ("a", {0: [50]}, "causal_likelihood"),
        ("b", {62: [60]}, "mlp"),
        ("c", {62: [61]}, "linear"),
    ):
        [row] = rows.curve("p", "standard", sizes, 100, mode=mode)
        write_run(tmp_path, name, [row, {**row, "subset": subsets.template("t")}])
    other = rows.curve("p", "standard", {0: [40]}, 100, mode="causal_likelihood", model="alone")
    write_run(tmp_path, "d", other)
    results = load_results(tmp_path)
    found = {(curve.model, curve.mode): curve for curve in curves(results)}
    assert {place: curve.means() for place, curve in found.items()} == {
        ("alone", "causal_likelihood"): {0: 0.4},
        ("embedded", "linear"): {0: 0.5, 62: 0.61},
        ("embedded", "mlp"): {0: 0.5, 62: 0.6},
    }
    table = curve_table(results)
    assert table is not None
    said = [(r["model"], r["mode"], r["num_train"]) for r in table.records]
    likely = "causal_likelihood"
    assert said == [
        ("alone", likely, 0),
        ("embedded", likely, 0),
        ("embedded", "linear", 62),
        ("embedded", likely, 0),
        ("embedded", "mlp", 62),
    ]
    parts = curve_parts_table(results)
    assert parts is not None
    assert [(r["zero_shot"], r["trained"]) for r in parts.records] == [(0.5, 0.61), (0.5, 0.6)]
