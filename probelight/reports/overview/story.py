"""The results of a command in a few lines of text: verdicts, two small charts, one item.

No line is wider than 80 columns, however wide the terminal is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from probelight.io.escaping import visible
from probelight.reports.numbers import count, in_words, percent
from probelight.reports.overview.examples import LONGEST_NAME, cut, examples, forgotten_example
from probelight.reports.overview.glance import MARKS
from probelight.reports.overview.skills import HOW, NO_LANGUAGE, SkillVerdict, change, verdicts
from probelight.reports.overview.verdicts import Word
from probelight.results.load import RunSet

if TYPE_CHECKING:
    from probelight.reports.inoculation.runs import Dose

WIDTH = 80
MOST_VERDICTS = 7  # lines
MOST_ELSEWHERE = 3
LEAST_REACH = 0.2  # of a chart, from its lowest bar to its highest: noise stays low
BARS = "▁▂▃▄▅▆▇█"
# For terminals that show nothing else; each is one character, so that columns stay columns.
ASCII = str.maketrans("▁▂▃▄▅▆▇█✓↗○→–−…", "_.,-=+*#+/o>--~")
ORIGINAL = "original task"
EXTRAS = {"none": "without replay"}
ORDER: Sequence[Word] = ("knew it", "learned it", "cannot tell", "not shown")
SIDES = (  # metrics of an inoculation, before it and after
    ("probe_accuracy_before", "probe_accuracy"),
    ("original_accuracy_before", "original_accuracy_after"),
)
# What gives way, one after the other, where a line is too long.
SHORTER = (
    ("the most frequent answer", "majority"),
    ("from the choices alone", "choices alone"),
    ("before inoculation", "before"),
    ("without language", "no language"),
    (" examples", ""),
    ("without", "w/o"),
    ("accuracy in %", "%"),
)


def print_story(results: RunSet, *end: str) -> None:
    """Print the story of results, behind their tables; or with last lines that name their page.

    There are at most 34 lines.
    """
    console = Console(force_jupyter=False)  # a Python call prints nothing in a notebook
    lines = story(results)
    if "?" in BARS.encode(console.encoding, "replace").decode(console.encoding):
        lines = [line.translate(ASCII) for line in lines]
    last_lines, between = [*map(visible, end)], [""] if lines else []
    if end and (number := len(results.notices)):
        last_lines.append(f"{number} {'notice is' if number == 1 else 'notices are'} on the page")
    lines = [*lines, *between, *last_lines] if end else [*between, *lines]
    for line in lines:
        # Some letters of an item have no sign in a terminal of another encoding.
        printable = line.encode(console.encoding, "replace").decode(console.encoding)
        console.print(Text(printable), soft_wrap=True)


def story(results: RunSet) -> list[str]:
    """Return the lines, at most 30; empty if nothing can be judged."""
    all_verdicts = verdicts(results)
    if not all_verdicts:
        return []
    models = list(dict.fromkeys(verdict.model for verdict in all_verdicts))
    several = len(models) > 1
    subject = f"{len(models)} models" if several else cut(models[0], LONGEST_NAME)
    lines = [f"What {subject} knew, learned and forgot (accuracy in %)", ""]
    listed = all_verdicts[: MOST_VERDICTS - (len(all_verdicts) > MOST_VERDICTS)]
    names = [v.skill.words + (f", {v.model}" if several else "") for v in listed]
    names = _padded([cut(name, LONGEST_NAME) for name in names])
    words = _padded([verdict.words for verdict in listed])
    for verdict, name, word in zip(listed, names, words, strict=True):
        numbers = ", ".join(f"{percent(value)} {label}" for label, value in verdict.evidence)
        lines.append(f"{MARKS[verdict.word]} {name}  {word}  {numbers}")
    if num_more := len(all_verdicts) - len(listed):
        lines.append(f"  and {num_more} more in the report")
    best_first = sorted(all_verdicts, key=lambda verdict: ORDER.index(verdict.word))
    lines += _curve_lines(best_first) + _inoculation_lines(results, all_verdicts)
    lines += _example_lines(results, best_first)
    lines = [visible(line).replace("\n", " ") for line in lines]
    for long, short in SHORTER:
        lines = [line if len(line) <= WIDTH else line.replace(long, short) for line in lines]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines]


def bars(values: Sequence[float], low: float, high: float) -> str:
    """Return one bar per value on the scale `low` to `high`; values beyond it are clipped."""
    heights = np.interp(values, (low, high), (0, len(BARS) - 1))
    return "".join(BARS[round(height)] for height in heights)


def _curve_lines(best_first: Sequence[SkillVerdict]) -> list[str]:
    """Return the lines of the best-judged curve that has a control."""
    for verdict in best_first:
        if not (curve := verdict.points[-1].curve):
            continue
        lines = {"full question": curve.means(), HOW[NO_LANGUAGE]: curve.means(NO_LANGUAGE)}
        if sizes := sorted({*curve.line()} & {*curve.line(NO_LANGUAGE)}):
            chance = "" if curve.chance is None else f" (chance {percent(curve.chance)})"
            rows = {name: [line[size] for size in sizes] for name, line in lines.items()}
            head = f"{verdict.skill.words} after {', '.join(map(count, sizes))} examples{chance}"
            return ["", head, *_bar_lines(rows, curve.chance)]
    return []


def _inoculation_lines(results: RunSet, verdicts: Sequence[SkillVerdict]) -> list[str]:
    """Return the lines of the first inoculation: the scores of both tasks by dose."""
    for verdict in verdicts:
        line = [point.dose for point in verdict.points if point.dose and point.size]
        sides = []
        for metric_before, metric_after in SIDES:
            means = [
                *(dose.mean(metric_before) for dose in line[:1]),
                *(dose.mean(metric_after) for dose in line),
            ]
            sides.append([mean for mean in means if mean is not None])
        if min(map(len, sides)) <= len(line):
            continue
        changes = [
            verdict.gain.replace(" points", "") or "gain not measured",
            verdict.cost.replace(" points", "") or "cost not measured",
        ]
        # Names give way, so that no line is cut before it says whether there was a change at all.
        room = WIDTH - len("      00.0 → 00.0  ") - len(sides[0]) - max(map(len, changes))
        series = line[0].series
        tasks = (in_words(series.probe), ORIGINAL)
        names = [cut(task, min(max(room, 8), LONGEST_NAME)) for task in tasks]
        chances = [floor for task in ("probe", "original") if (floor := line[0].floor(task))]
        charts = _bar_lines(dict(zip(names, sides, strict=True)), min(chances, default=None))
        sizes, shared = [count(dose.dose) for dose in line], verdict.replay
        if len({dose.replay for dose in line}) > 1:
            shared = ""
            replays = [f" ({dose.replay})" if dose.replay else "" for dose in line]
            sizes = [size + replay for size, replay in zip(sizes, replays, strict=True)]
        head = f"Fine-tuning on {', '.join(sizes)} examples of "
        head += cut(in_words(series.probe), LONGEST_NAME) + (f", with {shared}" if shared else "")
        lines = map("  ".join, zip(charts, changes, strict=True))
        replay_lines = _replay_lines(results, line[-1])
        return ["", head, *lines, *replay_lines, *_elsewhere_lines(results, line[-1])]
    return []


def _elsewhere_lines(results: RunSet, last: Dose) -> list[str]:
    """Return a line with the verdict on each other set that was scored before and after a dose."""
    from probelight.reports.forgetting import ELSEWHERE, changed
    from probelight.reports.verdicts import lines

    if (rows := changed(results)).empty:
        return []
    is_here = (rows.of == ELSEWHERE) & (rows.dose == last.dose)
    rows = rows[is_here & (rows.model == last.series.model) & (rows.control == "")]
    # What a verdict rests on is on the page.
    return [f"  {line.partition(': ')[0]}" for line in lines(rows, has_mean=False)][:MOST_ELSEWHERE]


def _replay_lines(results: RunSet, last: Dose) -> list[str]:
    """Return the lines of gain and cost without replay and with it, where both were tried."""
    from probelight.reports.inoculation.runs import with_and_without_replay

    for by_extra in with_and_without_replay(results):
        without = by_extra.get("none")
        if without and (without.series, without.dose) == (last.series, last.dose):
            names = [EXTRAS.get(extra, f"with replay {extra}") for extra in by_extra]
            lines = []
            for name, dose in zip(_padded(names), by_extra.values(), strict=True):
                changes = {"gain": dose.gain, "cost": dose.cost}
                # There is no room to say that one may be 0.
                gain, cost = (change(name, c, says_doubt=False) for name, c in changes.items())
                lines.append(f"  {name}  {gain}, {cost}".replace(" points", ""))
            return lines
    return []


def _example_lines(results: RunSet, best_first: Sequence[SkillVerdict]) -> list[str]:
    """Return the lines of an item of the best-judged skill that has one, and of one it lost."""
    typical = (next(examples(results, [verdict]), None) for verdict in best_first)
    lost = (forgotten_example(results, verdict) for verdict in best_first)
    printed = [*islice(filter(None, typical), 1), *islice(filter(None, lost), 1)]
    lines = []
    for item in printed:
        right = [text for text, is_right, _ in item.choices if is_right][:1]
        answer = next((text for text, _, models in item.choices if models), "nothing")
        headed_lines = [
            (f"{item.title or 'A typical item'}: ", item.question or "Which sentence is right?"),
            *(("  right answer: ", text) for text in right),  # of some contexts there is none
            (f"  its answer {item.when}: ", answer),
        ]
        lines += ["", *(head + cut(text, WIDTH - len(head)) for head, text in headed_lines)]
    return lines


def _bar_lines(rows: Mapping[str, Sequence[float]], low: float | None) -> list[str]:
    """Return rows of bars on one scale, with the first value and the last."""
    values = [value for row in rows.values() for value in row]
    low = min(values) if low is None else min(low, *values)
    high = max(*values, low + LEAST_REACH)
    return [
        f"  {name}  {bars(row, low, high)}  {percent(row[0])} → {percent(row[-1])}"
        for name, row in zip(_padded([*rows]), rows.values(), strict=True)
    ]


def _padded(texts: Sequence[str]) -> list[str]:
    return [text.ljust(max(map(len, texts))) for text in texts]
