from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes

from reports.curve.figures import curve_figures
from reports.inoculation import figures as inoculation_figures
from reports.inoculation.figures import inoculation_figure
from reports.inoculation.selection import trajectory_figure
from reports.kit.figures import zero_shot_figure
from reports.kit.style import Figure, head
from results.load import Results, load_results

WriteRun = Callable[..., Path]


def curve_figure(results: Results) -> Figure | None:
    return next(iter(curve_figures(results)), None)


MAKERS = (zero_shot_figure, curve_figure, inoculation_figure, trajectory_figure)


def texts(figure: Figure | None) -> list[str]:
    assert figure is not None
    found = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(node.itertext()) for node in found]


@pytest.fixture
def demo(demo_folder: Path) -> Results:
    return load_results(demo_folder)


def test_zero_shot_labels_its_chance_levels(demo: Results) -> None:
    said = texts(zero_shot_figure(demo))
    assert said.count("chance 50.0") == 3
    assert "61.3" in said
    assert "57.3–65.1" in said
    # Sorted by the distance from chance, the best first.
    probes = [text for text in said if text.replace(" ", "_") in {r.probe for r in demo.runs}]
    assert probes[0] == "taxonomy conjunction"
    assert probes[-1] == "objects comparison"


def test_curve_names_its_lines(demo: Results) -> None:
    said = texts(curve_figure(demo))
    assert {"standard", "no language", "chance 50.0", "0", "62", "500"} <= set(said)


def test_inoculation_shows_both_tasks_and_one_chance_line(demo: Results) -> None:
    said = texts(inoculation_figure(demo))
    assert {"probe", "original task", "chance 20.0", "0", "100", "1k"} <= set(said)


@pytest.mark.parametrize("seeds", [("x1",), ("none", "x1"), ("none", "x2", "x2")])
def test_inoculation_marks_what_was_added(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace, seeds: tuple[str, ...]
) -> None:
    for seed, extra in enumerate(seeds, start=1):
        found = rows.inoculation(
            dose=100,
            seed=seed,
            extra=extra,
            probe_correct=(200, 300 + 50 * seed),
            original_correct=(300, 290 - 20 * seed),
            selection=[(0.2, 0.6), (0.3, 0.6)],
            epoch=1,
        )
        write_run(tmp_path, f"s{seed}", found)
    figure = inoculation_figure(load_results(tmp_path))
    assert figure is not None
    said = {text for text in texts(figure) if text.startswith("extra ")}
    assert said == {f"extra {extra}" for extra in seeds}
    assert "square x1" in figure.caption
    # Both scores have a point each seed, beside the mean of several; none is the line's own mark.
    marks = panel_marks(tmp_path)
    shapes = {"none": "o", "x1": "s", "x2": "^"}
    of_seeds = [shapes[extra] for extra in seeds]
    means = ["_"] if len(seeds) > 1 else []
    assert sorted(marks) == sorted(2 * [*of_seeds, *means, "o"])  # hollow circles before


def panel_marks(folder: Path) -> list[str]:
    """The marks of the one panel of an inoculation figure."""
    drawn: list[Axes] = []

    def keep(axis: Axes, title: str, subtitle: str) -> None:
        drawn.append(axis)
        head(axis, title, subtitle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inoculation_figures, "head", keep)
        inoculation_figure(load_results(folder))
    (axis,) = drawn
    lines = (str(line.get_marker()) for line in axis.lines)
    return [mark for mark in lines if mark not in ("None", "")]


def test_without_anything_added_the_marks_are_the_lines(demo: Results) -> None:
    figure = inoculation_figure(demo)
    assert figure is not None
    assert not [text for text in texts(figure) if text.startswith("extra")]
    assert "extra" not in figure.caption.lower()


def test_inoculation_says_when_the_cost_cannot_be_read(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.inoculation(
        dose=100,
        probe_correct=(200, 300),
        original_correct=(130, 128),
        selection=[(0.2, 0.25), (0.3, 0.25)],
        epoch=1,
        chance=(0.2, 0.25),
    )
    write_run(tmp_path, "a", found, cost_interpretable=False)
    said = texts(inoculation_figure(load_results(tmp_path)))
    assert "original task not above chance: cost not interpretable" in said
    assert "chance, original 25.0" in said
    assert "chance, probe 20.0" in said


def test_trajectory_marks_the_chosen_checkpoint(demo: Results) -> None:
    said = texts(trajectory_figure(demo))
    assert said.count("chosen") == 2
    assert "hypernymy, k = 1,000" in said


def test_trajectory_names_the_original_task_and_leaves_room_for_its_label(demo: Results) -> None:
    figure = trajectory_figure(demo)
    said = texts(figure)
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
    tmp_path: Path,
    write_run: WriteRun,
    rows: SimpleNamespace,
    ways: tuple[str, ...],
    said: str,
) -> None:
    for way in ways:
        found = rows.inoculation(
            dose=100,
            probe_correct=(200, 300),
            original_correct=(300, 290),
            selection=[(0.2, 0.6), (0.3, 0.6)],
            epoch=1,
        )
        write_run(tmp_path, way, found, selection=way, report_split="dev")
    figure = trajectory_figure(load_results(tmp_path))
    assert figure is not None
    assert said in figure.caption
    on_reported = "rate 2e-5 · seed 1 · chosen on the reported items (dev)"
    assert (on_reported in texts(figure)) == ("paper" in ways)


def test_nothing_to_show_is_no_figure() -> None:
    assert [make(Results("empty", ())) for make in MAKERS] == [None] * 4


def test_single_points_and_missing_intervals_can_be_drawn(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    bare = {"metric": "accuracy", "value": 0.5, "model": "m", "probe": "p"}
    write_run(tmp_path, "a", [{**bare, "protocol": "zero_shot"}])
    write_run(tmp_path, "b", [{**bare, "protocol": "curve", "num_train": 0}])
    cell = {"protocol": "inoculation", "dose": 100, "metric": "probe_accuracy"}
    write_run(tmp_path, "c", [{**bare, **cell}])
    results = load_results(tmp_path)
    assert [figure is not None for figure in (make(results) for make in MAKERS)] == [
        True,
        True,
        True,
        False,
    ]


@pytest.fixture
def loud_matplotlibrc() -> Iterator[None]:
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        yield


@pytest.mark.parametrize("make", MAKERS)
def test_same_bytes_whatever_the_users_settings(
    make: Callable[[Results], Figure | None], demo: Results, loud_matplotlibrc: None
) -> None:
    here = make(demo)
    with mpl.rc_context():
        mpl.rcdefaults()
        there = make(demo)
    assert here == there
    assert here is not None
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", here.svg)
