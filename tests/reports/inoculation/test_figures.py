from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probelight.reports.figure import BLUE, ORANGE
from probelight.reports.inoculation.figures import (
    inoculation_figure,
    trajectory_figure,
)
from probelight.reports.inoculation.training import candidates, pareto_figure, pareto_table
from probelight.reports.numbers import replayed
from probelight.reports.table import Cell
from probelight.results.load import RunSet, load_results
from tests.fixtures.inoculations import FAST, SLOW
from tests.fixtures.report import present, texts_of


def test_inoculation_shows_both_tasks_and_one_chance_line(demo_folder: Path) -> None:
    figure = present(inoculation_figure(load_results(demo_folder)))
    texts = texts_of(figure)
    assert {"probe", "original task", "chance 20.0", "0", "100", "1k"} <= set(texts)
    assert "replay" not in " ".join([*texts, figure.caption]).lower()  # nothing was added


@pytest.mark.parametrize("seeds", [("x1",), ("none", "x1"), ("none", "x2", "x2")])
def test_inoculation_marks_what_was_added(
    inoculated: Callable[..., RunSet], seeds: tuple[str, ...]
) -> None:
    for seed, extra in enumerate(seeds, start=1):
        right = {"probe_correct": (200, 300 + 50 * seed)}
        right["original_correct"] = (300, 290 - 20 * seed)
        results = inoculated({"seed": seed, "extra": extra, **right})
    figure = present(inoculation_figure(results))
    texts = {text for text in texts_of(figure) if "replay" in text}
    assert texts == {replayed(extra) for extra in seeds}
    assert "The shape of a mark at k > 0 shows the replay of the chosen setting" in figure.caption
    # Both scores have a point each seed, next to the mean of several; none is the line's own mark.
    assert figure.canvas is not None
    marks = [str(line.get_marker()) for line in figure.canvas.axes[0].lines]
    shapes = {"none": "o", "x1": "s", "x2": "^"}
    of_seeds = [shapes[extra] for extra in seeds]
    means = ["_"] if len(seeds) > 1 else []
    mark_shapes = [mark for mark in marks if mark not in ("None", "")]
    assert sorted(mark_shapes) == sorted(2 * [*of_seeds, *means, "o"])  # hollow circles before


@pytest.mark.filterwarnings("error::UserWarning")  # a layout that does not fit is one
def test_more_models_than_a_panel_can_tell_apart_are_in_several(
    inoculated: Callable[..., RunSet],
) -> None:
    for number in range(7):
        results = inoculated({"model": f"model-{number}"})
    figure = present(inoculation_figure(results))
    assert figure.canvas is not None
    assert len(figure.canvas.axes) == 2
    text = " ".join(texts_of(figure))
    assert "model-0, model-1, model-2, model-3, model-4 ·" in text
    assert "model-5, model-6 ·" in text


def test_inoculation_says_when_the_cost_cannot_be_read(
    inoculated: Callable[..., RunSet],
) -> None:
    low = {"original_correct": (130, 128), "chance": (0.2, 0.25)}
    texts = texts_of(inoculation_figure(inoculated(low, cost_interpretable=False)))
    assert "original task not above chance: cost not interpretable" in texts
    assert {"chance, original 25.0", "chance, probe 20.0"} <= {*texts}


def test_trajectory_names_the_original_task_and_rings_the_chosen_checkpoint(
    demo_folder: Path,
) -> None:
    figure = present(trajectory_figure(load_results(demo_folder)))
    texts = texts_of(figure)
    assert {"hypernymy, k = 1,000", "chosen"} <= set(texts)
    assert texts.count("dictionary-lm · original task: definitions") == 2
    assert texts.count("rate 2e-5 · seed 1") == 2
    assert "Selection items are never report items, unless a panel says" in figure.caption
    assert figure.canvas is not None
    for axis, epoch, score in zip(figure.canvas.axes, (2, 3), (50.5, 56.5), strict=True):
        ring = axis.lines[0]
        assert (ring.get_marker(), ring.get_markerfacecolor()) == ("o", "none")
        assert ring.get_xydata() == pytest.approx(np.array([[epoch, score]]))


def test_trajectory_says_where_it_was_chosen_on_the_reported_items(
    inoculated: Callable[..., RunSet],
) -> None:
    on_reported = "rate 2e-5 · seed 1 · chosen on the reported items (dev)"
    assert on_reported not in texts_of(trajectory_figure(inoculated(report_split="dev")))
    results = inoculated(selection="paper", report_split="dev")
    assert texts_of(trajectory_figure(results)).count(on_reported) == 1


def test_front_and_choice_by_hand(sweep: RunSet) -> None:
    front = candidates(sweep)
    assert {*zip(front.dose, front.seed, front.probe, strict=True)} == {(100, 1, "hypernymy")}
    # Epoch 0 is no candidate, and what was chosen is not there twice.
    assert [*zip(front.extra, front.epoch, strict=True)] == [
        (extra, epoch) for extra in ("none", "x1") for epoch in (1, 2, 3)
    ]
    # Slow after epoch 3 has 0.33, 0.58, which epoch 2 beats.
    assert [*front.on_front] == [True, True, False, True, True, True]
    assert [*front["aggregate"]] == pytest.approx([0.45, 0.465, 0.455, 0.475, 0.485, 0.45])
    assert [*front.chosen] == [False, False, False, False, True, False]


def test_table_holds_the_front_and_the_csv_everything(sweep: RunSet) -> None:
    table = present(pareto_table(sweep))
    texts = [[cell.text for cell in row[3:]] for row in table.rows]
    assert texts == [
        ["rate 5e-5", "3", "50.0", "40.0", "45.0", "", "6"],
        ["rate 5e-5", "2", "45.0", "52.0", "48.5", "M*", "6"],
        ["rate 5e-5", "1", "40.0", "55.0", "47.5", "", "6"],
        ["rate 1e-5", "2", "35.0", "58.0", "46.5", "", "6"],
        ["rate 1e-5", "1", "30.0", "60.0", "45.0", "", "6"],
    ]
    assert len(table.frame) == 6
    assert sum(table.frame.chosen) == 1
    assert table.runs[0][0].startswith("fast-")
    assert {row[0] for row in table.rows} == {
        Cell("hypernymy", "dictionary-lm, original task definitions, test")
    }


def test_a_seed_looks_the_same_in_every_panel(inoculated: Callable[..., RunSet]) -> None:
    runs = (
        {"dose": dose, "seed": seed, "learning_rate": rate, "selection": selection}
        for dose, seed in ((100, 1), (100, 2), (1000, 2))
        for rate, selection in ((1e-5, SLOW), (5e-5, FAST))
    )
    figure = present(pareto_figure(inoculated(*runs)))
    assert figure.canvas is not None
    first, second = ({line.get_color() for line in axis.lines} for axis in figure.canvas.axes)
    assert {BLUE, ORANGE} & first == {BLUE, ORANGE}
    assert {BLUE, ORANGE} & second == {ORANGE}
    assert {"seed 1", "seed 2"} <= set(texts_of(figure))


def test_figure_names_its_tasks_marks_and_choice(sweep: RunSet) -> None:
    figure = present(pareto_figure(sweep))
    texts = set(texts_of(figure))
    assert {"hypernymy, k = 100", "definitions, accuracy %", "hypernymy, accuracy %"} <= texts
    assert {"dictionary-lm · test", "no replay", "replay x1", "M*"} <= texts
    assert "seed 1" not in texts  # with one seed there is nothing to tell apart
    assert pareto_figure(sweep) == figure
