from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import pytest

import probelight.reports
from probelight.reports.curve.figures.controls import control_figures
from probelight.reports.figure import Figure
from probelight.reports.inoculation.figures import inoculation_figure, trajectory_figure
from probelight.reports.kit.section import Section, TableMaker
from probelight.reports.kit.table import Table
from probelight.reports.sections import made_sections, sections
from probelight.reports.zero_shot.figures import zero_shot_figure
from probelight.results.load import Results, load_results
from tests.fixtures.report import findings, tables

WriteRun = Callable[..., Path]


def test_demo_makes_the_tables_it_has_numbers_for(demo_folder: Path) -> None:
    assert list(tables(demo_folder)) == [
        "verdicts",
        "zero_shot",
        "predicted_shares",
        "zero_shot_parts",
        "curve_summary_age_comparison",
        "curve_medals",
        "learning_curve",
        "inoculation",
        "models",
        "data",
        "software",
        "runs",
    ]


def test_every_row_is_as_long_as_its_heading(demo_folder: Path) -> None:
    for table in tables(demo_folder).values():
        assert table.rows or table.note.startswith("No curve is judged")
        assert {len(row) for row in table.rows} <= {len(table.columns)}


def test_long_folders_are_told_briefly(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    more: dict[str, Any] = {"selection": [(0.2, 0.2), (0.3, 0.2)], "epoch": 1}
    more |= {"probe_correct": (200, 210), "original_correct": (100, 98)}
    for dose in (100, 250, 500):
        write_run(tmp_path, f"d{dose}", rows.inoculation(dose=dose, **more))
        write_run(tmp_path, f"e{dose}", rows.inoculation(dose=dose, probe="hyponymy", **more))
    for i in range(8):
        write_run(tmp_path, f"c{i}", rows.curve(f"p{i}", "standard", {62: [5]}, 10))
    said = findings(tmp_path)
    assert len(said) == 6 + 1 + 2
    assert said[6] == "2 more curves stand in the tables below."
    assert [text[:12] for text in said[7:]] == ["With k = 500", "With k = 500"]


def test_nothing_to_show() -> None:
    empty = Results("empty", ())
    assert all(not (own.tables or own.figures or own.findings) for own in made_sections(empty))


def test_every_maker_of_a_table_or_figure_stands_in_a_section() -> None:
    """Makers are known by their names, so that one that nobody lists is found."""
    makers = [make for section in sections() for make in section.tables]
    listed = {getattr(make, "func", make).__name__ for make in makers}  # one is a partial
    drawn = {name.partition(":")[2] for section in sections() for name in section.figures}
    written: dict[str, set[str]] = {"table": set(), "figure": set()}
    for path in Path(probelight.reports.__file__).parent.rglob("*.py"):
        names = re.findall(r"^def ((?!_)\w+)\(results: Results", path.read_text("utf-8"), re.M)
        for kind, known in written.items():
            known.update(name for name in names if name.endswith((f"_{kind}", f"_{kind}s")))
    assert written == {"table": listed, "figure": drawn}


def test_every_figure_that_is_registered_is_there() -> None:
    names = [name for section in sections() for name in section.figures]
    assert all(callable(resolve_name(name)) for name in names)


def test_what_is_printed_is_on_the_page() -> None:
    def plain(makers: Sequence[TableMaker]) -> set[object]:
        """The page has some without the paper's numbers."""
        return {maker.func if isinstance(maker, partial) else maker for maker in makers}

    for section in sections():
        for protocol, makers in section.printed.items():
            assert plain(makers) <= plain(section.tables), protocol


def test_two_tables_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(results: Results) -> Table:
        return Table("one", "", "", (), (), ())

    twice = Section("a", "", (same,)), Section("b", "", (same,))
    monkeypatch.setattr("probelight.reports.sections.sections", lambda rule: twice)
    with pytest.raises(ValueError, match="tables of one name: one"):
        made_sections(Results("empty", ()))


def curve_figure(results: Results) -> Figure | None:
    return next(iter(control_figures(results)), None)


MAKERS = (zero_shot_figure, curve_figure, inoculation_figure, trajectory_figure)


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
    make: Callable[[Results], Figure | None], demo_folder: Path, loud_matplotlibrc: None
) -> None:
    demo = load_results(demo_folder)
    here = make(demo)
    with mpl.rc_context():
        mpl.rcdefaults()
        there = make(demo)
    assert here == there
    assert here is not None
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", here.svg)
