from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import ConfigError
from probelight.reports.curve.comparisons import (
    MedalRule,
    judgements,
    medals_table,
    not_judged_sentence,
    read_rule,
)
from probelight.reports.curve.figures import control_figures, models_figure
from probelight.reports.curve.tables import against_table, curve_table, parts_table, summary_tables
from probelight.reports.sections import filled_sections, printed
from probelight.reports.table import Cell, Table
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.curves import levels, shares
from tests.fixtures.report import labels, named, present, records, texts_of
from tests.fixtures.results import SIZES, curve_rows, write_curve, write_run


def summary_table(folder: Path) -> Table:
    [table] = summary_tables(load_results(folder))
    return present(table)


def test_a_summary_by_hand(tmp_path: Path) -> None:
    fields = {"model": "roberta-large", "train": "train of age_comparison"}
    write_curve(tmp_path, shares, **fields)
    write_curve(tmp_path, shares, mode="linear", **fields)
    table = summary_table(tmp_path)
    assert table.name == "curve_summary_age_comparison"
    assert {len(row) for row in table.rows} == {len(table.columns)}
    row = table.rows[0]
    assert row[:3] == (Cell("RoBERTa-L", "dev"), Cell("mlp", "rate 0.001"), Cell("all 7"))
    zero_shot, ws, best = ("50.0", "90.0", "90.0")
    senses = ["0.0", "−5.0", "40.0", "+40.0"]  # perturbed, no language; clipped, unclipped
    assert [cell.text for cell in row[3:]] == [zero_shot, ws, best, *senses]
    assert row[4].detail
    assert "Training examples: train of age_comparison." in table.note
    by_score = {(r["mode"], r["score"]): r for r in records(table)}
    # Three seeds 0.05 apart: the standard error of their mean is 0.0289, Student's quantile 4.30.
    assert 0.22 < by_score["mlp", "ws"]["ci_high"] - by_score["mlp", "ws"]["ci_low"] < 0.28
    gap = by_score["mlp", "langsense_pert_unclipped"]
    assert gap["value"] == pytest.approx(-0.05)
    assert gap["ci_low"] < -0.05 < gap["ci_high"]
    assert by_score["linear", "zero_shot"]["value"] == 0.5


def test_the_terminal_has_the_papers_table_with_ours(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, model="roberta-large", train="train of age_comparison")
    names = [table.name for table in printed("curve", load_results(tmp_path))]
    assert names == ["curve_summary_age_comparison", "paper_talmor2020_table_2"]


def test_questions_have_a_table_without_zero_shot(tmp_path: Path) -> None:
    more: Any = {"model": "roberta-large", "chance": 1 / 3, "mode": "full", "sizes": SIZES}
    write_curve(tmp_path, shares, probe="property_conjunction", **more)
    write_curve(tmp_path, shares, probe="age_comparison", **more)
    summaries = summary_tables(load_results(tmp_path))
    names = ["curve_summary_age_comparison_full", "curve_summary_property_conjunction_full"]
    assert [table.name for table in summaries] == names
    assert summaries[1] is not None
    assert labels(summaries[1]) == [
        *("model", "trained", "values of N", "trained: WS %", "trained: MAX %"),
        *("LangSense pert: clipped", "LangSense pert: unclipped"),
        *("LangSense nolang: clipped", "LangSense nolang: unclipped"),
    ]
    assert named(summaries[1], 0)["trained: MAX %"].text == "90.0"


def test_langsense_is_told_of_every_control(tmp_path: Path) -> None:
    controls = ("standard", "no_language", "word_salad")
    write_curve(tmp_path, levels(0.9, 0.6), controls=controls, sizes=(62, 125))
    table = summary_table(tmp_path)
    row = named(table, 0)
    assert row["LangSense nolang: unclipped"].text == "+30.0"
    assert row["LangSense word salad: clipped"].text == "30.0"
    assert row["LangSense word salad: unclipped"].text == "+30.0"
    assert "LangSense pert: clipped" not in row  # no such control
    scores = [record["score"] for record in records(table)]
    assert {"langsense_word_salad", "langsense_word_salad_unclipped"} <= set(scores)


