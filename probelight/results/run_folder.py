"""Where a command and each of its runs leave their files, so that the same command goes on.

    OUTPUT_DIR/config.yaml        what the command was asked to do
    OUTPUT_DIR/command.txt        the command as it was typed
    OUTPUT_DIR/results.csv        the rows of all finished runs
    OUTPUT_DIR/runs/<key>/        config.yaml, result.json, predictions.jsonl, metrics.csv, ...

`result.json` is written last and whole: a run is finished exactly when it is there.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from probelight.io.artifacts import check_left, left_files
from probelight.io.atomic import remove_leftovers, write_text_atomic
from probelight.io.escaping import json_text
from probelight.io.files import read_json
from probelight.io.yaml_file import read_yaml
from probelight.results.folder_claim import CONFIG, FolderClaim, clear_runs, is_computed
from probelight.results.metrics_file import METRICS_FILE, write_metrics
from probelight.results.planned import of_earlier_plans
from probelight.results.provenance import COMMAND, FromFiles, command_line
from probelight.results.record import RunRecord
from probelight.results.row import Row, write_results


class ConfigConflictError(ValueError):
    """The output folder belongs to a command with another config."""


Listener = Callable[[RunRecord | BaseException], None]


class CommandFolder:
    """OUTPUT_DIR of one command.

    Args:
        path: The folder; made if missing.
        config: The resolved config, plain values only. What does not change the numbers
            (the output folder itself, the mirror, progress bars) does not belong in it.
        data: What was read of the files whose checksums the config holds, to name one that changed.

    Raises:
        ConfigConflictError: If something was computed in the folder with another config, with
            the difference, or another process is about to.
    """

    def __init__(
        self, path: Path, config: Mapping[str, Any], data: Iterable[FromFiles] = ()
    ) -> None:
        self.path = path
        self.config = dict(config)
        self._files = {file.sha256: file.path for part in data for file in part.files}
        self.runs_dir = path / "runs"
        self.runs_dir.mkdir(parents=True, exist_ok=True)
        self._claim = FolderClaim(self.runs_dir)
        remove_leftovers(path)
        try:
            self._take(path / CONFIG, to_yaml(self.config))
        except ConfigConflictError:
            self._claim.close()
            raise

    def _take(self, config_path: Path, text: str) -> None:
        """Leaves the command's config, or finds it there; what has no results gives way."""
        if not config_path.exists():
            self._leave(config_path, text)
            return
        if (before := _other_config(config_path, text)) is None:
            return
        if is_computed(self.path, self.runs_dir):
            raise ConfigConflictError(_conflict(config_path, before, text, self._files))
        if not self._claim.alone():
            raise ConfigConflictError(
                f"another process is at work in {self.path} with another config, or this file "
                "system does not say; choose another --output_dir, or remove the folder"
            )
        # Until now another one could have been alone, and computed something.
        before = _other_config(config_path, text)
        if before is not None and is_computed(self.path, self.runs_dir):
            raise ConfigConflictError(_conflict(config_path, before, text, self._files))
        if before is not None:
            clear_runs(self.runs_dir)
            self._leave(config_path, text)
            print(f"{config_path}: replaced, as the config before computed nothing")
        self._claim.share()

    def _leave(self, config_path: Path, text: str) -> None:
        if command := command_line():
            write_text_atomic(self.path / COMMAND, command + "\n")
        write_text_atomic(config_path, text)

    def run(self, name: str, config: Mapping[str, Any]) -> RunFolder:
        """The folder of one run; its key is a readable name and the hash of its config."""
        return RunFolder(self.runs_dir, name, config)

    def result(self, key: str) -> RunRecord | None:
        """The record of the run of a key, None as long as it is not finished; makes no folder."""
        path = self.runs_dir / key / "result.json"
        return RunRecord.read(path) if path.exists() else None

    def finished(self) -> list[RunRecord]:
        """The records of the finished runs, by key; without those of a sweep's earlier plans."""
        found = sorted(self.runs_dir.glob("*/result.json"))
        earlier = of_earlier_plans(found)
        return [RunRecord.read(path) for path in found if path not in earlier]

    def rows(self) -> list[Row]:
        """The rows of the finished runs."""
        return [row for record in self.finished() for row in record.rows]

    def write_results(self) -> Path:
        """Rewrites results.csv from the finished runs."""
        path = self.path / "results.csv"
        write_results(path, self.rows())
        return path


