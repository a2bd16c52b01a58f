"""What the report says of inoculation and of the original task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.inoculation.candidates import pareto_table
from reports.inoculation.difficulty import difficulty_table
from reports.inoculation.findings import inoculated
from reports.inoculation.parts import inoculation_parts_table
from reports.inoculation.published import science_models_table
from reports.inoculation.tables import inoculation_table, original_table, seeds_table
from reports.kit.section import Section
from reports.kit.text import few
from results.load import Results

if TYPE_CHECKING:
    from reports.kit.figure import Figure


def _figures(results: Results) -> Sequence[Figure | None]:
    from reports.inoculation.figures.difficulty import difficulty_figure
    from reports.inoculation.figures.doses import inoculation_figure
    from reports.inoculation.figures.pareto import pareto_figure
    from reports.inoculation.figures.selection import trajectory_figure

    makers = (inoculation_figure, difficulty_figure, pareto_figure, trajectory_figure)
    return [make(results) for make in makers]


INOCULATION = Section(
    name="inoculation",
    title="Inoculation",
    tables=(
        original_table,
        seeds_table,
        science_models_table,
        inoculation_table,
        pareto_table,
        difficulty_table,
        inoculation_parts_table,
    ),
    figures=_figures,
    findings=lambda results: few(inoculated(results), "inoculations"),
    printed={
        "original": (original_table,),
        "inoculation": (original_table, seeds_table, inoculation_table, inoculation_parts_table),
    },
)