def test_each_mode_has_a_row_and_renormalised_sums_say_so(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, mode="mlp", sizes=(0, 62))
    write_curve(tmp_path, lambda *args: 0.6, mode="linear", sizes=(0, 62, 4000))
    table = summary_table(tmp_path)
    mlp, linear = named(table, 0), named(table, 1)
    assert (mlp["trained"].text, linear["trained"].text) == ("mlp", "linear")
    assert (mlp["trained: WS %"].text, linear["trained: WS %"].text) == ("90.0", "60.0")
    assert (mlp["values of N"].text, linear["values of N"].text) == ("62", "62, 4,000")
    assert "With fewer than all 7 values of N, the weights are renormalised" in table.note
    assert table.runs[0][0].startswith("curve-")


def test_a_row_says_how_choices_got_their_scores_without_training(tmp_path: Path) -> None:
    for mode, sizes in (("causal_likelihood", (0,)), ("mlp", (62,)), ("linear", (62,))):
        write_curve(tmp_path, shares, mode=mode, sizes=sizes)
    write_curve(tmp_path, shares, model="untrained", mode="causal_likelihood", sizes=(0,))
    table = summary_table(tmp_path)
    mlp, linear, alone = (named(table, row) for row in range(3))
    about = "dev, zero-shot by causal likelihood"
    assert [row["model"].detail for row in (mlp, linear, alone)] == [about, about, "dev"]
    assert {row["untrained: zero-shot %"].text for row in (mlp, linear, alone)} == {"50.0"}
    assert (alone["values of N"], alone["trained: WS %"]) == (Cell("–"), Cell("–"))


def test_intervals_of_two_seeds_are_too_few(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, sizes=(0, 62), seeds=(1, 3))
    row = named(summary_table(tmp_path), 0)
    assert row["trained: WS %"] == Cell("90.0", "too few")
    assert row["LangSense nolang: unclipped"] == Cell("+40.0", "too few")
    assert row["untrained: zero-shot %"].detail not in ("", "too few")  # nothing was trained
    table = present(curve_table(load_results(tmp_path)))
    assert named(table, 1)["standard: accuracy %"] == Cell("90.0", "too few")
    assert named(table, 1)["standard: seeds"] == Cell("2")
    assert named(table, 1)["no language: standard − control"] == Cell("+40.0", "too few")
    assert records(table)[1]["ci_low"] is not None


def test_what_pre_training_gave(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, sizes=(0, 62, 125))
    lower = {"sizes": (0, 62), "controls": ["standard"]}
    random = "dictionary-lm (random weights)"
    write_curve(tmp_path, lambda *args: shares(*args) - 0.2, model=random, **lower)
    write_curve(tmp_path, shares, model="MLM-baseline (word_vectors)", sizes=(0, 62, 125))
    table = present(against_table(load_results(tmp_path)))
    first, second = named(table, 0), named(table, 1)
    assert first["against"] == Cell("dictionary-lm (random weights)")
    assert first["values of N"] == Cell("62")
    assert first["zero-shot: difference"].text == "+20.0"
    assert first["WS: difference"].text == "+20.0"
    assert second["against"] == Cell("MLM-baseline (word_vectors)")
    assert second["WS: difference"] == Cell("0.0", "−3.2 to +3.2")
    assert table.runs[0] != table.runs[1]
    assert records(table)[0]["weighted_sum_difference"] == pytest.approx(0.2)


def test_nothing_to_hold_against_is_no_table(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, sizes=(62,))
    assert against_table(load_results(tmp_path)) is None
    assert parts_table(load_results(tmp_path)) is None


