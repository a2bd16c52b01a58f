"""Adapters: few weights next to those of a model, which alone are trained (LoRA, Hu et al. 2021).

They are made, saved and read by peft, which is imported when the first is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from probelight.io import ranges

FULL, LORA = "full", "lora"
Rank = Annotated[int, ranges.Within(1, 65_536)]


@dataclass(frozen=True)
class Tuning(ranges.Settings):
    """Which weights a training moves: all, or those of an adapter and of a fresh head.

    Args:
        method: "full", "lora", or the class of another adapter's config, such as "peft.IA3Config".
        rank: Of lora.
        alpha: Of lora, whose output counts alpha / rank; none takes the rank, so that it counts 1.
        dropout: Of lora's input.
        target_modules: Names of the layers that get an adapter; none takes peft's defaults for the
            type of model.
        options: Further arguments of peft's config.
    """

    method: str = FULL
    rank: Rank = 8
    alpha: Annotated[float, ranges.Within(0, 1_000_000, above=True)] | None = None
    dropout: ranges.ShareOrNone = 0.0
    target_modules: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


FULL_TUNING = Tuning()
