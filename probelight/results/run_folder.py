"""The folders of a command and of its runs, with which a repeated command goes on.

    OUTPUT_DIR/format.json        the format of all of these, written first
    OUTPUT_DIR/config.yaml        the resolved config of the command
    OUTPUT_DIR/command.txt        the command as it was typed
    OUTPUT_DIR/results.csv        the rows of all finished runs
    OUTPUT_DIR/runs/<key>/        config.yaml, result.json, predictions.jsonl, metrics.csv, ...

`result.json` is written last and whole: a run is finished exactly when it is there.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.atomic import (
    make_folder,
    remove_leftovers,
    write_blocks_atomic,
    write_text_atomic,
)
from probelight.io.documents import parse_yaml, read_json, read_yaml, yaml_text
from probelight.io.errors import ProbelightError
from probelight.io.escaping import as_cell, from_cell, json_text
from probelight.io.files import regular_file
from probelight.io.process import FROM_FINISHED_RUNS, STOP
from probelight.results.record import (
    COMMAND,
    COMMAND_LINE,
    FORMAT,
    OTHER_FORMAT,
    RESULT,
    FromFiles,
    RunRecord,
    artifacts_of,
    check_artifact,
)
from probelight.results.row import Row, write_results

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

CONFIG = "config.yaml"
FORMAT_FILE = "format.json"
PLANNED = "planned.json"  # the last plan of a sweep
METRICS_FILE = "metrics.csv"
METRICS_COLUMNS = ("step", "epoch", "metric", "value")
# The files of a command itself; the plan of a sweep counts before it has runs.
COMMAND_ARTIFACTS = ("results.csv", PLANNED, "driver.json")

_REMOVED = "was removed while the command was working in it; rerun the same command"

Listener = Callable[[RunRecord | BaseException], None]
Logged = tuple[int, str, str, float]  # step, epoch or "", metric, value


class ConfigConflictError(ProbelightError, ValueError):
    """The output folder belongs to a command with another config, or of another version."""


class CommandFolder:
    """The folder OUTPUT_DIR of one command, with its config and its runs.

    Args:
        path: The folder; made if missing.
        config: The resolved config, plain values only, without what does not change the numbers
            (the output folder itself, the mirror, progress bars).
        data: The sets whose checksums the config holds, to name a file that has changed.

    Raises:
        ConfigConflictError: If the folder has another format, or something was computed in it with
            another config, with the difference, or another process is about to.
    """

    def __init__(
        self, path: Path, config: Mapping[str, Any], data: Iterable[FromFiles] = ()
    ) -> None:
        self.path = path
        self.config = dict(config)
        self._config_text = _as_yaml(self.config)
        self._records: dict[str, RunRecord] = {}
        self._files = {file.sha256: file.path for source in data for file in source.files}
        self.runs_dir = path / "runs"
        check_format(path)
        make_folder(self.runs_dir)
        self._claim = FolderClaim(self.runs_dir)
        STOP.begins_with = FROM_FINISHED_RUNS
        remove_leftovers(path)
        if not (path / FORMAT_FILE).exists():
            write_text_atomic(path / FORMAT_FILE, json.dumps({"format": FORMAT}) + "\n")
        try:
            self._settle_config(path / CONFIG, self._config_text)
        except ConfigConflictError:
            self._claim.close()
            raise

    def _settle_config(self, config_path: Path, text: str) -> None:
        """Write the command's config, or replace another one that computed nothing."""
        exists = config_path.exists()
        if exists:
            if not self._has_other_config(config_path, text):
                return
            if not self._claim.lock(exclusive=True):
                raise ConfigConflictError(
                    f"another process is working in {self.path} with another config, or this file "
                    "system cannot tell; choose another --output_dir, or remove the folder"
                )
            # Until now another one could have been alone, and computed something.
            if not self._has_other_config(config_path, text):
                self._claim.lock(exclusive=False)
                return
            clear_runs(self.runs_dir)
        if command := COMMAND_LINE.get():
            write_text_atomic(self.path / COMMAND, command + "\n")
        write_text_atomic(config_path, text)
        if exists:
            print(f"{config_path}: replaced, as nothing was computed with the previous config")
            self._claim.lock(exclusive=False)

    def _has_other_config(self, config_path: Path, text: str) -> bool:
        """Return whether the folder has another config; refuse one with computed results."""
        if read_yaml(config_path) == parse_yaml(text):
            return False
        if is_computed(self.path, self.runs_dir):
            saved = config_path.read_text(encoding="utf-8")
            versions = saved.splitlines(), text.splitlines()
            lines = difflib.unified_diff(*versions, "there", "this command", lineterm="", n=0)
            difference = "\n".join(line for line in lines if not line.startswith("@@"))
            changed = [name for sha256, name in self._files.items() if sha256 not in saved]
            cause = f" or data (these files have changed: {', '.join(changed)})" if changed else ""
            raise ConfigConflictError(
                f"{config_path.parent} was made with another config{cause}; choose another "
                f"--output_dir. The difference:\n{difference}"
            )
        return True

    def _check_config(self) -> None:
        """Raise ConfigConflictError if the folder was removed since, or is another command's."""
        path, text = self.path / CONFIG, self._config_text
        is_there = path.exists() and path.read_text(encoding="utf-8") == text
        if not is_there and (not path.exists() or self._has_other_config(path, text)):
            raise ConfigConflictError(f"{self.path} {_REMOVED}")

    def run(self, name: str, config: Mapping[str, Any]) -> RunFolder:
        """Return the folder of one run; its key is a readable name and the hash of its config."""
        self._check_config()
        return RunFolder(self.runs_dir, name, config)

    def result(self, key: str) -> RunRecord | None:
        """Return the record of a run by its key, None until it is finished; make no folder."""
        path = self.runs_dir / key / RESULT
        if not path.exists():
            return None
        if key not in self._records:  # it is written once, so it need not be read again
            self._records[key] = RunRecord.read(path)
        return self._records[key]

    def remove(self, key: str) -> None:
        """Remove a run, which is unfinished from the first moment on."""
        (self.runs_dir / key / RESULT).unlink(missing_ok=True)
        shutil.rmtree(self.runs_dir / key)
        self._records.pop(key, None)

    def finished(self) -> list[RunRecord]:
        """Return the records of the finished runs by key, without a sweep's earlier plans."""
        paths = sorted(self.runs_dir.glob(f"*/{RESULT}"))
        earlier = superseded_results(paths)
        records = (self.result(path.parent.name) for path in paths if path not in earlier)
        return [record for record in records if record is not None]

    def rows(self) -> list[Row]:
        """Return the rows of the finished runs."""
        return [row for record in self.finished() for row in record.rows]

    def write_results(self) -> Path:
        """Rewrite results.csv from the finished runs."""
        self._check_config()
        path = self.path / "results.csv"
        write_results(path, self.rows())
        return path


