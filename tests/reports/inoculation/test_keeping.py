from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probelight.metrics.intervals import DIFFERENCES, Term, sum_interval
from probelight.reports.inoculation.figures import (
    inoculation_figure,
    keeping_figure,
    trajectory_figure,
)
from probelight.reports.inoculation.keeping import (
    comparisons,
    keeping_sentences,
    keeping_settings_table,
    keeping_table,
)
from probelight.reports.inoculation.runs import every_dose
from probelight.reports.inoculation.training import pareto_figure
from probelight.reports.table import Cell
from probelight.results.load import RunSet, load_results
from probelight.results.row import Row
from tests.fixtures.report import findings, named, present, records, tables, texts_of
from tests.fixtures.results import inoculation_rows, write_run

N = 10  # items of either task
Add = Callable[..., RunSet]


@pytest.fixture
def added(tmp_path: Path) -> Add:
    """Adds a run per seed to a folder and reads it.

    `gained` and `lost` are items of each seed, of ten wrong ones of the probe and ten right ones of
    the original task; `selected` is the cost on the selection items, as reported if None.
    """
    number = count()

    def add(
        keeping: str,
        strength: float | None,
        rate: float,
        gained: tuple[int, ...],
        lost: tuple[int, ...],
        *,
        seeds: tuple[int, ...] = (1, 2),
        selected: float | None = None,
        hits: bool = True,
        items: str = "o",
        updates: int | None = None,
        interpretable: bool = True,
        **more: Any,
    ) -> RunSet:
        for seed, gain, loss in zip(seeds, gained, lost, strict=True):
            cost = loss / N if selected is None else selected
            rows = inoculation_rows(
                keeping=keeping,
                strength=strength,
                learning_rate=rate,
                seed=seed,
                probe_correct=(0, gain),
                original_correct=(N, N - loss),
                num_probe=N,
                num_original=N,
                selection=[(0.0, 0.9), (gain / N, 0.9 - cost)],
                **more,
            )
            if updates is not None:
                columns = {k: rows[-1][k] for k in rows[-1] if k not in ("metric", "value")}
                rows.append({**columns, "metric": "num_updates", "value": updates + seed})
                rows.append({**columns, "metric": "num_examples", "value": 16 * (updates + seed)})
            fields: dict[str, Any] = {"original_task": "books", "cost_interpretable": interpretable}
            fields |= {"hits_file": "hits.json"} if hits else {}
            folder = write_run(tmp_path, f"{next(number):02}", rows, **fields)
            groups = [*range(N)]
            probe = {"before": "0" * N, "after": "1" * gain + "0" * (N - gain)}
            original = {"before": "1" * N, "after": "0" * loss + "1" * (N - loss)}
            sides = {
                "probe": {"items": "p", "groups": groups, **probe},
                "original": {"items": items, "groups": groups, **original},
            }
            (folder / "hits.json").write_text(json.dumps(sides))
        return load_results(tmp_path)

    return add


def with_l2_sp(added: Add, **more: Any) -> RunSet:
    """None gains 2 and 6 of ten items and loses 1 and 5; L2-SP gains 1 and 4, and loses 0 and 2."""
    added("", None, 1e-5, (2, 2), (1, 1), updates=10, **more)
    added("", None, 1e-4, (6, 6), (4, 6), updates=30, **more)
    added("l2_sp", 0.1, 2e-5, (4, 4), (2, 2), updates=20, **more)
    return added("l2_sp", 1.0, 2e-5, (1, 1), (0, 0), updates=20, **more)


def test_cost_at_equal_gain_by_hand(added: Add) -> None:
    table = present(keeping_table(with_l2_sp(added)))
    none, l2_sp = (named(table, index) for index in range(2))
    assert {row["probe"] for row in (none, l2_sp)} == {
        Cell("hypernymy", "dictionary-lm, original task books")
    }
    # L2-SP gains 40 points at most. None gains that halfway between its rates.
    assert [row["method"].text for row in (none, l2_sp)] == ["none", "L2-SP"]
    assert [row["gain, points: highest"].text for row in (none, l2_sp)] == ["+60.0", "+40.0"]
    assert {row["gain, points: compared at"].text for row in (none, l2_sp)} == {"+40.0"}
    costs = [row["cost, points: at that gain"] for row in (none, l2_sp)]
    assert costs == [Cell("+30.0", "too few"), Cell("+20.0", "too few")]  # of two seeds
    assert none["cost, points: difference"] == Cell("–")
    assert l2_sp["cost, points: difference"].text == "−10.0"
    assert none["between"].text == "rate 1e-5 to 0.0001"
    assert l2_sp["between"].text == "alpha 0.1, rate 2e-5"
    # Means over seeds 1 and 2.
    assert none["updates"].text == "12–32"
    assert none["examples"].text == "184–504"
    assert l2_sp["updates"].text == "22"
    assert "different numbers" not in table.note


