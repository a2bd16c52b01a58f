"""What the report says of predictions over all pairs of values."""

from __future__ import annotations

from reports.grids.facts import unread
from reports.grids.findings import compared
from reports.grids.tables import grid_table, sizes_table
from reports.kit.section import Section
from reports.kit.text import few

GRIDS = Section(
    name="grids",
    title="Predictions over all pairs of values",
    tables=(grid_table, sizes_table),
    figures=(
        "reports.grids.figures.ages:age_grid_figure",
        "reports.grids.figures.sizes:size_grid_figure",
    ),
    findings=lambda results: [*few(compared(results), "models"), *unread(results)],
    printed={"grid": (grid_table,)},
)
