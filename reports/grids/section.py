"""What the report says of predictions over all pairs of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.grids.findings import compared
from reports.grids.tables import grid_table, sizes_table
from reports.kit.section import Section
from reports.kit.text import few
from results.load import Results

if TYPE_CHECKING:
    from reports.kit.figure import Figure


def _figures(results: Results) -> Sequence[Figure | None]:
    from reports.grids.figures import age_grid_figure, size_grid_figure

    return [age_grid_figure(results), size_grid_figure(results)]


GRIDS = Section(
    name="grids",
    title="Predictions over all pairs of values",
    tables=(grid_table, sizes_table),
    figures=_figures,
    findings=lambda results: few(compared(results), "models"),
    printed={"grid": (grid_table,)},
)
