"""The results of a folder's runs as data frames: of every number, every item, every training.

The columns of the first two are always those of `NUMBERS` and `ITEMS`, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import product
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
from docstring_parser import parse

from probelight.io.files import distinct_ends
from probelight.metrics.comparisons import compare_runs
from probelight.results.details import InoculationDetails, WatchDetails
from probelight.results.hits import OTHER
from probelight.results.load import WATCH, Run, RunSet
from probelight.results.predictions import ItemLine, read_item_lines
from probelight.results.row import Row

# Numbers: the columns of results.csv (see `probelight.results.row.Row`), without the run's folder.
_OF_ROW = tuple(field.name for field in fields(Row) if field.name not in ("run_dir", "subset"))


def attribute_docs(kind: type) -> dict[str, str]:
    """Return the descriptions of a class's attributes, from its docstring."""
    attributes = parse(kind.__doc__ or "").params
    return {text.arg_name: " ".join((text.description or "").split()) for text in attributes}


_ROW, _LINE = attribute_docs(Row), attribute_docs(ItemLine)
NUMBERS: Mapping[str, str] = {
    "run": "Key of the run: the name of its folder.",
    "path": "Folder of the run, relative to the folder of the results; unique to the run.",
    **{name: _ROW.get(name, "") for name in _OF_ROW},
    "subset": "The part of the items that was measured, as in results.csv; empty for all items.",
    "part": "The same part as a `Subset`, with its kind and fields; None for all items.",
    "subset_kind": "The kind of the part, such as `template`; empty for all items.",
    "control_of": "Of a model with random weights: the model that has the same architecture.",
    "model_sha256": "Checksum of the weights.",
    "place": "Number of the row in its run, from 0.",
}
ITEMS: Mapping[str, str] = {
    "run": NUMBERS["run"],
    "path": NUMBERS["path"],
    "protocol": "The run's protocol.",
    "model": "The run's model.",
    "probe": "The run's probe.",
    "item": "`name:id@position`, the same in every run for the same item; the name is that of the "
    "probe or of the original task.",
    **{field.name: _LINE.get(field.name, "") for field in fields(ItemLine)},
}
ORIGINAL = "original"  # in the name of an inoculation's sets of the original task
WHOLE = ("num_train", "dose", "epoch", "seed", "num_items", "num_groups", "place")


@lru_cache(maxsize=2)
def results_frame(results: RunSet) -> pd.DataFrame:
    """Return one row per number of all runs, in the order of the runs.

    The columns are those of `NUMBERS`. A missing number is NA or NaN, and a missing text is "".
    """
    records = [
        {
            **{name: getattr(row, name) for name in _OF_ROW},
            "run": run.key,
            "path": run.path,
            "subset": row.subset_text,
            "part": row.subset,
            "subset_kind": row.subset.kind if row.subset else "",
            "control_of": run.source.control_of,
            "model_sha256": run.model_sha256,
            "place": number,
        }
        for run in results.runs
        for number, row in enumerate(run.rows)
    ]
    frame = pd.DataFrame(records, columns=list(NUMBERS))
    numbers = dict.fromkeys(("strength", "learning_rate", "value", "ci_low", "ci_high"), "float64")
    return frame.astype({**dict.fromkeys(WHOLE, "Int64"), **numbers})


def with_columns(
    frame: pd.DataFrame, rows: pd.DataFrame, names: Mapping[str, str], on: list[str]
) -> pd.DataFrame:
    """Left-join columns of another frame and rename them.

    Args:
        frame: The rows that get more columns.
        rows: The other frame, with at most one row per value of `on`.
        names: Its columns to add, by name, and their new names.
        on: The columns to join on.
    """
    return frame.merge(rows[[*on, *names]].rename(columns=dict(names)), how="left", on=on)


@lru_cache(maxsize=2)
def items_frame(results: RunSet) -> pd.DataFrame:
    """Return one row per item that a run answered, with the columns of `ITEMS`."""
    records = [
        {
            "run": run.key,
            "path": run.path,
            "protocol": run.protocol,
            "model": run.model,
            "probe": run.probe,
            **item_columns(source_of(run, line), line),
        }
        for run in results.runs
        for line in read_item_lines(results, run)
    ]
    return pd.DataFrame(records, columns=list(ITEMS))


def item_columns(source: str, line: ItemLine) -> dict[str, Any]:
    """Return the columns of an item; `source` is the name of its probe or task."""
    columns = {field.name: getattr(line, field.name) for field in fields(line)}
    return {"item": f"{source}:{line.name}", **columns}


def source_of(run: Run, line: ItemLine) -> str:
    """Return the name of the probe, original task or other set that an item comes from."""
    details = run.detail(InoculationDetails)
    if details and line.set.startswith(f"report_{OTHER}"):
        return line.set.removeprefix(f"report_{OTHER}").removesuffix("_before")
    return details.original_task if details and ORIGINAL in line.set else run.probe


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
