"""The resources that a job takes, and those that a machine has."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probelight.io.errors import UsageError
from probelight.protocols.jobs.job import RaySettings, TrainerSettings

GIGABYTE = 10**9


@dataclass(frozen=True)
class Resources:
    """CPUs, GPUs and bytes of memory that a job takes of its node; fractions allowed."""

    cpus: float
    gpus: float = 0.0
    memory: int | None = None  # not counted

    @staticmethod
    def of(engine: RaySettings, trainer: TrainerSettings, has_gpus: bool) -> Resources:
        """Return the settings' resources; by default what the trainer's threads and devices need.

        UsageError if a job is to take all devices there are.
        """
        if trainer.devices < 1:
            raise UsageError(
                f"trainer.devices {trainer.devices}: a cell is given its devices by Ray; say how "
                "many it takes, for example --trainer.devices 1"
            )
        devices = trainer.devices
        cpus, gpus = engine.cpus_per_cell, engine.gpus_per_cell
        if cpus is None:
            cpus = float((trainer.threads or 1) * devices)
        if gpus is None:
            wanted = trainer.accelerator not in ("cpu", "auto")
            gpus = float(devices if wanted or (has_gpus and trainer.accelerator == "auto") else 0)
        memory = engine.memory_per_cell
        return Resources(cpus, gpus, None if memory is None else int(memory * GIGABYTE))

    def options(self) -> dict[str, Any]:
        """Return them as Ray's options of a task."""
        memory = {} if self.memory is None else {"memory": self.memory}
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, **memory}

    def check(self, nodes: Sequence[Mapping[str, float]]) -> int:
        """Return how many jobs fit at once on nodes with these resources, as Ray names them.

        UsageError if no node has enough: Ray would wait for ever.
        """
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory or 0)}
        wanted = {name: much for name, much in wanted.items() if much}
        fit = sum(min(int(n.get(name, 0) / much) for name, much in wanted.items()) for n in nodes)
        if fit:
            return fit
        for name, option in _OPTIONS.items():
            most = max((node.get(name, 0.0) for node in nodes), default=0.0)
            if most < wanted.get(name, 0.0):
                raise UsageError(
                    f"a cell takes {_amount(name, wanted[name])}, and no node of Ray has more than "
                    f"{_amount(name, most)}; set --engine.{option}"
                )
        raise UsageError(f"no node of Ray has all that a cell takes at once: {self}")

    def __str__(self) -> str:
        parts = [_amount("CPU", self.cpus), _amount("GPU", self.gpus)]
        return ", ".join(parts + ([] if self.memory is None else [_amount("memory", self.memory)]))


_OPTIONS = {"CPU": "cpus_per_cell", "GPU": "gpus_per_cell", "memory": "memory_per_cell"}


def own_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity and its container's share."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with suppress(OSError, ValueError):  # no container, or one without a limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count or 1, math.ceil(int(quota) / int(period)))
    return max(1, count or 1)


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / GIGABYTE:g} GB of memory"
    return f"{amount:g} {name}{'' if amount == 1 else 's'}"
