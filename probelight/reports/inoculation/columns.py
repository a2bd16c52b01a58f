"""The kinds of columns that the tables of inoculation share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from probelight.reports.inoculation.runs import Inoculation, Series
from probelight.reports.kit.columns import gap_cell, shown, text
from probelight.reports.kit.measured import Measured
from probelight.reports.kit.table import Cell, Column
from probelight.reports.kit.text import NOT_INTERPRETABLE, rate

Item = TypeVar("Item")
SETTING = (  # attributes of a run that identify it in csv files
    "model probe original_task dose extra learning_rate num_settings selection report_split seed "
    "epoch chosen"
)


def what(series: Callable[[Item], Series]) -> Column[Item]:
    """The probe and, in smaller type, the model, its original task and what is unusual."""

    def about(item: Item) -> str:
        own = series(item)
        origin = f"originally {own.original_task}" if own.original_task else ""
        return ", ".join(filter(None, (own.model, origin, own.remarks)))

    return text("probe", lambda item: series(item).probe, small=about)


def controlled(cell: Inoculation) -> dict[str, object]:
    """What was done to the probe's items, for csv files; nothing where they are as they were."""
    return {"control": cell.control} if cell.control else {}


def setting(of: Callable[[Item], Inoculation]) -> Column[Item]:
    """The setting and its checkpoint, and what it was chosen from."""

    def chosen(item: Item) -> str:
        cell = of(item)
        epoch = "" if cell.epoch is None else f", epoch {cell.epoch}"
        return f"rate {rate(cell.learning_rate)}{epoch}{'' if cell.chosen else ' †'}"

    def among(item: Item) -> str:
        cell = of(item)
        seed = "" if cell.seed is None else f", seed {cell.seed}"
        best = f", best of {cell.num_settings}" if cell.num_settings > 1 else ""
        return f"extra {cell.extra}{seed}{best}"

    return text("setting", chosen, small=among)


def cost(
    label: str,
    of: Callable[[Item], Measured | None],
    interpretable: Callable[[Item], bool],
    group: str = "",
) -> Column[Item]:
    """A cost with its interval, or that it cannot be read."""
    unread = Cell(NOT_INTERPRETABLE)
    return shown(label, lambda item: gap_cell(of(item)) if interpretable(item) else unread, group)
