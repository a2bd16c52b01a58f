"""The page's first screen: skills by models, each cell a verdict, each row with an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probelight.reports.overview.examples import TYPICAL, Example, example
from probelight.reports.overview.skills import KINDS, Skill, Verdict, models_of, verdicts
from probelight.reports.overview.verdicts import HELD, RULES, Word
from probelight.reports.table import Table, table, text
from probelight.reports.words import percent
from probelight.results.load import Results

MARKS: Mapping[Word, str] = {
    "knew it": "✓",
    "learned it": "↗",
    "not shown": "○",
    "cannot tell": "?",
}
MOST_ROWS = 10  # with more the grid scrolls in itself, so that the plot is still in view
MOST_PRINTED = 4  # models side by side on paper; of more each verdict names its model
MOST_BESIDE = 2  # models with whose verdicts there is room for the examples


@dataclass(frozen=True)
class Line:
    """One skill, with a verdict a model, None where it was not asked."""

    skill: Skill
    cells: tuple[Verdict | None, ...]
    example: Example | None


@dataclass(frozen=True)
class Grid:
    """What the partial template is filled with.

    Attributes:
        groups: The rows of each kind, by its heading.
        is_tall: Whether it has more rows than a screen.
        is_wide: Whether it has more models than a sheet of paper.
        has_room: Whether the examples have a column; else each is folded below its row.
    """

    models: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]
    has_examples: bool
    is_tall: bool
    is_wide: bool
    has_room: bool

    marks = MARKS
    rules = RULES
    held = HELD
    typical = TYPICAL


def grid(results: Results) -> Grid | None:
    """Return the grid of a folder's results; None where nothing in them can be judged."""
    found = verdicts(results)
    if not found:
        return None
    models = tuple(models_of(found))
    rows: dict[Skill, dict[str, Verdict]] = {}
    for verdict in found:
        rows.setdefault(verdict.skill, {})[verdict.model] = verdict
    lines = []
    for skill, of_model in rows.items():
        cells = tuple(map(of_model.get, models))
        shown = example(results, [verdict for verdict in cells if verdict])
        lines.append(Line(skill, cells, shown))
    of_kind = {kind: tuple(line for line in lines if line.skill.kind == kind) for kind in KINDS}
    has_examples = any(line.example for line in lines)
    return Grid(
        models,
        tuple((KINDS[kind], of_one) for kind, of_one in of_kind.items() if of_one),
        has_examples,
        is_tall=len(lines) > MOST_ROWS,
        is_wide=len(models) > MOST_PRINTED,
        has_room=has_examples and len(models) <= MOST_BESIDE,
    )


def verdicts_table(results: Results) -> Table | None:
    """Make the table of the grid: the verdict, the numbers that say most of it, and the reason."""
    records = []
    found = verdicts(results)
    for verdict in found:
        numbers = [f"{label} {percent(value)}" for label, value in verdict.judged.evidence]
        first, second, *_ = [*verdict.judged.evidence, (None, None), (None, None)]
        records.append(
            {
                "kind": verdict.skill.kind,
                "probe": verdict.skill.probe,
                "about": verdict.skill.about,
                "model": verdict.model,
                "verdict": verdict.judged.word,
                "in_part": verdict.judged.in_part,
                "first_number": first[0],
                "first_value": first[1],
                "second_number": second[0],
                "second_value": second[1],
                "gain": verdict.gain,
                "cost": verdict.cost,
                "reason": verdict.judged.reason,
                "_skill": verdict.skill.words,
                "_said": f"{MARKS[verdict.judged.word]} {verdict.judged.words}",
                "_numbers": "; ".join(filter(None, (", ".join(numbers), verdict.changes))),
                "_runs": [run.key for run in verdict.runs],
            }
        )
    rules = [f"{word[0].upper()}{word[1:]}: {rule}" for word, rule in RULES.items()]
    return table(
        "verdicts",
        "What each model knew, or learned",
        " ".join([*rules, HELD]),
        records,
        [text("skill", "_skill", "about")],
        rows="kind probe about",
        across="model",
        each=[text("verdict", "_said", "_numbers")],
        values=models_of(found),
    )