class RunFolder:
    """The folder of one run.

    Attributes:
        key: `<name>-<first 12 hex digits of the config's sha256>`.
        path: The folder.
        listeners: Called once: with the record when the run is finished, or with the exception
            that ended it.
    """

    def __init__(self, runs_dir: Path, name: str, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.key = run_key(name, config)
        self.path = runs_dir / self.key
        self.path.mkdir(parents=True, exist_ok=True)
        self.checkpoint_dir = self.path / "checkpoints"
        self.listeners: list[Listener] = []
        if not (self.path / CONFIG).exists():
            write_text_atomic(self.path / CONFIG, _as_yaml(self.config))

    @classmethod
    def at(cls, path: Path) -> RunFolder:
        """Open an existing run by the config in its folder.

        Raises:
            ConfigError: If there is no config.yaml, or it is damaged.
            ValueError: If the run has ended, and its config.yaml has changed since.
        """
        check_artifact(path, CONFIG)
        config = read_yaml(path / CONFIG)
        run = cls.__new__(cls)
        run.config, run.key, run.path = config, path.name, path
        run.checkpoint_dir = path / "checkpoints"
        run.listeners = []
        return run

    @property
    def best_dir(self) -> Path:
        """The folder of the selected model of the run."""
        return self.checkpoint_dir / "best"

    @property
    def result_path(self) -> Path:
        """result.json: the run is finished when it is there."""
        return self.path / RESULT

    def result(self) -> RunRecord | None:
        """Return the run's record, None until it is finished."""
        return RunRecord.read(self.result_path) if self.result_path.exists() else None

    def read(self, name: str) -> Any | None:
        """Read a JSON file that an interrupted run left; None if there is none."""
        path = self.path / name
        if not path.exists():
            return None
        try:
            return read_json(path)
        except ValueError as error:
            raise ValueError(f"{error}; remove {self.path} to begin the run again") from error

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file atomically."""
        write_text_atomic(self.path / name, json_text(value, indent=1) + "\n")

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a JSON Lines file atomically."""
        write_blocks_atomic(self.path / name, (f"{json_text(row)}\n".encode() for row in rows))

    def write_metrics(self, rows: Iterable[Row]) -> None:
        """Write metrics.csv of a run without training: its values at step 0."""
        metrics = []
        for row in rows:
            seed = "" if row.seed is None else str(row.seed)
            labels = (row.control, seed, row.subset_text, row.metric)
            metrics.append((0, "", "/".join(filter(None, labels)), float(row.value)))
        write_metrics(self.path / METRICS_FILE, metrics)

    def finish(self, record: RunRecord) -> None:
        """Write result.json, which makes the run finished, and tell the listeners.

        Rows get their `run_dir`, the record its artifacts; the states of training are removed.

        Raises:
            ConfigConflictError: If the folder was removed since it was made.
        """
        if not (self.path / CONFIG).exists():  # what is written makes the folder again
            raise ConfigConflictError(f"{self.path} {_REMOVED}")
        rows = tuple(replace(row, run_dir=f"runs/{self.key}") for row in record.rows)
        record = replace(record, rows=rows, key=self.key, files=artifacts_of(self.path))
        self.write(RESULT, record.to_json())
        if self.result_path.exists():  # written by another process of the run, if not by this one
            for state in self.checkpoint_dir.glob("last.ckpt*"):
                state.unlink(missing_ok=True)
            STOP.begins_with = FROM_FINISHED_RUNS
        self.tell(record)

    def tell(self, end: RunRecord | BaseException) -> None:
        """Tell the listeners how the run ended; none is told twice."""
        while self.listeners:
            self.listeners.pop(0)(end)


def check_format(folder: Path) -> None:
    """Refuse a folder in which a command of a version with another format has worked.

    Raises:
        ConfigConflictError: If it has another number, or runs and none.
    """
    if format_of(folder) == FORMAT:
        return
    has_config = (folder / CONFIG).exists()
    has_runs = any(has_config or (run / RESULT).exists() for run in folder.glob("runs/*"))
    if has_runs or (folder / FORMAT_FILE).exists():
        raise ConfigConflictError(f"{folder}: {OTHER_FORMAT}")


def format_of(folder: Path) -> object:
    """Return the number in a command's folder; None where there is none that can be read."""
    try:
        content = read_json(folder / FORMAT_FILE)
    except (OSError, ValueError):
        return None
    return content.get("format") if isinstance(content, dict) else None


def run_key(name: str, config: Mapping[str, Any]) -> str:
    """Return the name of a run's folder: `<name>-<first 12 digits of the config's hash>`."""
    # A folder's name has at most 255 bytes, with what a temporary one has behind it.
    slug = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:180].strip("-")
    return f"{slug}-{config_hash(config)[:12]}"


