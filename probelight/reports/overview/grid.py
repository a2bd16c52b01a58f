"""The page's first screen: skills by models, each cell a verdict, each row with an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probelight.reports.overview.contexts import context_example
from probelight.reports.overview.examples import TYPICAL, Example, example
from probelight.reports.overview.skills import KINDS, Skill, Verdict, models_of, verdicts
from probelight.reports.overview.verdicts import HELD, RULES, Word
from probelight.results.load import Results

MARKS: Mapping[Word, str] = {
    "knew it": "✓",
    "learned it": "↗",
    "not shown": "○",
    "cannot tell": "?",
}
MOST_ROWS = 10  # with more the grid scrolls in itself, so that the plot stays beside it
MOST_PRINTED = 4  # models side by side on paper; of more each verdict has its model beside it
MOST_BESIDE = 2  # models beside whose verdicts there is room for the examples


@dataclass(frozen=True)
class Line:
    """One skill.

    Attributes:
        cells: A verdict a model; None where it was not asked.
    """

    skill: Skill
    cells: tuple[Verdict | None, ...]
    example: Example | None


@dataclass(frozen=True)
class Grid:
    """What the partial template is filled with.

    Attributes:
        groups: The rows of each kind, by its heading.
    """

    models: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]

    marks = MARKS
    rules = RULES
    held = HELD
    typical = TYPICAL

    @property
    def has_examples(self) -> bool:
        """Whether any row has one."""
        return any(line.example for _, lines in self.groups for line in lines)

    @property
    def is_tall(self) -> bool:
        """Whether it has more rows than a screen."""
        return sum(len(lines) for _, lines in self.groups) > MOST_ROWS

    @property
    def is_wide(self) -> bool:
        """Whether it has more models than a sheet of paper."""
        return len(self.models) > MOST_PRINTED

    @property
    def has_room(self) -> bool:
        """Whether the examples have a column of their own; else each is folded below its row."""
        return self.has_examples and len(self.models) <= MOST_BESIDE


def grid(results: Results) -> Grid | None:
    """The grid of a folder's results; None where nothing in them can be judged."""
    found = verdicts(results)
    if not found:
        return None
    models = tuple(models_of(found))
    rows: dict[Skill, dict[str, Verdict]] = {}
    for verdict in found:
        rows.setdefault(verdict.skill, {})[verdict.model] = verdict
    lines = [
        Line(skill, tuple(map(own.get, models)), _example(results, _in_order(own, models)))
        for skill, own in rows.items()
    ]
    groups = []
    for kind, heading in KINDS.items():
        if own_lines := tuple(line for line in lines if line.skill.kind == kind):
            groups.append((heading, own_lines))
    return Grid(models, tuple(groups))


def _example(results: Results, row: list[Verdict]) -> Example | None:
    of_contexts = row[0].skill.kind == "diagnosed"
    return context_example(results, row) if of_contexts else example(results, row)


def _in_order(row: Mapping[str, Verdict], models: tuple[str, ...]) -> list[Verdict]:
    return [row[model] for model in models if model in row]
