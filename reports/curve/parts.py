"""Accuracy on parts of a probe, untrained and at the end of the curve (Talmor 2020, table 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from reports.curve.facts import Curve, curves, origin_of
from reports.curve.points import Bounds
from reports.kit.layout import ABSENT, Cell, Column, Table, between, count, percent
from reports.kit.published import published_templates
from results.load import Results, Row

TEMPLATE = "template="


def curve_parts_table(results: Results) -> Table | None:
    """Accuracy by template, by set of choices, and on items whose group is in no train row."""
    lines = [line for curve in curves(results) for line in _lines(curve, results)]
    if not lines:
        return None
    paper = any(_published(curve, part) for curve, part, _, _ in lines)
    heads = [Column("probe", "left"), Column("model", "left"), Column("part", "left")]
    heads += [Column("n"), Column("zero-shot %"), Column("N"), Column("trained %")]
    heads += [Column("change")] + [Column("paper %")] * paper
    rows, records = [], []
    for curve, part, untrained, trained in lines:
        size = trained[0].num_train if trained else None
        before, after = _mean(untrained), _mean(trained)
        number = (untrained or trained)[0].num_items
        change = None if before is None or after is None else after - before
        cells = [Cell(curve.probe, curve.where), Cell(curve.model, curve.mode)]
        cells += [Cell(part.removeprefix(TEMPLATE).replace("pair=", "")), Cell(count(number))]
        cells += [_cell(untrained), Cell(count(size)), _cell(trained)]
        cells += [Cell(ABSENT if change is None else f"{100 * change:+.1f}".replace("-", "−"))]
        if paper:
            cells.append(Cell(_published(curve, part) or ABSENT))
        rows.append(tuple(cells))
        records.append(
            {
                "probe": curve.probe,
                "model": curve.model,
                "mode": curve.mode,
                "split": curve.where,
                "part": part,
                "num_items": number,
                "zero_shot": before,
                "num_train": size,
                "trained": after,
                "num_seeds": len(trained) or None,
            }
        )
    said = (
        " The paper's column is its table 6: BERT-WWM on items that annotators agreed on, so not "
        "the same measure; one of our templates may hold two of the paper's."
    )
    return Table(
        "curve_parts",
        "Which parts are known, and which are learned",
        "Accuracy by template and by set of choices, before training and at the largest N (mean "
        "over seeds). Beside each its 95% interval from the items (Wilson, averaged over seeds); "
        "parts are small, and their intervals wide." + said * paper,
        tuple(heads),
        tuple(rows),
        tuple(records),
    )


def _lines(
    curve: Curve, results: Results
) -> Iterator[tuple[Curve, str, Sequence[Row], Sequence[Row]]]:
    """Of each part its rows without training and its rows at the largest N, one a seed."""
    place = (curve.probe, curve.model, curve.mode, curve.split)
    rows = [
        row
        for run in results.of("curve")
        if origin_of(run) == (curve.train, curve.first_stage)
        for row in run.rows
        if row.subset
        and row.metric == "accuracy"
        and (row.probe, row.model, row.mode, row.split) == place
        and row.learning_rate in (None, curve.learning_rate)
    ]
    for part in dict.fromkeys(row.subset for row in rows):
        own = [row for row in rows if row.subset == part]
        last = max(row.num_train or 0 for row in own)
        untrained = [row for row in own if not row.num_train]
        yield curve, part, untrained, [r for r in own if last and r.num_train == last]


def _published(curve: Curve, part: str) -> str:
    """What the paper has for a template; empty where it has none."""
    return " / ".join(
        f"{100 * row.accuracy:.0f}"
        for row in published_templates()
        if row.probe == curve.probe and part == f"{TEMPLATE}{row.template}"
    )


def _mean(rows: Sequence[Row]) -> float | None:
    return fmean(row.value for row in rows) if rows else None


def _cell(rows: Sequence[Row]) -> Cell:
    return Cell(percent(_mean(rows)), between(*_interval(rows)))


def _interval(rows: Sequence[Row]) -> Bounds:
    lows = [row.ci_low for row in rows if row.ci_low is not None]
    highs = [row.ci_high for row in rows if row.ci_high is not None]
    if not rows or len(lows) != len(rows) or len(highs) != len(rows):
        return None, None
    return fmean(lows), fmean(highs)
