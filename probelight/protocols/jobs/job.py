"""A job: one run, known by the hash of its resolved config, and the function that makes it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.io.documents import read_json
from probelight.io.package import current_runner
from probelight.io.process import is_first_process
from probelight.io.wandb import PENDING, WandbSettings
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.fencing import AttemptLostError
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder, run_key

if TYPE_CHECKING:
    from probelight.callbacks.wandb_logger import WandbGuard

# Measures what the config asks for and returns its record, which is then written as result.json.
Runner = Callable[[RunFolder, Mapping[str, Any], RunContext], RunRecord]


@dataclass(frozen=True)
class Job:
    """One run of a plan; those of a sweep are called its cells.

    Args:
        name: Readable beginning of the key.
        config: The resolved config, plain values only; it decides the numbers, and its hash the
            key. `threads` fixes the threads of the job's process.
        runner: The function that makes the run, at the top of a module, or its "module:function";
            no part of the key.
        title: What a command calls the job when it says that its run is complete; its key unless
            given. No part of the key.
        bar: What one progress bar over this job and its neighbours with the same text says, in
            place of one for each of their steps. No part of the key.
        needs: Keys of the jobs that must be finished before this one, which else is not started.
        num_steps: Optimiser steps, for the estimate of time; no part of the key.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        search: Parameter -> range or values that are drawn before the job is started
            (`search: tpe`); the draw is added to the config under `setting`. The space itself is
            part of the config, under `search`: trials of another space are other jobs.
        follows: Keys of the jobs that must have ended before this one, finished or failed for good;
            no part of the key.
    """

    name: str
    config: Mapping[str, Any]
    runner: Runner | str
    needs: tuple[str, ...] = ()
    num_steps: int = 0
    weights_bytes: int = 0
    search: Mapping[str, Any] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    title: str = ""
    bar: str = ""

    def __post_init__(self) -> None:
        if self.search:  # else no field at all: the keys of other jobs are older than searches
            object.__setattr__(self, "config", {**self.config, "search": dict(self.search)})

    @property
    def key(self) -> str:
        """Name of the run folder: `<name>-<first 12 hex digits of the config's sha256>`."""
        return run_key(self.name, self.config)

    @property
    def runner_name(self) -> str:
        """The "module:function" by which other processes find the runner."""
        if isinstance(self.runner, str):
            return self.runner
        return f"{self.runner.__module__}:{self.runner.__qualname__}"


DRAWN_NAME = "drawn.json"


def drawn_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The config of a job with what was drawn for it before its first start, if anything was."""
    path = folder / DRAWN_NAME
    if not path.exists():
        return dict(config)
    drawn = read_json(path)
    return {**config, "setting": {**config.get("setting", {}), **drawn}}


def load_runner(name: str) -> Runner:
    """Return the function that "module:function" names, in a plan of an earlier version too."""
    runner: Runner = resolve_name(current_runner(name))
    return runner


def make_run(
    runner: Runner | str, run: RunFolder, config: Mapping[str, Any], context: RunContext
) -> None:
    """Make the run of a job, and write its record with the seconds that it took.

    Those who listen to the run are told if it fails. With W&B on, what fails before it was a run
    there becomes one, and what was one ends there.

    Args:
        runner: The job's function, or its "module:function".
        run: The run's folder.
        config: The job's config.
        context: What the command's jobs are given.
    """
    wandb = context.wandb
    if wandb.project and (run.path / "wandb").is_dir():
        _follow(run, wandb)
    start = time.perf_counter()
    try:
        function = load_runner(runner) if isinstance(runner, str) else runner
        record = function(run, config, context.fixed_by(config))
        run.finish(replace(record, seconds=round(time.perf_counter() - start, 3)))
    except AttemptLostError:
        raise  # the run in W&B is that of the attempt in charge
    except BaseException as end:
        if wandb.project and isinstance(end, Exception) and not run.listeners:
            _follow(run, wandb)
        run.tell(end)
        raise


def record_pending(runs_dir: Path, wandb: WandbSettings) -> None:
    """Records in W&B the finished runs that it does not have, or not all of.

    Their process was killed between `result.json` and the end of the run there, or W&B failed or
    took too long. A run that is not finished goes on, and records itself.

    Args:
        runs_dir: Folder of the run folders.
        wandb: Where the runs appear; without a project nothing is done.
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
            print(f"{folder.name}: recorded in Weights & Biases, which did not have all of it")
            _follow(run, wandb).summarise(summary)
            run.tell(record)
        except (OSError, ValueError, LookupError, TypeError) as error:
            warnings.warn(
                f"Weights & Biases does not get the run of {folder}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def _follow(run: RunFolder, wandb: WandbSettings) -> WandbGuard:
    # Only now: it imports Lightning.
    from probelight.callbacks.wandb_logger import follow

    return follow(run, wandb)
