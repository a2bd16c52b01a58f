"""What the report says of learning curves."""

from __future__ import annotations

from functools import partial

from probelight.reports.curve.findings import knew, learned
from probelight.reports.curve.medals import MedalRule, medals_table
from probelight.reports.curve.parts import curve_parts_table
from probelight.reports.curve.summary_tables import curve_summary_tables
from probelight.reports.curve.tables import curve_against_table, curve_table
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few


def curve_section(rule: MedalRule) -> Section:
    """The section with medals by a rule."""
    medals = partial(medals_table, rule=rule)
    ours = partial(curve_summary_tables, with_paper=False)  # the page has a section of the papers'
    return Section(
        name="curves",
        title="Learning curves",
        tables=(ours, medals, curve_against_table, curve_parts_table, curve_table),
        figures=(
            "probelight.reports.curve.figures.models:models_figure",
            "probelight.reports.curve.figures.controls:control_figures",
        ),
        findings=lambda results: few(knew(results), "models") + few(learned(results), "curves"),
        printed={"curve": (curve_summary_tables, medals)},
    )
