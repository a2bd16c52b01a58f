"""The page's first screen: a verdict on each skill of each model, and what was gained and lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Any

from probelight.reports.figure import Figure
from probelight.reports.numbers import percent
from probelight.reports.overview.examples import examples
from probelight.reports.overview.skills import SkillVerdict, verdicts
from probelight.reports.overview.verdicts import HELD, RULES, Word
from probelight.reports.table import Cell, Column, Table, table, text
from probelight.results.load import RunSet, natural_key

MARKS: Mapping[Word, str] = {
    "knew it": "✓",
    "learned it": "↗",
    "not shown": "○",
    "cannot tell": "?",
}
EVIDENCE = "first_number first_value second_number second_value"
DETAILS = "gain cost replay contamination reason"


def grid(results: RunSet) -> dict[str, Any] | None:
    """Return what the partial template shows; None if nothing can be judged.

    Each of its `rows` is a skill, a verdict per model (None if not asked) and its examples.
    """
    if not (all_verdicts := verdicts(results)):
        return None
    models = models_of(all_verdicts)
    verdict_by_cell = {(verdict.skill, verdict.model): verdict for verdict in all_verdicts}
    rows = []
    for skill in dict.fromkeys(verdict.skill for verdict in all_verdicts):
        cells = [verdict_by_cell.get((skill, model)) for model in models]
        rows.append((skill, cells, [*examples(results, [cell for cell in cells if cell])]))
    return {
        "models": models,
        "rows": rows,
        "has_examples": any(row_examples for *_, row_examples in rows),
        "marks": MARKS,
        "rules": RULES,
        "held": HELD,
    }


def models_of(verdicts: Iterable[SkillVerdict]) -> list[str]:
    """Return the models by name, numbers in names by size: step 900 before step 1000."""
    return sorted({verdict.model for verdict in verdicts}, key=natural_key)


def verdicts_table(results: RunSet) -> Table | None:
    """Make the table of the grid: verdict, the numbers behind it, and the reason."""

    def show(row: Any) -> Cell:
        verdict = row._verdict
        numbers = ", ".join(f"{label} {percent(value)}" for label, value in verdict.evidence)
        detail = "; ".join(filter(None, (numbers, verdict.changes, verdict.contamination)))
        return Cell(f"{MARKS[verdict.word]} {verdict.words}", detail)

    all_verdicts = verdicts(results)
    records = [
        {
            **vars(verdict.skill),
            **vars(verdict),
            **dict(zip_longest(EVIDENCE.split(), chain(*verdict.evidence))),
            "verdict": verdict.word,
            "_skill": verdict.skill.words,
            "_verdict": verdict,
            "_runs": [run.key for run in verdict.runs],
        }
        for verdict in all_verdicts
    ]
    rules = [f"{word[0].upper()}{word[1:]}: {rule}" for word, rule in RULES.items()]
    return table(
        "verdicts",
        "What each model knew or learned",
        " ".join([*rules, HELD]),
        records,
        [text("skill", "_skill", "about")],
        rows="kind probe about",
        across="model",
        each=[Column("verdict", show, "left")],
        values=models_of(all_verdicts),
        csv=f"kind probe about model verdict in_part {EVIDENCE} {DETAILS}",
    )


def changes_figure(results: RunSet) -> Figure | None:
    """Draw what inoculations changed, with every setting that was tried; without controls."""
    if not results.of("inoculation"):
        return None
    from probelight.reports.forgetting import changed
    from probelight.reports.verdicts import verdicts_figure

    rows = changed(results)
    return verdicts_figure(rows[rows.control == ""] if len(rows) else rows, "changes")
