"""A user's own files in place of a probe's name, for the commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.settings import Settings
from probelight.probes.catalog import ProbeConfig
from probelight.probes.importers.formats import FORMATS
from probelight.probes.importers.items import read_file
from probelight.probes.record import GoldForm, Record, Setup
from probelight.probes.source import ProbeData, load_files
from probelight.probes.splits import SPLITS


@dataclass(frozen=True)
class FileSettings(Settings):
    """A user's probe in a file, without a config.

    Args:
        path: A .csv, .tsv, .jsonl, .json, .parquet or .xlsx file with the columns sentence, gold
            and choices, or those of a released set. For minimal pairs, a file with BLiMP's fields,
            or a table with the right sentence in its first column.
        setup: "mc_mlm" (one [MASK] in each stem), "mc_qa" (questions with answers) or
            "minimal_pair" (whole sentences); by default that of the items.
        choices: Choices of every item, by commas, for a table without a column choices.
        gold: How golds name their choice: by its "text", a "letter", or its number from 0 ("index")
            or 1 ("index1"). By default in the one way that fits all golds of the file.
        name: Name of the probe in tables; by default the name of the file.
    """

    path: str | None = None
    setup: Setup | None = None
    choices: ranges.Names = ()
    gold: GoldForm | None = None
    name: str | None = None


@dataclass(frozen=True)
class SplitFiles(Settings):
    """A user's probe in several files, without a config, where something is trained.

    Args:
        train: File to train on: .csv, .tsv, .jsonl, .json, .parquet or .xlsx, with the columns
            sentence, gold and choices, or those of a released set.
        dev: File to measure on.
        test: Another file to measure on.
        setup: "mc_mlm" (one [MASK] in each stem) or "mc_qa" (questions with answers); by default
            that of the items.
        choices: Choices of every item, by commas, for tables without a column choices.
        gold: How golds name their choice: by its "text", a "letter", or its number from 0 ("index")
            or 1 ("index1"). By default in the one way that fits all golds of a file.
        name: Name of the probe in tables; by default what the file names have in common, or the
            name of their folder.
    """

    train: str | None = None
    dev: str | None = None
    test: str | None = None
    setup: Literal["mc_mlm", "mc_qa"] | None = None
    choices: ranges.Names = ()
    gold: GoldForm | None = None
    name: str | None = None

    @property
    def paths(self) -> dict[str, str]:
        """Split to file, of those that are given."""
        files = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: path for split, path in files.items() if path}


DEFAULT_FILE = FileSettings()
DEFAULT_FILES = SplitFiles()


def several_choices(choices: Sequence[str]) -> list[str]:
    """Return the choices of `--data.choices`; raise UsageError for one alone."""
    if len(choices) == 1:
        raise UsageError(f"--data.choices {choices[0]}: give two or more, separated by commas")
    return list(choices)


@dataclass(frozen=True)
class UserFiles:
    """The user's files by split, which share one config; false where there are none."""

    data_by_split: Mapping[str, ProbeData]
    choices: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.data_by_split)

    @property
    def config(self) -> ProbeConfig:
        """The config that the files share."""
        return next(iter(self.data_by_split.values())).config

    @property
    def configs(self) -> dict[str, ProbeConfig]:
        """That config by its name, for `RunContext.user_probes`; empty where there are no files."""
        return {data.config.name: data.config for data in self.data_by_split.values()}

    @property
    def recorded(self) -> dict[str, Any]:
        """What a command's config records of the files, so that changed ones are refused."""
        if not self:
            return {"data": None}
        return {
            "data": {
                "name": self.config.name,
                "setup": self.config.setup,
                "sha256": {s: data.files[0].sha256 for s, data in self.data_by_split.items()},
                "choices": list(self.choices),
                "gold": self.config.gold,
            }
        }


def load_user_files(data: SplitFiles, probe_options: str, has_probe: bool) -> UserFiles:
    """Read the files of `--data.*`; `probe_options` are those that name a probe instead."""
    if not data.paths:
        if data.setup or data.name or data.choices or data.gold:
            raise UsageError(
                "--data.setup, .choices, .gold and .name need files: --data.train, .dev or .test "
                "FILE"
            )
        return UserFiles({})
    first = f"--data.{next(iter(data.paths))}"
    if has_probe:
        raise UsageError(f"give either {probe_options} or {first}, not both")
    paths = {split: Path(path).expanduser() for split, path in data.paths.items()}
    choices = several_choices(data.choices)
    name = data.name
    if not name:  # what the file names share, such as whales of whales-train and whales-dev
        words = [re.split("([-_ ])", path.name.partition(".")[0]) for path in paths.values()]
        shared = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
        name = "".join(column[0] for column in shared).rstrip("-_ ")
        if not name or name in paths:
            name = next(iter(paths.values())).absolute().parent.name or "files"
    files = UserFiles(load_files(visible(name), paths, data.setup, choices, data.gold), choices)
    if files.config.setup == "minimal_pair":
        raise UsageError(f"{first}: these are minimal pairs, which no model can be trained on")
    return files


def refuse_same_items(train: ProbeData, measured: ProbeData, instead: str) -> None:
    """Refuse to measure a model on the very items that it is trained on, in whatever files."""
    train_items, measured_items = (
        {(record.stem, record.choices, record.answer) for record in data.records}
        for data in (train, measured)
    )
    if train_items == measured_items:
        paths = dict.fromkeys(file.path for data in (train, measured) for file in data.files)
        raise UsageError(
            f"{train.config.name}: the items to train on and those to measure are the same "
            f"{len(measured_items)} ({' and '.join(paths)}), so the model would be measured on "
            f"what it was trained on; give another file, or {instead}"
        )


def measured_split(files: Mapping[str, ProbeData], split: str, default: str = "dev") -> str:
    """Return the split to measure: the one asked for, or the other of dev and test by default."""
    alternative = {"dev": "test", "test": "dev"}[default]
    if split == default and alternative in files and default not in files:
        return alternative
    if split not in files:
        raise UsageError(
            "nothing to measure on: give --data.dev FILE or --data.test FILE"
            if split in {"dev", "test"}
            else f"there is no file for the split {split!r}; --data.* takes train, dev and test"
        )
    return split


def read_splits(path: Path) -> dict[str, tuple[Record, ...]]:
    """Return the items of a file, or of each split's file in a folder."""
    files = split_files(path)
    return {split: read_file(path, ids_repeat=True).records for split, path in files.items()}


def split_files(path: Path) -> dict[str, Path]:
    """Return a folder's file of each split, or a single file under the first part of its name."""
    if not path.is_dir():
        return {path.name.partition(".")[0]: path}
    endings = [f".{form}{packed}" for form in FORMATS for packed in ("", ".gz", ".zip")]
    candidates = [(split, path / f"{split}{ending}") for split in SPLITS for ending in endings]
    # The first one counts where a split has several.
    files = {split: file for split, file in reversed(candidates) if file.is_file()}
    if not files:
        raise UsageError(f"{path}: no train, dev or test file ending in {', '.join(endings)}")
    return {split: files[split] for split in SPLITS if split in files}