def test_points_with_medians_and_stuck_runs(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, mode="full", sizes=(62, 125), train_accuracy=0.58)
    table = present(curve_table(load_results(tmp_path)))
    row = named(table, 0)
    assert row["standard: accuracy %"].text == "90.0"
    assert row["standard: median seed %"] == Cell("90.0", "85.0–95.0")
    # 36 of 62 right: Wilson's interval reaches down to 0.457, so chance is in it; 72 of 125
    # (0.489) as well.
    assert row["standard: at chance"] == Cell("3 of 3")
    assert row["no language: standard − control"].text == "+40.0"
    assert row["no language: standard − control"].detail.count("to") == 1
    assert records(table)[0]["seed_sd"] == pytest.approx(0.05)
    write_curve(tmp_path / "learned", shares, mode="full", sizes=(62,), train_accuracy=0.9)
    learned = present(curve_table(load_results(tmp_path / "learned")))
    assert named(learned, 0)["standard: at chance"] == Cell("0 of 3")


def test_curve_row_by_hand(demo_folder: Path) -> None:
    table = present(curve_table(load_results(demo_folder)))
    untrained, row = named(table, 0), named(table, 1)
    assert (row["N"], row["trained"]) == (Cell("62"), Cell("mlp", "rate 0.001"))
    # (262 + 281) / 1000; seeds 52.4 and 56.2
    assert row["standard: accuracy %"].text == "54.3"
    assert row["standard: median seed %"] == Cell("54.3", "52.4–56.2")
    assert row["no language: accuracy %"].text == "51.1"
    assert row["no language: standard − control"] == Cell("+3.2", "+2.6 to +3.8")
    assert untrained["standard: median seed %"] == Cell("–")
    assert untrained["no language: standard − control"] == Cell("−1.4")


def test_chance_is_given_with_and_without_the_empty_choices_of_a_model(tmp_path: Path) -> None:
    """Five are scored, of which four are real."""
    write_curve(tmp_path, shares, sizes=(62,), chance=0.2)
    fields = {"protocol": "zero_shot", "model": "m", "probe": "age_comparison", "split": "dev"}
    alone = present(curve_table(load_results(tmp_path)))
    assert named(alone, 0)["chance"].text == "20.0"
    assert "chance with empty choices" not in named(alone, 0)
    write_run(tmp_path, "padded", [{**fields, "metric": "floor", "value": 0.25}])
    results = load_results(tmp_path)
    table = present(curve_table(results))
    assert named(table, 0)["chance"].text == "25.0"
    assert named(table, 0)["chance with empty choices"].text == "20.0"


def test_parts_untrained_and_at_the_end(tmp_path: Path) -> None:
    templates = [*map(subsets.template, ("has", "larger")), subsets.choices("older", "younger")]
    more = {"probe": "always_never", "subsets": templates, "seeds": (1,), "sizes": (0, 62, 125)}
    write_curve(tmp_path, shares, **more)
    table = present(parts_table(load_results(tmp_path)))
    assert [row[2].text for row in table.rows] == ["has", "larger", "older/younger"]
    first = named(table, 0)
    assert (first["n"].text, first["N"].text) == ("30", "125")
    assert first["paper %"] == Cell("61")
    assert named(table, 1)["paper %"] == Cell("47 / 30")
    record = records(table)[0]
    # Every fourth item from the first on, counted in the hits themselves.
    assert record["num_items"] == 30
    assert 0.3 < float(str(record["zero_shot"])) < 0.7
    assert float(str(record["trained"])) > 0.7


# Medals.


BASELINE = "MLM-baseline (word_vectors)"


def write_both(
    folder: Path, standard: float, no_language: float = 0.5, baseline: float = 0.6
) -> None:
    write_curve(folder, levels(standard, no_language), sizes=(62,))
    write_curve(folder, levels(baseline, 0.5), model=BASELINE, sizes=(62,))


def medal(folder: Path, rule: MedalRule | None = None) -> tuple[str, tuple[bool | None, ...]]:
    (judged,) = judgements(load_results(folder), rule or MedalRule())
    return judged["medal"], (judged["high"], judged["above_baselines"], judged["needs_language"])


