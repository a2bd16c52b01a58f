"""Which runs of an inoculation belong to one line of a plot."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from probelight.reports.zero_shot.facts import WHOLE
from probelight.results.details import InoculationDetails
from probelight.results.load import Results, Run

HELD_OUT = "held-out train"
ON_REPORTED = "paper"  # `selection` of runs whose checkpoint was chosen on the reported items


class Series(NamedTuple):
    """What is the same along a line of an inoculation plot; M*_k is over all settings.

    Attributes:
        selection: How the selection items were got; "paper" if they are the reported ones.
        report_split: Split of the probe reported on, where it was recorded: never mixed.
        setup: What tells apart runs of the same names that begin with another model or report on
            other items; empty where there are none such.
        control: What was done to the probe's items, such as "choice_only"; empty for nothing.
    """

    model: str
    probe: str
    original_task: str
    selection: str = ""
    report_split: str = ""
    setup: str = ""
    control: str = ""

    @property
    def remarks(self) -> str:
        """What a reader must know besides the names; empty where nothing is unusual."""
        split = self.report_split
        on_reported = f"chosen on the reported items{f' ({split})' if split else ''}"
        how = on_reported if self.selection == ON_REPORTED else split
        other = f"setup {self.setup}: its namesake begins or reports differently"
        control = self.control.replace("_", " ")
        return ", ".join(filter(None, (control, how, other if self.setup else "")))


def series_of(results: Results, run: Run) -> Series:
    """The line of an inoculation plot that a run belongs to."""
    several = len(_setups(results).get(_names(run), ())) > 1
    names = _names(run)
    return Series(*names[:-1], facts_of(run).setup if several else "", names[-1])


@lru_cache(maxsize=4)
def _setups(results: Results) -> dict[tuple[str, ...], set[str]]:
    """The setups of runs that have the same names."""
    found: dict[tuple[str, ...], set[str]] = {}
    for run in results.runs:
        if setup := facts_of(run).setup:
            found.setdefault(_names(run), set()).add(setup)
    return found


def _names(run: Run) -> tuple[str, str, str, str, str, str]:
    control = next((row.control for row in run.rows if row.control not in WHOLE), "")
    return (run.model, run.probe, facts_of(run).original_task, *how_chosen(run), control)


def how_chosen(run: Run) -> tuple[str, str]:
    """On what the run's checkpoint was chosen, and what it was reported on."""
    facts = facts_of(run)
    return facts.selection, HELD_OUT if facts.report_split is None else facts.report_split


def facts_of(run: Run) -> InoculationDetails:
    """What a run recorded of an inoculation; nothing where it was none."""
    return run.detail(InoculationDetails) or InoculationDetails()
