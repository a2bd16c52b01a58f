"""What the report says of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.curve.findings import knew, learned
from reports.curve.medals import MedalRule, medals_table
from reports.curve.parts import curve_parts_table
from reports.curve.summary_tables import curve_summary_tables
from reports.curve.tables import curve_against_table, curve_table
from reports.kit.section import Section
from reports.kit.table import Table
from reports.kit.text import few
from results.load import Results

if TYPE_CHECKING:
    from reports.kit.figure import Figure


def curve_section(rule: MedalRule) -> Section:
    """The section with medals by a rule."""

    def medals(results: Results) -> Table | None:
        return medals_table(results, rule)

    return Section(
        name="curves",
        title="Learning curves",
        tables=(curve_summary_tables, medals, curve_against_table, curve_parts_table, curve_table),
        figures=_figures,
        findings=lambda results: few(knew(results), "models") + few(learned(results), "curves"),
        printed={"curve": (curve_summary_tables, medals)},
    )


def _figures(results: Results) -> Sequence[Figure | None]:
    from reports.curve.figures import curve_figures

    return curve_figures(results)
