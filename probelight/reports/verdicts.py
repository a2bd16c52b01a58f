"""The verdicts on changes, forgot, gained or kept: in lines, in one figure, and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from probelight.io.escaping import visible
from probelight.metrics.intervals import LEAST_GROUPS, Interval
from probelight.metrics.verdicts import ChangeEvidence, ChangeVerdict, Word, mean_change, verdicts
from probelight.reports import figure, numbers
from probelight.reports.figure import BLUE, GREEN, INK, MUTED, ORANGE, PAPER, RULE, Line
from probelight.reports.numbers import Estimate, count, missing, percent, points, points_between
from probelight.reports.table import flips

MARKS: Mapping[Word, str] = {
    "forgot": "✗",
    "gained": "↗",
    "kept": "✓",
    "not known before": "○",
    "cannot tell": "?",
}
LOOKS: Mapping[Word, Line] = {
    "forgot": Line(ORANGE, "-", "s"),
    "gained": Line(BLUE, "-", "^"),
    "kept": Line(GREEN, "-", "o"),
    "not known before": Line(MUTED, "-", "o", PAPER),
    "cannot tell": Line(MUTED, "-", "D"),
}
ALL = "all probes"
# Columns that tell rows of one set apart, and how they are called; a missing one is not.
APART = {"model": "{}", "dose": "k = {}", "extra": "replay {}", "keeping": "{}", "control": "{}"}
MOST = 40  # rows of the figure
RULES = (
    "Forgot, gained: the loss of accuracy, or the gain, is clear after Holm's adjustment for all "
    "sets that are judged together. Kept: the loss is clearly below the margin (one-sided test at "
    "5%, not adjusted). Not known before: the accuracy before was not clearly above chance. Cannot "
    "tell: none of these. The intervals are ordinary 95% intervals, so one of a set that cannot be "
    "told may exclude 0."
)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of changes with their `verdict`, its `reason`, and the `adjusted_p`.

    Rows with the same `_family` are judged together.
    """
    if rows.empty:
        return rows
    columns: dict[Any, tuple[Word, str, float, int | None]] = {}
    for _, family in rows.groupby("_family", sort=False):
        records = [*family.itertuples()]
        evidence = [_evidence(record) for record in records]
        for record, verdict in zip(records, verdicts(evidence, records[0].margin), strict=True):
            reason = _reason(record, verdict)
            columns[record.Index] = verdict.word, reason, verdict.adjusted_p, verdict.items_needed
    names = ("verdict", "reason", "adjusted_p", "items_needed")
    by_name = zip(*(columns[index] for index in rows.index), strict=True)
    return rows.assign(**dict(zip(names, by_name, strict=True)))


def _evidence(row: Any) -> ChangeEvidence:
    def number(name: str) -> float:
        return float("nan") if missing(value := getattr(row, name)) else float(value)

    net_loss = Interval(*map(number, ("net_loss", "net_loss_ci_low", "net_loss_ci_high")))
    return ChangeEvidence(
        net_loss,
        number("loss_bound"),
        number("net_loss_p"),
        number("above_chance_ci_low"),
        number("least_forgetting_ci_low"),
        row.num_items,
        row.num_groups,
    )


