"""A user's own files in place of a probe's name, for the commands that train."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.probes.catalog import ProbeConfig
from probelight.probes.source import ProbeData, load_files
from probelight.protocols.engine.settings import SplitFiles, several_choices


@dataclass(frozen=True)
class UserFiles:
    """The user's files by split, which share one config; false where there are none."""

    parts: Mapping[str, ProbeData]
    choices: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def config(self) -> ProbeConfig:
        """The config that the files share."""
        return next(iter(self.parts.values())).config

    @property
    def configs(self) -> dict[str, ProbeConfig]:
        """That config by its name, for `RunContext.own`; empty where there are no files."""
        return {part.config.name: part.config for part in self.parts.values()}

    @property
    def recorded(self) -> dict[str, Any]:
        """What a command's config records of the files, so that changed ones are refused."""
        if not self:
            return {"data": None}
        return {
            "data": {
                "name": self.config.name,
                "setup": self.config.setup,
                "sha256": {split: part.files[0].sha256 for split, part in self.parts.items()},
                "choices": list(self.choices),
                "gold": self.config.gold,
            }
        }


def load_user_files(data: SplitFiles, other: str, has_other: bool) -> UserFiles:
    """Read the files of `--data.*`; `other` are the options that name a probe instead."""
    if not data.paths:
        if data.setup or data.name or data.choices or data.gold:
            raise UsageError(
                "--data.setup, .choices, .gold and .name need files: --data.train, .dev or .test "
                "FILE"
            )
        return UserFiles({})
    first = f"--data.{next(iter(data.paths))}"
    if has_other:
        raise UsageError(f"give either {other} or {first}, not both")
    paths = {split: Path(path).expanduser() for split, path in data.paths.items()}
    choices = several_choices(data.choices)
    name = data.name
    if not name:  # what the file names share, such as whales of whales-train and whales-dev
        words = [re.split("([-_ ])", path.name.partition(".")[0]) for path in paths.values()]
        alike = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
        name = "".join(column[0] for column in alike).rstrip("-_ ")
        if not name or name in paths:
            name = next(iter(paths.values())).absolute().parent.name or "files"
    files = UserFiles(load_files(visible(name), paths, data.setup, choices, data.gold), choices)
    if files.config.setup == "minimal_pair":
        raise UsageError(f"{first}: these are minimal pairs, which no model can be trained on")
    return files


def refuse_same_items(train: ProbeData, measured: ProbeData, instead: str) -> None:
    """Refuse to measure a model on the very items that it is trained on, in whatever files."""
    trained_on, asked = (
        {(record.stem, record.choices, record.answer) for record in data.records}
        for data in (train, measured)
    )
    if trained_on == asked:
        paths = dict.fromkeys(file.path for data in (train, measured) for file in data.files)
        raise UsageError(
            f"{train.config.name}: the items to train on and those to measure are the same "
            f"{len(asked)} ({' and '.join(paths)}), so the model would be measured on what it was "
            f"trained on; give another file, or {instead}"
        )


def measured_split(files: Mapping[str, ProbeData], asked: str, default: str = "dev") -> str:
    """Return the split to measure: the one asked for, or the other of dev and test by default."""
    other = {"dev": "test", "test": "dev"}[default]
    if asked == default and other in files and default not in files:
        return other
    if asked not in files:
        raise UsageError(
            "nothing to measure on: give --data.dev FILE or --data.test FILE"
            if asked in {"dev", "test"}
            else f"there is no file for the split {asked!r}; --data.* takes train, dev and test"
        )
    return asked
