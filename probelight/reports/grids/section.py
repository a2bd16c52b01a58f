"""What the report says of predictions over all pairs of values."""

from __future__ import annotations

from probelight.reports.grids.facts import unread
from probelight.reports.grids.findings import compared
from probelight.reports.grids.tables import grid_table, sizes_table
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few

GRIDS = Section(
    name="grids",
    title="Predictions over all pairs of values",
    tables=(grid_table, sizes_table),
    figures=(
        "probelight.reports.grids.figures.ages:age_grid_figure",
        "probelight.reports.grids.figures.sizes:size_grid_figure",
    ),
    findings=lambda results: [*few(compared(results), "models"), *unread(results)],
    printed={"grid": (grid_table,)},
)