@pytest.mark.parametrize(
    ("standard", "control", "baseline", "expected"),
    [
        # 0.9 has gone 80% of the way from 0.5 to 1.
        (0.9, 0.5, 0.6, ("full", (True, True, True))),
        (0.9, 0.9, 0.6, ("partial", (True, True, False))),
        (0.7, 0.5, 0.6, ("partial", (False, True, True))),
        (0.7, 0.7, 0.6, ("none", (False, True, False))),
        (0.9, 0.5, 0.9, ("partial", (True, False, True))),
        # Above the baseline, but the majority's 0.52 lies in the interval.
        (0.55, 0.55, 0.4, ("none", (False, False, False))),
    ],
)
def test_medals_by_hand(
    standard: float,
    control: float,
    baseline: float,
    expected: tuple[str, tuple[bool, ...]],
    tmp_path: Path,
) -> None:
    write_both(tmp_path, standard, control, baseline)
    assert medal(tmp_path) == expected


def test_zero_shot_alone_may_be_high(tmp_path: Path) -> None:
    write_curve(tmp_path, levels(0.6, 0.6, untrained=0.95), sizes=(0, 62))
    write_curve(tmp_path, levels(0.5, 0.5), model=BASELINE, sizes=(0, 62))
    assert medal(tmp_path)[1][0] is True


@pytest.mark.thorough
def test_random_weights_are_a_hurdle_where_they_are_there(tmp_path: Path) -> None:
    write_both(tmp_path, 0.9)
    assert medal(tmp_path, MedalRule(need_random=True))[0] == "not judged"
    write_curve(tmp_path, levels(0.92, 0.5), model="dictionary-lm (random weights)", sizes=(62,))
    assert medal(tmp_path) == ("partial", (True, False, True))


def test_thresholds_are_the_rules(tmp_path: Path) -> None:
    write_both(tmp_path, 0.7)
    assert medal(tmp_path, MedalRule(high=0.39))[0] == "full"
    assert medal(tmp_path, MedalRule(lang_sense=0.3))[1] == (False, True, False)
    assert medal(tmp_path, MedalRule(above_baselines=0.2))[1] == (False, False, True)
    assert medal(tmp_path, MedalRule(partial=3))[0] == "none"


def test_what_lacks_a_control_or_a_baseline_is_not_judged(tmp_path: Path) -> None:
    write_curve(tmp_path, levels(0.9, 0.5), controls=["standard"], sizes=(62,))
    write_run(tmp_path, "old", curve_rows("other", "standard", {62: [50, 60]}, 100))
    results = load_results(tmp_path)
    lacking = [row["lacking"] for row in judgements(results, MedalRule())]
    assert lacking == [
        "a no-language control, a baseline",
        "a no-language control, a baseline, a chance level, a record of which items were right",
    ]
    assert medals_table(results) is None
    assert not_judged_sentence(results) == (
        "No medals (the paper's verdicts on a skill): a curve needs a no-language control "
        "(--grid.controls standard,no_language), a baseline (mlm_baseline, or esim for questions, "
        "among its --models), a chance level and a record of which items were right, which these "
        "results do not have."
    )
    (baselineless, _) = judgements(results, MedalRule(need_baseline=False))
    assert baselineless["lacking"] == "a no-language control"


def test_baselines_of_other_items_do_not_count(tmp_path: Path) -> None:
    write_curve(tmp_path, levels(0.9, 0.5), sizes=(62,))
    write_curve(tmp_path, levels(0.6, 0.5), model=BASELINE, sizes=(62,), num_items=80)
    (judged,) = judgements(load_results(tmp_path), MedalRule())
    assert judged["lacking"] == "the baselines' curves on the same items and points"


