"""The runs of a training that a callback watched: which model, and what it gained and lost."""

from __future__ import annotations

from functools import lru_cache
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from probelight.metrics.comparisons import compare_runs
from probelight.results.details import WatchDetails
from probelight.results.load import WATCH, Results, Run, distinct_ends
from probelight.results.predictions import read_item_lines

Scores = dict[int, Run]  # the runs of a model on a probe by training step


@lru_cache(maxsize=2)
def trained_models(results: Results) -> dict[str, str]:
    """Return the model that each run scored, by the run's path: the name that all steps share.

    If there are several trainings, the name has the training's folder in brackets.
    """
    folders = {run.path: str(PurePath(run.path).parents[1]) for run in results.of(WATCH)}
    ends = distinct_ends(folders.values())
    names = {}
    for path, folder in folders.items():
        run = results.by_path[path]
        name = run.model.removesuffix(f"@{run.source.revision}")
        names[path] = f"{name} ({ends[folder]})" if len(ends) > 1 else name
    return names


@lru_cache(maxsize=2)
def looks(results: Results) -> dict[tuple[str, bool, str], Scores]:
    """Return the runs by model, whether the probe is the original task, and probe; sorted.

    Steps at which not all probes of a model were scored are left out.
    """
    by_probe: dict[tuple[str, bool, str], Scores] = {}
    for run in results.of(WATCH):
        if (details := run.detail(WatchDetails)) is not None:
            key = trained_models(results)[run.path], details.is_original, run.probe
            by_probe.setdefault(key, {})[details.step] = run
    steps: dict[str, set[int]] = {}
    for (model, *_), scores in by_probe.items():
        steps[model] = steps.get(model, {*scores}) & {*scores}
    return {
        key: {step: scores[step] for step in sorted(steps[key[0]])}
        for key, scores in sorted(by_probe.items())
        if steps[key[0]]
    }


@lru_cache(maxsize=2)
def changes(results: Results) -> pd.DataFrame:
    """Return what models gained and lost between the first look and the last, a row per probe.

    The columns are those of `probelight.integrations.watch.Watch.changes`.

    Raises:
        UnreadableResultError: If the items of a run are damaged.
    """
    rows: list[dict[str, Any]] = []
    for (model, is_original, probe), scores in looks(results).items():
        first, last = min(scores), max(scores)
        if first == last:
            continue
        was, now = (
            {line.name: line for line in read_item_lines(results, scores[step])}
            for step in (first, last)
        )
        names = [name for name in was if name in now]
        groups = [was[name].interval_group for name in names]
        before, after = (np.array([answers[name].correct for name in names]) for answers in (was, now))
        compared = compare_runs(
            {0: after}, {0: before}, None if None in groups else groups, same_samples=True
        )
        rows.append(
            {
                "model": model,
                "probe": probe,
                "is_original": is_original,
                "first_step": first,
                "last_step": last,
                "before": float(before.mean()),
                "after": float(after.mean()),
                "change": compared.interval.value,
                "ci_low": compared.interval.low,
                "ci_high": compared.interval.high,
                "lost": float(np.maximum(before - after, 0).sum()),
                "gained": float(np.maximum(after - before, 0).sum()),
                "p_value": compared.mcnemar_p,
                "could_see": compared.smallest,
                "num_items": len(names),
            }
        )
    return pd.DataFrame(rows)
