"""The catalogue of probes and original-task sets: one YAML file each, in configs/probe/.

The keys of a file are the fields of `ProbeConfig`; an unknown key is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import regex  # it has timeouts, which `re` has not

from probelight.io.documents import read_yaml
from probelight.io.errors import ConfigError, nearest
from probelight.io.escaping import mapped, visible
from probelight.io.package import ASSETS, CONFIGS, shipped_path
from probelight.io.ranges import Matching, Share, Within
from probelight.io.settings import STRICT, typed
from probelight.probes.importers.released import LayoutName
from probelight.probes.importers.rows import Options
from probelight.probes.record import MASK, GoldForm, GroupBy, Setup

CONFIG_DIR = CONFIGS / "probe"
EMBEDDED = "embedded"  # as a base_url: the files are in assets/probes/<name>/ of the repository
KEPT = "kept"  # the group (?P<kept>...) of a template: no argument, but it decides the answer
STANDARD_WORDING = "standard"
MAX_PATTERN = 2_000  # characters of a regular expression
MAX_REPEATS = 10_000  # product of its counted repetitions, which compiling writes out
MATCH_SECONDS = 1.0  # of processor time for one stem, which takes some microseconds,
FILE_SECONDS = 20.0  # and for all stems of a file
# Stands in place of a stem where a config has no `domain_stem`; whole sentences have none.
DOMAIN_STEMS: Mapping[Setup, str] = {"mc_mlm": f"{MASK} .", "mc_qa": "Answer:"}


@dataclass(frozen=True)
class FileSource:
    """A released file: its path below the base address, and the SHA-256 of its unpacked content."""

    path: str
    sha256: Annotated[str, Matching(r"[0-9a-f]{64}\Z", "64 hexadecimal digits")] | None = None


@dataclass(frozen=True)
class HubSource:
    """A dataset on the Hugging Face Hub; `splits` maps Probelight's split names to the Hub's.

    Of several configs the rows are read one behind the other.
    """

    repo: str
    splits: Mapping[str, str]
    config: str | tuple[str, ...] | None = None
    revision: str | None = None

    @property
    def configs(self) -> tuple[str | None, ...]:
        """Its configs; None alone is the default one of the Hub."""
        return self.config if isinstance(self.config, tuple) else (self.config,)


@dataclass(frozen=True)
class HarnessTask:
    """How lm-evaluation-harness asks a set: by which rules, and in the texts of which file."""

    scoring: tuple[Literal["sum", "mean_char", "letter"], ...]  # acc, acc_norm, acc of letters
    prompt: str = ""  # as `--prompt.file`; none for a set that is asked in the usual texts


@dataclass(frozen=True)
class VariantConfig:
    """The keys that a variant of a probe (`probes.controls`) replaces."""

    arguments: Mapping[str, str]
    key_words: tuple[str, ...]


class Arguments(NamedTuple):
    """Where the arguments of a template are in a stem, from left to right.

    Words to be `kept` are not arguments, but they decide the answer: "larger" in "A bat is [MASK]
    larger than a wolf". With "smaller" the same pair has the opposite answer.
    """

    template: str  # its name
    spans: list[tuple[int, int]]  # of the arguments
    kept_spans: list[tuple[int, int]]


@dataclass(frozen=True)
class ProbeConfig:
    """One probe or original-task set.

    Attributes:
        name: The name of its YAML file, without ".yaml".
        setup: "mc_mlm" (fill the mask), "mc_qa" (choose the answer) or "minimal_pair" (choose the
            right sentence).
        num_choices: The largest number of choices that an item has.
        chance: Accuracy of guessing: 1 / num_choices, unless `chance_note` explains another value.
        description: One line that says what the probe asks.
        citation: The paper.
        licence: The licence of the data.
        files: Split name to released file.
        base_url: Where the paths of the files begin: an address, a folder, "embedded" (the files
            are in assets/probes/ of the repository) or None (see `hub` and `get`). The YAML file
            may name a folder relative to itself; here it is absolute. Without `hub` and `get` it
            defaults to the folder of the YAML file.
        mirror_folder: Folder of a mirror that replaces `base_url`.
        hub: Where the data is on the Hugging Face Hub.
        get: How to get the data by hand, if it has no address and is not on the Hub.
        candidates: The closed set of answers; empty if answers vary from item to item.
        domain_stem: A stem that asks only for the type of answer, for the scoring rule `pmi`
            (`metrics.scoring_rules`). If it is empty, that of `DOMAIN_STEMS` is used.
        arguments: Template name to a regular expression whose groups are the arguments. A group
            named `kept` is not an argument, but the no-language control keeps it too.
        key_words: Words that the perturbed-language control replaces.
        nonsense: Candidate to the meaningless word that replaces it in the no-language control.
        group_by: Which items splits must keep together; None makes each item its own group.
        chance_note: Why the chance level is not 1 / num_choices.
        leave_out: Split name to the lines (or rows on the Hub) that cannot be used.
        ids_repeat: Whether ids may repeat in the released files.
        golds_repeat: Whether a gold may be two choices of an item in the released files.
        layout: The layout of its rows, if its columns do not tell how to read them: "hellaswag".
        harness: How lm-evaluation-harness asks it, for `zero-shot --scoring harness`.
        gold: How golds name their choice: by its "text", a "letter", or its number from 0 ("index")
            or 1 ("index1"). By default in the one way that fits all golds of a file.
        variants: Variants that its records allow, by name; see `probelight.probes.controls`.
        phrasings: Other wordings of a stem, by name: texts with {1}, {2}, ... for its arguments,
            from left to right, and {kept}.
        phrased: Expressions like `arguments` that only phrasings use, not the controls.
    """

    __pydantic_config__: ClassVar = STRICT

    name: str
    setup: Setup
    num_choices: Annotated[int, Within(2, 1_000_000)]
    chance: Share
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
    golds_repeat: bool = False
    layout: LayoutName | None = None
    harness: HarnessTask | None = None
    gold: GoldForm | None = None
    variants: Mapping[str, VariantConfig] = field(default_factory=dict)
    phrasings: Mapping[str, str] = field(default_factory=dict)
    phrased: Mapping[str, str] = field(default_factory=dict)

    def find_arguments(self, stem: str, spent: dict[str, float] | None = None) -> Arguments | None:
        """Find the template that fits a whole stem, white space around it aside.

        Args:
            stem: The question or sentence.
            spent: Seconds that each template has taken for this file so far; the seconds for this
                stem are added.

        Returns:
            The template and its arguments, or None if no template fits.

        Raises:
            ConfigError: If an expression backtracks for longer than `MATCH_SECONDS` on one stem,
                or for longer than `FILE_SECONDS` on a file.
        """
        start = len(stem) - len(stem.lstrip())
        spent = {} if spent is None else spent
        for template, expression in self.arguments.items():
            pattern = regex.compile(expression)  # from its cache
            seconds_spent, began = spent.get(template, 0.0), process_time()
            try:
                if (seconds_left := FILE_SECONDS - seconds_spent) <= 0:
                    raise TimeoutError
                timeout = min(MATCH_SECONDS, seconds_left)
                match = pattern.fullmatch(stem.rstrip(), start, timeout=timeout)
            except TimeoutError:
                limit = f"{MATCH_SECONDS:g} s on the stem {stem[:80]!r}"
                if seconds_left < MATCH_SECONDS:
                    limit = f"{FILE_SECONDS:g} s on the stems of the file up to this one"
                raise ConfigError(
                    f"the expression `arguments.{template}` of {self.name} takes more than "
                    f"{limit}; rewrite it so that no two of its repetitions fit the same text"
                ) from None
            spent[template] = seconds_spent + process_time() - began
            if match:
                groups = range(1, pattern.groups + 1)
                spans = {n: match.span(n) for n in groups if match[n] is not None}
                kept_span = spans.pop(pattern.groupindex.get(KEPT, 0), None)
                return Arguments(template, sorted(spans.values()), [kept_span] if kept_span else [])
        return None

    @property
    def own_folder(self) -> Path | None:
        """The local folder of its files; None if they come from elsewhere."""
        if self.base_url == EMBEDDED:
            return ASSETS / "probes" / self.name
        return None if self.base_url is None or "://" in self.base_url else Path(self.base_url)

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of all splits."""
        return tuple(dict.fromkeys([*self.files, *(self.hub.splits if self.hub else ())]))

    def reading(self, split: str) -> Options:
        """Return how the rows of a split are read."""
        return Options(
            candidates=self.candidates,
            gold=self.gold,
            name=self.name,
            leave_out=self.leave_out.get(split, ()),
            ids_repeat=self.ids_repeat,
            golds_repeat=self.golds_repeat,
            layout=self.layout,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values for another process."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> ProbeConfig:
        """Rebuild a config from the values of `to_json`; a ValueError names a wrong value."""
        return typed(ProbeConfig, fields, "the config of a probe")


def probe_names() -> tuple[str, ...]:
    """Return the names that `load_probe_config` knows, sorted."""
    return tuple(sorted(path.stem for path in CONFIG_DIR.glob("*.yaml")))


def load_probe_config(name_or_path: str | Path) -> ProbeConfig:
    """Read and check the config of a probe.

    Args:
        name_or_path: A name in configs/probe/, or the path of a .yaml file.

    Raises:
        ConfigError: If there is no such probe, or its config is malformed.
    """
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        name, names = str(name_or_path), probe_names()
        if name not in names:
            near = nearest(name, names)
            advice = (
                "train.py probes list shows all" if near else f"choose one of {', '.join(names)}"
            )
            raise ConfigError(
                f"there is no probe {name!r}{near}; {advice}, or give the path of a .yaml file"
            )
        path = CONFIG_DIR / f"{name}.yaml"
    return read_config(Path(shipped_path(str(path))))


def read_config(path: Path) -> ProbeConfig:
    """Read one file and check it strictly; see `load_probe_config`."""
    row = read_yaml(path)
    if isinstance(row, dict):
        row = mapped(row, lambda value: value.strip() if isinstance(value, str) else value)
        row = _spelled_out({"name": path.stem, **row})
    config = typed(ProbeConfig, row, str(path), ConfigError)
    for problem in _problems(config, path):
        raise ConfigError(f"{path}: {problem}")
    base_url = config.base_url
    if base_url is None and not (config.hub or config.get):
        base_url = "."
    if base_url not in (None, EMBEDDED) and "://" not in base_url:
        base_url = str(path.absolute().parent / Path(base_url).expanduser())
    return replace(config, base_url=base_url)


def _spelled_out(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's keys with each value in its longest form."""
    row = {key: value for key, value in row.items() if value is not None}
    if isinstance(files := row.get("files"), dict):
        row["files"] = {
            split: {"path": file} if isinstance(file, str) else file
            for split, file in files.items()
        }
    if isinstance(variants := row.get("variants"), dict):
        row["variants"] = {
            name: _spelled_out(variant) if isinstance(variant, dict) else variant
            for name, variant in variants.items()
        }
    for key in ("arguments", "phrased"):
        if isinstance(patterns := row.get(key), str | list):
            patterns = [patterns] if isinstance(patterns, str) else patterns
            row[key] = {str(number): pattern for number, pattern in enumerate(patterns, start=1)}
    return row


def _problems(config: ProbeConfig, path: Path) -> Iterator[str]:
    """Describe impossible values and contradictory keys."""
    if config.name != path.stem:
        yield f"`name` must be the name of the file, {path.stem!r}"
    if visible(path.stem) != path.stem:
        yield "`name` contains control characters; rename the file"
    if abs(config.chance - 1 / config.num_choices) > 5e-4 and not config.chance_note:
        yield (
            f"`chance` is {config.chance}, but 1 / num_choices is {1 / config.num_choices:.4f}; "
            "correct it, or explain it under `chance_note`"
        )
    if config.candidates and len(set(config.candidates)) != config.num_choices:
        yield f"`candidates` must be {config.num_choices} different words"
    if config.nonsense and set(config.nonsense) != set(config.candidates):
        yield "`nonsense` must have a word for each of the candidates, and for nothing else"
    if len(set(config.nonsense.values())) < len(config.nonsense):
        yield "`nonsense` gives two candidates the same word"
    num_masks = config.domain_stem.count(MASK)
    if config.domain_stem and config.setup not in DOMAIN_STEMS:
        yield f"`domain_stem` is for probes with stems; leave it out, as {config.setup} has none"
    elif config.domain_stem and config.setup == "mc_mlm" and num_masks != 1:
        yield (
            f"`domain_stem` has {num_masks} {MASK}; it needs exactly one, where the candidates go"
        )
    elif config.setup == "mc_qa" and num_masks:
        yield f"`domain_stem` has a {MASK}; leave the mask out, as the answers follow the stem"
    if config.group_by == "arguments" and not config.arguments:
        yield "`group_by` is `arguments`, so `arguments` must say how to find them"
    if config.setup == "minimal_pair":
        stem_keys = ("candidates", "arguments", "key_words", "nonsense", "variants", "phrasings")
        for key in filter(partial(getattr, config), stem_keys):
            yield f"`{key}` does not apply to minimal pairs, which are whole sentences"
    if config.phrasings and not (config.arguments or config.phrased):
        yield "`phrasings` contain the arguments, so `arguments` must say how to find them"
    for name, text in config.phrasings.items():
        key, num_masks = f"`phrasings.{name}`", text.count(MASK)
        if config.setup == "mc_mlm" and num_masks != 1:
            yield f"{key} has {num_masks} {MASK}; it needs exactly one"
        if not re.fullmatch(r"(?:[^{}]|\{(?:[1-9]|kept)\})*", text) or "{" not in text:
            yield f"{key} must contain the arguments as {{1}}, {{2}}, ..., and no other braces"
        if name == STANDARD_WORDING:
            yield f"{key}: this is the name of the wording in the files; choose another name"
        if name == "all" or "," in name:  # "all" takes all of them
            yield f"{key}: `--phrasings` cannot select this name; use one without commas, not all"
    paths = {f"files.{split}.path": source.path for split, source in config.files.items()}
    for key, below in {**paths, "mirror_folder": config.mirror_folder}.items():
        if ".." in Path(below).parts or Path(below).is_absolute():
            yield f"`{key}` is {below!r}; a path below `base_url` and the mirror is needed"
    if not config.splits:
        yield "both `files` and `hub` are missing; give one of them"
    by_prefix = {"": config.arguments}
    by_prefix |= {f"variants.{name}.": v.arguments for name, v in config.variants.items()}
    for name, expression in config.phrased.items():
        if problem := _pattern_problem(expression):
            yield f"`phrased.{name}` {problem}"
    for prefix, arguments in by_prefix.items():
        for name, expression in arguments.items():
            if problem := _pattern_problem(expression):
                yield f"`{prefix}arguments.{name}` {problem}"


def _pattern_problem(expression: str) -> str:
    """Return why an expression cannot find arguments; empty if it can."""
    if len(expression) > MAX_PATTERN:
        return f"has more than {MAX_PATTERN:,} characters"
    counts = re.findall(r"\{(?:\d*,)?(\d+)", expression)
    if math.prod(max(1, int(count)) for count in counts) > MAX_REPEATS:
        return f"repeats something more than {MAX_REPEATS:,} times, with {{...}}"
    try:
        pattern = regex.compile(expression)
    except (regex.error, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if pattern.groups == len({KEPT} & pattern.groupindex.keys()):
        return "has no group (...) for an argument"
    return ""
