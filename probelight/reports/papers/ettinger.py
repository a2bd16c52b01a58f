"""The tables of numbers of Ettinger (2020), and what of them these results hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from probelight.reports.diagnostics import (
    ACCURACY,
    MARGIN,
    MEASURES,
    PERTURBATIONS,
    SENSITIVITY,
    SPREAD,
    diagnosed,
)
from probelight.reports.kit.published_files import measured_share, read_rows
from probelight.reports.papers.beside import Beside, Ours, Printed, together
from probelight.reports.released import on_released, paper_model
from probelight.results.load import Results

# Contexts or comparisons of a table, where the paper says them; means over shuffles have no such.
_SIZES = {4: 34, 5: 34, 7: 88, 9: 44, 11: 18, 12: 18}
_COMPLETIONS = {SENSITIVITY: "prefers the good one", MARGIN: "by more than 0.01"}
_Place = tuple[str, str, str]  # metric, part, perturbation


def diagnostic_rows(results: Results, table: int) -> Sequence[Beside]:
    """A table of the paper with the numbers of the results beside it.

    Args:
        results: The results.
        table: Its number in the paper.
    """
    rows = [row for row in _published() if row["table"] == table]
    printed = [Printed(_name(row), row["model"], row["share"], _size(row)) for row in rows]
    names = {_place(row): _name(row) for row in rows}
    return together(printed, list(_ours(results, rows[0]["probe"], names)))


@lru_cache(maxsize=1)
def _published() -> Sequence[dict[str, Any]]:
    texts = dict.fromkeys(("metric", "part", "perturbation"), str)
    return read_rows("ettinger2020_diagnostics.csv", share=measured_share, **texts)


def _place(row: dict[str, Any]) -> _Place:
    return row["metric"], row["part"], row["perturbation"]


def _name(row: dict[str, Any]) -> str:
    metric = row["metric"].removesuffix(SPREAD)
    what = f"k = {metric.partition('@')[2]}" if metric.startswith(ACCURACY) else ""
    what = what or _COMPLETIONS.get(metric) or MEASURES[metric]
    condition = PERTURBATIONS.get(row["perturbation"], "")
    unit = "sd over shuffles, points" if row["metric"].endswith(SPREAD) else "%"
    return ", ".join(filter(None, (row["part"], condition, what, unit)))


def _size(row: dict[str, Any]) -> int | None:
    drawn = "shuffled" in row["perturbation"] or row["metric"] not in (
        "accuracy@1", "accuracy@5", SENSITIVITY, MARGIN,
    )  # fmt: skip
    return None if drawn else _SIZES.get(row["table"])


def _ours(results: Results, probe: str, names: dict[_Place, str]) -> Iterator[Ours]:
    rows = diagnosed(results)
    for one in rows[rows.probe == probe].itertuples():
        name = names.get((one.metric, one.subset, one.perturbation))
        run = results.by_path[one.path]
        if name is not None and on_released(run):
            row = run.rows[one.place]
            yield Ours(name, one.model, paper_model(run), row, row.num_items)
