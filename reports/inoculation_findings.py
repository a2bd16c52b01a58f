"""What inoculation gave and cost, in sentences made from the numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

from reports.inoculation import ON_REPORTED
from reports.inoculation_doses import Dose
from reports.layout import between, count, percent, unsigned

AT_CHANCE = "not distinguishable from chance"


def inoculated(line: Sequence[Dose]) -> str:
    """The largest dose of a line with its intervals, and in short what the smallest one gave."""
    text = _told(line[-1])
    if len(line) == 1:
        return text
    first = line[0]
    score, cost = first.mean("probe_accuracy"), first.mean("inoculation_cost")
    text += f" With k = {count(first.dose)} it came to {percent(score)}%"
    if first.interpretable and cost is not None:
        text += f", at a cost of {unsigned(cost)} points"
    return f"{text}."


def _told(dose: Dose) -> str:
    series = dose.series
    where = f"its {series.report_split} items" if series.report_split else "it"
    seeds = "" if len(dose.runs) == 1 else f" (mean of {len(dose.runs)} seeds)"
    text = (
        f"With k = {count(dose.dose)} examples of {series.probe}, {series.model}{seeds} went from "
        f"{_score(dose, 'probe_accuracy_before')} to {_score(dose, 'probe_accuracy')} on {where}"
    )
    low, high = dose.interval("probe_accuracy")
    chance = dose.mean("chance_probe")
    if chance is not None and low is not None and high is not None and low <= chance <= high:
        text += f", {AT_CHANCE} ({percent(chance)}%)"
    name = series.original_task or "the original task"
    text += (
        f"; {name} went from {_score(dose, 'original_accuracy_before')} to "
        f"{_score(dose, 'original_accuracy_after')}. {_cost(dose)}"
    )
    if all(run.epoch == 0 for run in dose.runs):
        text += " No checkpoint was better on average than the model before inoculation."
    if series.selection == ON_REPORTED:
        text += " The checkpoint was chosen on the reported items, as the paper did."
    return text


def _score(dose: Dose, metric: str) -> str:
    mean, interval = dose.mean(metric), between(*dose.interval(metric))
    if mean is None:
        return "an unrecorded score"
    rows = [run.measured[metric] for run in dose.runs if metric in run.measured]
    sizes = {row.num_items for row in rows}
    facts = [interval, f"n = {count(rows[0].num_items)}" if len(sizes) == 1 else ""]
    inside = ", ".join(fact for fact in facts if fact)
    return f"{percent(mean)}% ({inside})" if inside else f"{percent(mean)}%"


def _cost(dose: Dose) -> str:
    """The cost and whether it can be told from none, or that it cannot be read."""
    if not dose.interpretable:
        chance = dose.mean("chance_original")
        level = "" if chance is None else f" ({percent(chance)}%)"
        return (
            f"Before inoculation the original task was not above chance{level}, so the cost is "
            "not interpretable."
        )
    cost = dose.mean("inoculation_cost")
    if cost is None:
        return ""
    low, high = dose.interval("inoculation_cost")
    within = "" if low is None or high is None else f"{unsigned(low)} to {unsigned(high)}"
    interval = f" (95% interval {within})" if within else ""
    text = f"The inoculation cost was {unsigned(cost)} points{interval}"
    if low is not None and high is not None:
        if low <= 0 <= high:
            return f"{text}, not distinguishable from none."
        if high < 0:
            return f"{text}: the original task gained."
    return f"{text}."