def test_intervals_hold_items_and_seeds_of_both_tasks(added: Add) -> None:
    """Halfway between its rates none loses 0.5 (1 + 4) and 0.5 (1 + 6) items, and gains 4."""
    none, l2_sp = records(present(keeping_table(with_l2_sp(added))))

    def items(*terms: tuple[float, int]) -> np.ndarray:
        return np.sum([w * (np.arange(N) < number) for w, number in terms], axis=0)

    # Where 40 points are gained, each point of gain is worth as many of cost, here and there.
    slopes = {"none": 1.0, "l2_sp": 2 / 3}
    lost = {
        "none": {1: items((0.5, 1), (0.5, 4)), 2: items((0.5, 1), (0.5, 6))},
        "l2_sp": {1: items((1, 2)), 2: items((1, 2))},
    }
    gained = {
        "none": dict.fromkeys((1, 2), items((0.5, 2), (0.5, 6))),
        "l2_sp": dict.fromkeys((1, 2), items((1, 4))),
    }

    def cost_by_seed(method: str) -> dict[int, np.ndarray]:
        """Twenty items, whose mean is the sum of two means; of ten nine are free."""
        means = {1: np.mean([*lost[method].values()]), 2: np.mean([*gained[method].values()])}
        return {
            seed: 2 * np.sqrt(10 / 9) * np.concatenate(
                [lost[method][seed] - means[1], -slopes[method] * (gained[method][seed] - means[2])]
            )
            for seed in (1, 2)
        }  # fmt: skip

    cost = sum_interval([Term(1.0, cost_by_seed("none"))], None, DIFFERENCES)
    bounds = [none[f"cost_ci_{end}"] for end in ("low", "high")]
    assert bounds == pytest.approx([0.3 + cost.low, 0.3 + cost.high])
    terms = [Term(1.0, cost_by_seed("l2_sp")), Term(-1.0, cost_by_seed("none"))]
    more = sum_interval(terms, None, DIFFERENCES)
    bounds = [l2_sp[f"cost_more_ci_{end}"] for end in ("low", "high")]
    assert bounds == pytest.approx([more.low - 0.1, more.high - 0.1])


def test_every_setting_has_a_row(added: Add) -> None:
    table = present(keeping_settings_table(with_l2_sp(added)))
    rows = [named(table, index) for index in range(4)]
    assert [(row["method"].text, row["strength"].text, row["rate"].text) for row in rows] == [
        ("none", "–", "1e-5"),
        ("none", "–", "0.0001"),
        ("L2-SP", "alpha 0.1", "2e-5"),
        ("L2-SP", "alpha 1", "2e-5"),
    ]
    assert [row["gain, points"].text for row in rows] == ["+20.0", "+60.0", "+40.0", "+10.0"]
    assert [row["cost, points"].text for row in rows] == ["+10.0", "+50.0", "+20.0", "0.0"]
    # Selection: probe and original task are 20 and 80, 60 and 40 % on average, and so on.
    assert [row["average %"].text for row in rows] == ["50.0", "50.0", "55.0", "50.0"]
    assert [row["updates"].text for row in rows] == ["12", "32", "22", "22"]
    assert [record["strength"] for record in records(table)] == [None, None, 0.1, 1.0]


@pytest.mark.parametrize(("selected", "cost"), [((0.0, 0.1), "+10.0"), ((0.1, 0.0), "+20.0")])
def test_the_selection_items_choose_between_rates(
    added: Add, selected: tuple[float, float], cost: str
) -> None:
    """Both rates gain 40 points, at 10 and at 20 points of cost on the reported items."""
    added("", None, 1e-5, (4, 4), (3, 3))
    added("l2_sp", 1.0, 1e-5, (4, 4), (1, 1), selected=selected[0])
    results = added("l2_sp", 0.1, 1e-4, (4, 4), (2, 2), selected=selected[1])
    table = present(keeping_table(results))
    assert named(table, 1)["cost, points: at that gain"].text == cost
    assert "different numbers of settings" in table.note


def test_one_sentence_says_who_lost_least(added: Add) -> None:
    text = keeping_sentences(with_l2_sp(added))
    assert text == (
        "At an equal gain of +40.0 points on hypernymy (dictionary-lm, original task books; k = "
        "100), the original task lost least with L2-SP: +20.0 points. Compared with none, there is "
        "no clear difference with L2-SP."
    )


