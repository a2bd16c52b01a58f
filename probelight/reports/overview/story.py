"""What a command's results say, in few lines of text: the verdicts, two small charts, one item.

No line is wider than 80 columns, however wide the terminal is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from probelight.io.escaping import visible
from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import Curve
from probelight.reports.curve.facts import NO_LANGUAGE, curves
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import inoculations
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.text import count, in_words, percent, points, points_between
from probelight.reports.overview.case import or_none
from probelight.reports.overview.evidence import HOW
from probelight.reports.overview.examples import cut, example
from probelight.reports.overview.grid import MARKS
from probelight.reports.overview.skills import Verdict, verdicts
from probelight.reports.overview.verdicts import Word
from probelight.results.load import Results

WIDTH = 80
MOST_VERDICTS = 7  # lines
LONGEST_NAME = 30
LEAST_REACH = 0.2  # of a chart, from its lowest bar to its highest: noise stays low
BARS = "▁▂▃▄▅▆▇█"
# For terminals that show nothing else; each is one character, so that columns stay columns.
ASCII = str.maketrans("▁▂▃▄▅▆▇█✓↗○→–−…", "_.,-=+*#+/o>--~")
# What gives way, one after the other, where a line is too long.
_SHORTER = (
    ("the most frequent answer", "majority"),
    ("from the choices alone", "choices alone"),
    ("before inoculation", "before"),
    (" examples", ""),
    ("its language", "language"),
    ("without", "w/o"),
    ("accuracy in %", "%"),
)


def story(results: Results) -> list[str]:
    """The lines, at most 21; empty where nothing in the results can be judged."""
    found = verdicts(results)
    if not found:
        return []
    models = list(dict.fromkeys(verdict.model for verdict in found))
    who, it = (cut(models[0], LONGEST_NAME), "it")
    if len(models) > 1:
        who, it = (f"{len(models)} models", "they")
    lines = [
        f"What {who} knew, what {it} learned, and what that cost (accuracy in %)",
        "",
        *_judged(found, named=len(models) > 1),
    ]
    for block in (_curve(results, found), _inoculation(results), _item(results, found)):
        lines += ["", *block] if block else []
    return [_fitted(visible(line).replace("\n", " ")) for line in lines]


def bars(values: Sequence[float], low: float, high: float) -> str:
    """One character a value, the higher the more; values outside of the ends are at the ends.

    Args:
        values: What is drawn.
        low: The value of the lowest bar.
        high: That of the highest; where it is no higher than `low`, all bars are low.
    """
    reach = max(high - low, 0.0)
    places = [(value - low) / reach if reach else 0.0 for value in values]
    return "".join(BARS[round(min(max(place, 0.0), 1.0) * (len(BARS) - 1))] for place in places)


def _judged(found: Sequence[Verdict], named: bool) -> Iterator[str]:
    shown = found if len(found) <= MOST_VERDICTS else found[: MOST_VERDICTS - 1]
    names = [f"{v.skill.words}, {v.model}" if named else v.skill.words for v in shown]
    names = [cut(name, LONGEST_NAME) for name in names]
    wide = max(map(len, names))
    word = max(len(verdict.judged.said) for verdict in shown)
    for name, verdict in zip(names, shown, strict=True):
        judged = verdict.judged
        numbers = ", ".join(f"{percent(one.value)} {one.label}" for one in judged.evidence)
        yield f"{MARKS[judged.word]} {name:<{wide}}  {judged.said:<{word}}  {numbers}"
    if len(found) > len(shown):
        yield f"  and {len(found) - len(shown)} more on the page"


def _curve(results: Results, found: Sequence[Verdict]) -> list[str]:
    """The curve with a control of the skill with the best verdict."""
    rank = {(v.skill.probe, v.model): place for place, v in enumerate(_ranked(found))}
    known = [c for c in curves(results) if NO_LANGUAGE in c.controls and _sizes(c)]
    if not known:
        return []
    curve = min(known, key=lambda c: rank.get((c.probe, c.model), len(rank)))
    sizes = _sizes(curve)
    rows = {
        "as it is asked": _values(curve, STANDARD, sizes),
        HOW[NO_LANGUAGE]: _values(curve, NO_LANGUAGE, sizes),
    }
    chance = "" if curve.chance is None else f" (chance {percent(curve.chance)})"
    head = f"{in_words(curve.probe)}: {_spelled(sizes)} examples{chance}"
    return [head, *_charts(rows, curve.chance)]


def _sizes(curve: Curve) -> list[int]:
    """The sizes that the curve and its control both have."""
    standard, control = ({p.num_train for p in curve.points[c]} for c in (STANDARD, NO_LANGUAGE))
    return sorted(standard & control)


def _values(curve: Curve, control: str, sizes: Sequence[int]) -> list[float]:
    means = {point.num_train: point.mean for point in curve.points[control]}
    return [means[size] for size in sizes]


def _inoculation(results: Results) -> list[str]:
    """The inoculations of the first original task and probe: what both sides scored."""
    for series, line in doses(inoculations(results)).items():
        probe = cut(in_words(series.probe), LONGEST_NAME)
        original = cut(in_words(series.original_task or "its original task"), LONGEST_NAME)
        if original == probe:
            original = "original task"
        rows = {
            probe: _side(line, "probe_accuracy_before", "probe_accuracy"),
            original: _side(line, "original_accuracy_before", "original_accuracy_after"),
        }
        if not all(rows.values()):
            continue
        last = line[-1]
        said = [f"gain {_change(last.gain)}", f"cost {_change(last.estimate('inoculation_cost'))}"]
        if not last.interpretable:
            said[1] = "cost not interpretable"
        sizes = [0, *(dose.dose for dose in line if dose.dose)]
        head = f"{probe}, inoculated: {_spelled(sizes)} examples"
        # Names give way, so that no line is cut before it says whether there was a change at all.
        room = WIDTH - len(f"    {BARS}  00.0 → 00.0  ") + len(BARS) - len(sizes)
        room = max(room - max(map(len, said)), 8)
        names = [cut(name, room) for name in rows]
        if len({*names}) < len(rows):
            names = ["probe", "original"]
        rows = dict(zip(names, rows.values(), strict=True))
        charts = _charts(rows, min(min(values) for values in rows.values()))
        return [head, *(f"{chart}  {what}" for chart, what in zip(charts, said, strict=True))]
    return []


def _item(results: Results, found: Sequence[Verdict]) -> list[str]:
    """An item of the skill with the best verdict of those that have one, and what was answered."""
    for verdict in _ranked(found):
        one = example(results, [verdict])
        if one is None:
            continue
        asked = one.question or "Which sentence is right?"
        right = next(choice.text for choice in one.choices if choice.is_right)
        said = next((choice.text for choice in one.choices if choice.models), "nothing")
        told = {"One item: ": asked, "  right answer: ": right, f"  {one.when} it said: ": said}
        return [head + cut(text, WIDTH - len(head)) for head, text in told.items()]
    return []


def _ranked(found: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts from what was known to what was not shown."""
    order: list[Word] = ["knew it", "learned it", "cannot tell", "not shown"]
    return sorted(found, key=lambda verdict: order.index(verdict.judged.word))


