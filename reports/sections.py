"""The registry of the report's sections: whatever a report shows stands in one of them."""

from __future__ import annotations

from collections import Counter

from reports.analyses.section import ANALYSES
from reports.audit.section import AUDIT
from reports.compare.section import COMPARE
from reports.concepts.section import CONCEPTS
from reports.curve.medals import MedalRule, read_rule
from reports.curve.section import curve_section
from reports.diagnostics.section import DIAGNOSTICS
from reports.grids.section import GRIDS
from reports.inoculation.section import INOCULATION
from reports.kit.section import Made, Section, flat
from reports.kit.table import Table
from reports.overview.section import OVERVIEW
from reports.page.provenance import PROVENANCE
from reports.papers.section import PAPERS
from reports.steps.section import STEPS
from reports.zero_shot.section import ZERO_SHOT
from results.load import Results


def sections(rule: MedalRule | None = None) -> tuple[Section, ...]:
    """Every section, in the order of the page.

    Args:
        rule: When a model has earned a medal; the shipped rule where it is None.
    """
    curves = curve_section(rule or read_rule())
    others = GRIDS, curves, ANALYSES, DIAGNOSTICS, STEPS, INOCULATION, CONCEPTS, AUDIT, PAPERS
    return OVERVIEW, ZERO_SHOT, *others, COMPARE, PROVENANCE


def made_sections(results: Results, rule: MedalRule | None = None) -> list[Made]:
    """The sections with everything that the results have something for.

    Raises:
        ValueError: If two tables or two figures have one name: their files would be one.
    """
    made = [section.made(results) for section in sections(rule)]
    for kind in ("tables", "figures"):
        names = Counter(one.name for section in made for one in getattr(section, kind))
        if twice := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"{kind} of one name: {', '.join(twice)}")
    return made


def printed(protocol: str, results: Results) -> tuple[Table, ...]:
    """The tables that a protocol's command prints when it has finished."""
    makers = [maker for section in sections() for maker in section.printed.get(protocol, ())]
    return flat(make(results) for make in makers)
