from __future__ import annotations

from pathlib import Path

import pytest

from probelight.reports.curve.curves import Curve
from probelight.reports.curve.scores import difference, is_alike, rivals, standard_curves, summary
from probelight.reports.published import ScoreKey, published_scores
from probelight.results.load import Results, load_results
from tests.fixtures.curves import levels, shares
from tests.fixtures.report import present
from tests.fixtures.results import SIZES, curve_rows, write_curve, write_run, zero_shot_rows

ZERO_SHOT, NO_LANG = ScoreKey("zero_shot"), ScoreKey("langsense_nolang")
WS, MAX = ScoreKey("ws", "mlp"), ScoreKey("max", "mlp")


def beside_paper(one: Curve, score: ScoreKey) -> float | None:
    """The paper's number of the same model, where it is of the same items and training."""
    scores = published_scores(one.probe).get(one.paper_model or "", {})
    return scores.get(score) if is_alike(one, score) else None


def read(folder: Path) -> tuple[Curve, ...]:
    return standard_curves(load_results(folder))


def test_the_paper_stands_beside_the_same_model_and_points(tmp_path: Path) -> None:
    own = {"probe": "age_comparison", "train": "train of age_comparison"}
    write_curve(tmp_path, shares, model="roberta-large", **own)
    write_curve(tmp_path, shares, model="bert-base-uncased", **own, sizes=(0, 62, 125))
    write_curve(tmp_path, shares, model="dictionary-lm", **own)
    divided = {"split": "part of dev", "train": "grouped split of dev, share 0.6"}
    write_curve(tmp_path, shares, model="roberta-base", **divided)
    lent = "train of age_small, not the probe's own"
    write_curve(tmp_path, shares, model="bert-large-uncased", train=lent)
    found = {curve.model: curve for curve in read(tmp_path)}
    whole = found["roberta-large"]
    assert (beside_paper(whole, WS), beside_paper(whole, MAX)) == (0.98, 1.0)
    assert beside_paper(whole, NO_LANG) == 0.51
    few = found["bert-base-uncased"]
    assert (beside_paper(few, ZERO_SHOT), beside_paper(few, WS)) == (0.49, None)
    assert few.sizes == [62, 125]
    borrowed = found["bert-large-uncased"]
    assert (beside_paper(borrowed, ZERO_SHOT), beside_paper(borrowed, WS)) == (0.5, None)
    assert found["dictionary-lm"].paper_model is None
    assert beside_paper(found["roberta-base"], ZERO_SHOT) is None


def test_parts_of_a_set_and_other_stages_stand_beside_nothing(tmp_path: Path) -> None:
    more = {"model": "roberta-large", "train": "train of encyclopedic_composition"}
    composition = {**more, "probe": "encyclopedic_composition", "mode": "full"}
    write_curve(tmp_path / "facts first", shares, **composition, first_stage=True)
    write_curve(tmp_path / "at once", shares, **composition)
    left_out = {"counts": {"train": 4000, "evaluation": 110}}
    write_curve(tmp_path / "part", shares, model="roberta-large", **left_out)
    found = {name: read(tmp_path / name)[0] for name in ("facts first", "at once", "part")}
    assert beside_paper(found["facts first"], ScoreKey("ws", "full")) == 0.42
    assert beside_paper(found["at once"], ScoreKey("ws", "full")) is None
    assert beside_paper(found["part"], ZERO_SHOT) is None
    assert found["part"].num_groups == 60


def test_who_is_held_against_whom(tmp_path: Path) -> None:
    names = ["roberta-large", "roberta-large (random weights)", "MLM-baseline (word_vectors)"]
    for name in names:
        write_curve(tmp_path, shares, model=name)
    write_curve(tmp_path, shares, model=names[0], mode="linear")
    found = read(tmp_path)
    model, linear, random, baseline = found
    assert [one.role for one in (model, random, baseline)] == ["model", "control", "baseline"]
    assert [model.mode, linear.mode] == ["mlp", "linear"]
    assert rivals(model, found) == [random, baseline]
    assert rivals(linear, found) == []