def _side(line: Sequence[Dose], before: str, after: str) -> list[float]:
    """Accuracies by dose behind that before any; empty where one is missing."""
    start = line[0].mean(before)
    values = [dose.mean(after) for dose in line if dose.dose]
    known = [value for value in (start, *values) if value is not None]
    return known if len(known) == len(values) + 1 else []


def _charts(rows: Mapping[str, Sequence[float]], low: float | None) -> list[str]:
    """Rows of bars on one scale, with the first value and the last."""
    values = [value for row in rows.values() for value in row]
    low = min(values) if low is None else min(low, *values)
    high = max(*values, low + LEAST_REACH)
    wide = max(map(len, rows))
    return [
        f"  {name:<{wide}}  {bars(row, low, high)}  {percent(row[0])} → {percent(row[-1])}"
        for name, row in rows.items()
    ]


def _spelled(sizes: Sequence[int]) -> str:
    return ", ".join(map(count, sizes))


def _change(change: Estimate | None) -> str:
    if change is None:
        return "not measured"
    inside = points_between(change.ci_low, change.ci_high)
    return points(change.value) + (f" ({inside})" if inside else "") + or_none(change)


def _fitted(line: str) -> str:
    for long, short in _SHORTER:
        line = line if len(line) <= WIDTH else line.replace(long, short)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
