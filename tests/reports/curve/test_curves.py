from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from probelight.metrics.learning_curve import WEIGHTS
from probelight.reports.curve.comparisons import (
    curve_sentences,
    is_alike,
    rivals,
    standard_curves,
)
from probelight.reports.curve.curves import CurvePoint, ProbeCurve, curves, score, summed
from probelight.reports.curve.tables import curve_table, parts_table, summary_tables
from probelight.reports.numbers import Estimate
from probelight.reports.published import ScoreKey, published_scores
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.curves import levels, shares
from tests.fixtures.report import present, records
from tests.fixtures.results import SIZES, curve_rows, write_curve, write_run, zero_shot_rows


@pytest.fixture
def curve(demo_folder: Path) -> ProbeCurve:
    (only,) = curves(load_results(demo_folder))
    return only


def test_mean_over_seeds(curve: ProbeCurve) -> None:
    assert list(curve.means()) == [0, 62, 125, 250, 500]
    assert (curve.controls, curve.chance, curve.learning_rate) == (["no_language"], 0.5, 1e-3)
    point = curve.line()[62]
    assert [*point.rows.value] == [262 / 500, 281 / 500]
    assert point.mean == pytest.approx(0.543)
    assert point.num_items == 500
    # Without hits the interval is the mean of the seeds'.
    lows = point.rows.ci_low
    assert point.estimate.ci_low == pytest.approx(sum(lows) / 2)
    assert curve.num_seeds is None


def test_difference_is_paired_by_seed(curve: ProbeCurve) -> None:
    gap = present(curve.difference("no_language", 62))
    # Seeds 1 and 2: 262 - 249 = 13 and 281 - 262 = 19 of 500 items.
    assert gap.value == pytest.approx(16 / 500)
    assert gap.span == gap.of_seeds == pytest.approx((13 / 500, 19 / 500))
    assert gap.bounds == (None, None)
    single = present(curve.difference("no_language", 0))
    assert single.of_seeds == (pytest.approx(-7 / 500),)
    assert single.span == (None, None)


def test_only_shared_seeds_are_compared(tmp_path: Path) -> None:
    write_run(tmp_path, "a", curve_rows("p", "standard", {62: [50, 90]}, 100))
    write_run(tmp_path, "b", curve_rows("p", "no_language", {62: [40], 125: [40]}, 100))
    (only,) = curves(load_results(tmp_path))
    gap = present(only.difference("no_language", 62))
    assert gap.of_seeds == (pytest.approx(0.1),)
    assert only.difference("no_language", 125) is None
    assert only.chance is None


def test_intervals_are_over_items_and_seeds_where_hits_are_kept(tmp_path: Path) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.5 if control == "no_language" else 0.6 + 0.1 * (seed - 2)

    write_curve(tmp_path, shares, sizes=(62,), controls=("standard", "no_language"))
    (only,) = curves(load_results(tmp_path))
    measured = only.line()[62].estimate
    low, high = map(present, measured.bounds)
    # Items alone give 0.6 +- 0.09; three seeds 0.1 apart have a mean with a standard error of
    # 0.058, which is 0.25 with Student's quantile of 4.30 for two degrees of freedom.
    assert 0.4 < high - low < 0.5
    assert measured.value == pytest.approx(0.6)
    low, high = map(present, present(only.difference("no_language", 62)).bounds)
    assert low < 0.1 < high
    assert (only.majority, only.num_seeds) == (pytest.approx(0.52), 3)
    assert list(only.line()) == [62]


def test_learning_rates_and_modes_are_curves_of_their_own(tmp_path: Path) -> None:
    mlp = curve_rows("p", "standard", {0: [50], 62: [60]}, 100)
    other_rate = {**mlp[1], "learning_rate": 1e-4, "value": 0.7}
    write_run(tmp_path, "a", [*mlp, other_rate])
    write_run(tmp_path, "b", curve_rows("p", "standard", {62: [61]}, 100, mode="linear"))
    results = load_results(tmp_path)
    settings = [(curve.mode, curve.learning_rate, list(curve.means())) for curve in curves(results)]
    # The untrained point has no rate and belongs to both.
    assert settings == [("linear", 1e-3, [62]), ("mlp", 1e-4, [0, 62]), ("mlp", 1e-3, [0, 62])]
    [table] = summary_tables(results)
    rates = [row[1].detail for row in present(table).rows]
    assert rates == ["rate 0.0001", "rate 0.001", "rate 0.001"]