def test_differences_pair_items_and_seeds(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, model="a")
    write_curve(tmp_path, lambda *place: shares(*place) - 0.1, model="b", sizes=(62, 125))
    write_curve(tmp_path, shares, model="c", num_items=60)
    one, other, third = read(tmp_path)
    gap = present(difference("weighted_sum", one, other))
    assert gap.value == pytest.approx(0.1)
    # The same seeds and mostly the same items are right: much narrower than each curve's own.
    (low, high), own = map(present, gap.bounds), other.scores[WS]
    assert high - low < 0.6 * ((own.ci_high or 0) - (own.ci_low or 0))
    assert difference("zero_shot", one, other) is None
    best = present(difference("maximum", one, other))
    assert best.value == pytest.approx(0.1)
    unpaired = present(difference("weighted_sum", one, third))
    assert unpaired.ci_low is None


def test_langsense_stands_beside_the_papers_mode_and_whole_control(tmp_path: Path) -> None:
    own = {"model": "roberta-large", "train": "train of age_comparison"}
    for mode in ("mlp", "linear", "full"):
        write_curve(tmp_path / mode, shares, mode=mode, **own)
    found = {mode: read(tmp_path / mode)[0] for mode in ("mlp", "linear", "full")}
    beside = {mode: beside_paper(one, NO_LANG) for mode, one in found.items()}
    # The paper's table 2 has LangSense of the MLP alone.
    assert beside == {"mlp": 0.51, "linear": None, "full": None}
    assert beside_paper(found["linear"], ScoreKey("ws", "linear")) == 0.97

    write_curve(tmp_path / "part", shares, sizes=(0, *SIZES[:-1]), **own)
    few = ("standard", "perturbed_language")
    write_curve(tmp_path / "part", shares, sizes=SIZES[-1:], controls=few, **own)
    (part,) = read(tmp_path / "part")
    assert part.lang_sense("no_language") is not None
    assert beside_paper(part, NO_LANG) is None
    assert beside_paper(part, ScoreKey("langsense_pert")) == 0.31
    assert beside_paper(part, WS) == 0.98


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
    before, after = summary(load_results(tmp_path)).split(" At its largest N, ")
    assert before == (
        "Before any training, dictionary-lm was no better than always giving the most frequent "
        "answer on frequent; above chance on known; not distinguishable from chance on new and "
        "wrong."
    )
    assert after == (
        "dictionary-lm was above chance and not distinguishable from its no language control on "
        "frequent; above chance and above its no language control on known and new; below chance "
        "and below its no language control on wrong."
    )
    # What a model knew is in the paragraph of its zero-shot runs.
    write_run(tmp_path, "zero", zero_shot_rows("other", 30, 60, 2))
    assert summary(load_results(tmp_path)).startswith("At its largest N, ")


def test_the_paragraph_goes_by_all_seeds_where_there_is_no_interval(tmp_path: Path) -> None:
    for probe, controls in (("p", [52, 50]), ("q", [40, 41]), ("r", [40])):
        write_run(tmp_path, f"{probe}a", curve_rows(probe, "standard", {62: [51, 52]}, 100))
        write_run(tmp_path, f"{probe}b", curve_rows(probe, "no_language", {62: controls}, 100))
        write_run(tmp_path, f"{probe}c", zero_shot_rows(probe, 60, 100, 2))
    chance = "not distinguishable from chance and"
    assert summary(load_results(tmp_path)) == (
        f"At its largest N, dictionary-lm was {chance} not distinguishable from its no language "
        f"control on p; {chance} above its no language control on q; not distinguishable from "
        "chance on r."
    )


def test_the_paragraph_has_baselines_alone_and_settings_of_a_probe_apart(tmp_path: Path) -> None:
    found = curve_rows("p", "standard", {62: [90, 90]}, 100, model="MLM-baseline (x)")
    other = [{**row, "learning_rate": 1e-4} for row in found]
    write_run(tmp_path, "a", [*found, *other])
    assert summary(load_results(tmp_path)) == (
        "At its largest N, MLM-baseline (x) was without a chance level or an interval to compare "
        "with on p (mlp, dev, rate 0.0001) and p (mlp, dev, rate 0.001)."
    )


def test_a_folder_without_curves_has_no_paragraph() -> None:
    assert summary(Results("empty", ())) == ""
