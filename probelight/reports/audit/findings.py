"""What an audit found, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from probelight.reports.audit.facts import LEAK, Entry, Rule, Verdict, entries, rules
from probelight.reports.kit.text import between, percent, points, sample, with_facts
from probelight.results.load import Results

Found = TypeVar("Found", Entry, Rule)
_SAID: dict[Verdict, str] = {
    "gives itself away": "gives itself away: ",
    "may give itself away": "may give itself away: ",
}


def given_away(results: Results) -> list[str]:
    """A sentence a probe that the choices alone, or a simple rule, answer; and which are not so."""
    blind = _worst([entry for entry in entries(results) if entry.sees_choices])
    flagged = [
        _sentence(one, f"{one.model} answers", " from the choices alone")
        for one in blind
        if one.verdict
    ]
    flagged += [
        _sentence(one, f"to choose {one.value.scoring} is right in")
        for one in _worst(rules(results))
        if one.verdict
    ]
    clean = [one.probe for one in blind if not one.verdict]
    if clean:
        flagged.append(
            f"No baseline that sees the choices alone is more than {100 * LEAK:g} points over "
            f"chance on {', '.join(clean)}."
        )
    return flagged


def _worst(found: Iterable[Found]) -> list[Found]:
    """Return what is furthest over chance on each probe, flagged ones first."""
    worst: dict[str, Found] = {}
    for one in found:
        before = worst.setdefault(one.probe, one)
        worst[one.probe] = max(before, one, key=lambda e: (bool(e.verdict), e.over or 0.0))
    return list(worst.values())


def _sentence(one: Entry | Rule, what: str, how: str = "") -> str:
    row = one.value
    interval = between(row.ci_low, row.ci_high)
    measured = with_facts(row.value, interval, sample(row.num_items, row.num_groups))
    return (
        f"{one.probe} {_SAID[one.verdict]}{what} {measured} of its {one.split} items{how}, "
        f"{points(one.over)} points over chance ({percent(one.chance)}%)."
    )


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    return " ".join(given_away(results))