def test_other_train_rows_and_stages_are_curves_of_their_own(tmp_path: Path) -> None:
    same, lent = "train of p", "train of q, not the probe's own"
    for name, right, fields in (
        ("a", 60, {"train": same}),
        ("b", 80, {"train": lent}),
        ("c", 70, {"train": same, "first_stage": True}),
    ):
        [row] = curve_rows("p", "standard", {62: [right]}, 100)
        write_run(tmp_path / name, name, [row, {**row, "subset": subsets.template("t")}], **fields)
    results = load_results(tmp_path)
    by_train = curves(results)
    assert [(curve.means(), curve.where) for curve in by_train] == [
        ({62: 0.6}, f"dev: {same}"),
        ({62: 0.7}, f"dev: {same}, after a first stage"),
        ({62: 0.8}, f"dev: {lent}"),
    ]
    first, *rivals_of = standard_curves(results)
    assert rivals(first, rivals_of) == []
    parts_rows = present(parts_table(results))
    assert [record["trained"] for record in records(parts_rows)] == [0.6, 0.7, 0.8]


def test_what_a_scorer_said_is_n_0_of_each_curve_of_its_model(tmp_path: Path) -> None:
    for name, sizes, mode in (
        ("a", {0: [50]}, "causal_likelihood"),
        ("b", {62: [60]}, "mlp"),
        ("c", {62: [61]}, "linear"),
    ):
        [row] = curve_rows("p", "standard", sizes, 100, mode=mode)
        write_run(tmp_path, name, [row, {**row, "subset": subsets.template("t")}])
    alone = curve_rows("p", "standard", {0: [40]}, 100, mode="causal_likelihood", model="alone")
    write_run(tmp_path, "d", alone)
    results = load_results(tmp_path)
    by_model = {(curve.model, curve.mode): curve for curve in curves(results)}
    assert {key: curve.means() for key, curve in by_model.items()} == {
        ("alone", "causal_likelihood"): {0: 0.4},
        ("dictionary-lm", "linear"): {0: 0.5, 62: 0.61},
        ("dictionary-lm", "mlp"): {0: 0.5, 62: 0.6},
    }
    shown_modes = {(r["mode"], r["num_train"]) for r in records(present(curve_table(results)))}
    assert shown_modes == {("causal_likelihood", 0), ("linear", 62), ("mlp", 62)}
    by_part = present(parts_table(results))
    assert [(r["zero_shot"], r["trained"]) for r in records(by_part)] == [(0.5, 0.61), (0.5, 0.6)]


def test_points_are_summed_over_the_sizes_that_curves_share() -> None:
    """One seed, without hits, so that nothing has an interval."""

    def line(values: dict[int, float]) -> dict[int, CurvePoint]:
        return {n: CurvePoint(pd.DataFrame({"value": [value]})) for n, value in values.items()}

    standard_line = line({0: 0.5, 10: 0.95, 62: 0.6, 125: 0.9})
    points = {"standard": standard_line, "control": line({62: 0.5, 250: 0.7})}
    curve = ProbeCurve("p", "m", "mlp", "dev", "", False, "mc_mlm", 1e-3, points)
    standard, control = curve.line()[62], curve.line("control")[62]
    assert curve.scores[ScoreKey("zero_shot")] == Estimate(0.5)
    assert curve.line("other control") == {}
    assert summed([(0.5, standard), (-0.5, control)]).value == pytest.approx(0.05)
    assert standard.minus(control).value == pytest.approx(0.1)
    # Weights are those of the points that are there; N = 10 has none, but may be the best.
    first, second = WEIGHTS[62], WEIGHTS[125]
    weighted = (0.6 * first + 0.9 * second) / (first + second)
    assert curve.scores[WS] == Estimate(pytest.approx(weighted))
    assert curve.scores[ScoreKey("max", "mlp")] == Estimate(0.95)
    assert curve.lang_gap("control") == Estimate(pytest.approx(0.1))
    assert curve.lang_sense("other control") is None


# What is compared with what, and the paragraph.


ZERO_SHOT, NO_LANG = ScoreKey("zero_shot"), ScoreKey("langsense_nolang")
WS, MAX = ScoreKey("ws", "mlp"), ScoreKey("max", "mlp")


def beside_paper(curve: ProbeCurve, score: ScoreKey) -> float | None:
    """The paper's number of the same model, where it is of the same items and training."""
    scores = published_scores(curve.probe).get(curve.paper_model or "", {})
    return scores.get(score) if is_alike(curve, score) else None


