"""Which weights a training moves, as settings: nothing heavy is imported for them.

What reads a command's options imports what their module imports, for type checking alone too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from probelight.io import ranges
from probelight.io.errors import UsageError, nearest
from probelight.io.settings import Settings

FULL, LORA = "full", "lora"
MAX_RANK, MAX_ALPHA = 65_536, 1_000_000
Rank = Annotated[int, ranges.Within(1, MAX_RANK)]


@dataclass(frozen=True)
class Tuning(Settings):
    """Which weights to train: all, or those of an adapter and of a fresh head.

    Args:
        method: "full", "lora", or the config class of another adapter, such as "peft.IA3Config".
        rank: Rank of lora.
        alpha: Scale of lora: its output is multiplied by alpha / rank. By default the rank, so that
            the factor is 1.
        dropout: Dropout on the input of lora.
        target_modules: Names of the layers that get an adapter; by default those that peft chooses
            for the type of model.
        options: Further arguments of peft's config.
    """

    method: str = FULL
    rank: Rank = 8
    alpha: Annotated[float, ranges.Within(0, MAX_ALPHA, above=True)] | None = None
    dropout: ranges.ShareOrNone = 0.0
    target_modules: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in (FULL, LORA) and "." not in self.method:
            raise UsageError(
                f"tuning.method {self.method!r}{nearest(self.method, (FULL, LORA))}: give full, "
                "lora, or a config class of peft, such as peft.IA3Config"
            )
        lora_defaults = {"rank": 8, "alpha": None, "dropout": 0.0}
        defaults: dict[str, Any] = dict(lora_defaults)
        if self.method == FULL:
            defaults |= {"target_modules": [], "options": {}}
        for name, default in defaults.items():
            if self.method != LORA and getattr(self, name) != default:
                advice = "leave it out" if self.method == FULL else "give it in tuning.options"
                owner = "lora" if name in lora_defaults else "an adapter"
                raise UsageError(
                    f"tuning.{name} is only for {owner}, but tuning.method is {self.method}; "
                    f"{advice}"
                )

    def __hash__(self) -> int:
        return hash(repr(self))


FULL_TUNING = Tuning()


def tuning_of(tuning: Tuning | str | Mapping[str, Any] | None) -> Tuning | None:
    """Return settings that are given as such, as their method, or as plain values."""
    if isinstance(tuning, str):
        return Tuning(tuning)
    return Tuning(**tuning) if isinstance(tuning, Mapping) else tuning
