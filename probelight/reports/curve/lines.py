"""The rows of the summary tables: our curves of a model, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probelight.metrics.learning_curve import WEIGHTS
from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import FULL, MODES
from probelight.reports.curve.summary import Summary
from probelight.reports.kit.columns import accuracy_cell
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Cell
from probelight.reports.kit.text import ABSENT, count, points, rate, way
from probelight.reports.published import PublishedCurve, ScoreKey, short_name

PAPER = "Talmor et al. 2020"
TRAINED = dict(zip(MODES, ("MLP", "linear", "whole network"), strict=True))
Entry = dict[str, Summary]  # the curves of one model by mode


@dataclass(frozen=True)
class Line:
    """A row of the table: the curves of a model, or the paper's numbers.

    Attributes:
        entry: Ours; beside a row of the paper those that it may be compared with.
        paper: The paper's row; None for ours.
    """

    entry: Entry
    paper: PublishedCurve | None = None

    @property
    def name(self) -> str:
        """Who was measured."""
        if self.paper is not None:
            return f"{PAPER}: {self.paper.short_name}"
        return short_name(next(iter(self.entry.values())).curve.model)

    @property
    def about(self) -> str:
        """Where: the split and learning rates, or the paper's table."""
        if self.paper is not None:
            return f"table {self.paper.table}"
        rates = ", ".join(
            f"{TRAINED[mode]} {rate(s.curve.learning_rate)}"
            for mode, s in self.entry.items()
            if s.curve.learning_rate is not None
        )
        curve = next(iter(self.entry.values())).curve
        start = curve.at(STANDARD, 0)
        by = way(start.mode) if start and start.mode != curve.mode else ""
        parts = (curve.where, f"rates {rates}" * bool(rates), f"zero-shot by {by}" * bool(by))
        return ", ".join(filter(None, parts))

    @property
    def sizes(self) -> list[int]:
        """The points that sums are made of."""
        return list(WEIGHTS) if self.paper else next(iter(self.entry.values())).sizes

    def cell(self, key: ScoreKey) -> Cell:
        """A score with its interval; of the paper, with ours minus the paper's."""
        return self.published(key) if self.paper else accuracy_cell(self.score(key))

    def score(self, key: ScoreKey) -> Estimate | None:
        """One of our numbers."""
        owner = owner_of(self.entry, key)
        return None if owner is None else owner.scores.get(key)

    def published(self, key: ScoreKey) -> Cell:
        """One of the paper's numbers; where ours may stand beside it, with ours minus that."""
        value = self.paper.scores.get(key) if self.paper else None
        if value is None:
            return Cell(ABSENT)
        owner, ours = owner_of(self.entry, key), self.score(key)
        beside = owner is not None and owner.beside_paper(key) is not None
        gap = f"ours {points(ours.value - value)}" if ours and beside else ""
        return Cell(f"{100 * value:.0f}", gap)


def entries_of(found: Sequence[Summary]) -> list[Entry]:
    """The curves of a model by mode; one with several learning rates has several entries."""
    entries: list[Entry] = []
    for place in dict.fromkeys((s.curve.model, s.curve.source) for s in found):
        own = [s for s in found if (s.curve.model, s.curve.source) == place]
        modes = dict.fromkeys([*TRAINED, *(s.curve.mode for s in own)])
        by_mode = {m: [s for s in own if s.curve.mode == m] for m in modes}
        for rank in range(max(map(len, by_mode.values()))):
            entries.append({m: line[rank] for m, line in by_mode.items() if rank < len(line)})
    return entries


def owner_of(entry: Entry, score: ScoreKey) -> Summary | None:
    """The curve that a score is from."""
    if not entry:
        return None
    if score.name == "zero_shot":
        return next(iter(entry.values()))
    return entry.get(score.mode) if score.mode else language_of(entry)


def language_of(entry: Entry) -> Summary:
    """The curve that LangSense is from: the paper takes the MLP's, or the whole network's."""
    return entry.get("mlp") or entry.get(FULL) or next(iter(entry.values()))


def points_text(sizes: Sequence[int]) -> str:
    """The points that a sum is made of; the whole curve by its ends."""
    if list(sizes) == list(WEIGHTS):
        return f"all {len(WEIGHTS)}"
    return ", ".join(map(count, sizes)) if sizes else ABSENT
