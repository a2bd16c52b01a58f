"""What a builder of a probe is: a name, typed settings, sources, and a function of the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from probelight.build.drafts import Probe
from probelight.build.hygiene.finding import Finding
from probelight.io.ranges import Seed, Settings
from probelight.probes.record import Record


@dataclass(frozen=True)
class BuildSettings(Settings):
    """The settings that all builders have; each builder's own are a dataclass with this parent.

    Args:
        seed: Seeds every choice: the same sources, settings and seed give the same bytes.
    """

    seed: Seed = 0


@dataclass(frozen=True)
class Source:
    """A knowledge source, for the data card.

    Attributes:
        name: What it is called.
        version: Which version of it is read.
        licence: Under what it may be used.
        files: The files that are read, of the path that a setting gives.
    """

    name: str
    version: str
    licence: str
    files: Callable[[Path], list[Path]] = lambda path: [path]


S = TypeVar("S", bound=BuildSettings)


@dataclass(frozen=True)
class Builder(Generic[S]):
    """How one probe is made.

    Attributes:
        name: The probe's name on the command line, and of its folder.
        summary: One sentence for the data card and the list of builders.
        settings: The dataclass of its settings; `train.py probes build NAME` has its fields as
            options and as keys of `--config`. Paths of sources are among them.
        build: Makes records by split. It raises FileNotFoundError, saying how to get it, where a
            source is missing, and shows its progress by `tracked`.
        sources: What it reads, by the setting that holds the path. Those settings are left out of
            the data card, which is the same wherever the source lies.
        check: What only the source can tell of built records, such as wrong answers that are right.
        beside: Makes more files of items by name, of the built probe: what a model is trained on
            first. They are checked too, but may hold what a split holds.
        about: Paragraphs of the data card: how it is made, and where sizes differ from the paper's.
        config: Keys of the probe's YAML file besides its files and description: `setup` and more.
    """

    name: str
    summary: str
    settings: type[S]
    build: Callable[[S], Probe]
    sources: Mapping[str, Source] = field(default_factory=dict)
    check: Callable[[S, Sequence[Record]], list[Finding]] = lambda settings, records: []
    beside: Callable[[S, Probe], Mapping[str, Sequence[Record]]] = lambda settings, probe: {}
    about: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
