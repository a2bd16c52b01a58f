from __future__ import annotations

from probelight.reports.kit.figure import Figure
from probelight.reports.kit.section import Made, Section, flat
from probelight.reports.kit.table import Table
from probelight.results.load import Results

EMPTY = Results("empty", ())


def table(name: str) -> Table:
    return Table(name, name.title(), "", (), (), ())


def figure(results: Results) -> Figure:
    """Registered below by its name."""
    return Figure("drawn", f"Of {results.name}", "", "<svg/>", b"")


def test_a_section_is_made_of_what_its_makers_give() -> None:
    section = Section(
        "mine",
        "Mine",
        tables=(lambda r: table("one"), lambda r: None, lambda r: [table("two"), table("three")]),
        figures=(f"{__name__}:figure",),
        findings=lambda results: ["It is so."],
    )
    made = section.made(EMPTY)
    assert (made.name, made.title, made.findings) == ("mine", "Mine", ("It is so.",))
    assert [own.title for own in made.figures] == ["Of empty"]
    assert [own.name for own in made.tables] == ["one", "two", "three"]


def test_what_is_not_there_is_left_out() -> None:
    assert Section("mine", "Mine", tables=()).made(EMPTY) == Made("mine", "Mine", (), (), ())
    assert flat([None, [], [table("a"), table("b")], table("c")]) == tuple(map(table, "abc"))
