"""What `train.py fit` leaves of a run for reports: its last and its best validation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from pytorch_lightning import LightningDataModule

from probelight.results.record import ModelSource, RunRecord, data_files
from probelight.results.row import Row
from probelight.results.run_folder import Logged, run_key

# Where the run lies and how it is watched; the same fit elsewhere is the same run.
_NOT_HASHED = {"config", "output_dir", "ckpt_path"}
_BEST = {"accuracy": max, "aggregate": max, "loss": min}  # by how a metric's name ends


def fit_record(
    config: Mapping[str, Any],
    data: LightningDataModule,
    scores: Mapping[str, float],
    logged: Iterable[Logged],
    global_step: int,
    model_sha256: str,
    seconds: float,
) -> RunRecord:
    """Return the record of a fit, with a row for the last and the best value of each metric.

    Args:
        config: The resolved config of the command.
        data: What it was trained and validated on.
        scores: The last value of each metric.
        logged: What `metrics.csv` holds; nothing where another logger was chosen.
        global_step: Optimiser steps.
        model_sha256: Of the last weights.
        seconds: How long this start of it took.
    """
    model, given = (config[name]["class_path"].rpartition(".")[2] for name in ("model", "data"))
    options = dict(config["model"].get("init_args") or {})
    sets = dict(config["data"].get("init_args") or {})
    loaded_from = options.get("model_name_or_path") or options.get("vectors") or ""
    files, seed = getattr(data, "data", None), config.get("seed_everything")
    base = Row(
        protocol="fit",
        model=f"{model} {loaded_from}".strip(),
        probe=sets.get("probe") or Path(sets.get("path") or given).name,
        mode=options.get("mode") or "",
        num_train=sets.get("num_train"),
        learning_rate=options.get("learning_rate"),
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
        split="val",
    )
    return RunRecord(
        protocol="fit",
        model=base.model,
        probe=base.probe,
        rows=tuple(validation_rows(base, scores, logged)),
        seeds=() if base.seed is None else (base.seed,),
        data=data_files(files.values()) if isinstance(files, dict) else (),
        source=ModelSource(loaded_from=loaded_from),
        model_sha256=model_sha256,
        seconds=seconds,
        facts={"scores": dict(scores), "global_step": global_step},
        key=run_key("fit", {k: v for k, v in config.items() if k not in _NOT_HASHED}),
    )


def validation_rows(
    base: Row, scores: Mapping[str, float], logged: Iterable[Logged]
) -> Iterator[Row]:
    """Yield the last value of each validation metric, and the best one where one is better.

    Args:
        base: The columns that all rows share.
        scores: The last value of each metric.
        logged: (step, epoch or "", metric, value) of the whole fit; epochs count from 0 there.
    """
    history: dict[str, list[tuple[int | None, float]]] = {}
    for _, epoch, metric, value in logged:
        history.setdefault(metric, []).append((int(epoch) + 1 if epoch else None, value))
    for metric, value in scores.items():
        if not metric.startswith("val/") or not math.isfinite(value):
            continue
        row = replace(base, metric=metric.removeprefix("val/"))
        values = [(epoch, old) for epoch, old in history.get(metric, ()) if math.isfinite(old)]
        yield replace(row, extra="last", value=value, epoch=values[-1][0] if values else None)
        best = next((of for end, of in _BEST.items() if metric.endswith(end)), None)
        if values and best is not None:
            best_epoch, best_value = best(values, key=itemgetter(1))
            yield replace(row, extra="best", value=best_value, epoch=best_epoch)
