from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from probelight.reports import compare
from probelight.reports.table import Cell
from probelight.results.details import ComparisonDetails
from probelight.results.load import Run, RunSet
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.report import present, records, texts

NAMES = ("bert", "roberta", "electra", "random")


def comparison(
    scores: dict[str, float], adjusted: dict[tuple[str, str], float], *, size: int = 62, seeds: int
) -> Run:
    """A run that compares systems; pairs that are not named are not told apart."""
    base = Row(protocol="compare", probe="age", split="test", num_items=400, num_groups=200)
    rows = []
    for name, score in scores.items():
        ends = {"ci_low": score - 0.1, "ci_high": score + 0.1}
        of_system = replace(base, subset=subsets.one_model(name), metric="accuracy")
        rows.append(replace(of_system, value=score, **ends))
    for first, second in combinations(scores, 2):
        gap = scores[first] - scores[second]
        adjusted_p = adjusted.get((first, second), 0.5)
        values = {"mcnemar_p": 0.01, "p_value": 0.02, "adjusted_p_value": adjusted_p}
        pair = replace(base, subset=subsets.versus(first, second))
        ends = {"ci_low": gap - 0.05, "ci_high": gap + 0.05}
        rows.append(replace(pair, **ends, metric="difference", value=gap))
        rows += [replace(pair, metric=name, value=value) for name, value in values.items()]
    details = ComparisonDetails(
        answered="learning curve",
        setting=f"mlp, {size:,} examples",
        num_runs=dict.fromkeys(scores, seeds),
        num_pairs=len(scores) * (len(scores) - 1) // 2,
    )
    fields = {"key": f"k{size}", "path": f"runs/k{size}"}
    return Run(protocol="compare", probe="age", rows=tuple(rows), details=(details,), **fields)


@pytest.fixture
def four() -> RunSet:
    scores = dict(zip(NAMES, (0.9, 0.8, 0.7, 0.5), strict=True))
    apart = {("bert", "electra"): 0.01, ("bert", "random"): 0.0004, ("roberta", "random"): 0.03}
    return RunSet("made", (comparison(scores, apart, seeds=3),))


def test_systems_are_sorted_by_accuracy_with_their_letters(four: RunSet) -> None:
    # bert is told from electra and random, roberta from random: three largest sets are left.
    systems = compare.systems(four)
    assert [*systems.system] == ["bert", "roberta", "electra", "random"]
    assert [*systems.letters] == ["a", "ab", "bc", "c"]
    table = present(compare.systems_table(four))
    assert texts(table)[1] == ["age", "roberta", "80.0", "ab", "3"]
    record = records(table)[1]
    assert (record["system"], record["letters"], record["num_runs"]) == ("roberta", "ab", 3)


def test_every_two_have_a_line_with_their_tests(four: RunSet) -> None:
    table = present(compare.differences_table(four))
    assert len(table.rows) == 6
    assert table.rows[1] == (
        Cell("age", "test, learning curve, mlp, 62 examples"), Cell("bert", "− electra"),
        Cell("+20.0", "+15.0 to +25.0"), Cell("0.020"), Cell("0.010", "clearly different"),
        Cell("none"),  # no row of it: no difference would have been detected
    )  # fmt: skip
    assert table.rows[2][4].text == "< 0.001"
    assert "made together (6)" in table.note
    assert "several seeds" in table.note
    record = records(table)[1]
    assert (record["first"], record["second"]) == ("bert", "electra")
    assert (record["mcnemar_p"], record["adjusted_p_value"]) == (0.01, 0.01)


def test_sizes_are_in_their_order_and_the_best_system_first() -> None:
    scores = {"bert": 0.7, "roberta": 0.8}
    runs = [comparison(scores, {}, size=size, seeds=1) for size in (1000, 62)]
    results = RunSet("made", tuple(runs))
    table = present(compare.differences_table(results))
    by_size = present(compare.systems_table(results))
    assert [row[0].detail for row in table.rows] == [
        "test, learning curve, mlp, 62 examples", "test, learning curve, mlp, 1,000 examples",
    ]  # fmt: skip
    assert "several seeds" not in table.note
    assert [row[1].text for row in by_size.rows] == ["roberta", "bert"] * 2
    assert {row[0].detail.partition("n = ")[2] for row in by_size.rows} == {"400 in 200 groups"}
    assert len(records(by_size)) == 4


def test_the_paragraph_has_what_was_found(four: RunSet) -> None:
    assert compare.comparison_summary(four) == (
        "Of 6 comparisons, 3 show a clear difference. The largest difference: on age (test, "
        "learning curve, mlp, 62 examples) bert is 40.0 points better than random (95% interval "
        "+35.0 to +45.0, adjusted p < 0.001)."
    )
    worse = comparison({"bert": 0.5, "roberta": 0.8}, {("bert", "roberta"): 0.01}, seeds=1)
    text = compare.comparison_summary(RunSet("made", (worse,)))
    assert text.startswith("Of 1 comparison, 1 shows a clear difference.")
    assert "roberta is 30.0 points better than bert (95% interval +25.0 to +35.0" in text
    none = comparison({"bert": 0.5, "roberta": 0.8}, {}, seeds=1)
    assert compare.comparison_summary(RunSet("made", (none,))) == (
        "Of 1 comparison, none shows a clear difference. With so few groups of items, no "
        "difference could be detected."
    )


def test_the_figure_has_a_line_a_difference_the_largest_kept(
    four: RunSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = present(compare.differences_figure(four))
    assert "bert − random" in figure.svg
    assert figure.svg.count("− electra") + figure.svg.count("electra −") == 3
    monkeypatch.setattr("probelight.reports.compare.MOST_DRAWN", 2)
    figure = present(compare.differences_figure(four))
    assert "roberta − electra" not in figure.svg
    assert "The first 2 of 6 are drawn." in figure.caption
