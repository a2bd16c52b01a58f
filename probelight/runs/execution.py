"""One run from its spec to its result.json, and what Weights & Biases gets of it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.documents import read_json
from probelight.io.process import is_first_process
from probelight.io.wandb import PENDING, WandbSettings
from probelight.io.workload import Workload
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.fencing import AttemptLostError
from probelight.runs.spec import RunSpec, drawn_config


def make_run(spec: RunSpec, run: RunFolder, context: RunContext) -> None:
    """Make a run in its folder, and write its record with what it took.

    The spec's precision and threads override the context's. With W&B on, a failed run appears there
    too, and one that had begun there ends.
    """
    wandb = context.wandb
    if wandb.project and (run.path / "wandb").is_dir():
        _follow(run, wandb)
    workload = Workload()
    try:
        record = spec.make(run, replace(context, trainer=spec.fixed(context.trainer)))
        if not is_first_process() and run.result_path.exists():  # it is written once
            run.tell(record)
        else:
            run.finish(replace(record, **workload.measured()))
    except AttemptLostError:
        raise  # the run in W&B is that of the attempt in charge
    except BaseException as end:
        if wandb.project and isinstance(end, Exception) and not run.listeners:
            _follow(run, wandb)
        run.tell(end)
        raise


def result_of_first(run: RunFolder) -> RunRecord:
    """Wait for the result of a run that the first process of several makes alone."""
    parent = os.getppid()
    while (record := run.result()) is None:
        if os.getppid() != parent:  # what started both of them is gone
            raise RuntimeError(f"{run.path}: the process that was computing this run has ended")
        time.sleep(0.2)
    return record


def record_pending(runs_dir: Path, wandb: WandbSettings) -> None:
    """Record in W&B the finished runs under `runs_dir` that it does not have, or not all of.

    Their process was killed between `result.json` and the end of the run in W&B, or W&B failed or
    took too long. Unfinished runs go on and record themselves.
    """
    if not wandb.project or wandb.disabled or not is_first_process():
        return
    for path in sorted(runs_dir.glob(f"*/{PENDING}")):
        folder = path.parent.parent
        try:
            run = RunFolder.at(folder)
            if (record := run.result()) is None:
                continue
            run.config = drawn_config(run.config, folder)
            summary = read_json(path)["summary"]
            print(f"{folder.name}: sending the rest of this run to Weights & Biases")
            _follow(run, wandb, summary)
            run.tell(record)
        except (OSError, ValueError, LookupError, TypeError) as error:
            warnings.warn(
                f"the run of {folder} could not be sent to Weights & Biases: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def _follow(run: RunFolder, wandb: WandbSettings, summary: Mapping[str, Any] | None = None) -> None:
    # Only now: it imports Lightning.
    from probelight.callbacks.wandb_logger import follow

    guard = follow(run, wandb)
    if summary is not None:
        guard.summarise(summary)
