"""How a sweep's engine behaves; none of it changes a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storage.config.ranges import Seconds, Settings, Within
from storage.errors import UsageError


@dataclass(frozen=True)
class EngineSettings(Settings):
    """Retries, heartbeats and waiting times of a sweep.

    Args:
        max_retries: How often a cell that failed is tried again before it has failed for good.
        heartbeat_seconds: Seconds between two signs of life of a worker.
        grace_seconds: Seconds without a sign of life after which a worker counts as dead and its
            cell is taken up by another. A worker of the same host that has ended is known at once.
        stop_seconds: Seconds that a cell has to save its state once the worker is to stop.
        poll_seconds: Seconds between two looks at the queue while other workers hold what is left.
    """

    max_retries: Annotated[int, Within(0, 1_000)] = 2
    heartbeat_seconds: Seconds = 10.0
    grace_seconds: Seconds = 60.0
    stop_seconds: Seconds = 120.0
    poll_seconds: Seconds = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace_seconds < 2 * self.heartbeat_seconds:
            raise UsageError(
                f"grace_seconds {self.grace_seconds} is less than two heartbeats of "
                f"{self.heartbeat_seconds} s: a worker that is alive would count as dead"
            )


DEFAULT_ENGINE = EngineSettings()
