"""The scores before inoculation, kept in a run, so that no later step computes them again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from probelight.io.artifacts import check_left
from probelight.probes.record import Record
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.inoculation.rows import Scored, SetOf
from probelight.results.run_folder import RunFolder

BEFORE_FILE = "before.json"
Sets = Mapping[SetOf, Sequence[Record]]


def keep_scores(run: RunFolder, scored: Scored) -> None:
    """Leaves the scores before inoculation in a run, unless they are there."""
    if not (run.path / BEFORE_FILE).exists():
        scores = {
            one.text: [[_in_json(score) for score in own] for own in said.scores]
            for one, said in scored.items()
        }
        run.write(BEFORE_FILE, scores)


def kept_scores(run: RunFolder, sets: Sets) -> dict[SetOf, Predictions]:
    """The scores that `keep_scores` left in a run.

    Args:
        run: The run.
        sets: The items that were scored.

    Raises:
        FileNotFoundError: If there are none.
        ValueError: If they are damaged, or of other items; the message says what to remove.
    """
    check_left(run.path, BEFORE_FILE)
    scores = run.read(BEFORE_FILE)
    if scores is None:
        raise FileNotFoundError(f"{run.path / BEFORE_FILE} is not there: run the cell again")
    if not isinstance(scores, dict) or {n: len(s) for n, s in scores.items()} != {
        one.text: len(records) for one, records in sets.items()
    }:
        raise ValueError(
            f"{run.path / BEFORE_FILE}: it does not hold the scores of this run's items; "
            f"remove {run.path}, the run begins anew"
        )
    return {
        one: Predictions(one.text, own, [list(map(float, row)) for row in scores[one.text]])
        for one, own in sets.items()
    }


def _in_json(score: float) -> float | str:
    """The score, or what `float` reads it from where JSON has no such number."""
    return score if math.isfinite(score) else str(score)
