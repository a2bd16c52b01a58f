from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from probelight.reports.inoculation.figures.selection import trajectory_figure
from probelight.results.load import Results, load_results
from tests.fixtures.report import texts_of


def test_trajectory_marks_the_chosen_checkpoint(demo_folder: Path) -> None:
    said = texts_of(trajectory_figure(load_results(demo_folder)))
    assert said.count("chosen") == 2
    assert "hypernymy, k = 1,000" in said


def test_trajectory_names_the_original_task_and_leaves_room_for_its_label(
    demo_folder: Path,
) -> None:
    figure = trajectory_figure(load_results(demo_folder))
    said = texts_of(figure)
    assert said.count("embedded · original task: definitions") == 2
    assert said.count("rate 2e-5 · seed 1") == 2
    assert figure is not None
    assert "share no item with the report" in figure.caption
    # The label stands above every mark and tick: y grows downwards.
    names = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(figure.svg)
    marks = [float(mark.get("y", "nan")) for mark in root.iter(f"{names}use")]
    labels = [float(n.get("y", "nan")) for n in root.iter(f"{names}text") if n.text == "chosen"]
    assert len(labels) == 2
    assert max(labels) + 4 < min(marks)


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        (("train",), "selection items, which share no item with the report, after each epoch"),
        (("paper",), "selection items, of which the probe's are the reported ones, after each"),
        (
            ("train", "paper"),
            "no item with the report but where a panel says that it was chosen on",
        ),
    ],
)
def test_trajectory_says_what_was_selected_on(
    inoculated: Callable[..., Results], ways: tuple[str, ...], said: str
) -> None:
    for way in ways:
        results = inoculated(selection=way, report_split="dev")
    figure = trajectory_figure(results)
    assert figure is not None
    assert said in figure.caption
    on_reported = "rate 2e-5 · seed 1 · chosen on the reported items (dev)"
    assert (on_reported in texts_of(figure)) == ("paper" in ways)
