"""Reads what an offline run of Weights & Biases wrote: a log of protobuf records."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wandb.proto import wandb_internal_pb2

from probelight.callbacks.wandb.guard import STEP
from probelight.results.metrics_file import read_metrics
from tests.fixtures.checkout import ROOT

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7
FULL, LAST = 1, 4


@dataclass
class OfflineRun:
    """Config, final summary and the logged rows of one run, and how it ended.

    Attributes:
        id: Its id in W&B, as the folder is named.
        group: Its group.
        exit_code: None where it was not ended by itself.
        was_interrupted: Whether W&B was told that it will go on.
    """

    id: str = ""
    group: str = ""
    exit_code: int | None = None
    was_interrupted: bool = False

    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)

    def logged(self, name: str) -> list[Any]:
        """The values of one metric, in order."""
        return [row[name] for row in self.history if name in row]

    def points(self) -> list[tuple[int, str, float]]:
        """(step, metric, value) of all that was logged, sorted; its epochs and clock apart."""
        return sorted(
            (row[STEP], name, value)
            for row in self.history
            for name, value in row.items()
            if name not in (STEP, "epoch") and not name.startswith("_")
        )


def points_of(metrics_path: Path) -> list[tuple[int, str, float]]:
    """(step, metric, value) of all that a metrics.csv holds, sorted."""
    return sorted((step, name, value) for step, _, name, value in read_metrics(metrics_path))


def fresh_environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a process that W&B knows nothing of: no key, no mode, no settings."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    own = {"HOME": str(home), "NETRC": str(home / ".netrc"), "PYTHONPATH": str(ROOT)}
    return {**kept, **own, **more}


def read_offline_run(folder: Path) -> OfflineRun:
    """The one run below `folder/wandb`."""
    [run] = read_offline_runs(folder)
    return run


def read_offline_runs(folder: Path) -> list[OfflineRun]:
    """The runs below `folder/wandb`, in the order they began."""
    return [_read(path) for path in sorted(folder.glob("wandb/offline-run-*/*.wandb"))]


def _read(path: Path) -> OfflineRun:
    run = OfflineRun(id=path.stem.removeprefix("run-"))
    for data in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(data)
        kind = record.WhichOneof("record_type")
        run.group = record.run.run_group or run.group
        run.was_interrupted |= kind == "preempting"
        if kind == "exit":
            run.exit_code = record.exit.exit_code
        for source in (record.run.config, record.config):
            run.config |= {_key(item): json.loads(item.value_json) for item in source.update}
        run.summary |= {_key(i): json.loads(i.value_json) for i in record.summary.update}
        if record.history.item:
            run.history.append({_key(i): json.loads(i.value_json) for i in record.history.item})
    return run


def _key(item: Any) -> str:
    return item.key or "/".join(item.nested_key)


def _records(content: bytes) -> list[bytes]:
    """The records of a file in LevelDB's log format: parts in blocks, none crosses one's end."""
    records, parts, place = [], b"", FILE_HEADER
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts += content[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (FULL, LAST):
            records.append(parts)
            parts = b""
    return records
