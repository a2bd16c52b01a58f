"""How a plan's jobs are executed; none of it changes a number."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from probelight.io.errors import UsageError
from probelight.io.ranges import Seconds, Settings, Within


@dataclass(frozen=True)
class RaySettings(Settings):
    """What a sweep's cells are given of Ray.

    Args:
        address: A Ray cluster: "auto" for the one of this machine, or host:port; without one, a
            local Ray starts by itself and ends with the command.
        cpus_per_cell: CPUs that a cell takes of its node, fractions allowed; as many as
            `trainer.threads` times `trainer.devices` when left out, or 1.
        gpus_per_cell: GPUs that a cell takes, fractions of one allowed: 0.5 puts two cells on each;
            `trainer.devices` when left out and the cells are to run on GPUs.
        memory_per_cell: GB of memory that a cell takes of its node; not counted when left out.
        max_retries: How often a cell that failed is tried again before it has failed for good.
            Crashed workers and lost nodes do not count.
        stop_seconds: Seconds that cells have to save their state once they are to stop.
        take_over: Take the folder from a driver that is lost on another host.
    """

    address: str | None = None
    cpus_per_cell: Annotated[float, Within(0, 4_096, above=True)] | None = None
    gpus_per_cell: Annotated[float, Within(0, 1_024)] | None = None
    memory_per_cell: Annotated[float, Within(0, 100_000, above=True)] | None = None
    max_retries: Annotated[int, Within(0, 1_000)] = 2
    stop_seconds: Seconds = 120.0
    take_over: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cpus_per_cell", "gpus_per_cell"):
            value = getattr(self, name)
            if value is not None and value > 1 and value != int(value):
                raise UsageError(
                    f"engine.{name} {value} is more than one and no whole number, which Ray does "
                    "not give; choose a fraction below 1, or a whole number"
                )


@dataclass(frozen=True)
class EngineSettings(RaySettings):
    """Where a command's jobs run.

    Args:
        kind: "here", one after the other in this process, or "ray", as many at once as fit.
        address: As of a sweep.
        cpus_per_cell: As of a sweep.
        gpus_per_cell: As of a sweep.
        memory_per_cell: As of a sweep.
        max_retries: As of a sweep.
        stop_seconds: As of a sweep.
        take_over: As of a sweep.
    """

    kind: Literal["here", "ray"] = "here"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "ray":
            return
        given = [one.name for one in fields(RaySettings) if getattr(self, one.name) != one.default]
        if given:
            raise UsageError(
                f"engine.{given[0]} is for Ray alone; add --engine.kind ray, or leave it out"
            )


DEFAULT_SWEEP_ENGINE = RaySettings()
DEFAULT_ENGINE = EngineSettings()
