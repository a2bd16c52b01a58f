"""What an audit is asked to do: all of it decides numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from protocols.curve.settings import ESIM_FIT
from protocols.engine.settings import FitSettings
from storage.config.ranges import NotEmpty, Seed, Settings, Share

PROTOCOL = "audit"


@dataclass(frozen=True)
class AuditSettings(Settings):
    """How baselines are trained on a probe.

    Args:
        seeds: Each baseline is trained once with each.
        train_share: Of a probe that has one file, the share that is trained on, whole groups.
        split_seed: Seeds that division, and which train items stop a training.
        fit: How baselines are trained; `held_out` of the train items stop it.
    """

    seeds: Annotated[list[Seed], NotEmpty()] = field(default_factory=lambda: [0])
    train_share: Share = 0.7
    split_seed: Seed = 0
    fit: FitSettings = field(default_factory=lambda: ESIM_FIT)


DEFAULT_AUDIT = AuditSettings()
