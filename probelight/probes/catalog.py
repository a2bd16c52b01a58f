"""The catalogue of probes and original-task sets: one YAML file each, in configs/probe/.

The keys of such a file are the fields of `ProbeConfig`. It is checked strictly: a key that does
not exist, a value of the wrong type or a chance level that does not fit is an error that names the
file and the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import regex  # it can be told when to stop, which `re` cannot

from probelight.io.errors import ConfigError, nearest
from probelight.io.limits import MATCH_SECONDS
from probelight.io.package import ASSETS, CONFIGS
from probelight.io.typed import STRICT, typed
from probelight.probes.record import MASK, Setup

CONFIG_DIR = CONFIGS / "probe"
EMBEDDED = "embedded"  # as a base_url: the files are in assets/probes/<name>/ of the repository
KEPT = "kept"  # the group (?P<kept>...) of a template: no argument, but it decides the answer
GroupBy = Literal["cluster", "word", "stem", "arguments", "paradigm"]
# What is asked in place of a stem where a config does not say it; whole sentences have none.
DOMAIN_STEMS: Mapping[Setup, str] = {"mc_mlm": f"{MASK} .", "mc_qa": "Answer:"}


@dataclass(frozen=True)
class FileSource:
    """A released file: its path below the base address and the SHA-256 of what it holds.

    The checksum is of the decompressed bytes, so it fits plain and gzipped copies alike.
    """

    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class HubSource:
    """A data set of the Hugging Face Hub; `splits` maps our split names to the Hub's."""

    repo: str
    splits: Mapping[str, str]
    config: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class VariantConfig:
    """What a variant of a probe (`probes.variants`) has in place of the probe's own keys."""

    arguments: Mapping[str, str]
    key_words: tuple[str, ...]


