"""Tables of systems that were compared on the items that they share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from probelight.reports.compare.facts import Difference, OneSystem, differences, systems
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    column,
    field,
    gap,
    number,
    text,
    whole,
)
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT, BY_GROUPS, INTERVAL, count, points, sample
from probelight.results.load import Results

_BESIDE = 3  # systems that stand side by side


def systems_table(results: Results) -> Table | None:
    """Accuracy of each system, and which of them are not told apart."""
    found = systems(results)
    names = list(dict.fromkeys(name for one in found for name in one.place.facts.num_runs))
    beside = len(names) <= _BESIDE

    def of_system(group: str) -> list[Column[OneSystem]]:
        seeds: Column[OneSystem] = whole("seeds", lambda e: e.num_runs, "num_runs", group)
        return [
            accuracy("accuracy %", lambda e: e.accuracy, ACCURACY, group),
            text("letters", lambda e: e.letters, "letters", group=group),
            seeds if any((one.num_runs or 1) > 1 for one in found) else seeds.hidden,
        ]

    name: Column[OneSystem] = text("system", lambda e: e.name, "system")
    columns: list[Column[OneSystem]] = [
        text("probe", lambda e: e.place.probe, "probe", _measured_on),
        name.hidden if beside else name,
        *_place_fields(),
        *([] if beside else of_system("")),
        attributes(SIZE, lambda e: e.accuracy),
    ]
    return Declared(
        "compared_systems",
        "Which systems are not told apart?",
        f"{INTERVAL} ({BY_GROUPS}; over seeds too where there are several). Systems that share a "
        "letter are not told apart (Piepho 2004), which does not say that they are equally good.",
        columns,
        Across(lambda e: e.name, lambda e: e.place, of_system, names) if beside else None,
        f"probe split answered setting system {ACCURACY} letters",
    ).of(found)


def differences_table(results: Results) -> Table | None:
    """Each two systems: difference, tests, and what could have been seen."""
    found = differences(results)
    several = any((number or 1) > 1 for one in found for number in one.num_runs)
    sizes = sorted({one.place.facts.num_pairs for one in found})
    made = " and ".join(map(count, sizes))
    two = {(one.first, one.second) for one in found}
    pair: Column[Difference] = text(
        "first − second",
        lambda e: e.first,
        "first",
        lambda e: f"− {e.second}",
    )
    columns: list[Column[Difference]] = [
        text("probe", lambda e: e.place.probe, "probe", lambda e: e.place.detail),
        *_place_fields(),
        pair.hidden if len(two) == 1 else pair,
        field("second", lambda e: e.second),
        gap("difference", lambda e: e.difference, "difference ci_low ci_high"),
        attributes("mcnemar_p"),
        number("p", lambda e: e.p_value, _p, "p_value"),
        column(Heading("adjusted p"), lambda e: e, _adjusted, "adjusted_p_value", _told),
        number("could have seen", lambda e: e.smallest, _unsigned, "smallest_difference"),
        attributes(SIZE, lambda e: e.difference),
    ]
    tests = "p: McNemar's exact test, by groups where items come in groups."
    if several:
        tests += (
            " Where a system has several seeds, that test takes each item's mean over them, and p "
            "is not below that of the interval, which knows of seeds too (Sellam et al. 2022)."
        )
    return Declared(
        "compared",
        _title(two),
        f"Differences in percentage points with their 95% intervals. {tests} Adjusted p: "
        f"Benjamini and Hochberg's, over all comparisons made together ({made}); below 0.05 two "
        "systems are told apart, and 5% of such findings may be expected to be false. Could have "
        "seen: the smallest difference that these items, their groups and seeds would have shown "
        "with probability 80% (Connor 1987); a smaller one may be there unseen.",
        columns,
    ).of(found)


def _title(pairs: Collection[tuple[str, str]]) -> str:
    """With the two systems, where there are no others: no column names them then."""
    title = "Are the differences real?"
    return title if len(pairs) != 1 else f"{title} {' − '.join(*pairs)}"


def _place_fields() -> list[Column[Any]]:
    return [
        attributes("split", lambda e: e.place),
        attributes("answered setting", lambda e: e.place.facts),
    ]


def _measured_on(one: OneSystem) -> str:
    return f"{one.place.detail}, {sample(one.accuracy.num_items, one.accuracy.num_groups)}"


def _adjusted(one: Difference) -> Cell:
    return Cell(_p(one.adjusted), "told apart" if one.are_apart else "")


def _told(one: Difference) -> tuple[float | None]:
    return (one.adjusted,)


def _p(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _unsigned(value: float | None) -> str:
    return "nothing" if value is None else points(value).removeprefix("+")
