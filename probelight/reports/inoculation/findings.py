"""What inoculation gave and cost, in sentences made from the numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import ON_REPORTED, Inoculation, with_controls
from probelight.reports.kit.text import between, count, percent, sample, unsigned, with_facts
from probelight.reports.zero_shot.facts import AT_CHANCE, chance_text, verdict_of
from probelight.results.load import Results

AT_NONE = "not distinguishable from none"
BELOW_START = (
    "On the selection items the chosen checkpoint's average of both tasks was below that of the "
    "model before inoculation"
)


def inoculated(results: Results) -> list[str]:
    """A paragraph an inoculation."""
    return [paragraph(line) for line in doses(with_controls(results)).values()]


def paragraph(line: Sequence[Dose]) -> str:
    """The largest dose of a line with its intervals, and in short what the smallest one gave."""
    text = _told(line[-1])
    if len(line) == 1:
        return text
    first = line[0]
    seeds = "" if len(first.runs) == len(line[-1].runs) else f" ({_seeds(len(first.runs))})"
    text += (
        f" With k = {count(first.dose)}{seeds} it came to {percent(first.mean('probe_accuracy'))}%"
    )
    return f"{text}{_short_cost(first) if first.interpretable else ''}."


def _told(dose: Dose) -> str:
    series = dose.series
    where = f"its {series.report_split} items" if series.report_split else "it"
    about = [
        series.control.replace("_", " "),
        f"setup {series.setup}" if series.setup else "",
        "" if len(dose.runs) == 1 else _seeds(len(dose.runs)),
    ]
    inside = ", ".join(filter(None, about))
    model = f"{series.model} ({inside})" if inside else series.model
    text = (
        f"With k = {count(dose.dose)} examples of {series.probe}, {model} went from "
        f"{_score(dose, 'probe_accuracy_before')} to {_score(dose, 'probe_accuracy')} on {where}"
    )
    low, high = dose.interval("probe_accuracy")
    floor = dose.floor("probe")
    chance = chance_text(dose.mean("chance_probe"), floor)
    text += {
        "not distinguishable": f", {AT_CHANCE} ({chance})",
        "below": f", which is below chance ({chance})",
    }.get(verdict_of((low, high), floor), "")
    name = series.original_task or "the original task"
    # Where the original task gained, that it was trained on too stands beside that.
    extras = "" if _gained(dose) else _extras(dose)
    text += (
        f"; {name} went from {_score(dose, 'original_accuracy_before')} to "
        f"{_score(dose, 'original_accuracy_after')}{extras}.{_cost(dose)}"
    )
    if not dose.recorded:
        text += " Its runs did not record what each item counted, so the means have no interval."
    if below := sum(map(_below_start, dose.runs)):
        text += f" {BELOW_START}{_share(below, len(dose.runs))}."
    if series.selection == ON_REPORTED:
        text += " The checkpoint was chosen on the reported items, as the paper did."
    return text


def _score(dose: Dose, metric: str) -> str:
    mean, interval = dose.mean(metric), between(*dose.interval(metric))
    if mean is None:
        return "an unrecorded score"
    rows = [run.measured[metric] for run in dose.runs if metric in run.measured]
    sizes = {(row.num_items, row.num_groups) for row in rows}
    return with_facts(mean, interval, sample(*sizes.pop()) if len(sizes) == 1 else "")


def _cost(dose: Dose) -> str:
    """A sentence: the cost and whether it can be told from none, or that it cannot be read."""
    if not dose.interpretable:
        floor = dose.floor("original")
        chance = chance_text(dose.mean("chance_original"), floor)
        level = "" if floor is None else f" ({chance})"
        return (
            f" Before inoculation the original task was not above chance{level}, so the cost is "
            "not interpretable."
        )
    cost = dose.mean("inoculation_cost")
    if cost is None:
        return ""
    low, high = dose.interval("inoculation_cost")
    text = f" The inoculation cost was {unsigned(cost)} points{_within(low, high)}"
    if _gained(dose):
        return f"{text}: the original task gained{_extras(dose)}."
    return f"{text}{_verdict(low, high)}."


def _short_cost(dose: Dose) -> str:
    """The cost, or the gain, as the end of a sentence."""
    cost = dose.mean("inoculation_cost")
    if cost is None:
        return ""
    low, high = dose.interval("inoculation_cost")
    if round(cost, 3) >= 0:  # as it is printed
        text = f", at a cost of {unsigned(cost)} points{_within(low, high)}"
    else:
        gain = (None, None) if low is None or high is None else (-high, -low)
        text = f", while the original task gained {unsigned(-cost)} points{_within(*gain)}"
    return f"{text}{_verdict(low, high)}{_extras(dose)}"


def _within(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" (95% interval {unsigned(low)} to {unsigned(high)})"


def _verdict(low: float | None, high: float | None) -> str:
    return f", {AT_NONE}" if low is not None and high is not None and low <= 0 <= high else ""


def _gained(dose: Dose) -> bool:
    """Whether the original task gained beyond doubt, where that can be read."""
    high = dose.interval("inoculation_cost")[1]
    return dose.interpretable and high is not None and high < 0


def _extras(dose: Dose) -> str:
    """Which settings added original-task examples; empty where none did."""
    chosen = Counter(run.extra for run in dose.runs if run.extra != "none")
    told = [f"extra {extra}{_share(chosen[extra], len(dose.runs))}" for extra in sorted(chosen)]
    return f", with original-task examples added ({', '.join(told)})" if told else ""


def _below_start(run: Inoculation) -> bool:
    """Whether M* is worse than the model before inoculation by what it was chosen for."""
    start, chosen = run.trajectory.get("aggregate", {}).get(0), run.selected_on("aggregate")
    # Rounded, because a sum's last bit is no loss.
    return start is not None and chosen is not None and round(chosen, 9) < round(start, 9)


def _share(number: int, whole: int) -> str:
    return "" if number == whole else f" in {number} of {whole} seeds"


def _seeds(number: int) -> str:
    return "one seed" if number == 1 else f"mean of {number} seeds"


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    return " ".join(inoculated(results))
