"""What pre-training gave: each model beside its random weights and beside the baselines."""

from __future__ import annotations

from reports.curve.summary import Summary, difference, rivals, summaries
from reports.curve.summary_tables import estimate_cell, gap_cell, points_text
from reports.kit.layout import Cell, Column, Table
from results.load import Results


def curve_against_table(results: Results) -> Table | None:
    """Each model against its architecture with random weights and against the baselines."""
    found = summaries(results)
    pairs = [(s, o) for s in found if s.role == "model" for o in rivals(s, found)]
    if not pairs:
        return None
    heads = [Column("probe", "left"), Column("model", "left"), Column("against", "left")]
    heads += [Column("points", "left")]
    scores = {"zero_shot": "zero-shot", "weighted_sum": "WS", "maximum": "MAX"}
    for name in scores.values():
        heads += [Column("model %", group=name), Column("other %", group=name)]
        heads += [Column("difference", group=name)]
    rows, records = [], []
    for one, other in pairs:
        curve = one.curve
        cells = [Cell(curve.probe, curve.where), Cell(curve.model, curve.mode)]
        cells += [Cell(other.curve.model), Cell(points_text(_shared(one, other)))]
        record: dict[str, object] = {
            "probe": curve.probe,
            "split": curve.where,
            "mode": curve.mode,
            "model": curve.model,
            "against": other.curve.model,
            "points": " ".join(map(str, _shared(one, other))),
        }
        for name in scores:
            ours, theirs = getattr(one, name), getattr(other, name)
            gap = difference(name, one, other)  # type: ignore[arg-type]
            alike = one.sizes == other.sizes or name == "zero_shot"
            cells += [
                estimate_cell(ours if alike else None),
                estimate_cell(theirs if alike else None),
            ]
            cells.append(gap_cell(gap))
            record |= {f"{name}_difference": gap and gap.value}
            record |= {f"{name}_low": gap and gap.low, f"{name}_high": gap and gap.high}
        rows.append(tuple(cells))
        records.append(record)
    return Table(
        "curve_against",
        "What pre-training gave",
        "Each model beside the same architecture with random weights, trained the same way, and "
        "beside the baselines over word vectors. Differences are in percentage points over the "
        "points that both have, with 95% intervals that pair items and seeds: one that holds 0 "
        "shows nothing that pre-training gave. Other vectors, other baselines: their names are in "
        "brackets.",
        tuple(heads),
        tuple(rows),
        tuple(records),
    )


def _shared(one: Summary, other: Summary) -> list[int]:
    return [size for size in one.sizes if size in other.sizes]
