"""The page's first screen: a verdict on each skill of each model, and an arrow per inoculation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle, islice, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from probelight.reports import figure
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, Line
from probelight.reports.numbers import in_words, percent, short_count
from probelight.reports.overview.examples import examples
from probelight.reports.overview.skills import SkillVerdict, verdicts
from probelight.reports.overview.verdicts import HELD, RULES, Word
from probelight.reports.table import Cell, Column, Table, table, text
from probelight.results.load import RunSet, natural_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probelight.reports.inoculation.runs import Dose

MARKS: Mapping[Word, str] = {
    "knew it": "✓",
    "learned it": "↗",
    "not shown": "○",
    "cannot tell": "?",
}
EVIDENCE = "first_number first_value second_number second_value"
MOST = 200  # arrows
MOST_LABELLED = 12  # arrows that have their dose at the head
MOST_NAMED = 8  # of a legend
LINK = "#inoculation"
DASH = (0, (2, 1.5))
BEFORE = ("original_accuracy_before", "probe_accuracy_before")
AFTER = ("original_accuracy_after", "probe_accuracy")
Accuracies = tuple[float, float]  # (original-task, probe) accuracy
COLORS = [*(line.color for line in LINES), INK]
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def grid(results: RunSet) -> dict[str, Any] | None:
    """Return what the partial template shows; None if nothing can be judged.

    Each of its `rows` is a skill, a verdict per model (None if not asked) and its examples.
    """
    if not (all_verdicts := verdicts(results)):
        return None
    models = models_of(all_verdicts)
    verdict_by_cell = {(verdict.skill, verdict.model): verdict for verdict in all_verdicts}
    rows = []
    for skill in dict.fromkeys(verdict.skill for verdict in all_verdicts):
        cells = [verdict_by_cell.get((skill, model)) for model in models]
        rows.append((skill, cells, [*examples(results, [cell for cell in cells if cell])]))
    return {
        "models": models,
        "rows": rows,
        "has_examples": any(row_examples for *_, row_examples in rows),
        "marks": MARKS,
        "rules": RULES,
        "held": HELD,
    }


def models_of(verdicts: Iterable[SkillVerdict]) -> list[str]:
    """Return the models by name, numbers in names by size: step 900 before step 1000."""
    return sorted({verdict.model for verdict in verdicts}, key=natural_key)


def verdicts_table(results: RunSet) -> Table | None:
    """Make the table of the grid: verdict, the numbers behind it, and the reason."""

    def show(row: Any) -> Cell:
        verdict = row._verdict
        numbers = ", ".join(f"{label} {percent(value)}" for label, value in verdict.evidence)
        detail = "; ".join(filter(None, (numbers, verdict.changes)))
        return Cell(f"{MARKS[verdict.word]} {verdict.words}", detail)

    all_verdicts = verdicts(results)
    records = [
        {
            **vars(verdict.skill),
            **vars(verdict),
            **dict(zip_longest(EVIDENCE.split(), chain(*verdict.evidence))),
            "verdict": verdict.word,
            "_skill": verdict.skill.words,
            "_verdict": verdict,
            "_runs": [run.key for run in verdict.runs],
        }
        for verdict in all_verdicts
    ]
    rules = [f"{word[0].upper()}{word[1:]}: {rule}" for word, rule in RULES.items()]
    return table(
        "verdicts",
        "What each model knew or learned",
        " ".join([*rules, HELD]),
        records,
        [text("skill", "_skill", "about")],
        rows="kind probe about",
        across="model",
        each=[Column("verdict", show, "left")],
        values=models_of(all_verdicts),
        csv=f"kind probe about model verdict in_part {EVIDENCE} gain cost replay reason",
    )


def ends_of(dose: Dose) -> tuple[Accuracies, Accuracies] | None:
    """Return accuracies before and after in per cent, means over seeds; None if one is unknown."""
    means = [dose.mean(metric) for metric in (*BEFORE, *AFTER)]
    scores = [100 * mean for mean in means if mean is not None]
    return ((scores[0], scores[1]), (scores[2], scores[3])) if len(scores) == len(means) else None


def whiskers_of(dose: Dose, start: Accuracies) -> list[tuple[int, float, float, bool]]:
    """Return (axis, low, high, excludes 0) of cost (axis 0) and gain, in per cent, where known."""
    lost = dose.cost if dose.interpretable else None
    whiskers = []
    for axis, change in enumerate((lost and lost.negative, dose.gain)):
        if change and change.ci_low is not None and change.ci_high is not None:
            low, high = (start[axis] + 100 * end for end in (change.ci_low, change.ci_high))
            whiskers.append((axis, low, high, not low <= start[axis] <= high))
    return whiskers


@figure.styled()
def arrows_figure(results: RunSet) -> Figure | None:
    """Draw every inoculation as an arrow from the scores before it to those after it."""
    if not results.of("inoculation"):
        return None
    from matplotlib.figure import Figure as Canvas

    from probelight.reports.inoculation.runs import dose_lines

    doses = chain(*dose_lines(results, controls=False).values())
    inoculated = [(dose, *ends) for dose in doses if (ends := ends_of(dose))]
    if not inoculated:
        return None
    visible = inoculated[:MOST]
    models = [dose.series.model for dose, *_ in visible]
    probes = [in_words(dose.series.probe) for dose, *_ in visible]
    names = models if len({*models}) > 1 else probes
    # Colours and marks go round at different paces, so that many models stay apart.
    places = zip(dict.fromkeys(names), cycle(COLORS), cycle(MARKERS), strict=False)
    looks = {name: Line(color, marker=marker) for name, color, marker in places}
    marks = dict(islice(looks.items(), MOST_NAMED)) if len(looks) > 1 else {}
    marks |= {
        "interval excludes 0": Line(MUTED, "-", "|"),
        "interval includes 0": Line(MUTED, DASH, "|"),
    }
    canvas = Canvas(figsize=(4.5, 4.2 + 0.12 * len(marks)))
    canvas.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    axis = canvas.subplots()
    axis.margins(0.14)
    _draw_chances(axis, [dose for dose, *_ in visible])
    for name, (dose, start, end) in zip(names, visible, strict=True):
        look = looks[name] if dose.interpretable else replace(looks[name], color=MUTED)
        _draw_arrow(axis, dose, start, end, look)
        if len(visible) <= MOST_LABELLED:
            right = end[0] >= start[0]
            label = ", ".join(filter(None, (f"k = {short_count(dose.dose)}", dose.replay)))
            axis.annotate(
                label, end, xytext=(5 if right else -5, 5),
                textcoords="offset points", fontsize=8, ha="left" if right else "right", url=LINK,
                color=look.color,
            )  # fmt: skip
    axis.autoscale_view()
    limits = np.clip([axis.get_xlim(), axis.get_ylim()], 0, 102)
    axis.set(xlim=limits[0], ylim=limits[1])
    axis.set_xlabel("original-task accuracy, %  (← forgetting)")
    axis.set_ylabel("probe accuracy, %  (gain →)")
    figure.legend(canvas, marks)
    model = models[0] if len({*models}) == 1 else f"{len({*models})} models"
    probe = probes[0] if len({*probes}) == 1 else f"{len({*probes})} probes"
    named = f" The first {MOST_NAMED} of {len(looks)} are named." if len(looks) > MOST_NAMED else ""
    return figure.drawn(
        "arrows",
        f"Gain (up) and forgetting (left) after fine-tuning on k examples: {model}, {probe}",
        "One arrow per k, from the accuracies before inoculation to those after fine-tuning on k "
        "examples of the probe (means over seeds). Of several settings, such as with and without "
        "replay, it is the one that was best on the selection items. Up is gain on the probe, left "
        "is accuracy lost on the original task. Whiskers at the head are the 95% intervals of "
        "both, dashed if they include 0; the arrow is solid only if neither does. No whisker: "
        "there is no interval. Grey: the original task was near chance before, so its loss means "
        f"nothing.{figure.left_out(len(inoculated), MOST)}{named}",
        canvas,
    )


def _draw_arrow(axis: Axes, dose: Dose, start: Accuracies, end: Accuracies, look: Line) -> None:
    from matplotlib.patches import FancyArrowPatch

    axis.update_datalim([start, end])
    axis.plot(*start, **replace(look, dash="none", face=PAPER).style, zorder=3)
    whiskers = whiskers_of(dose, start)
    if start != end:
        is_sure = sum(excludes_0 for *_, excludes_0 in whiskers) == 2
        patch = FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=10, color=look.color, linewidth=1.5,
            linestyle="-" if is_sure else DASH, shrinkA=3, shrinkB=0, zorder=2, fill=is_sure,
            url=LINK,
        )  # fmt: skip
        axis.add_patch(patch)
    for across, low, high, excludes_0 in whiskers:
        ends = [(low, high), (end[1 - across],) * 2]
        whisker = Line(
            look.color, "-" if excludes_0 else DASH, "_" if across else "|", size=6, width=1.0
        )
        axis.plot(*(ends[::-1] if across else ends), **whisker.style, alpha=0.75, zorder=1)


def _draw_chances(axis: Axes, doses: Sequence[Dose]) -> None:
    """Draw the levels of chance that all inoculations share."""
    probe, original = ({dose.floor(task) for dose in doses} for task in ("probe", "original"))
    if len(probe) == 1 and (level := probe.pop()) is not None:
        # With the empty choices that a model was given, where there are such.
        scored = {dose.mean("chance_probe") for dose in doses} - {level, None}
        levels = [percent(level) for level in scored]
        empty = f" ({' or '.join(levels)} with empty choices)" if levels else ""
        axis.axhline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))
        axis.text(
            0.005, 100 * level, f"chance {percent(level)}{empty}", fontsize=7.5, color=MUTED,
            ha="left", va="bottom", transform=axis.get_yaxis_transform(),
        )  # fmt: skip
    if len(original) == 1 and (level := original.pop()) is not None:
        axis.axvline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))
