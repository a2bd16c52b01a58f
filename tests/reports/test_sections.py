from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import matplotlib as mpl
import pytest

import probelight.reports
from probelight.reports import sections
from probelight.reports.build import build_report
from probelight.reports.figure import Figure
from probelight.reports.sections import (
    CONDITIONS,
    ON_PAGE,
    SECTIONS,
    Section,
    filled_sections,
    named,
)
from probelight.results.load import RunSet, load_results
from tests.fixtures.grids import always_smaller, write_grid
from tests.fixtures.results import write_run, zero_shot_rows


def test_everything_is_written(demo_report: Path) -> None:
    paths = sorted(p.relative_to(demo_report).as_posix() for p in demo_report.rglob("*.*"))
    figures = ("inoculation", "learning_curve", "selection", "zero_shot")
    tables = (
        "curve_summary_age_comparison data inoculation learning_curve models "
        "predicted_shares runs software verdicts zero_shot zero_shot_parts"
    ).split()
    assert paths == sorted(
        [f"figures/{name}.{kind}" for name in figures for kind in ("pdf", "png", "svg")]
        + [f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md", "tex")]
        + ["report.html", "report.md"]
    )


@pytest.mark.thorough
def test_a_report_in_its_folder_gives_the_same_bytes_again(demo_folder: Path) -> None:
    def content() -> dict[Path, bytes]:
        assert build_report(demo_folder).parent == demo_folder
        return {path: path.read_bytes() for path in demo_folder.rglob("*") if path.is_file()}

    assert content() == content()


def test_no_results_is_a_helpful_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no results here"):
        build_report(tmp_path)
    assert not list(tmp_path.iterdir())


EMPTY = RunSet("empty", ())
TABLES = [maker.removesuffix(ON_PAGE) for s in SECTIONS for maker in named(s.tables)]
FIGURES = [maker for section in SECTIONS for maker in named(section.figures)]
SUMMARIES = [maker for section in SECTIONS for maker in named(section.summary)]


def figures(results: RunSet) -> list[Figure]:
    return [figure for section in filled_sections(results) for figure in section.figures]


@pytest.mark.thorough
def test_a_section_has_one_short_paragraph(demo_folder: Path) -> None:
    for section in filled_sections(load_results(demo_folder)):
        assert "\n" not in section.summary
        assert len(section.summary) < 1200, section.name


def test_nothing_to_show() -> None:
    assert filled_sections(EMPTY) == []
    for maker in TABLES + FIGURES + SUMMARIES:
        assert not resolve_name(f"probelight.reports.{maker}")(EMPTY), maker
    assert {*CONDITIONS} <= {maker.partition(":")[0] for maker in TABLES}


def test_every_maker_of_a_table_or_figure_is_in_a_section() -> None:
    root = Path(probelight.reports.__file__).parent
    makers = {
        f"{'.'.join(path.relative_to(root).with_suffix('').parts)}:{name}"
        for path in root.rglob("*.py")
        for name in re.findall(r"^def ((?!_)\w+)\(results: RunSet", path.read_text("utf-8"), re.M)
        if name.endswith(("_table", "_tables", "_figure", "_figures"))
    }
    assert makers == {*TABLES, *FIGURES}


def test_two_tables_of_one_name_are_refused(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [Section(name, "", tables=["zero_shot.scores: zero_shot_table"]) for name in "ab"]
    monkeypatch.setattr(sections, "SECTIONS", twice)
    with pytest.raises(ValueError, match="tables of one name: zero_shot"):
        filled_sections(load_results(demo_folder))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "unused"),
    [
        (
            "printed('zero_shot', results)",
            "papers overview curve inoculation concepts steps zero_shot.consistency matplotlib",
        ),
        (
            "resolve_name('probelight.reports.overview.story').story(results)",
            "curve diagnostics inoculation page matplotlib",
        ),
        ("filled_sections(results)", ""),
    ],
)
def test_what_nobody_ran_is_not_loaded(make: str, unused: str, tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 5, 10, 2))
    lines = [
        "import sys",
        "from pathlib import Path",
        "from pkgutil import resolve_name",
        "from probelight.reports.sections import filled_sections, printed",
        "from probelight.results.load import load_results",
        f"results = load_results(Path({str(tmp_path)!r}))",
        f"assert {make}",
        "print(*sys.modules)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    loaded = {name.removeprefix("probelight.reports.") for name in done.stdout.split()}
    assert "zero_shot.scores" in loaded
    always = {"audit", "analyses", "compare", "grids", "torch", "lightning"}
    assert not {*unused.split(), *always} & loaded


def test_single_points_and_missing_intervals_can_be_drawn(tmp_path: Path) -> None:
    bare = {"metric": "accuracy", "value": 0.5, "model": "m", "probe": "p"}
    write_run(tmp_path, "a", [{**bare, "protocol": "zero_shot"}])
    write_run(tmp_path, "b", [{**bare, "protocol": "curve", "num_train": 0}])
    measured = {"protocol": "inoculation", "dose": 100, "metric": "probe_accuracy"}
    write_run(tmp_path, "c", [{**bare, **measured}])
    names = {figure.name for figure in figures(load_results(tmp_path))}
    assert names >= {"zero_shot", "learning_curve", "inoculation"}
    assert "selection" not in names


@pytest.fixture
def loud_matplotlibrc() -> Iterator[None]:
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        yield


@pytest.mark.thorough
def test_same_bytes_whatever_the_users_settings(demo_folder: Path, loud_matplotlibrc: None) -> None:
    for grid, values in (("A", [20, 30]), ("sizes", ["nail", "pen"])):
        write_grid(demo_folder, grid, values, always_smaller)
    demo = load_results(demo_folder)
    drawn = figures(demo)
    with mpl.rc_context():
        mpl.rcdefaults()
        there = figures(demo)
    assert drawn == there
    assert len(drawn) == 4 + 2
    for figure in drawn:
        assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", figure.svg)