def config_hash(config: Mapping[str, Any]) -> str:
    """Return the sha256 of the config in canonical JSON."""
    return hashlib.sha256(_canonical(config).encode()).hexdigest()


def _canonical(config: Any) -> str:
    """Return the canonical JSON of a config, which is hashed."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _as_yaml(config: Mapping[str, Any]) -> str:
    # By way of JSON: numpy's texts become plain, and what is held twice is written twice, no alias.
    return yaml_text(json.loads(json.dumps(config)))


class FolderClaim:
    """A process's claim to an existing folder of a command, until it is closed or forgotten.

    Each process holds a shared lock of the folder for as long as it may write there. Only a process
    that is alone may give the folder another config; where the file system does not lock folders,
    none is known to be alone.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self.lock(exclusive=False)

    def lock(self, *, exclusive: bool) -> bool:
        """Keep other processes out, or let them in; return whether that was possible."""
        if fcntl is None:
            return False
        # Sharing waits: a process is alone for as long as it takes to write a config.
        operation = fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH
        with suppress(OSError):
            fcntl.flock(self._descriptor, operation)
            return True
        return False


def is_computed(folder: Path, runs_dir: Path) -> bool:
    """Return whether a command left more than its own config and those of its runs."""
    if any((folder / name).exists() for name in COMMAND_ARTIFACTS):
        return True
    for path in runs_dir.rglob("*"):
        is_config = path.name == CONFIG and path.parent.parent == runs_dir
        is_part = path.name.startswith(".") and path.suffix == ".tmp"  # of a killed write
        if not (path.is_dir() or is_config or is_part):
            return True
    return False


