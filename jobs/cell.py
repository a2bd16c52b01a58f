"""A cell of a sweep: one run, known by the hash of its resolved config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.run_folder import config_hash, run_key
from storage.files import read_json

# config["protocol"] -> "module:function", called with (run, config, trainer, wandb, mirror).
# A cell may name its own in config["runner"].
RUNNERS = dict.fromkeys(
    ("first", "original", "before", "inoculation_cell", "inoculation"),
    "protocols.inoculation.cell_runs:run_cell",
)


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Args:
        name: Readable beginning of the key.
        config: The resolved config, plain values only; it decides the numbers, and its hash the
            key. `protocol` picks the runner, `threads` fixes the threads of the cell's process.
        needs: Keys of the cells that must be finished, or have failed for good, before this one.
        num_steps: Optimiser steps, for the estimate of time; no part of the key.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        search: Parameter -> range or values that are drawn when the cell is claimed
            (`search: tpe`); the draw is added to the config under `setting`. The space itself is
            part of the config, under `search`: trials of another space are other cells.
    """

    name: str
    config: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    num_steps: int = 0
    weights_bytes: int = 0
    search: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.search:  # else no field at all: the keys of other cells are older than searches
            object.__setattr__(self, "config", {**self.config, "search": dict(self.search)})

    @property
    def group(self) -> str:
        """Equal for the trials of one search."""
        return group_of(self.config)

    @property
    def key(self) -> str:
        """Name of the run folder: `<name>-<first 12 hex digits of the config's sha256>`."""
        return run_key(self.name, self.config)


DRAWN_NAME = "drawn.json"


def group_of(config: Mapping[str, Any]) -> str:
    """The hash of a config without `trial`: equal for the trials of one search."""
    return config_hash({k: v for k, v in config.items() if k != "trial"})[:12]


def drawn_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The config of a cell with what was drawn for it at its first claim, if anything was."""
    path = folder / DRAWN_NAME
    if not path.exists():
        return dict(config)
    drawn = read_json(path)
    return {**config, "setting": {**config.get("setting", {}), **drawn}}


def runner_of(config: Mapping[str, Any]) -> str:
    """The "module:function" that runs a cell.

    Raises:
        ValueError: If nothing runs this protocol.
    """
    runner = config.get("runner") or RUNNERS.get(config.get("protocol", ""))
    if runner is None:
        raise ValueError(
            f"no runner for protocol {config.get('protocol')!r}; there are {', '.join(RUNNERS)}"
        )
    return str(runner)
