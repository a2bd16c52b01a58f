"""TRANSITION: columns of the old kit, for tables that do not use those of `inoculation.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from probelight.reports.inoculation.runs import Series
from probelight.reports.kit.columns import gap_cell, shown, text
from probelight.reports.kit.measured import Measured
from probelight.reports.kit.table import Cell, Column
from probelight.reports.words import NOT_INTERPRETABLE

Item = TypeVar("Item")


def what(series: Callable[[Item], Series]) -> Column[Item]:
    """The probe and, in smaller type, the model, its original task and what is unusual."""
    return text("probe", lambda item: series(item).probe, small=lambda item: series(item).about)


def cost(
    label: str,
    of: Callable[[Item], Measured | None],
    interpretable: Callable[[Item], bool],
    group: str = "",
) -> Column[Item]:
    """A cost with its interval, or that it cannot be read."""
    unread = Cell(NOT_INTERPRETABLE)
    return shown(label, lambda item: gap_cell(of(item)) if interpretable(item) else unread, group)
