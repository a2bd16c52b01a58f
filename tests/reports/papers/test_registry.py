from __future__ import annotations

from collections import defaultdict

from probelight.reports.kit.published import published_curves
from probelight.reports.papers.registry import ETTINGER, REGISTRY, RICHARDSON, TALMOR


def test_every_table_of_the_papers_is_listed_once() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for table in REGISTRY:
        kind, _, rest = table.place.partition(" ")
        if kind == "table":
            numbers[table.paper].append(int(rest.partition(",")[0]))
    assert numbers[TALMOR] == list(range(1, 13))
    assert numbers[RICHARDSON] == [1, 2, 3, 4, 5, 6, 7, 7, 8]
    assert numbers[ETTINGER] == list(range(1, 16))
    places = [(table.paper, table.place) for table in REGISTRY]
    assert len(places) == len(set(places))


def test_what_has_published_numbers_is_shown_with_them() -> None:
    ours = {int(t.place[6:]) for t in REGISTRY if t.paper == TALMOR and t.beside is not None}
    assert ours == {row.table for row in published_curves()}


def test_a_table_is_shown_where_a_command_makes_it() -> None:
    for table in REGISTRY:
        assert bool(table.command) == (table.beside is not None or bool(table.shown))
