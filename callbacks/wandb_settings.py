"""Where runs appear in Weights & Biases; apart from the logger, which imports Lightning."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class WandbSettings:
    """Where runs appear in Weights & Biases.

    Args:
        project: W&B project; no project, no W&B.
        entity: W&B team or user.
        group: Name that gathers the runs of one sweep.
        mode: "auto" is online with an API key and offline without one.
        tags: Tags of the run.
    """

    project: str | None = None
    entity: str | None = None
    group: str | None = None
    mode: Literal["auto", "online", "offline"] = "auto"
    tags: tuple[str, ...] = ()

    def offline(self) -> bool:
        """Whether the run is written to disk only, for `wandb sync` later."""
        if self.mode != "auto":
            return self.mode == "offline"
        return not _has_api_key()


DEFAULT_WANDB = WandbSettings()


def _has_api_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        import wandb

        return bool(wandb.api.api_key)
    except Exception:
        return False
