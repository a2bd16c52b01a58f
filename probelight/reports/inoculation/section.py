"""What the report says of inoculation and of the original task."""

from __future__ import annotations

from probelight.reports.inoculation.candidates import pareto_table
from probelight.reports.inoculation.findings import inoculated
from probelight.reports.inoculation.parts import inoculation_parts_table
from probelight.reports.inoculation.tables import inoculation_table, original_table, seeds_table
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few

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
        "probelight.reports.inoculation.figures.doses:inoculation_figure",
        "probelight.reports.inoculation.figures.pareto:pareto_figure",
        "probelight.reports.inoculation.figures.selection:trajectory_figure",
    ),
    findings=lambda results: few(inoculated(results), "inoculations"),
    printed={
        "original": (original_table,),
        "inoculation": (original_table, seeds_table, inoculation_table, inoculation_parts_table),
    },
)
