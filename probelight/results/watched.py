"""The runs of a training that a callback watched: which model, and what it gained and lost."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import PurePath

import numpy as np
import pandas as pd

from probelight.io.files import distinct_ends
from probelight.metrics.comparisons import compare_runs
from probelight.results.details import WatchDetails
from probelight.results.load import WATCH, Run, RunSet
from probelight.results.predictions import read_item_lines


@lru_cache(maxsize=2)
def trained_models(results: RunSet) -> dict[str, str]:
    """Return the model that a run scored, without its step, by the run's path.

    If there are several trainings, the name has the training's folder in brackets.
    """
    folders = {run.path: str(PurePath(run.path).parents[1]) for run in results.of(WATCH)}
    ends = distinct_ends(folders.values())
    models = {}
    for path, folder in folders.items():
        run = results.by_path[path]
        name = run.model.removesuffix(f"@{run.source.revision}")
        models[path] = f"{name} ({ends[folder]})" if len(ends) > 1 else name
    return models


@lru_cache(maxsize=2)
def changes(results: RunSet) -> pd.DataFrame:
    """Return what each model gained and lost from its first step to its last, a row per probe.

    Original tasks come last. The columns are described in `Watch.changes`.

    Raises:
        UnreadableResultError: If the items of a run are damaged.
    """
    runs_by_step: dict[tuple[str, str, str], dict[int, Run]] = {}
    for run in results.of(WATCH):
        if details := run.detail(WatchDetails):
            key = details.task, trained_models(results)[run.path], run.probe
            runs_by_step.setdefault(key, {})[details.step] = run
    rows = []
    for (task, model, probe), runs in sorted(runs_by_step.items()):
        if len(runs) < 2:
            continue
        first, last = min(runs), max(runs)
        ends = runs[first], runs[last]
        lines = [{line.name: line for line in read_item_lines(results, run)} for run in ends]
        names = [name for name in lines[0] if name in lines[1]]
        named_groups = [lines[0][name].interval_group for name in names]
        groups = None if None in named_groups else named_groups
        old, new = (np.array([answers[name].correct for name in names]) for answers in lines)
        compared = compare_runs({0: new}, {0: old}, groups, same_samples=True)
        first_rows, last_rows = ({row.metric: row for row in run.rows} for run in ends)
        accuracies = {"before": first_rows["accuracy"], "after": last_rows["accuracy"]}
        bounds = product(accuracies, ("ci_low", "ci_high"))
        rows.append(
            {
                "model": model,
                "probe": probe,
                "split": last_rows["accuracy"].split,
                "task": task,
                "is_original": bool(task),
                "first_step": first,
                "last_step": last,
                "chance": last_rows.get("floor", last_rows["chance"]).value,  # of the real choices
                **{end: row.value for end, row in accuracies.items()},
                **{f"{end}_{bound}": getattr(accuracies[end], bound) for end, bound in bounds},
                "change": compared.interval.value,
                "ci_low": compared.interval.low,
                "ci_high": compared.interval.high,
                "lost": float(np.maximum(old - new, 0).sum()),
                "gained": float(np.maximum(new - old, 0).sum()),
                "p_value": compared.interval_p,
                "changed_p": compared.mcnemar_p,
                "could_see": compared.smallest,
                "num_items": len(names),
                "num_groups": last_rows["accuracy"].num_groups,
                "_runs": [run.key for run in ends],
            }
        )
    return pd.DataFrame(rows)
