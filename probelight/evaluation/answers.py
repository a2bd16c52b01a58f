"""The answers of finished runs in folders of results, for commands that compare them."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from pathlib import Path

from probelight.io.errors import UsageError, nearest
from probelight.io.escaping import visible
from probelight.io.files import distinct_ends
from probelight.results.load import RunSet, UnreadableResultError, load_results
from probelight.results.systems import OWN, RunScores, scores_of


def read_answers(
    folders: Sequence[Path], rules: Sequence[str] = (OWN,), *, mixed: bool = False
) -> Iterator[tuple[list[RunScores], RunSet, str]]:
    """Yield the scores of the runs in each folder (see `scores_of`), its results, and its name."""
    real_paths = [os.path.realpath(folder) for folder in folders]
    names = distinct_ends(real_paths)
    for folder, real_path in zip(folders, real_paths, strict=True):
        results, name = load_results(folder), visible(names[real_path])
        try:
            yield [*scores_of(results, name, rules, mixed=mixed)], results, name
        except UnreadableResultError as error:  # it names the run's file alone
            raise UnreadableResultError(f"{folder}: {error}") from error


def refuse_unanswered(probes: Sequence[str], answered: Sequence[str]) -> None:
    """Raise UsageError for a name given as `--probes` to which there are no answers."""
    for probe in probes:
        if probe not in answered:
            raise UsageError(
                f"--probes {probe}: these results have no answers to it{nearest(probe, answered)}; "
                f"they have answers to {', '.join(sorted({*answered})) or 'nothing'}"
            )
