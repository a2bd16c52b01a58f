"""Tables of systems that were compared on the items that they share."""

from __future__ import annotations

from reports.compare.facts import Difference, OneSystem, differences, systems
from reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    field,
    gap,
    number,
    size,
    text,
)
from reports.kit.table import Column, Declared, Table
from reports.kit.text import ABSENT, BY_GROUPS, INTERVAL, count, points
from results.load import Results


def systems_table(results: Results) -> Table | None:
    """Accuracy of each system, and which of them are not told apart."""
    found = systems(results)
    several = any((one.num_runs or 1) > 1 for one in found)
    runs: Column[OneSystem] = number("seeds", lambda e: e.num_runs, count, "num_runs")
    columns: list[Column[OneSystem]] = [
        text("probe", lambda e: e.place.probe, "probe", lambda e: e.place.detail),
        *_place_fields(),
        text("system", lambda e: e.name, "system"),
        accuracy("accuracy %", lambda e: e.accuracy, ACCURACY),
        text("letters", lambda e: e.letters, "letters"),
        runs if several else runs.hidden,
        size("n", lambda e: e.accuracy, SIZE),
    ]
    return Declared(
        "compared_systems",
        "Systems on the same items",
        f"{INTERVAL} ({BY_GROUPS}; over seeds too where there are several). Systems that share a "
        "letter are not told apart (Piepho 2004), which does not say that they are equally good.",
        columns,
    ).of(found)


def differences_table(results: Results) -> Table | None:
    """Each two systems: difference, tests, and what could have been seen."""
    found = differences(results)
    several = any((number or 1) > 1 for one in found for number in one.num_runs)
    pairs = found[0].place.facts.num_pairs if found else 0
    columns: list[Column[Difference]] = [
        text("probe", lambda e: e.place.probe, "probe", lambda e: e.place.detail),
        *_place_fields(),
        text("first", lambda e: e.first, "first"),
        text("second", lambda e: e.second, "second"),
        gap("first − second", lambda e: e.difference, "difference ci_low ci_high"),
        field("mcnemar_p", lambda e: e.mcnemar_p),
        number("p", lambda e: e.p_value, _p, "p_value"),
        number("adjusted p", lambda e: e.adjusted, _p, "adjusted_p_value"),
        text("told apart", lambda e: "yes" if e.are_apart else "no", "told_apart"),
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
        "Are the differences real?",
        f"Differences in percentage points with their 95% intervals. {tests} Adjusted p: "
        f"Benjamini and Hochberg's, over all {count(pairs)} comparisons made together; below 0.05 "
        "two systems are told apart, and 5% of such findings may be expected to be false. Could "
        "have seen: the smallest difference that these items, their groups and seeds would have "
        "shown with probability 80% (Connor 1987); a smaller one may be there unseen.",
        columns,
    ).of(found)


def _place_fields() -> list[Column]:  # type: ignore[type-arg]
    return [
        attributes("split", lambda e: e.place),
        attributes("answered setting", lambda e: e.place.facts),
    ]


def _p(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _unsigned(value: float | None) -> str:
    return "nothing" if value is None else points(value).removeprefix("+")
