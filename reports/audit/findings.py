"""What an audit found, in sentences."""

from __future__ import annotations

from reports.audit.facts import LEAK, Entry, Rule, Verdict, entries, rules
from reports.kit.text import between, percent, points, sample, with_facts
from results.load import Results

_SAID: dict[Verdict, str] = {
    "gives itself away": "gives itself away: ",
    "may give itself away": "may give itself away: ",
}


def given_away(results: Results) -> list[str]:
    """A sentence a probe that the choices alone, or a simple rule, answer; and which are not so."""
    asked = [entry for entry in entries(results) if entry.sees_choices]
    worst: dict[str, Entry] = {}
    for entry in asked:
        before = worst.setdefault(entry.probe, entry)
        worst[entry.probe] = max(before, entry, key=lambda e: (bool(e.verdict), e.over or 0.0))
    flagged = [_sentence(entry) for entry in worst.values() if entry.verdict]
    best: dict[str, Rule] = {}
    for rule in rules(results):
        before_it = best.setdefault(rule.probe, rule)
        best[rule.probe] = max(before_it, rule, key=lambda r: (bool(r.verdict), r.over))
    flagged += [_of_rule(rule) for rule in best.values() if rule.verdict]
    clean = [entry.probe for entry in worst.values() if not entry.verdict]
    if clean:
        flagged.append(
            f"No baseline that sees the choices alone is more than {100 * LEAK:g} points over "
            f"chance on {', '.join(clean)}."
        )
    return flagged


def _of_rule(rule: Rule) -> str:
    row = rule.value
    interval = between(row.ci_low, row.ci_high)
    measured = with_facts(row.value, interval, sample(row.num_items, row.num_groups))
    return (
        f"{rule.probe} {_SAID[rule.verdict]}to choose {row.mode} is right in {measured} of its "
        f"{rule.split} items, {points(rule.over)} points over chance ({percent(rule.chance)}%)."
    )


def _sentence(entry: Entry) -> str:
    row = entry.value
    interval = between(row.ci_low, row.ci_high)
    measured = with_facts(row.value, interval, sample(row.num_items, row.num_groups))
    return (
        f"{entry.probe} {_SAID[entry.verdict]}{entry.model} answers {measured} of its "
        f"{entry.split} items from the choices alone, {points(entry.over)} points over chance "
        f"({percent(entry.chance)}%)."
    )
