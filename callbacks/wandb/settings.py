"""Where runs appear in Weights & Biases; apart from the logger, which imports Lightning."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

INIT_SECONDS = 60.0
FINISH_SECONDS = 15.0
MAX_ID = 64  # characters; longer ones are not everywhere taken
HASH = 13  # a run's key ends in a hyphen and 12 digits of its config's hash


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
        said = os.environ.get("WANDB_MODE")
        if said == "disabled":
            return False  # then W&B does nothing at all, and no mode of ours may wake it
        if said in ("offline", "dryrun"):
            return True
        if self.mode != "auto":
            return self.mode == "offline"
        return not _has_api_key()


DEFAULT_WANDB = WandbSettings()


def wandb_id(key: str) -> str:
    """The id of the run `key` in W&B: the key, or its beginning and its hash where it is long."""
    return key if len(key) <= MAX_ID else key[: MAX_ID - HASH] + key[-HASH:]


def client_settings() -> Any:
    """Settings of W&B's client: it gives up early, and leaves the terminal alone.

    What it could not send is on disk; `wandb sync` sends it.
    """
    import wandb

    wanted: dict[str, Any] = {
        "init_timeout": INIT_SECONDS,
        "finish_timeout": FINISH_SECONDS,
        "console": "off",
    }
    # `finish_timeout` came with a later version than the first one that we take.
    known = set(wandb.Settings.model_fields)
    return wandb.Settings(**{name: value for name, value in wanted.items() if name in known})


def _has_api_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        import wandb

        return bool(wandb.api.api_key)
    except Exception:
        return False