@dataclass(frozen=True)
class ProbeConfig:
    """One probe or original-task set.

    Attributes:
        name: The name of its file without ".yaml".
        setup: "mc_mlm" (fill the mask), "mc_qa" (choose the answer) or "minimal_pair" (tell the
            right sentence).
        num_choices: The largest number of choices of an item.
        chance: Accuracy of guessing; 1 / num_choices unless `chance_note` says why not.
        description: One line for people.
        citation: The paper.
        licence: Of the data.
        files: Split name to released file.
        base_url: Address in front of the paths, a folder (relative to the YAML file in the file,
            absolute here), "embedded", or None (see `hub`, `get`). Where there is no `hub` and no
            `get` either, it is the folder of the YAML file.
        mirror_folder: Folder of a mirror that stands for `base_url`.
        hub: Where the Hugging Face Hub has it, if it has.
        get: What to do by hand where there is neither address nor Hub.
        candidates: The closed set of answers; empty where they vary.
        domain_stem: A stem that says no more than what kind of answer is asked for; `pmi` takes off
            what a choice has there (`metrics.scoring_rules`). Empty: that of `DOMAIN_STEMS`.
        arguments: Template name to the regular expression whose groups are the argument tokens;
            a group named `kept` is none, but the no-language control keeps it too.
        key_words: Words that the perturbed-language control replaces.
        nonsense: Candidate to the meaningless word that stands for it in the no-language control.
        group_by: What must not be divided between splits; None makes each item its own group.
        chance_note: Why the chance level is not 1 / num_choices.
        leave_out: Split name to lines (or rows of the Hub) that cannot be used; counted and said.
        ids_repeat: Whether ids of its released files repeat, which elsewhere is an error.
        variants: Names of the variants that its records allow; see `probelight.probes.variants`.
    """

    __pydantic_config__: ClassVar = STRICT

    name: str
    setup: Setup
    num_choices: int
    chance: float
    description: str = ""
    citation: str = ""
    licence: str = ""
    files: Mapping[str, FileSource] = field(default_factory=dict)
    base_url: str | None = None
    mirror_folder: str = ""
    hub: HubSource | None = None
    get: str = ""
    candidates: tuple[str, ...] = ()
    domain_stem: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    key_words: tuple[str, ...] = ()
    nonsense: Mapping[str, str] = field(default_factory=dict)
    group_by: GroupBy | None = None
    chance_note: str = ""
    leave_out: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ids_repeat: bool = False
    variants: Mapping[str, VariantConfig] = field(default_factory=dict)

    def find_arguments(self, stem: str) -> tuple[str, list[tuple[int, int]]] | None:
        """Which template a stem follows and where its arguments stand (start, end), from the left.

        None if no template fits the whole stem (white space around it does not count).

        Raises:
            ConfigError: If an expression backtracks for longer than `MATCH_SECONDS`.
        """
        if found := self._match(stem):
            template, match = found
            kept = match.re.groupindex.get(KEPT)
            return template, _spans(match, (n for n in range(1, match.re.groups + 1) if n != kept))
        return None

    def find_kept(self, stem: str) -> list[tuple[int, int]]:
        """Where the words stand that are no arguments and yet decide the answer.

        "larger" of "A bat is [MASK] larger than a wolf": the pair is one thing with "smaller" too,
        but the answers are opposite.
        """
        found = self._match(stem)
        if found is None or KEPT not in found[1].re.groupindex:
            return []
        return _spans(found[1], [KEPT])

    @cached_property
    def _patterns(self) -> dict[str, regex.Pattern[str]]:
        return {template: regex.compile(one) for template, one in self.arguments.items()}

    def _match(self, stem: str) -> tuple[str, regex.Match[str]] | None:
        start = len(stem) - len(stem.lstrip())
        for template, pattern in self._patterns.items():
            try:
                match = pattern.fullmatch(stem.rstrip(), start, timeout=MATCH_SECONDS)
            except TimeoutError:
                raise ConfigError(
                    f"the expression `arguments.{template}` of {self.name} takes more than "
                    f"{MATCH_SECONDS:g} s for the stem {stem[:80]!r}; let no two of its "
                    "repetitions fit the same text"
                ) from None
            if match:
                return template, match
        return None

    @property
    def own_folder(self) -> Path | None:
        """The folder of this machine in which its files are; None if they come from elsewhere."""
        if self.base_url == EMBEDDED:
            return ASSETS / "probes" / self.name
        return None if self.base_url is None or "://" in self.base_url else Path(self.base_url)

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of all splits there are."""
        return tuple(dict.fromkeys([*self.files, *(self.hub.splits if self.hub else ())]))

    def to_json(self) -> dict[str, Any]:
        """Plain values for another process."""
        return asdict(self)

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> ProbeConfig:
        """What `to_json` said.

        Raises:
            ValueError: If a part is missing, unknown or of another type.
        """
        return typed(ProbeConfig, found, "the config of a probe")


def _spans(match: regex.Match[str], groups: Iterable[int | str]) -> list[tuple[int, int]]:
    """Where those of the groups stand that took part in a match, from the left."""
    return sorted(span for span in map(match.span, groups) if span != (-1, -1))


def probe_names() -> tuple[str, ...]:
    """The names that `load_probe_config` knows, sorted."""
    return tuple(sorted(path.stem for path in CONFIG_DIR.glob("*.yaml")))


def load_probe_config(name_or_path: str | Path) -> ProbeConfig:
    """Reads and checks the config of a probe.

    Args:
        name_or_path: A name in configs/probe/, or the path of such a .yaml file.

    Raises:
        ConfigError: If there is none, or it is malformed.
    """
    from probelight.probes.catalog_check import read_config  # it needs the classes above

    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        name, names = str(name_or_path), probe_names()
        if name not in names:
            near = nearest(name, names)
            there = "train.py probes list shows all" if near else f"there are {', '.join(names)}"
            raise ConfigError(
                f"there is no probe {name!r}{near}; {there}, or give the path of a .yaml file"
            )
        path = CONFIG_DIR / f"{name}.yaml"
    return read_config(path)
