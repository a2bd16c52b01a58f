"""What the report says of probes themselves."""

from __future__ import annotations

from probelight.reports.audit.findings import given_away
from probelight.reports.audit.tables import audit_table, rules_table, words_table
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few

AUDIT = Section(
    name="audit",
    title="Is the probe any good?",
    tables=(audit_table, rules_table, words_table),
    findings=lambda results: few(given_away(results), "probes"),
    printed={"audit": (audit_table, rules_table, words_table)},
)
