"""How near the results came to the papers, in a sentence a paper."""

from __future__ import annotations

from collections.abc import Iterator

from probelight.reports.kit.text import count, points
from probelight.reports.papers.beside import Beside
from probelight.reports.papers.registry import RICHARDSON, rows_beside
from probelight.reports.papers.science_rows import ours
from probelight.results.load import Results


def reproduced(results: Results) -> list[str]:
    """A sentence for each paper that the results have a number of, of the same model and items."""
    found: dict[str, list[tuple[str, Beside]]] = {}
    for paper, place, row in _compared(results):
        found.setdefault(paper, []).append((place, row))
    return [_sentence(paper, rows) for paper, rows in found.items()]


def _compared(results: Results) -> Iterator[tuple[str, str, Beside]]:
    for table, rows in rows_beside(results).items():
        for row in rows:
            if row.difference is not None:
                yield table.paper, table.place, row
    for entry in ours(results):
        if entry.compared is not None:
            yield RICHARDSON, f"table 7, {entry.probe}", entry.compared


def _sentence(paper: str, rows: list[tuple[str, Beside]]) -> str:
    said = [row.lies for _, row in rows if row.lies]
    within = sum(lies == "in our interval" for lies in said)
    place, worst = max(rows, key=lambda own: _size(own[1]))
    gap = worst.difference.value if worst.difference else 0.0
    numbers = "1 number is" if len(rows) == 1 else f"{count(len(rows))} numbers are"
    inside = f"; the paper's lie in {within} of {len(said)} intervals" if said else ""
    return (
        f"{numbers} of the same model and items as in {paper}{inside}. The largest difference is "
        f"{points(gap)} points ({place}: {worst.model}, {worst.name})."
    )


def _size(row: Beside) -> float:
    return abs(row.difference.value) if row.difference else 0.0


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    return " ".join(reproduced(results))