def read(folder: Path) -> tuple[ProbeCurve, ...]:
    return standard_curves(load_results(folder))


@pytest.mark.thorough
def test_the_paper_stands_beside_the_same_model_and_points(tmp_path: Path) -> None:
    fields = {"probe": "age_comparison", "train": "train of age_comparison"}
    write_curve(tmp_path, shares, model="roberta-large", **fields)
    write_curve(tmp_path, shares, model="bert-base-uncased", **fields, sizes=(0, 62, 125))
    write_curve(tmp_path, shares, model="dictionary-lm", **fields)
    divided = {"split": "part of dev", "train": "grouped split of dev, share 0.6"}
    write_curve(tmp_path, shares, model="roberta-base", **divided)
    lent = "train of age_small, not the probe's own"
    write_curve(tmp_path, shares, model="bert-large-uncased", train=lent)
    by_model = {curve.model: curve for curve in read(tmp_path)}
    roberta = by_model["roberta-large"]
    assert (beside_paper(roberta, WS), beside_paper(roberta, MAX)) == (0.98, 1.0)
    assert beside_paper(roberta, NO_LANG) == 0.51
    few = by_model["bert-base-uncased"]
    assert (beside_paper(few, ZERO_SHOT), beside_paper(few, WS)) == (0.49, None)
    assert few.sizes == [62, 125]
    borrowed = by_model["bert-large-uncased"]
    assert (beside_paper(borrowed, ZERO_SHOT), beside_paper(borrowed, WS)) == (0.5, None)
    assert by_model["dictionary-lm"].paper_model is None
    assert beside_paper(by_model["roberta-base"], ZERO_SHOT) is None


def test_parts_of_a_set_and_other_stages_stand_beside_nothing(tmp_path: Path) -> None:
    more = {"model": "roberta-large", "train": "train of encyclopedic_composition"}
    composition = {**more, "probe": "encyclopedic_composition", "mode": "full"}
    write_curve(tmp_path / "facts first", shares, **composition, first_stage=True)
    write_curve(tmp_path / "at once", shares, **composition)
    left_out = {"counts": {"train": 4000, "evaluation": 110}}
    write_curve(tmp_path / "part", shares, model="roberta-large", **left_out)
    by_name = {name: read(tmp_path / name)[0] for name in ("facts first", "at once", "part")}
    assert beside_paper(by_name["facts first"], ScoreKey("ws", "full")) == 0.42
    assert beside_paper(by_name["at once"], ScoreKey("ws", "full")) is None
    assert beside_paper(by_name["part"], ZERO_SHOT) is None
    assert by_name["part"].num_groups == 60


def test_who_is_held_against_whom(tmp_path: Path) -> None:
    names = ["roberta-large", "roberta-large (random weights)", "MLM-baseline (word_vectors)"]
    for name in names:
        write_curve(tmp_path, shares, model=name)
    write_curve(tmp_path, shares, model=names[0], mode="linear")
    all_curves = read(tmp_path)
    model, linear, random, baseline = all_curves
    assert [c.role for c in (model, random, baseline)] == ["model", "control", "baseline"]
    assert [model.mode, linear.mode] == ["mlp", "linear"]
    assert rivals(model, all_curves) == [random, baseline]
    assert rivals(linear, all_curves) == []


def test_differences_pair_items_and_seeds(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, model="a")
    write_curve(tmp_path, lambda *args: shares(*args) - 0.1, model="b", sizes=(62, 125))
    write_curve(tmp_path, shares, model="c", num_items=60)
    first, second, third = read(tmp_path)
    gap = present(score("weighted_sum", first.line(), second.line()))
    assert gap.value == pytest.approx(0.1)
    # The same seeds and mostly the same items are right: much narrower than each curve's own.
    (low, high), whole = map(present, gap.bounds), second.scores[WS]
    assert high - low < 0.6 * ((whole.ci_high or 0) - (whole.ci_low or 0))
    assert score("zero_shot", first.line(), second.line()) is None
    best = present(score("maximum", first.line(), second.line()))
    assert best.value == pytest.approx(0.1)
    unpaired = present(score("weighted_sum", first.line(), third.line()))
    assert unpaired.ci_low is None