def clear_runs(runs_dir: Path) -> None:
    """Remove the runs of a command that computed nothing, so that nothing waits for them."""
    for run in list(runs_dir.iterdir()):
        (run / CONFIG).unlink(missing_ok=True)
        for folder in sorted([run, *run.rglob("*/")], reverse=True):
            with suppress(OSError):  # not empty: the user put something there
                folder.rmdir()


def write_metrics(path: Path, rows: Iterable[Logged]) -> None:
    """Write metrics.csv atomically, a line for each logged value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(METRICS_COLUMNS)
    writer.writerows((step, epoch, as_cell(name), value) for step, epoch, name, value in rows)
    write_text_atomic(path, text.getvalue())


def read_metrics(path: Path) -> list[Logged]:
    """Read metrics.csv; the ValueError of a damaged one names it and says what to do."""
    try:
        with regular_file(path).open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file, strict=True)
            if tuple(lines.fieldnames or ()) != METRICS_COLUMNS:
                raise ValueError
            return [
                (int(row["step"]), row["epoch"], from_cell(row["metric"]), float(row["value"]))
                for row in lines
            ]
    except (csv.Error, TypeError, ValueError):
        raise ValueError(
            f"{path}: not all lines have the columns {','.join(METRICS_COLUMNS)}; remove "
            f"{path.parent} and rerun the command that made it"
        ) from None


def superseded_results(result_paths: Iterable[Path]) -> set[Path]:
    """Return the `OUTPUT_DIR/runs/<key>/result.json` that the last plan of a sweep lacks."""
    by_folder: dict[Path, list[Path]] = {}
    for path in result_paths:
        by_folder.setdefault(path.parent.parent.parent, []).append(path)
    superseded = set()
    for folder, paths in by_folder.items():
        keys = planned_keys(folder)  # one file for what may be hundreds of runs
        if keys is not None:
            superseded |= {path for path in paths if path.parent.name not in keys}
    return superseded


def planned_keys(output_dir: Path) -> frozenset[str] | None:
    """Return the run keys of the last plan; None where there is none, or it cannot be read."""
    try:
        plan = read_json(output_dir / PLANNED)
        return frozenset(str(run["key"]) for run in plan["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
