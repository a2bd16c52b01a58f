from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.reports.curve.medals import (
    MedalRule,
    judgements,
    medals_table,
    not_judged,
    read_rule,
)
from probelight.reports.sections import made_sections
from probelight.reports.table import Cell
from probelight.results.load import load_results
from tests.fixtures.curves import levels
from tests.fixtures.report import named, present, records
from tests.fixtures.results import curve_rows, write_curve, write_run

BASELINE = "MLM-baseline (word_vectors)"


def write_both(
    folder: Path, standard: float, no_language: float = 0.5, baseline: float = 0.6
) -> None:
    write_curve(folder, levels(standard, no_language), sizes=(62,))
    write_curve(folder, levels(baseline, 0.5), model=BASELINE, sizes=(62,))


def medal(folder: Path, rule: MedalRule | None = None) -> tuple[str, tuple[bool | None, ...]]:
    (found,) = judgements(load_results(folder), rule or MedalRule())
    return found["medal"], (found["high"], found["above_baselines"], found["needs_language"])


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
    lacking = [one["lacking"] for one in judgements(results, MedalRule())]
    assert lacking == [
        "a no-language control, a baseline",
        "a no-language control, a baseline, a chance level, hits",
    ]
    assert medals_table(results) is None
    assert not_judged(results) == (
        "No curve is judged for a medal, for want of a no-language control, a baseline, a chance "
        "level, hits."
    )
    (baselineless, _) = judgements(results, MedalRule(need_baseline=False))
    assert baselineless["lacking"] == "a no-language control"


def test_baselines_of_other_items_do_not_count(tmp_path: Path) -> None:
    write_curve(tmp_path, levels(0.9, 0.5), sizes=(62,))
    write_curve(tmp_path, levels(0.6, 0.5), model=BASELINE, sizes=(62,), num_items=80)
    (found,) = judgements(load_results(tmp_path), MedalRule())
    assert found["lacking"] == "the baselines' curves on the same items and points"


def test_table_says_the_rule_and_what_was_met(tmp_path: Path) -> None:
    write_both(tmp_path, 0.9)
    write_curve(tmp_path, levels(0.9, 0.5), sizes=(62,), mode="linear")
    rule = tmp_path / "rule.yaml"
    rule.write_text("high: 0.25\n")
    table = present(medals_table(load_results(tmp_path), rule))
    assert not_judged(load_results(tmp_path)) == ""
    assert [named(table, place) for place in range(len(table.rows))] == [
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
    ("text", "said"),
    [
        ("- 1\n", "it must be a mapping of keys"),
        ("hihg: 0.5\n", r"`hihg` is no key \(did you mean 'high'\?\)"),
        ("high: much\n", "`high` must be a number, not 'much'"),
        ("need_baseline: 1\n", "`need_baseline` must be true or false, not 1"),
        ("high: 2\n", "high must be in 0..1"),
        ("high: [\n", "line 1: not readable as YAML"),
    ],
)
def test_rules_that_cannot_be_read(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_rule(path)


def test_the_page_goes_by_the_rule_that_was_given(tmp_path: Path) -> None:
    assert read_rule() == MedalRule()
    write_both(tmp_path, 0.9)
    results, rule = load_results(tmp_path), tmp_path / "rule.yaml"
    # From 50% by chance 90% is four fifths of the way.
    for text, mark in (("high: 0.9", ["~ partial"]), ("need_random: true", [])):
        rule.write_text(text)
        [section] = [one for one in made_sections(results, rule) if one.name == "curves"]
        medals = [one for one in section.tables if one.name == "curve_medals"]
        assert [one.rows[0][2].text for one in medals] == mark
    assert section.summary.endswith("No curve is judged for a medal, for want of random weights.")
