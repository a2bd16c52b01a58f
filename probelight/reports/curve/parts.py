"""Accuracy on parts of a probe, untrained and at the end of the curve (Talmor 2020, table 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from probelight.reports.curve.curve import Curve, mean_bounds
from probelight.reports.curve.facts import curves, origin_of
from probelight.reports.kit.columns import accuracy, field, number, text, whole
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import ABSENT
from probelight.reports.published import published_templates
from probelight.results.load import Results
from probelight.results.row import Row, Subset


@dataclass(frozen=True)
class CurvePart:
    """A part of the items: its rows without training and those at the largest N, one a seed."""

    curve: Curve
    part: Subset
    untrained: Sequence[Row]
    trained: Sequence[Row]

    @property
    def name(self) -> str:
        """How the table calls it, whose reader sees of which kind it is."""
        if self.part.kind == "template":
            return str(self.part["name"])
        return "/".join(self.part["words"]) if self.part.kind == "choices" else self.part.text

    @property
    def num_train(self) -> int | None:
        """The largest N."""
        return self.trained[0].num_train if self.trained else None

    @property
    def num_items(self) -> int | None:
        """Items of the part."""
        return (self.untrained or self.trained)[0].num_items

    @property
    def change(self) -> float | None:
        """What training changed."""
        before, after = _mean(self.untrained), _mean(self.trained)
        return None if before is None or after is None else after.value - before.value

    @property
    def published(self) -> str:
        """What the paper has for a template; empty where it has none."""
        return " / ".join(
            f"{100 * row.accuracy:.0f}"
            for row in published_templates()
            if self.part.kind == "template"
            and (row.probe, row.template) == (self.curve.probe, self.part["name"])
        )


def curve_parts_table(results: Results) -> Table | None:
    """Accuracy by template, by set of choices, and on items whose group is in no train row."""
    found = [part for curve in curves(results) for part in _parts(curve, results)]
    paper = any(part.published for part in found)
    columns: list[Column[CurvePart]] = [
        text("probe", lambda part: part.curve.probe, "probe split", lambda part: part.curve.where),
        text("model", lambda part: part.curve.model, "model mode", lambda part: part.curve.mode),
        text("part", lambda part: part.name),
        field("part", lambda part: part.part.text),
        whole("n", lambda part: part.num_items, "num_items"),
        accuracy("zero-shot %", lambda part: _mean(part.untrained), "zero_shot"),
        whole("N", lambda part: part.num_train, "num_train"),
        accuracy("trained %", lambda part: _mean(part.trained), "trained"),
        field("num_seeds", lambda part: len(part.trained) or None),
        number("change", lambda part: part.change, _change),
    ]
    if paper:
        columns.append(number("paper %", lambda part: part.published or ABSENT, str))
    said = (
        " The paper's column is its table 6: BERT-WWM on items that annotators agreed on, so not "
        "the same measure; one of our templates may hold two of the paper's."
    )
    return Declared(
        "curve_parts",
        "Which parts are known, and which are learned",
        "Accuracy by template and by set of choices, before training and at the largest N (mean "
        "over seeds). Beside each its 95% interval from the items (Wilson, averaged over seeds); "
        "parts are small, and their intervals wide." + said * paper,
        columns,
        order="probe model mode split",
    ).of(found)


def _parts(curve: Curve, results: Results) -> Iterator[CurvePart]:
    place, modes = (curve.probe, curve.model, curve.split), curve.modes
    rows = [
        row
        for run in results.of("curve")
        if origin_of(run) == (curve.train, curve.first_stage)
        for row in run.rows
        if row.subset
        and row.metric == "accuracy"
        and (row.probe, row.model, row.split) == place
        and row.mode in modes
        and row.learning_rate in (None, curve.learning_rate)
    ]
    for part in dict.fromkeys(row.subset for row in rows if row.subset):
        own = [row for row in rows if row.subset == part]
        last = max(row.num_train or 0 for row in own)
        untrained = [row for row in own if not row.num_train]
        yield CurvePart(curve, part, untrained, [r for r in own if last and r.num_train == last])


def _change(gap: float | None) -> str:
    return ABSENT if gap is None else f"{100 * gap:+.1f}".replace("-", "−")


def _mean(rows: Sequence[Row]) -> Estimate | None:
    """Mean over seeds, with their intervals averaged: the uncertainty from the items alone."""
    if not rows:
        return None
    return Estimate(fmean(row.value for row in rows), *mean_bounds(rows))