def test_nothing_is_compared_where_a_way_gained_nothing(added: Add, tmp_path: Path) -> None:
    added("", None, 1e-5, (2, 2), (1, 1))
    results = added("lora", 8.0, 1e-4, (0, 0), (0, 0))
    why = "not every method gained on the probe"
    about = "hypernymy (dictionary-lm, original task books; k = 100)"
    assert keeping_sentences(results) == (
        f"Methods against forgetting are not compared for {about}: {why}."
    )
    row = named(present(keeping_table(results)), 0)
    assert "cost, points: at that gain" not in row
    assert row["gain, points: highest"].text == "+20.0"
    assert f"not compared: {why}" in " ".join(texts_of(keeping_figure(results)))
    assert findings(tmp_path)[-1].endswith(f"{why}.")


def test_the_largest_dose_that_can_be_compared_is_told(added: Add) -> None:
    for dose in (50, 100):
        with_l2_sp(added, dose=dose)
    added("", None, 1e-5, (0, 0), (1, 1), dose=500)
    text = keeping_sentences(added("l2_sp", 1.0, 1e-5, (2, 2), (1, 1), dose=500))
    assert text.count("At an equal gain") == text.count("k = 100)") == 1
    assert text.endswith("k = 500): not every method gained on the probe.")


def test_a_cost_at_chance_is_not_compared(added: Add) -> None:
    results = with_l2_sp(added, interpretable=False)
    assert "was not above chance on the original task before" in keeping_sentences(results)
    row = named(present(keeping_settings_table(results)), 0)
    assert row["cost, points"] == Cell("not interpretable")


def test_seeds_are_those_that_all_ways_have(added: Add) -> None:
    """Seed 3 was not tried with L2-SP, and one of its settings has seed 1 alone."""
    added("", None, 1e-5, (4, 4, 10), (2, 4, 10), seeds=(1, 2, 3))
    added("l2_sp", 0.1, 2e-5, (4, 4), (2, 2))
    results = added("l2_sp", 1.0, 2e-5, (9,), (0,), seeds=(1,))
    none, l2_sp = records(present(keeping_table(results)))
    assert (none["num_seeds"], none["highest_gain"], none["cost"]) == pytest.approx((2, 0.4, 0.3))
    assert (l2_sp["num_settings"], l2_sp["compared_gain"]) == pytest.approx((1, 0.4))
    settings = present(keeping_settings_table(results))
    seeds_by_row = [
        (row[2].text, named(settings, at)["seeds"].text) for at, row in enumerate(settings.rows)
    ]
    assert seeds_by_row == [("none", "2"), ("L2-SP", "2"), ("L2-SP †", "1")]


def test_ways_without_a_common_seed_are_not_compared(added: Add) -> None:
    added("", None, 1e-5, (4,), (2,), seeds=(1,))
    results = added("l2_sp", 0.1, 2e-5, (4,), (2,), seeds=(2,))
    assert "the methods have no seeds in common" in keeping_sentences(results)
    assert keeping_table(results) is None
    assert [row[2].text for row in present(keeping_settings_table(results)).rows] == [
        "none †",
        "L2-SP †",
    ]
    assert keeping_figure(results) is None


@pytest.mark.parametrize("more", [{"hits": False}, {"items": "other"}])
def test_other_items_are_told_from_nothing(added: Add, more: dict[str, Any]) -> None:
    added("", None, 1e-5, (4, 4), (2, 4))
    results = added("l2_sp", 0.1, 2e-5, (4, 4), (2, 2), **more)
    none, l2_sp = records(present(keeping_table(results)))
    assert (none["cost"], l2_sp["cost_more"]) == pytest.approx((0.3, -0.1))
    assert none["cost_ci_low"] < 0.3 < none["cost_ci_high"]
    assert l2_sp["cost_more_ci_low"] is l2_sp["cost_more_ci_high"] is None
    assert (l2_sp["cost_ci_low"] is None) == ("hits" in more)
    assert "there is no interval of the difference with L2-SP." in keeping_sentences(results)


def test_one_seed_has_an_interval_over_items(added: Add) -> None:
    added("", None, 1e-5, (4,), (3,), seeds=(1,))
    results = added("l2_sp", 0.1, 2e-5, (4,), (2,), seeds=(1,))
    none, _ = records(present(keeping_table(results)))
    assert none["cost_ci_low"] < 0.3 < none["cost_ci_high"]


def test_added_examples_are_a_way_of_their_own(added: Add) -> None:
    added("", None, 1e-5, (4, 4), (3, 3))
    added("", None, 1e-5, (4, 4), (2, 2), extra="x1")
    assert comparisons(added("", None, 2e-5, (4, 4), (2, 2), extra="x1")) == ()
    [comparison] = comparisons(added("l2_sp", 0.1, 2e-5, (4, 4), (2, 2)))
    assert {name: len(settings) for name, settings in comparison.methods.items()} == {
        "none": 1,
        "extra x1": 2,
        "L2-SP": 1,
    }


