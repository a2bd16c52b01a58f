from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.curve.summary_tables import curve_summary_tables
from probelight.reports.kit.table import Cell
from probelight.results.load import load_results
from tests.fixtures.curves import shares
from tests.fixtures.report import labels, named

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def test_summary_stands_among_the_papers_rows(tmp_path: Path, write_curve_runs: Write) -> None:
    own = {"model": "roberta-large", "train": "train of age_comparison"}
    write_curve_runs(tmp_path, shares, **own)
    write_curve_runs(tmp_path, shares, mode="linear", **own)
    (table,) = curve_summary_tables(load_results(tmp_path))
    assert table.name == "curve_summary_age_comparison"
    assert {len(row) for row in table.rows} == {len(table.columns)}
    ours, paper = named(table, 0), named(table, 1)
    assert ours["model"] == Cell("RoBERTa-L", "dev, rates MLP 0.001, linear 0.001")
    assert ours["zero-shot %"].text == "50.0"
    assert ours["MLP: WS %"].text == "90.0"
    assert ours["MLP: WS %"].detail
    assert ours["LangSense pert: clipped"].text == "0.0"
    assert ours["LangSense pert: unclipped"].text == "−5.0"
    assert ours["LangSense nolang: unclipped"].text == "+40.0"
    assert ours["points"] == Cell("all 7")
    assert paper["model"] == Cell("Talmor et al. 2020: RoBERTa-L", "table 2")
    assert paper["zero-shot %"] == Cell("98", "ours −48.0")
    assert paper["linear: MAX %"] == Cell("100", "ours −10.0")
    assert paper["LangSense nolang: clipped"] == Cell("51", "ours −11.0")
    others = [row[0].text for row in table.rows[2:]]
    assert others == [
        f"Talmor et al. 2020: {name}"
        for name in ("BERT-WWM", "BERT-L", "RoBERTa-B", "BERT-B", "MLM-baseline")
    ]
    assert "Train rows: train of age_comparison." in table.note


def test_records_carry_full_numbers_and_their_source(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, shares, model="roberta-large")
    (table,) = curve_summary_tables(load_results(tmp_path))
    by_score = {(r["source"], r["model"], r["mode"], r["score"]): r for r in table.records}
    ours = by_score["this report", "roberta-large", "mlp", "ws"]
    assert ours["value"] == pytest.approx(0.9)
    assert ours["difference"] == pytest.approx(0.9 - 0.98)
    unclipped = by_score["this report", "roberta-large", "mlp", "langsense_pert_unclipped"]
    assert unclipped["value"] == pytest.approx(-0.05)
    assert unclipped["paper"] is None
    source = "Talmor et al. 2020, table 2"
    assert by_score[source, "bert-base-uncased", "linear", "ws"]["value"] == 0.5
    assert by_score[source, "bert-base-uncased", "", "zero_shot"]["value"] == 0.49


def test_renormalised_sums_stand_beside_nothing(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, model="roberta-large", sizes=(0, 62, 125))
    (table,) = curve_summary_tables(load_results(tmp_path))
    ours, paper = named(table, 0), named(table, 1)
    assert ours["points"] == Cell("62, 125")
    assert paper["MLP: WS %"] == Cell("98")
    assert paper["zero-shot %"].detail == "ours −48.0"
    assert "Sums over N = 62, 125 are renormalised" in table.note


def test_probes_of_ones_own_have_no_paper(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, model="roberta-large", probe="age_small")
    (table,) = curve_summary_tables(load_results(tmp_path))
    assert len(table.rows) == 1
    assert "Talmor" not in table.note


def test_questions_have_a_table_without_zero_shot(tmp_path: Path, write_curve_runs: Write) -> None:
    more = {"model": "roberta-large", "chance": 1 / 3, "mode": "full"}
    write_curve_runs(tmp_path, shares, probe="property_conjunction", **more)
    write_curve_runs(tmp_path, shares, probe="age_comparison", **more)
    both = curve_summary_tables(load_results(tmp_path))
    names = ["curve_summary_age_comparison_full", "curve_summary_property_conjunction_full"]
    assert [table.name for table in both] == names
    # Figure 2D: the paper's table of this probe is of MC-MLM, so it does not stand here.
    assert len(both[0].rows) == 1
    assert labels(both[1])[:3] == ["model", "whole network: WS %", "whole network: MAX %"]
    assert named(both[1], 1)["whole network: MAX %"] == Cell("87", "ours +3.0")


def test_learning_rates_have_a_row_each(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.curve("p", "standard", {62: [50, 60]}, 100)
    other = [{**row, "learning_rate": 1e-4} for row in found]
    write_run(tmp_path, "a", [*found, *other])
    (table,) = curve_summary_tables(load_results(tmp_path))
    details = [row[0].detail for row in table.rows]
    assert details == ["dev, rates MLP 0.0001", "dev, rates MLP 0.001"]


def test_langsense_is_told_of_every_control(tmp_path: Path, write_curve_runs: Write) -> None:
    def lines(control: str, num_train: int, seed: int) -> float:
        return 0.9 if control == "standard" else 0.6

    controls = ("standard", "no_language", "word_salad")
    write_curve_runs(tmp_path, lines, controls=controls, sizes=(62, 125))
    [table] = curve_summary_tables(load_results(tmp_path))
    row = named(table, 0)
    assert row["LangSense nolang: unclipped"].text == "+30.0"
    assert row["LangSense word salad: clipped"].text == "30.0"
    assert row["LangSense word salad: unclipped"].text == "+30.0"
    assert row["LangSense pert: clipped"].text == "–"
    scores = [record["score"] for record in table.records if record["source"] == "this report"]
    assert {"langsense_word_salad", "langsense_word_salad_unclipped"} <= set(scores)
