from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.curve.lines import Line, entries_of, language_of, owner_of, points_text
from probelight.reports.curve.summary import published, summaries
from probelight.reports.kit.table import Cell
from probelight.reports.published import ScoreKey
from probelight.results.load import load_results
from tests.fixtures.curves import shares

Write = Callable[..., None]


def test_points_are_said_by_their_ends_where_all_are_there() -> None:
    assert points_text([62, 125, 250, 500, 1000, 2000, 4000]) == "all 7"
    assert points_text([62, 4000]) == "62, 4,000"
    assert points_text([]) == "–"


def test_a_model_has_its_modes_in_one_line(tmp_path: Path, write_curve_runs: Write) -> None:
    for mode in ("mlp", "linear"):
        write_curve_runs(tmp_path, shares, mode=mode, sizes=(0, 62))
    [entry] = entries_of(summaries(load_results(tmp_path)))
    assert list(entry) == ["mlp", "linear"]
    assert language_of(entry) is entry["mlp"]
    assert owner_of(entry, ScoreKey("ws", "linear")) is entry["linear"]
    assert owner_of(entry, ScoreKey("zero_shot")) is entry["mlp"]
    assert owner_of({}, ScoreKey("zero_shot")) is None
    line = Line(entry)
    assert (line.name, line.about) == ("embedded", "dev, rates MLP 0.001, linear 0.001")
    assert line.sizes == [62]


def test_a_line_says_how_choices_got_their_scores_without_training(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    for mode, sizes in (("causal_likelihood", (0,)), ("mlp", (62,)), ("linear", (62,))):
        write_curve_runs(tmp_path, shares, mode=mode, sizes=sizes)
    write_curve_runs(tmp_path, shares, model="untrained", mode="causal_likelihood", sizes=(0,))
    trained, alone = (Line(entry) for entry in entries_of(summaries(load_results(tmp_path))))
    rates = "rates MLP 0.001, linear 0.001"
    assert trained.about == f"dev, {rates}, zero-shot by causal likelihood"
    assert list(trained.entry) == ["mlp", "linear"]
    assert (alone.about, list(alone.entry)) == ("dev", ["causal_likelihood"])
    assert [line.cell(ScoreKey("zero_shot")).text for line in (trained, alone)] == ["50.0", "50.0"]


def test_a_line_of_the_paper_has_its_numbers(tmp_path: Path) -> None:
    [row] = [row for row in published("age_comparison") if row.model == "roberta-large"]
    line = Line({}, row)
    assert line.name == "Talmor et al. 2020: RoBERTa-L"
    assert line.cell(ScoreKey("zero_shot")) == Cell("98")
    assert line.cell(ScoreKey("ws", "full")) == Cell("–")
