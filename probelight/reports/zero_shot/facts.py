"""TRANSITION: the old gathering, for users that do not read `zero_shot.scores` yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from probelight.reports.kit.text import percent
from probelight.results.load import Results, Run
from probelight.results.row import Row

Verdict = Literal["above", "not above the majority", "not distinguishable", "below", "unknown"]
AT_CHANCE = "not distinguishable from chance"  # verdicts as findings say them
NO_BETTER = "no better than always giving the most frequent answer"
WHOLE = ("", "standard")  # what `control` says of an unchanged probe


@dataclass(frozen=True)
class ZeroShot:
    """One model on one probe.

    Attributes:
        label: The model; where two of one name are compared, told apart by weights or run.
        accuracy: The row of the whole set by the model's own score.
        chance: One over the choices scored, empty ones that pad a question included.
        floor: One over the real choices, which verdicts go by.
        tied: Share of the items whose best score is shared by several choices.
        near_tied: Share of those whose best score is above the second by next to nothing.
        shares: (choice, share predicted) in the order of the file.
        parts: Accuracy of parts and variants of the set (templates, perturbations, controls).
        paradigms: Accuracy by paradigm of minimal pairs, by each rule that they are scored by.
        by_rule: Accuracy of the whole set by scoring rules.
        flipped: Share of the items that each of those rules answers otherwise; where asked for.
        run: The run that measured it.
    """

    label: str
    probe: str
    accuracy: Row
    chance: float | None
    floor: float | None
    majority: float | None
    macro: float | None
    tied: float | None
    near_tied: float | None
    shares: tuple[Row, ...]
    parts: tuple[Row, ...]
    paradigms: tuple[Row, ...]
    by_rule: tuple[Row, ...]
    flipped: tuple[Row, ...]
    run: Run

    @property
    def verdict(self) -> Verdict:
        """Where the interval of the accuracy lies against chance and the majority's accuracy."""
        row = self.accuracy
        return verdict_of((row.ci_low, row.ci_high), self.floor, self.majority)


def against(row: Row, level: float | None) -> Verdict:
    """Where the interval of an accuracy lies against a level such as chance."""
    return verdict_of((row.ci_low, row.ci_high), level)


def verdict_of(
    interval: tuple[float | None, float | None], chance: float | None, majority: float | None = None
) -> Verdict:
    """Where an interval lies against chance; above it only if above the majority too.

    Args:
        interval: Of an accuracy.
        chance: 1 / number of real choices; "unknown" without it.
        majority: Accuracy of always giving the most frequent answer, where it is known.
    """
    low, high = interval
    if chance is None or low is None or high is None:
        return "unknown"
    if low <= chance:
        return "below" if high < chance else "not distinguishable"
    return "above" if majority is None or low > majority else "not above the majority"


def zero_shots(results: Results) -> list[ZeroShot]:
    """All (model, probe, split) of the zero-shot runs, by probe, then model."""
    found = [entry for run in results.of("zero_shot") for entry in _entries(run)]
    return sorted(_told_apart(found), key=lambda e: (e.probe, e.accuracy.split, e.label))


def chance_levels(results: Results) -> dict[str, float]:
    """Chance of each probe by its real choices, from whatever run recorded it."""
    levels: dict[str, float] = {}
    for names in (("floor", "floor_probe"), ("chance", "chance_probe")):
        for row in results.rows:
            if row.metric in names and row.subset is None:
                levels.setdefault(row.probe, row.value)
    return levels


def chance_text(chance: float | None, floor: float | None) -> str:
    """Return chance in per cent, by the real choices and, where it differs, by those scored."""
    if chance == floor:
        return f"{percent(floor)}%"
    return f"{percent(floor)}% among the real choices, {percent(chance)}% among those scored"


def _entries(run: Run) -> Iterable[ZeroShot]:
    sets = dict.fromkeys((row.model, row.probe, row.split) for row in run.rows)
    for model, probe, split in sets:
        rows = [r for r in run.rows if (r.model, r.probe) == (model, probe)]
        # Chance and the like may be given once, without a split.
        rows = [r for r in rows if r.split in (split, "")]
        accuracies = [r for r in rows if r.metric == "accuracy" and r.split == split]
        whole = [r for r in accuracies if _is_whole(r)]
        own = [r for r in whole if not r.scoring]
        parts = [r for r in accuracies if not _is_whole(r)]
        if own:
            yield ZeroShot(
                label=model,
                probe=probe,
                accuracy=own[0],
                chance=_first(rows, "chance"),
                floor=_first(rows, "floor", "chance"),
                majority=_first(rows, "majority_accuracy"),
                macro=_first(rows, "macro_accuracy"),
                tied=_first(rows, "tied_share"),
                near_tied=_first(rows, "near_tied_share"),
                shares=tuple(r for r in rows if r.metric == "predicted_share"),
                parts=tuple(r for r in parts if not (r.subset and r.subset.kind == "paradigm")),
                paradigms=tuple(r for r in parts if r.subset and r.subset.kind == "paradigm"),
                by_rule=tuple(r for r in whole if r.scoring),
                flipped=tuple(r for r in rows if r.metric == "flipped_share"),
                run=run,
            )


def _is_whole(row: Row) -> bool:
    return row.subset is None and row.perturbation == "" and row.control in WHOLE


def _first(rows: Sequence[Row], *metrics: str) -> float | None:
    """The value of the first of the metrics that there is."""
    values = {row.metric: row.value for row in reversed(rows) if _is_whole(row)}
    return next((values[metric] for metric in metrics if metric in values), None)


def _told_apart(entries: list[ZeroShot]) -> list[ZeroShot]:
    """Gives entries that share model, probe and split a label of their own."""

    def place(entry: ZeroShot) -> tuple[str, str, str]:
        return (entry.label, entry.probe, entry.accuracy.split)

    named = []
    repeats = Counter(map(place, entries))
    weights = {
        place(e): {o.run.model_sha256 for o in entries if place(o) == place(e)} for e in entries
    }
    for entry in entries:
        label = entry.label
        if repeats[place(entry)] > 1:
            by_weights = len(weights[place(entry)]) == repeats[place(entry)]
            label += f" ({entry.run.model_sha256[:8] if by_weights else entry.run.key})"
        named.append(replace(entry, label=label))
    return named
