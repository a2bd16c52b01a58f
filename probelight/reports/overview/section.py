"""What the report begins with: the verdicts, and the plot of gains and costs."""

from __future__ import annotations

from probelight.reports.kit.columns import attributes, field, fields, text
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import percent
from probelight.reports.overview.grid import MARKS
from probelight.reports.overview.skills import Verdict, models_of, verdicts
from probelight.reports.overview.verdicts import HELD, RULES
from probelight.results.load import Results


def verdicts_table(results: Results) -> Table | None:
    """Skills by models: the verdict, the two numbers that say most of it, and the reason."""
    columns: list[Column[Verdict]] = [
        text("skill", lambda one: one.skill.words, small=lambda one: one.skill.about),
        field("kind", lambda one: one.skill.kind),
        field("probe", lambda one: one.skill.probe),
        field("about", lambda one: one.skill.about),
        attributes("model"),
    ]

    def of_model(model: str) -> list[Column[Verdict]]:
        return [
            text("verdict", _verdict, small=_numbers, group=model),
            fields(_full),
        ]

    found = verdicts(results)
    across: Across[Verdict] = Across(
        lambda one: one.model, lambda one: one.skill, of_model, models_of(found)
    )
    rules = " ".join(f"{word[0].upper()}{word[1:]}: {rule}" for word, rule in RULES.items())
    rules = f"{rules} {HELD}"
    return Declared("verdicts", "What each model knew, or learned", rules, columns, across).of(
        found
    )


def _verdict(one: Verdict) -> str:
    return f"{MARKS[one.judged.word]} {one.judged.said}"


def _numbers(one: Verdict) -> str:
    numbers = [f"{e.label} {percent(e.value)}" for e in one.judged.evidence]
    return "; ".join(filter(None, (", ".join(numbers), one.changes)))


def _full(one: Verdict) -> dict[str, object]:
    judged = one.judged
    first, second = [*judged.evidence, None, None][:2]
    return {
        "verdict": judged.word,
        "in_part": judged.in_part,
        "first_number": first and first.label,
        "first_value": first and first.value,
        "second_number": second and second.label,
        "second_value": second and second.value,
        "gain": one.gain,
        "cost": one.cost,
        "reason": judged.reason,
    }