class RunFolder:
    """The folder of one run.

    Attributes:
        key: `<name>-<first 12 hex digits of the config's sha256>`.
        path: The folder.
        listeners: Called once: with the record when the run is finished, or with what ended it.
    """

    def __init__(self, runs_dir: Path, name: str, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.key = run_key(name, config)
        self.path = runs_dir / self.key
        self.path.mkdir(parents=True, exist_ok=True)
        self.checkpoint_dir = self.path / "checkpoints"
        self.listeners: list[Listener] = []
        if not (self.path / "config.yaml").exists():
            write_text_atomic(self.path / "config.yaml", to_yaml(self.config))

    @classmethod
    def at(cls, path: Path) -> RunFolder:
        """The run whose folder is already there, by the config in it.

        Raises:
            ConfigError: If there is no config.yaml, or it is damaged.
            ValueError: If the run has ended, and its config.yaml has changed since.
        """
        check_left(path, CONFIG)
        config = read_yaml(path / CONFIG)
        run = cls.__new__(cls)
        run.config, run.key, run.path = config, path.name, path
        run.checkpoint_dir = path / "checkpoints"
        run.listeners = []
        return run

    @property
    def best_dir(self) -> Path:
        """Where the selected model of the run is kept."""
        return self.checkpoint_dir / "best"

    @property
    def result_path(self) -> Path:
        """result.json: the run is finished when it is there."""
        return self.path / "result.json"

    def result(self) -> RunRecord | None:
        """The run's record, None as long as it is not finished."""
        return RunRecord.read(self.result_path) if self.result_path.exists() else None

    def read(self, name: str) -> Any | None:
        """A JSON file that an earlier, interrupted start of the run left; None if there is none.

        Raises:
            ValueError: If it is damaged; the message says what to remove.
        """
        path = self.path / name
        if not path.exists():
            return None
        try:
            return read_json(path)
        except ValueError as error:
            raise ValueError(f"{error}; remove {self.path}, the run begins anew") from error

    def write(self, name: str, value: Any) -> None:
        """Writes a JSON file atomically."""
        write_text_atomic(self.path / name, json_text(value, indent=1) + "\n")

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes a JSON Lines file atomically."""
        text = "".join(json_text(row) + "\n" for row in rows)
        write_text_atomic(self.path / name, text)

    def write_metrics(self, rows: Iterable[Row]) -> None:
        """metrics.csv of a run without training: its values at step 0."""
        metrics = []
        for row in rows:
            seed = "" if row.seed is None else str(row.seed)
            parts = (row.control, seed, row.subset_text, row.metric)
            metrics.append((0, "", "/".join(filter(None, parts)), float(row.value)))
        write_metrics(self.path / METRICS_FILE, metrics)

    def finish(self, record: RunRecord) -> None:
        """Writes result.json, which makes the run finished, and tells the listeners.

        Rows get their `run_dir`; `files` is what `io.artifacts` checks before it is used.

        The training states, six times the size of the best model that stays, are of no more use.
        """
        rows = tuple(replace(row, run_dir=f"runs/{self.key}") for row in record.rows)
        record = replace(record, rows=rows, key=self.key, files=left_files(self.path))
        self.write("result.json", record.to_json())
        if self.result_path.exists():  # written by another process of the run, if not by this one
            for state in self.checkpoint_dir.glob("last.ckpt*"):
                state.unlink(missing_ok=True)
        self.tell(record)

    def tell(self, end: RunRecord | BaseException) -> None:
        """Tells the listeners how the run ended; none is told twice."""
        while self.listeners:
            self.listeners.pop(0)(end)


def run_key(name: str, config: Mapping[str, Any]) -> str:
    """Name of a run's folder: `<name>-<first 12 hex digits of the config's sha256>`."""
    slug = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-")
    return f"{slug}-{config_hash(config)[:12]}"


def config_hash(config: Mapping[str, Any]) -> str:
    """sha256 of the config in canonical JSON."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def to_yaml(config: Mapping[str, Any]) -> str:
    """The config as YAML in its own order."""
    plain = json.loads(json.dumps(config))
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return text


def _other_config(path: Path, text: str) -> str | None:
    """What stands in a config file, if it is not the same as `text`."""
    return None if read_yaml(path) == yaml.safe_load(text) else path.read_text(encoding="utf-8")


def _conflict(path: Path, before: str, now: str, files: Mapping[str, str]) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "there", "this command", lineterm="", n=0
    )
    difference = "\n".join(line for line in lines if not line.startswith("@@"))
    changed = [name for sha256, name in files.items() if sha256 not in before]
    cause = f" or data ({', '.join(changed)} is not what it was made with)" if changed else ""
    return (
        f"{path.parent} was made with another config{cause}; choose another --output_dir. "
        f"The difference:\n{difference}"
    )