def test_table_says_the_rule_and_what_was_met(tmp_path: Path) -> None:
    write_both(tmp_path, 0.9)
    write_curve(tmp_path, levels(0.9, 0.5), sizes=(62,), mode="linear")
    rule = tmp_path / "rule.yaml"
    rule.write_text("high: 0.25\n")
    table = present(medals_table(load_results(tmp_path), rule))
    assert not_judged_sentence(load_results(tmp_path)) == ""
    assert [named(table, row) for row in range(len(table.rows))] == [
        {
            "probe": Cell("age_comparison", "dev"),
            "trained": Cell("mlp", "rate 0.001"),
            "dictionary-lm: medal": Cell("✓ full", "high, above baselines, needs language"),
        }
    ]
    assert "at least 25% of the way from chance" in table.note
    (record,) = records(table)
    assert (record["medal"], record["needs_language"]) == ("full", True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hihg: 0.5\n", r"`hihg` is not a known key \(did you mean 'high'\?\)"),
        ("high: much\n", "`high` must be a number, not 'much'"),
        ("high: 2\n", "high must be in 0..1"),
    ],
)
def test_rules_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_rule(path)


def test_the_page_goes_by_the_rule_that_was_given(tmp_path: Path) -> None:
    assert read_rule() == MedalRule()
    write_both(tmp_path, 0.9)
    results, rule = load_results(tmp_path), tmp_path / "rule.yaml"
    # From 50% by chance 90% is four fifths of the way.
    for text, mark in (("high: 0.9", ["~ partial"]), ("need_random: true", [])):
        rule.write_text(text)
        [section] = [s for s in filled_sections(results, rule) if s.name == "curves"]
        medals = [table for table in section.tables if table.name == "curve_medals"]
        assert [table.rows[0][2].text for table in medals] == mark
    assert "needs random weights (--random_weights true), which these" in section.summary


# Figures.


def rising(control: str, num_train: int, seed: int) -> float:
    return 0.5 + (0.02 if control == "standard" else 0.01) * len(str(num_train)) * seed


def test_a_models_panel_holds_its_controls_and_what_it_is_held_against(tmp_path: Path) -> None:
    sizes = {"sizes": (0, 62, 125)}
    write_curve(tmp_path, rising, model="roberta-large", **sizes)
    write_curve(tmp_path, rising, model="roberta-large", mode="linear", **sizes)
    write_curve(tmp_path, rising, model="roberta-large (random weights)", **sizes)
    write_curve(tmp_path, rising, model="MLM-baseline (word_vectors)", **sizes)
    (figure,) = control_figures(load_results(tmp_path))
    assert figure.name == "learning_curve"
    texts = texts_of(figure)
    lines = ["standard", "no language", "perturbed language", "standard, linear", "random weights"]
    assert {*lines, "MLM-baseline", "chance 50.0", "0", "62", "125"} <= set(texts)
    # One panel: the model's. Nothing else has one of its own.
    assert texts.count("standard") == 1
    assert "age comparison · MLP · dev · rate 0.001" in texts
    assert "to random weights and baselines shows what it owes to pre-training" in figure.caption
    assert "fill-opacity: 0.13" in figure.svg or "opacity: 0.13" in figure.svg


@pytest.mark.thorough
def test_many_panels_are_a_figure_a_probe(tmp_path: Path) -> None:
    for number in range(7):
        name = f"p{number}"
        write_run(tmp_path, name, curve_rows(name, "standard", {62: [5], 125: [6]}, 10))
    figures = control_figures(load_results(tmp_path))
    assert [figure.name for figure in figures] == [f"learning_curve_p{n}" for n in range(7)]
    assert figures[3].title.endswith("examples: p3")
    assert "over items alone" in figures[3].caption  # there are no hits


def test_models_stand_side_by_side(tmp_path: Path) -> None:
    for model in ("roberta-large", "dictionary-lm"):
        write_curve(tmp_path, rising, model=model, sizes=(62, 125))
    results = load_results(tmp_path)
    models = present(models_figure(results))
    [controls] = control_figures(results)
    assert (models.name, controls.name) == ("learning_curve_models", "learning_curve")
    texts = texts_of(models)
    assert {"RoBERTa-L", "dictionary-lm", "age comparison", "MLP · dev"} <= set(texts)
    assert "no language" not in texts
    assert {"RoBERTa-L", "dictionary-lm"} <= set(texts_of(controls))
