"""The registry of the report's sections: whatever a report shows stands in one of them."""

from __future__ import annotations

from collections import Counter

from probelight.reports.analyses.section import ANALYSES
from probelight.reports.audit.section import AUDIT
from probelight.reports.compare.section import COMPARE
from probelight.reports.concepts.section import CONCEPTS
from probelight.reports.curve.medals import MedalRule, read_rule
from probelight.reports.curve.section import curve_section
from probelight.reports.diagnostics.section import DIAGNOSTICS
from probelight.reports.fits import FITS
from probelight.reports.grids.section import GRIDS
from probelight.reports.inoculation.section import INOCULATION
from probelight.reports.kit.section import Made, Section, flat
from probelight.reports.kit.table import Table
from probelight.reports.overview.section import OVERVIEW
from probelight.reports.page.provenance import PROVENANCE
from probelight.reports.papers.section import PAPERS
from probelight.reports.steps.section import STEPS
from probelight.reports.zero_shot.section import ZERO_SHOT
from probelight.results.load import Results


def sections(rule: MedalRule | None = None) -> tuple[Section, ...]:
    """Every section, in the order of the page.

    Args:
        rule: When a model has earned a medal; the shipped rule where it is None.
    """
    curves = curve_section(rule or read_rule())
    others = GRIDS, curves, ANALYSES, DIAGNOSTICS, STEPS, INOCULATION, CONCEPTS, AUDIT, PAPERS
    return OVERVIEW, ZERO_SHOT, *others, FITS, COMPARE, PROVENANCE


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
