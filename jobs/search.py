"""`search: tpe`: the settings of a group's cells are drawn when they are claimed.

Optuna's TPE sampler sees the group's finished cells with both objectives, accuracy on the probe and
on the original task, and those that run; also finished ones of which only the run folders tell.
What it drew is kept in the run folder before anything trains, so a cell that is tried again keeps
its setting.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
)
from optuna.trial import TrialState

from jobs.job import DRAWN_NAME, group_of
from jobs.queue.entry import COMPLETE, Entry
from jobs.queue.lease import RESULT
from jobs.queue.queue import Queue
from metrics.aggregate import Checkpoint, best_checkpoint
from results.record import RunRecord
from storage.errors import UsageError
from storage.files import read_json, write_text_once

NUM_RANDOM = 4  # draws before the sampler has anything to go by


def draw(queue: Queue, entry: Entry, folder: Path) -> None:
    """Draws the setting of a claimed cell, unless it is drawn already or has none."""
    path = folder / DRAWN_NAME
    if not entry.search:
        return
    if not path.exists():
        entries = queue.entries()
        others = [e for e in entries if e.group == entry.group and e.key != entry.key]
        others += _forgotten(folder.parent, entry.group, {e.key for e in entries})
        # The number in the queue would come again when a sweep without its storage is planned anew.
        drawn = sample(entry.search, others, seed=zlib.crc32(entry.key.encode()))
        # A worker that was stopped before this line and has lost the cell replaces nothing.
        write_text_once(path, json.dumps(drawn) + "\n")
    queue.note_drawn(entry, read_json(path))


def _forgotten(runs_dir: Path, group: str, known: Collection[str]) -> list[Entry]:
    """A group's finished cells that the queue does not know: its storage was made anew."""
    found = []
    for path in sorted(runs_dir.glob(f"*/{DRAWN_NAME}")):
        folder = path.parent
        if folder.name in known or not (folder / RESULT).exists():
            continue
        with suppress(Exception):  # a damaged neighbour is no trouble of this cell
            config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
            if group_of(config) == group:
                objectives = objectives_of(folder / RESULT)
                said = {"drawn": read_json(path), "objectives": objectives, "group": group}
                found.append(Entry(0, 0, folder.name, (), COMPLETE, **said))
    return found


def sample(space: Mapping[str, Any], others: Sequence[Entry], seed: int) -> dict[str, Any]:
    """Draws one setting.

    Args:
        space: Parameter -> {"low", "high", "log"} or {"choices"}.
        others: The group's other cells; those with a drawn setting count.
        seed: Seeds the draw.

    Raises:
        UsageError: If the space is of neither kind.
    """
    distributions = {name: _distribution(name, said) for name, said in space.items()}
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=NUM_RANDOM, constant_liar=True, multivariate=False
    )
    study = optuna.create_study(directions=["maximize", "maximize"], sampler=sampler)
    for entry in others:
        if not entry.drawn:
            continue
        finished = entry.state is COMPLETE and len(entry.objectives) == 2
        study.add_trial(
            optuna.trial.create_trial(
                params=entry.drawn,
                distributions=distributions,
                values=entry.objectives if finished else None,
                state=COMPLETE if finished else TrialState.RUNNING,
            )
        )
    return dict(study.ask(distributions).params)


def objectives_of(result_path: Path) -> tuple[float, ...]:
    """Accuracy on probe and original task, on selection items, of the epoch with the best mean."""
    epochs: dict[int, dict[str, float]] = {}
    for row in RunRecord.read(result_path).rows:
        if row.split == "selection" and row.epoch:
            epochs.setdefault(row.epoch, {})[row.metric] = row.value
    tried = [
        Checkpoint(said["probe_accuracy"], said["original_accuracy"], 0.0, epoch)
        for epoch, said in epochs.items()
    ]
    if not tried:
        return ()
    best = best_checkpoint(tried, lambda one: one)
    return best.probe, best.original


def _distribution(name: str, said: Mapping[str, Any]) -> BaseDistribution:
    if "choices" in said:
        return CategoricalDistribution(tuple(said["choices"]))
    if {"low", "high"} <= said.keys():
        return FloatDistribution(said["low"], said["high"], log=bool(said.get("log")))
    raise UsageError(f"search: {name} needs `low` and `high`, or `choices`, not {dict(said)}")