def test_a_lower_rank_and_a_larger_share_hold_back_more(added: Add) -> None:
    """The compared gain, 20 points, lies between the settings of two ways, and is the third's."""
    added("distillation", 1.0, 2e-5, (2, 2), (1, 1))
    added("lora", 2.0, 1e-4, (1, 1), (1, 1))
    added("lora", 16.0, 1e-4, (6, 6), (5, 5))
    added("replay", 0.75, 2e-5, (1, 1), (0, 0))
    table = present(keeping_table(added("replay", 0.25, 2e-5, (3, 3), (2, 2))))
    rows = [named(table, index) for index in range(3)]
    assert [row["method"].text for row in rows] == ["distillation", "LoRA", "replay"]
    assert [row["between"].text for row in rows] == [
        "weight 1, rate 2e-5",
        "rank 2 to 16, rate 0.0001",
        "share 0.75 to 0.25, rate 2e-5",
    ]
    # From the first, as there is no none: 10 points of each.
    assert rows[2]["cost, points: difference"].text == "0.0"


def test_figure_draws_ways_costs_and_the_gain(added: Add) -> None:
    results = with_l2_sp(added)
    figure = present(keeping_figure(results))
    assert figure.name == "keeping"
    texts = {*texts_of(figure)}
    assert {"none", "L2-SP", "compared", "gain on the probe (points)"} <= texts
    assert {"hypernymy, k = 100", "cost on the original task (points)"} <= texts
    [axis] = figure.canvas.axes
    drawn = [np.array(line.get_xydata()).tolist() for line in axis.lines]
    assert [[0.0, 0.0], [20.0, 10.0], [60.0, 50.0]] in [np.round(xy, 9).tolist() for xy in drawn]
    assert [[40.0, 30.0]] in [np.round(xy, 9).tolist() for xy in drawn]
    assert keeping_figure(results) == figure


def test_the_best_is_chosen_within_a_way_and_strength(added: Add) -> None:
    doses = every_dose(with_l2_sp(added))
    assert [(dose.series.keeping, len(dose.runs)) for dose in doses] == [
        ("", 2),
        ("l2_sp 0.1", 2),
        ("l2_sp 1", 2),
    ]
    assert [dose.series.remarks for dose in doses] == ["", "l2_sp 0.1", "l2_sp 1"]


@pytest.mark.thorough
def test_other_figures_draw_the_runs_without_a_way(added: Add) -> None:
    alone = added("l2_sp", 0.1, 2e-5, (4, 4), (2, 2))
    assert "l2_sp 0.1" in " ".join(texts_of(inoculation_figure(alone)))
    assert "l2_sp 0.1" in " ".join(texts_of(trajectory_figure(alone)))
    with_l2_sp(added)
    results = added("l2_sp", 0.1, 1e-4, (5, 5), (4, 4))
    for draw in (inoculation_figure, trajectory_figure, pareto_figure):
        figure = present(draw(results))
        assert len(figure.canvas.axes) == 1
        assert "l2_sp" not in " ".join(texts_of(figure))


def test_tables_have_all_ways(added: Add, tmp_path: Path) -> None:
    with_l2_sp(added)
    added("l2_sp", 0.1, 1e-4, (5, 5), (4, 4))
    by_name = tables(tmp_path)
    assert {"keeping", "keeping_settings"} <= {*by_name}
    methods = {record["keeping"] for record in records(by_name["inoculation"])}
    assert methods == {None, "l2_sp 0.1", "l2_sp 1"}
    assert {*by_name["pareto"].frame.keeping} == {"", "l2_sp 0.1"}


def test_results_without_ways_have_no_column_or_table_of_them(
    sweep: RunSet, demo_folder: Path
) -> None:
    for folder in (present(sweep.folder), demo_folder):
        by_name = tables(folder)
        assert not {"keeping", "keeping_settings"} & {*by_name}
        assert not [name for name, table in by_name.items() if "keeping" in table.frame]
        assert keeping_figure(load_results(folder)) is None


def test_items_of_several_ways_are_told_apart() -> None:
    assert [Row(keeping=name, strength=0.5).method for name in ("", "replay")] == ["", "replay 0.5"]
    assert Row(keeping="peft.IA3Config").method == "peft.IA3Config"


def test_printed_tables_do_not_load_matplotlib(added: Add, tmp_path: Path) -> None:
    with_l2_sp(added)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from probelight.reports.sections import printed\n"
        "from probelight.results.load import load_results\n"
        f"found = printed('inoculation', load_results(Path({str(tmp_path)!r})))\n"
        "print([table.name for table in found], 'matplotlib' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "'keeping'" in done.stdout
    assert done.stdout.strip().endswith("False")
