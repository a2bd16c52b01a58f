"""A probe of one's own as files, for the commands that train: what a YAML file would say of it."""

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
from probelight.probes.source import ProbeData, load_files, told_setup
from probelight.protocols.engine.settings import SplitFiles, own_choices

_PARTS = re.compile(r"([-_ ])")


@dataclass(frozen=True)
class OwnFiles:
    """The files that a command was given in place of a probe's name; false where there are none.

    Attributes:
        parts: Split to items.
        setup: How they are posed.
        choices: Those of every item, where the files do not hold them.
    """

    parts: Mapping[str, ProbeData]
    setup: str | None = None
    choices: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def config(self) -> ProbeConfig:
        """The config that the files share."""
        return next(iter(self.parts.values())).config

    @property
    def by_name(self) -> dict[str, ProbeConfig]:
        """That config by its name, for `RunContext.own`; nothing where there are no files."""
        return {part.config.name: part.config for part in self.parts.values()}

    @property
    def said(self) -> dict[str, Any]:
        """What a command's config holds of the files, so that a changed one is refused."""
        if not self:
            return {}
        sums = {split: part.files[0].sha256 for split, part in self.parts.items()}
        said = {"name": self.config.name, "setup": self.setup, "sha256": sums}
        return {"data": said | ({"choices": list(self.choices)} if self.choices else {})}


def own_files(data: SplitFiles, other: str, given: bool) -> OwnFiles:
    """The files that `--data.*` gives, which share one config.

    Args:
        data: The options.
        other: The options that name a probe.
        given: Whether one of those was given.

    Raises:
        UsageError: If a file and a name are given, or the setup is missing.
    """
    if not data.paths:
        if data.setup or data.name or data.choices:
            raise UsageError(
                "--data.setup, .choices and .name are of --data.train, .dev and .test FILE"
            )
        return OwnFiles({})
    first = f"--data.{next(iter(data.paths))}"
    if given:
        raise UsageError(f"give either {other} or {first}, not both")
    paths = {split: Path(path).expanduser() for split, path in data.paths.items()}
    setup = data.setup or told_setup(paths.values())
    if setup is None:
        raise UsageError(f"{first} needs --data.setup mc_mlm or --data.setup mc_qa")
    name, choices = visible(data.name or _common_name(paths)), own_choices(data.choices)
    return OwnFiles(load_files(name, paths, setup, choices), setup, choices)


def measured_split(files: Mapping[str, ProbeData], asked: str, default: str = "dev") -> str:
    """The split measured: the one asked for, or the other of dev and test in place of the default.

    Raises:
        UsageError: If there is no file of it.
    """
    other = {"dev": "test", "test": "dev"}[default]
    if asked == default and other in files and default not in files:
        return other
    if asked not in files:
        raise UsageError(
            "nothing to measure with: give --data.dev FILE or --data.test FILE"
            if asked in {"dev", "test"}
            else f"there is no file of the split {asked!r}; those of --data.* are train, dev, test"
        )
    return asked


def _common_name(paths: Mapping[str, Path]) -> str:
    """What the names of files have in common, such as whales of whales-train and whales-dev."""
    parts = [_PARTS.split(path.name.partition(".")[0]) for path in paths.values()]
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
    common = "".join(column[0] for column in alike).rstrip("-_ ")
    folder = next(iter(paths.values())).absolute().parent.name
    return (common if common not in paths else folder) or folder or "files"
