"""One context of a diagnostic, with the words that models went on with."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.reports.overview.evidence import BEFORE
from probelight.reports.overview.examples import (
    LONGEST_CHOICE,
    LONGEST_QUESTION,
    MOST_MODELS,
    Choice,
    Example,
    address,
    cut,
)
from probelight.reports.overview.skills import POLARITIES, Verdict
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import ContextLine, read_context_lines

BLANK = " ___"
NUM_WORDS = 3  # of a model that is alone; of several the first word of each


def context_example(results: Results, row: Sequence[Verdict]) -> Example | None:
    """The context in the middle by the probability of its word; None where no run left any.

    Of statements and their negations, which are asked about in turn, it is one of the row's own.
    """
    about = row[0].skill.about
    ways = list(POLARITIES)
    found: dict[str, ContextLine] = {}
    first: tuple[Run, int, ContextLine] | None = None
    for verdict in row[:MOST_MODELS]:
        for run in verdict.runs:
            own = _lines(results, run)
            own = own[ways.index(about) :: len(ways)] if about in ways else own
            if first is None and (typical := _typical(own)):
                first = (run, *typical)
            same = (line for _, line in own if first and line.context == first[2].context)
            if (line := next(same, None)) is not None:
                found[verdict.model] = line
    if first is None:
        return None
    run, number, asked = first
    num_words = NUM_WORDS if len(found) == 1 else 1
    said: dict[str, list[str]] = {}
    for model, line in found.items():
        for place, word in enumerate(line.predictions[:num_words]):
            said.setdefault(word, []).extend([model] * (place == 0))
    for word in asked.expected:
        said.setdefault(word, [])
    return Example(
        question=cut(asked.context, LONGEST_QUESTION) + BLANK,
        choices=tuple(
            Choice(cut(word, LONGEST_CHOICE), word in asked.expected, tuple(models))
            for word, models in said.items()
        ),
        when=BEFORE,
        silent=tuple(model for model, line in found.items() if not line.predictions),
        more_choices=0,
        more_models=len(row) - len(found),
        address=address(run, f"@{number}"),
    )


def _lines(results: Results, run: Run) -> list[tuple[int, ContextLine]]:
    """The contexts by line; files that cannot be read are told of where all items stand."""
    try:
        return list(enumerate(read_context_lines(results, run), start=1))
    except UnreadableResultError:
        return []


def _typical(lines: Sequence[tuple[int, ContextLine]]) -> tuple[int, ContextLine] | None:
    """The context whose first word's probability is the median, the lower of two."""
    firsts: dict[str, tuple[int, ContextLine]] = {}
    for number, line in lines:
        firsts.setdefault(line.context, (number, line))
    known = [one for one in firsts.values() if one[1].probability is not None]
    known.sort(key=lambda one: (one[1].probability, one[0]))
    return known[(len(known) - 1) // 2] if known else next(iter(firsts.values()), None)
