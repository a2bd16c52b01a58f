"""What the report says of systems that were compared on the items that they share."""

from __future__ import annotations

from probelight.reports.compare.findings import compared
from probelight.reports.compare.tables import differences_table, systems_table
from probelight.reports.kit.section import Section

COMPARE = Section(
    name="compared",
    title="Systems on the same items",
    tables=(differences_table, systems_table),
    figures=("probelight.reports.compare.figures:differences_figure",),
    findings=compared,
    printed={"compare": (systems_table, differences_table)},
)
