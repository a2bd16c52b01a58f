"""The runs of the diagnostics, and what tables call their models."""

from __future__ import annotations

from collections import Counter

from probelight.probes.diagnostics.sets import SETS
from probelight.results.load import Results, Run


def labelled_runs(results: Results) -> list[tuple[Run, str]]:
    """Each run with the name of its model, set by set; outputs of one name stay apart."""
    order = list(SETS)
    known = [run for run in results.of("diagnose") if _is_known(run)]
    runs = sorted(known, key=lambda run: order.index(run.probe))
    times = Counter((run.probe, run.model) for run in runs)
    return [
        (run, run.model if times[run.probe, run.model] == 1 else f"{run.model} ({run.path})")
        for run in runs
    ]


def unread(results: Results) -> list[str]:
    """A sentence about each run on what is no diagnostic set."""
    return [
        f"Not shown: {run.path}: its record names no diagnostic set."
        for run in results.of("diagnose")
        if not _is_known(run)
    ]


def _is_known(run: Run) -> bool:
    return {run.probe, *(row.probe for row in run.rows)} <= SETS.keys()