def test_langsense_stands_beside_the_papers_mode_and_whole_control(tmp_path: Path) -> None:
    fields = {"model": "roberta-large", "train": "train of age_comparison"}
    for mode in ("mlp", "linear", "full"):
        write_curve(tmp_path / mode, shares, mode=mode, **fields)
    by_mode = {mode: read(tmp_path / mode)[0] for mode in ("mlp", "linear", "full")}
    by_paper = {mode: beside_paper(curve, NO_LANG) for mode, curve in by_mode.items()}
    # The paper's table 2 has LangSense of the MLP alone.
    assert by_paper == {"mlp": 0.51, "linear": None, "full": None}
    assert beside_paper(by_mode["linear"], ScoreKey("ws", "linear")) == 0.97

    write_curve(tmp_path / "part", shares, sizes=(0, *SIZES[:-1]), **fields)
    few = ("standard", "perturbed_language")
    write_curve(tmp_path / "part", shares, sizes=SIZES[-1:], controls=few, **fields)
    (split_curve,) = read(tmp_path / "part")
    assert split_curve.lang_sense("no_language") is not None
    assert beside_paper(split_curve, NO_LANG) is None
    assert beside_paper(split_curve, ScoreKey("langsense_pert")) == 0.31
    assert beside_paper(split_curve, WS) == 0.98


def test_the_paragraph_names_what_was_known_and_learned(tmp_path: Path) -> None:
    sizes = {"sizes": (0, 62), "controls": ("standard", "no_language")}
    write_curve(tmp_path, levels(0.9, 0.5, 0.8), probe="known", **sizes)
    write_curve(tmp_path, levels(0.9, 0.5, 0.8), probe="known", mode="linear", **sizes)
    write_curve(tmp_path, levels(0.9, 0.5, 0.5), probe="new", **sizes)
    write_curve(tmp_path, levels(0.2, 0.5, 0.5), probe="wrong", **sizes)
    # A majority of 62% is within the interval of 63%; chance is below it.
    write_curve(tmp_path, levels(0.9, 0.9, 0.63), probe="frequent", **sizes, num_items=240)
    for path in tmp_path.glob("runs/curve-frequent*/result.json"):
        path.write_text(path.read_text().replace('"value": 0.52', '"value": 0.62'))
    random = {"model": "dictionary-lm (random weights)"}
    write_curve(tmp_path, levels(0.6, 0.5, 0.9), probe="new", **sizes, **random)
    known_text, learned_text = curve_sentences(load_results(tmp_path)).split(
        " With the most training examples, "
    )
    assert known_text == (
        "Before any training, dictionary-lm was no better than always giving the most frequent "
        "answer on frequent; above chance on known; not clearly above chance on new and wrong."
    )
    assert learned_text == (
        "dictionary-lm was above chance and not clearly different from its no language control on "
        "frequent; above chance and above its no language control on known and new; below chance "
        "and below its no language control on wrong."
    )
    # What a model knew is in the paragraph of its zero-shot runs.
    write_run(tmp_path, "zero", zero_shot_rows("other", 30, 60, 2))
    assert curve_sentences(load_results(tmp_path)).startswith("With the most training examples, ")


def test_the_paragraph_goes_by_all_seeds_where_there_is_no_interval(tmp_path: Path) -> None:
    for probe, controls in (("p", [52, 50]), ("q", [40, 41]), ("r", [40])):
        write_run(tmp_path, f"{probe}a", curve_rows(probe, "standard", {62: [51, 52]}, 100))
        write_run(tmp_path, f"{probe}b", curve_rows(probe, "no_language", {62: controls}, 100))
        write_run(tmp_path, f"{probe}c", zero_shot_rows(probe, 60, 100, 2))
    chance = "not clearly above chance and"
    assert curve_sentences(load_results(tmp_path)) == (
        f"With the most training examples, dictionary-lm was {chance} not clearly different from "
        f"its no language control on p; {chance} above its no language control on q; not clearly "
        "above chance on r."
    )


def test_the_paragraph_has_baselines_alone_and_settings_of_a_probe_apart(tmp_path: Path) -> None:
    rows = curve_rows("p", "standard", {62: [90, 90]}, 100, model="MLM-baseline (x)")
    slower = [{**row, "learning_rate": 1e-4} for row in rows]
    write_run(tmp_path, "a", [*rows, *slower])
    assert curve_sentences(load_results(tmp_path)) == (
        "With the most training examples, MLM-baseline (x) was not comparable with chance (no "
        "chance level or no interval) on p (mlp, dev, rate 0.0001) and p (mlp, dev, rate 0.001)."
    )
