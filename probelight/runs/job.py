"""A job: one run of a plan, known by the hash of its resolved config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from probelight.io.documents import read_json
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder, run_key
from probelight.runs.context import RunContext
from probelight.runs.memory import MemoryNeed

# Makes the run of a config and returns its record, which is then written as result.json.
Runner = Callable[[RunFolder, Mapping[str, Any], RunContext], RunRecord]


@dataclass(frozen=True)
class Job:
    """One run of a plan, called a cell in sweeps. Only `name` and `config` make its key.

    Args:
        name: Readable beginning of the key.
        config: The resolved config, plain values only; it decides the numbers. `threads` fixes the
            threads of the job's process. `search` has the ranges or values of parameters that are
            drawn before the job is started; the draw is added to the config under `setting`.
        runner: The function that makes the run, at the top of a module, or its "module:function".
        needs: Keys of the jobs that must be finished before this one is started.
        num_steps: Optimiser steps, for the estimate of time.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        saved_bytes: Of what is saved of a trained model, such as an adapter; 0 for all weights.
        follows: Keys of the jobs that must have ended before this one, finished or failed for good.
        title: Name of the job in the command's messages; the key if empty.
        bar: Text of one progress bar that this job shares with neighbours of the same text.
        num_texts: Texts that a model without training reads first, for the estimate of time.
        keeps_model: Whether the model is still there when the job is done, for that of disk.
        memory: Measures what its training takes of memory; None where that is not worth the time.
    """

    name: str
    config: Mapping[str, Any]
    runner: Runner | str
    needs: tuple[str, ...] = ()
    num_steps: int = 0
    weights_bytes: int = 0
    follows: tuple[str, ...] = ()
    title: str = ""
    bar: str = ""
    num_texts: int = 0
    keeps_model: bool = True
    saved_bytes: int = 0
    memory: Callable[[], MemoryNeed] | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Name of the run folder: `<name>-<first 12 hex digits of the config's sha256>`."""
        return run_key(self.name, self.config)

    @property
    def runner_name(self) -> str:
        """The "module:function" under which other processes find the runner."""
        if isinstance(self.runner, str):
            return self.runner
        return f"{self.runner.__module__}:{self.runner.__qualname__}"


DRAWN_NAME = "drawn.json"


def drawn_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the config of a job with the setting that was drawn before its first start, if any."""
    path = folder / DRAWN_NAME
    if not path.exists():
        return dict(config)
    drawn = read_json(path)
    return {**config, "setting": {**config.get("setting", {}), **drawn}}


def load_runner(name: str) -> Runner:
    """Return the function that "module:function" names."""
    runner: Runner = resolve_name(name)
    return runner
