"""What the demo's page, tables and figures show is what its results.csv holds."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.build import build_report
from probelight.reports.figure import drawn
from probelight.reports.inoculation.runs import TASKS
from probelight.reports.sections import SECTIONS, named
from tests.golden.outcome import assert_committed
from tests.golden.world import World

pytestmark = pytest.mark.thorough

Rows = list[dict[str, str]]
CONTROL = "choice_only"


@pytest.fixture(scope="module")
def demo(world: World) -> Path:
    return world.run("demo")


@pytest.fixture(scope="module")
def canvases(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Canvas]:
    """The canvas of every figure, caught when it is rendered, of the same report made again."""
    caught: dict[str, Canvas] = {}

    def catch(name: str, title: str, caption: str, canvas: Canvas) -> Any:
        caught[name] = canvas
        return drawn(name, title, caption, canvas)

    with pytest.MonkeyPatch.context() as patch:
        for section in SECTIONS:
            for maker in named(section.figures):
                resolve_name(f"probelight.reports.{maker}")  # imports its modules
        for name, module in list(sys.modules.items()):
            if name.startswith("probelight.reports.") and getattr(module, "drawn", None) is drawn:
                patch.setattr(module, "drawn", catch)
        build_report(demo, tmp_path_factory.mktemp("again"))
    return caught


@pytest.fixture(scope="module")
def rows(demo: Path) -> Rows:
    """All rows but those of the inoculation's control, which are next to the others' figures."""
    return [row for row in read(demo / "results.csv") if row["control"] != CONTROL]


def read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def select(rows: Rows, **columns: str) -> Rows:
    """The rows with these cells, of whole sets."""
    columns = {"subset": "", **columns}
    return [row for row in rows if all(row.get(c, "") == cell for c, cell in columns.items())]


def values(rows: Rows, column: str = "value") -> list[float]:
    return [float(row[column]) for row in rows]


def marked(axis: Axes, marker: str) -> list[float]:
    """The heights of the points of the one line with this mark and more than one point."""
    [curve] = [c for c in axis.lines if c.get_marker() == marker and len(c.get_ydata()) > 1]
    return [float(y) for y in curve.get_ydata()]


def percent(numbers: Sequence[float]) -> Any:
    return pytest.approx([100 * number for number in numbers])


def test_the_demo_gives_the_committed_numbers(
    demo: Path, world: World, request: pytest.FixtureRequest
) -> None:
    assert_committed(world, "demo", update=request.config.getoption("--update-golden"))


def test_the_terminal_gets_the_story_alone(demo: Path, world: World, rows: Rows) -> None:
    lines = world.printed["demo"].splitlines()
    assert len(lines) <= 25
    *story, page, seconds, notices = lines
    assert page == f"page: {(demo / 'report.html').resolve()}"
    assert re.fullmatch(r"in \d+ seconds", seconds)
    assert re.fullmatch(r"\d+ notices are on the page", notices)  # of questions that were cut
    assert max(map(len, story)) <= 80
    [start] = values(select(rows, protocol="zero_shot", metric="accuracy"))
    assert f"{100 * start:.1f} before training" in story[2]
    ends = select(rows, protocol="inoculation", split="report", dose="24")
    [end] = values(select(ends, metric="original_accuracy_after"))
    assert sum(f"→ {100 * end:.1f}" in line for line in story) == 1


def test_the_rows_are_the_zero_shot_accuracies(
    canvases: dict[str, Canvas], rows: Rows, demo: Path
) -> None:
    [row] = select(rows, protocol="zero_shot", metric="accuracy")
    [chance] = values(select(rows, protocol="zero_shot", metric="chance"))
    [axis] = canvases["zero_shot"].axes
    interval, mark, *_ = ([float(x) for x in line.get_xdata()] for line in axis.lines)
    assert interval == percent([float(row["ci_low"]), float(row["ci_high"])])
    assert mark == percent([float(row["value"])])
    value, low, high = (f"{100 * float(row[c]):.1f}" for c in ("value", "ci_low", "ci_high"))
    assert [text.get_text() for text in axis.texts if text.get_text()] == [
        value,
        f"{low}–{high}",
        f"chance {100 * chance:.1f}",
    ]
    for path in (demo / "figures" / "zero_shot.svg", demo / "report.html", demo / "report.md"):
        assert value in path.read_text(encoding="utf-8"), path
    [record] = read(demo / "tables" / "zero_shot.csv")
    for column, held in (("accuracy", "value"), ("ci_low",) * 2, ("ci_high",) * 2):
        assert float(record[column]) == float(row[held])
    assert record["num_items"] == row["num_items"]
    assert float(record["chance"]) == chance


@pytest.mark.parametrize(("control", "marker"), [("standard", "o"), ("no_language", "s")])
def test_the_curve_goes_through_the_means_over_seeds(
    canvases: dict[str, Canvas], rows: Rows, demo: Path, control: str, marker: str
) -> None:
    points = select(rows, protocol="curve", metric="accuracy", control=control)
    sizes = sorted({int(row["num_train"]) for row in points})
    assert sizes == [0, 16, 62]
    means = [fmean(values(select(points, num_train=str(size)))) for size in sizes]
    [axis] = canvases["learning_curve"].axes
    assert marked(axis, marker) == percent(means)
    records = select(read(demo / "tables" / "learning_curve.csv"), control=control)
    records.sort(key=lambda record: int(record["num_train"]))
    assert values(records, "accuracy") == pytest.approx(means)
    for record, size in zip(records, sizes, strict=True):
        seeds = values(select(points, num_train=str(size)))
        assert [float(record[f"seed_{end}"]) for end in ("min", "max")] == [min(seeds), max(seeds)]
        assert int(record["num_seeds"]) == len(seeds)


def test_the_inoculation_is_drawn_and_tabled_as_measured(
    canvases: dict[str, Canvas], rows: Rows, demo: Path
) -> None:
    report = select(rows, protocol="inoculation", split="report")
    doses = sorted({int(row["dose"]) for row in report})
    assert doses == [24]

    def measured(metric: str, dose: int, column: str = "value") -> float:
        [row] = select(report, metric=metric, dose=str(dose))
        return float(row[column])

    axis, control = canvases["inoculation"].axes
    assert any("choice only" in text.get_text().replace("\n", " ") for text in control.texts)
    correct = dict(zip("os", TASKS.values(), strict=True))
    for marker, (start, end) in correct.items():
        expected = [measured(start, 24), *(measured(end, dose) for dose in doses)]
        marks = [line for line in axis.lines if line.get_marker() == marker]
        assert [float(y) for line in marks for y in line.get_ydata()] == percent(expected)
    whiskers = [line for lines in axis.collections for line in lines.get_segments()]
    ends = {round(float(y), 6) for line in whiskers for _, y in line}
    for dose in doses:
        for column in ("ci_low", "ci_high"):
            for _, end in correct.values():
                assert round(100 * measured(end, dose, column), 6) in ends
    records = read(demo / "tables" / "inoculation.csv")
    assert [record["control"] for record in records] == ["", CONTROL]
    *records, last = records
    assert [int(record["dose"]) for record in records] == doses
    assert int(last["dose"]) == doses[-1]
    for record, dose in zip(records, doses, strict=True):
        for metric in ("probe_accuracy", "original_accuracy_after", "inoculation_cost"):
            assert float(record[metric]) == measured(metric, dose)


def test_the_heat_maps_hold_the_accuracies_by_difficulty(
    canvases: dict[str, Canvas], rows: Rows
) -> None:
    def cells(metric: str, dose: str) -> tuple[list[float], float]:
        measured_rows = [r for r in rows if (r["metric"], r["dose"]) == (metric, dose)]
        measured_rows = [r for r in measured_rows if r["protocol"] == "inoculation"]
        sisters = [r for r in measured_rows if r["subset"].startswith("hops=1 distractors=sister")]
        # 9, 4 and 1 items at distances of 1 to 3: the first two are ten together, the last is with
        # the ones before it.
        assert [r["num_items"] for r in sisters] == ["9", "4", "1"]
        merged = sum(float(r["value"]) * float(r["num_items"]) for r in sisters) / 14
        return values([r for r in measured_rows if r not in sisters]), merged

    times = ("difficulty_accuracy_before", "difficulty_accuracy")
    expected = [cells(metric, "24") for metric in times]
    for axis, (few, merged) in zip(canvases["difficulty"].axes, expected, strict=True):
        # Only the merged cells, of three columns, have enough items for a shade.
        shades = axis.images[0].get_array().compressed()
        assert [float(shade) for shade in shades] == pytest.approx([merged] * 3)
        texts = sorted(text.get_text() for text in axis.texts if text.get_fontsize() == 8)
        assert texts == sorted(f"{100 * value:.0f}" for value in (*few, merged))


def test_the_trajectories_are_those_of_the_selection_items(
    canvases: dict[str, Canvas], rows: Rows
) -> None:
    marks = {"o": "probe_accuracy", "s": "original_accuracy", "^": "aggregate"}
    axis, _ = canvases["selection"].axes  # and the control's
    assert axis.get_title(loc="left").endswith("k = 24")
    selection = select(rows, protocol="inoculation", split="selection", dose="24")
    for marker, metric in marks.items():
        points = sorted(select(selection, metric=metric), key=lambda row: int(row["epoch"]))
        assert marked(axis, marker) == percent(values(points))


def test_every_figure_and_table_is_on_the_page(demo: Path, canvases: dict[str, Canvas]) -> None:
    page = (demo / "report.html").read_text(encoding="utf-8")
    assert {path.stem for path in demo.glob("figures/*.svg")} == set(canvases)
    for path in demo.glob("tables/*.csv"):
        assert f'id="table-{path.stem}"' in page
