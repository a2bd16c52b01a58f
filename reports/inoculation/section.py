"""What the report says of inoculation and of the original task."""

from __future__ import annotations

from reports.inoculation.candidates import pareto_table
from reports.inoculation.findings import inoculated
from reports.inoculation.parts import inoculation_parts_table
from reports.inoculation.tables import inoculation_table, original_table, seeds_table
from reports.kit.section import Section
from reports.kit.text import few

INOCULATION = Section(
    name="inoculation",
    title="Inoculation",
    tables=(
        original_table,
        seeds_table,
        inoculation_table,
        pareto_table,
        inoculation_parts_table,
    ),
    figures=(
        "reports.inoculation.figures.doses:inoculation_figure",
        "reports.inoculation.figures.pareto:pareto_figure",
        "reports.inoculation.figures.selection:trajectory_figure",
    ),
    findings=lambda results: few(inoculated(results), "inoculations"),
    printed={
        "original": (original_table,),
        "inoculation": (original_table, seeds_table, inoculation_table, inoculation_parts_table),
    },
)