def _reason(row: Any, verdict: ChangeVerdict) -> str:
    margin = f"{100 * verdict.margin:g} points"
    reason = ""
    if row.num_groups < LEAST_GROUPS:
        return f"fewer than {LEAST_GROUPS} groups"
    if verdict.word == "forgot":
        reason = f"less than {margin}" if verdict.below_margin else ""
    elif verdict.word == "kept":
        is_within = -row.net_loss_ci_low < verdict.margin
        reason = f"within {margin}" if is_within else f"less than {margin} lost"
    elif verdict.word == "not known before":
        reason = "not clearly above chance before"
    elif verdict.word == "cannot tell" and verdict.items_needed is None:
        reason = f"it may have lost up to {percent(row.loss_bound)} points"
    elif verdict.word == "cannot tell":
        unit = 10 ** max(0, len(str(verdict.items_needed)) - 2)  # two digits tell enough
        needed = count(-(-(verdict.items_needed or 0) // unit) * unit)
        reason = f"some {needed} items would show that it is within {margin}"
    if verdict.hidden_loss:
        lost, gained = flips(row.lost, row.gained, None).text.split(" / ")
        reason += f", but {lost} lost and {gained} gained, more than guessing explains"
    return reason


def mean_of(rows: pd.DataFrame) -> tuple[float, float, Estimate]:
    """Return the mean accuracy before and after over sets of items, and the mean change."""
    changes = [change_of(row) for row in rows.itertuples()]
    intervals = [
        Interval(change.value, change.ci_low, change.ci_high)
        for change in changes
        if change.ci_low is not None and change.ci_high is not None
    ]
    mean = Estimate(sum(change.value for change in changes) / len(changes))
    if len(intervals) == len(changes):
        mean = Estimate(*mean_change(intervals))
    return float(rows.accuracy_before.mean()), float(rows.accuracy.mean()), mean


def change_of(row: Any) -> Estimate:
    """Return the change of a row's accuracy, after minus before."""
    ends = (row.net_loss_ci_low, row.net_loss_ci_high)
    low, high = (None if missing(end) else end for end in ends)
    return Estimate(row.net_loss, low, high).negative


def names_of(rows: pd.DataFrame) -> list[str]:
    """Return the name of each row's set, with what else tells the rows apart."""
    apart = [name for name in APART if name in rows and rows[name].nunique() > 1]
    labels = []
    for row in rows.itertuples():
        parts = {name: getattr(row, name) for name in apart}
        texts = [APART[n].format(part) for n, part in parts.items() if part and not missing(part)]
        about = "".join(f", {text}" for text in texts).replace("_", " ")
        labels.append(visible(f"{row.set}{about}"))
    return labels


def lines(rows: pd.DataFrame, *, has_mean: bool = True) -> list[str]:
    """Return a line per set of items; of several also their mean, if `has_mean`."""
    texts = []
    for name, row in zip(names_of(rows), rows.itertuples(), strict=True):
        lost, gained = flips(row.lost, row.gained, None).text.split(" / ")
        counts = f"{lost} lost, {gained} gained of {count(row.num_items)}"
        notes = [counts, row.reason] if row.verdict == "forgot" else [row.reason]
        texts.append(
            (
                f"{MARKS[row.verdict]} {row.verdict}",
                name,
                *_numbers(row.accuracy_before, row.accuracy, change_of(row)),
                ", ".join(filter(None, notes)),
            )
        )
    if has_mean and len(rows) > 1:
        texts.append(("", ALL, *_numbers(*mean_of(rows)), ""))
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    padded = []
    for verdict, name, old, new, change, interval, note in texts:
        start = f"{verdict:<{widths[0]}}  {name:<{widths[1]}}  {old:>{widths[2]}} → "
        end = f"{new:>{widths[3]}}  {change:>{widths[4]}} {interval}".rstrip()
        padded.append(visible(start + end + (f": {note}" if note else "")))
    return padded


def _numbers(old: float, new: float, change: Estimate) -> tuple[str, str, str, str]:
    interval = f"({points_between(*change.bounds)})" if change.ci_low is not None else ""
    return percent(old), percent(new), points(change.value), interval


def headline(rows: pd.DataFrame) -> str:
    """Return how many sets of items were forgotten, gained and kept, in one sentence."""
    numbers_of = rows.verdict.value_counts()
    counted = [f"{word} {numbers_of[word]}" for word in MARKS if word in numbers_of]
    return f"Of {count(len(rows))} {'probe' if len(rows) == 1 else 'probes'}: {', '.join(counted)}."


def as_values(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the verdicts and numbers of each set as plain values for JSON."""
    entries = []
    for row in rows.itertuples():
        entry = {
            "probe": row.set,
            "split": row.split,
            "verdict": row.verdict,
            "reason": row.reason,
            "before": _estimate(row, "accuracy_before"),
            "after": _estimate(row, "accuracy"),
            "change": vars(change_of(row)),
            "p": row.net_loss_p,
            "adjusted_p": row.adjusted_p,
            "loss_bound": row.loss_bound,
            "detectable_loss": row.smallest_loss,
            "lost": row.lost,
            "gained": row.gained,
            "num_items": row.num_items,
            "num_groups": row.num_groups,
            "items_needed": row.items_needed,
            "margin_change": _estimate(row, "margin_change"),
        }
        for name in ("num_items", "num_groups", "items_needed"):
            entry[name] = None if missing(entry[name]) else int(entry[name])
        scalars = {n: v["value"] if isinstance(v, dict) else v for n, v in entry.items()}
        entries.append({n: None if missing(scalars[n]) else v for n, v in entry.items()})
    return entries


def mean_values(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the mean accuracies and the mean change over sets of items, for JSON."""
    old, new, change = mean_of(rows)
    return {"before": old, "after": new, "change": vars(change)}


def _estimate(row: Any, names: str) -> dict[str, float | None]:
    """Return a number of a row and both ends of its interval; None where there is none."""
    measured = (getattr(row, column, None) for column in numbers.with_ends(names))
    ends = ("value", "ci_low", "ci_high")
    return {end: None if missing(n) else n for end, n in zip(ends, measured, strict=True)}


def markdown(rows: pd.DataFrame, title: str) -> str:
    """Return the headline and a table of the verdicts, fit for a comment on a pull request."""
    texts = [f"**{title}** {headline(rows)}", ""]
    texts += ["| | probe | before | after | change | |", "|---|---|---:|---:|---:|---|"]
    for name, row in zip(names_of(rows), rows.itertuples(), strict=True):
        cells = _numbers(row.accuracy_before, row.accuracy, change_of(row))
        old, new, change, interval = cells
        texts.append(
            f"| {MARKS[row.verdict]} {row.verdict} | {name} | {old} | {new} | "
            f"{f'{change} {interval}'.rstrip()} | {row.reason} |"
        )
    margin = 100 * rows.margin.iloc[0]
    return "\n".join(
        [
            *texts,
            "",
            f"Accuracy in %, change in points with its 95% interval; margin {margin:g} points.",
        ]
    )


@figure.styled()
def verdicts_figure(rows: pd.DataFrame, name: str = "forgetting") -> figure.Figure | None:
    """Draw a row per set of items: the accuracy before and after, the interval, and the margin."""
    if rows.empty:
        return None
    from matplotlib.figure import Figure as Canvas

    drawn_rows = rows.head(MOST)
    canvas = Canvas(figsize=(7.4, 1.1 + 0.3 * len(drawn_rows)))
    canvas.set_layout_engine("constrained")
    axis = canvas.subplots()
    axis.use_sticky_edges = False
    for y, row in enumerate(drawn_rows.itertuples()):
        start, change, look = row.accuracy_before, change_of(row), LOOKS[row.verdict]
        axis.barh(y, 100 * row.margin, left=100 * (start - row.margin), height=0.62, color=RULE)
        if change.ci_low is not None and change.ci_high is not None:
            ends = [100 * (start + end) for end in (change.ci_low, change.ci_high)]
            axis.plot(ends, [y, y], color=look.color)
        axis.plot(100 * start, y, marker="|", color=INK, markersize=11, linestyle="none")
        axis.plot(100 * row.accuracy, y, **look.style)
        text = f"{points(change.value)}  {row.verdict}"
        axis.annotate(
            text, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), va="center",
            textcoords="offset points", fontsize=8, color=look.color, annotation_clip=False,
        )  # fmt: skip
    axis.set_yticks(range(len(drawn_rows)), names_of(drawn_rows))
    axis.set_ylim(len(drawn_rows) - 0.4, -0.6)
    axis.set_xlabel("accuracy, %")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    looks: dict[str, Line] = {"before": Line(INK, "none", "|", size=11)}
    looks |= {word: look for word, look in LOOKS.items() if word in {*drawn_rows.verdict}}
    figure.legend(canvas, looks)
    return figure.drawn(
        name,
        "Before and after, and what the change says",
        "The upright line is the accuracy before, the mark that after; the bar through it is the "
        "95% interval of the change, laid at the accuracy before. The grey band is the margin: a "
        f"loss that ends within it does not matter. {RULES}{figure.left_out(len(rows), MOST)}",
        canvas,
    )
