"""A number that a paper printed, and ours of the same: how the two are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from probelight.metrics.comparisons import independent_difference
from probelight.metrics.intervals import Interval, wilson
from probelight.reports.kit.measured import Estimate, Measured
from probelight.reports.kit.published import short_name
from probelight.results.load import Results
from probelight.results.row import Row

Lies = Literal["", "in our interval", "above it", "below it"]


@dataclass(frozen=True)
class Printed:
    """A number as the paper printed it.

    Attributes:
        name: What was measured, with its unit.
        value: A fraction.
        model: What the paper measured, by the name of the checkpoint.
        num_items: On how many items, where the paper says so.
    """

    name: str
    model: str
    value: float
    num_items: int | None = None


@dataclass(frozen=True)
class Ours:
    """A number of these results that is one of the paper's, or that of another model beside them.

    Attributes:
        name: The same as of the printed number.
        label: The model, as other tables call it.
        paper_model: Which of the paper's models it is; None for another one.
        about: What tells apart several of one model.
        rows: What a number that is no row itself is made of, so that it leads to its runs.
    """

    name: str
    label: str
    paper_model: str | None
    value: Measured
    num_items: int | None = None
    about: str = ""
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Beside:
    """A row: a printed number and ours, or one of the two alone.

    Attributes:
        people: What people scored, where the paper says it; a fraction.
    """

    name: str
    printed: Printed | None
    ours: Ours | None
    people: float | None = None

    @property
    def model(self) -> str:
        """Whose number it is, as the paper calls the model where it has it."""
        if self.printed is not None:
            return short_name(self.printed.model)
        return "" if self.ours is None else self.ours.label

    @property
    def about(self) -> str:
        """What our number's model is called here, if otherwise, and what tells it from others."""
        if self.ours is None:
            return ""
        told = self.printed is None or self.ours.label == self.printed.model
        return ", ".join(filter(None, ("" if told else self.ours.label, self.ours.about)))

    @property
    def measured(self) -> Measured | None:
        """Ours."""
        return None if self.ours is None else self.ours.value

    @property
    def paper(self) -> float | None:
        """The paper's."""
        return None if self.printed is None else self.printed.value

    @property
    def num_items(self) -> int | None:
        """Items that ours was measured on."""
        return None if self.ours is None else self.ours.num_items

    @property
    def difference(self) -> Estimate | None:
        """Ours minus the paper's; with an interval where the paper says how many items it had."""
        if self.ours is None or self.printed is None:
            return None
        ours, printed = self.ours.value, self.printed
        gap = Estimate(ours.value - printed.value)
        if printed.num_items is None or ours.ci_low is None or ours.ci_high is None:
            return gap
        n, value = printed.num_items, printed.value
        return Estimate(
            *independent_difference(
                Interval(ours.value, ours.ci_low, ours.ci_high),
                Interval(value, *wilson(value * n, n)),
            )
        )

    @property
    def lies(self) -> Lies:
        """Where the printed number lies to our interval; empty where there is no such."""
        ours, paper = self.measured, self.paper
        if ours is None or paper is None or ours.ci_low is None or ours.ci_high is None:
            return ""
        if paper < ours.ci_low:
            return "below it"
        return "above it" if paper > ours.ci_high else "in our interval"


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of one of the papers.

    Attributes:
        paper: Its authors and year.
        place: "table 2", "figure 3".
        holds: What it shows, in our words.
        command: The command whose results hold it; empty where none does.
        beside: The rows that stand beside it here.
        note: What must be known to read them.
        shown: Name of the table of this report that has it, where no rows stand beside it.
        is_shown: Whether that table has it.
    """

    paper: str
    place: str
    holds: str
    command: str = ""
    beside: Callable[[Results], Sequence[Beside]] | None = None
    note: str = ""
    shown: str = ""
    is_shown: Callable[[Results], bool] = lambda results: False

    @property
    def name(self) -> str:
        """Name of its csv file here."""
        author, _, year = self.paper.partition(" ")
        place = self.place.replace(",", "").replace(" ", "_")
        return f"paper_{author.lower()}{year[-4:]}_{place}"


def together(
    printed: Iterable[Printed], ours: Sequence[Ours], people: float | None = None
) -> list[Beside]:
    """Rows of all numbers: the paper's models in its order, then ours that are none of them.

    Nothing where there is no number of ours, so that no table of the paper's alone is shown.

    Args:
        printed: The paper's numbers.
        ours: Those of the results that were measured on the same items in the same way.
        people: What people scored.
    """
    if not ours:
        return []
    known = list(printed)
    order = list(dict.fromkeys(number.model for number in known))
    rows: list[Beside] = []
    for number in sorted(known, key=lambda number: order.index(number.model)):
        same = [one for one in ours if (one.paper_model, one.name) == (number.model, number.name)]
        rows += [Beside(number.name, number, one, people) for one in same]
        rows += [] if same else [Beside(number.name, number, None, people)]
    told = {(row.printed.model, row.name) for row in rows if row.printed is not None}
    others = [one for one in ours if (one.paper_model or "", one.name) not in told]
    labels = list(dict.fromkeys(one.label for one in others))
    others.sort(key=lambda one: labels.index(one.label))
    return rows + [Beside(one.name, None, one, people) for one in others]
