"""A job: what this process or Ray executes to make one run of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from probelight.runs.memory import MemoryNeed
from probelight.runs.spec import RunSpec


@dataclass(frozen=True)
class Job:
    """One run of a plan, with what it waits for and what it will take.

    Args:
        spec: All that decides the run's numbers, and with them its key.
        needs: Keys of the runs that must be finished before this one is started.
        num_steps: Optimiser steps, for the estimate of time.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        saved_bytes: Of what is saved of a trained model, such as an adapter; 0 for all weights.
        follows: Keys of the runs that must have ended before this one, finished or failed for good.
        title: Name of the run in the command's messages; the key if empty.
        bar: Text of one progress bar that this job shares with neighbours of the same text.
        num_texts: Texts that a model without training reads first, for the estimate of time.
        keeps_model: Whether the model is still there when the run is done, for that of disk.
        memory: Measures what its training takes of memory; None where that is not worth the time.
    """

    spec: RunSpec
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
        """Name of the run folder."""
        return self.spec.key
