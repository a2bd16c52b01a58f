from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from probelight.reports.figure import head
from probelight.reports.inoculation.figures import doses
from probelight.reports.inoculation.figures.doses import inoculation_figure
from probelight.results.load import Results, load_results
from tests.fixtures.report import texts_of


def test_inoculation_shows_both_tasks_and_one_chance_line(demo_folder: Path) -> None:
    said = texts_of(inoculation_figure(load_results(demo_folder)))
    assert {"probe", "original task", "chance 20.0", "0", "100", "1k"} <= set(said)


@pytest.mark.parametrize("seeds", [("x1",), ("none", "x1"), ("none", "x2", "x2")])
def test_inoculation_marks_what_was_added(
    inoculated: Callable[..., Results], seeds: tuple[str, ...]
) -> None:
    for seed, extra in enumerate(seeds, start=1):
        probe, original = (200, 300 + 50 * seed), (300, 290 - 20 * seed)
        own = {"probe_correct": probe, "original_correct": original}
        results = inoculated({"seed": seed, "extra": extra, **own})
    figure = inoculation_figure(results)
    assert figure is not None
    said = {text for text in texts_of(figure) if text.startswith("extra ")}
    assert said == {f"extra {extra}" for extra in seeds}
    assert "square x1" in figure.caption
    # Both scores have a point each seed, beside the mean of several; none is the line's own mark.
    marks = panel_marks(results)
    shapes = {"none": "o", "x1": "s", "x2": "^"}
    of_seeds = [shapes[extra] for extra in seeds]
    means = ["_"] if len(seeds) > 1 else []
    assert sorted(marks) == sorted(2 * [*of_seeds, *means, "o"])  # hollow circles before


def panel_marks(results: Results) -> list[str]:
    """The marks of the one panel of an inoculation figure."""
    drawn: list[Axes] = []

    def keep(axis: Axes, title: str, subtitle: str) -> None:
        drawn.append(axis)
        head(axis, title, subtitle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doses, "head", keep)
        inoculation_figure(results)
    (axis,) = drawn
    lines = (str(line.get_marker()) for line in axis.lines)
    return [mark for mark in lines if mark not in ("None", "")]


def test_without_anything_added_the_marks_are_the_lines(demo_folder: Path) -> None:
    figure = inoculation_figure(load_results(demo_folder))
    assert figure is not None
    assert not [text for text in texts_of(figure) if text.startswith("extra")]
    assert "extra" not in figure.caption.lower()


def test_inoculation_says_when_the_cost_cannot_be_read(
    inoculated: Callable[..., Results],
) -> None:
    low = {"original_correct": (130, 128), "chance": (0.2, 0.25)}
    said = texts_of(inoculation_figure(inoculated(low, cost_interpretable=False)))
    assert "original task not above chance: cost not interpretable" in said
    assert "chance, original 25.0" in said
    assert "chance, probe 20.0" in said
