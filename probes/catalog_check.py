"""Reads a probe's YAML file strictly: what is wrong is said with the file and the key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import regex

from probes.catalog import (
    EMBEDDED,
    KEPT,
    FileSource,
    GroupBy,
    HubSource,
    ProbeConfig,
    VariantConfig,
)
from probes.record import Setup
from storage.config.yaml_file import read_yaml
from storage.errors import ConfigError, nearest
from storage.escaping import visible
from storage.limits import MAX_PATTERN, MAX_REPEATS


def read_config(path: Path) -> ProbeConfig:
    """Reads and checks one file; see `probes.catalog.load_probe_config`."""
    row = read_yaml(path)
    if not isinstance(row, dict):
        raise ConfigError(f"{path}: a mapping of keys to values is needed")
    return _Checker(path).config(row)


def _shown(value: object, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


class _Checker:
    """Turns one YAML file into a `ProbeConfig`, or says what is wrong with which key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def config(self, row: Mapping[str, Any]) -> ProbeConfig:
        """Checks each key, then what keys say about each other."""
        readers: dict[str, Callable[[Any, str], Any]] = {
            "name": self.text,
            "base_url": self.base_url,
            "setup": lambda value, key: self.one_of(value, key, get_args(Setup)),
            "num_choices": self.integer,
            "chance": self.number,
            "files": self.files,
            "hub": self.hub,
            "candidates": self.texts,
            "arguments": self.patterns,
            "key_words": self.texts,
            "nonsense": self.text_mapping,
            "leave_out": self.lines,
            "ids_repeat": self.flag,
            "variants": self.variants,
            "group_by": lambda value, key: self.one_of(value, key, get_args(GroupBy)),
        }
        self.keys(row, [f.name for f in fields(ProbeConfig)], "")
        values = {
            key: readers.get(key, self.text)(value, key)
            for key, value in row.items()
            if value is not None
        }
        for key in ("setup", "num_choices", "chance"):
            if key not in values:
                raise self.error(key, "is missing")
        if values.setdefault("name", self.path.stem) != self.path.stem:
            raise self.error("name", f"must be the name of the file, {self.path.stem!r}")
        if visible(self.path.stem) != self.path.stem:
            raise self.error("name", "holds control characters; rename the file")
        if not {"base_url", "hub", "get"} & values.keys():
            values["base_url"] = self.base_url(".", "base_url")
        return self.coherent(ProbeConfig(**values))

    def coherent(self, config: ProbeConfig) -> ProbeConfig:
        """What must hold between keys."""
        if config.num_choices < 2:
            raise self.error("num_choices", "must be at least 2")
        if abs(config.chance - 1 / config.num_choices) > 5e-4 and not config.chance_note:
            raise self.error(
                "chance",
                f"is {config.chance} where 1 / num_choices is {1 / config.num_choices:.4f}; "
                "correct it, or explain it under `chance_note`",
            )
        if config.candidates and len(set(config.candidates)) != config.num_choices:
            raise self.error("candidates", f"must be {config.num_choices} different words")
        if config.nonsense and set(config.nonsense) != set(config.candidates):
            raise self.error("nonsense", "must name each of the candidates, and nothing else")
        if len(set(config.nonsense.values())) < len(config.nonsense):
            raise self.error("nonsense", "gives two candidates the same word")
        if config.group_by == "arguments" and not config.arguments:
            raise self.error("group_by", "is `arguments`, so `arguments` must say how to find them")
        if not config.splits:
            raise self.error("files", "is missing, and there is no `hub` either")
        return config

    def error(self, key: str, what: str) -> ConfigError:
        """An error that names the file and the key."""
        return ConfigError(f"{self.path}: `{key}` {what}")

    def keys(self, row: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        """Refuses a key that does not exist."""
        for key in row:
            if key not in known:
                raise self.error(f"{where}{key}", f"is no key of a probe{nearest(str(key), known)}")

    def text(self, value: object, key: str) -> str:
        """A string."""
        if not isinstance(value, str):
            raise self.error(key, f"must be text, not {_shown(value)}; put it in quotes")
        return value.strip()

    def base_url(self, value: object, key: str) -> str:
        """An address, "embedded", or a folder, which is relative to that of the YAML file."""
        text = self.text(value, key)
        if text == EMBEDDED or "://" in text:
            return text
        return str(self.path.absolute().parent / Path(text).expanduser())

    def one_of(self, value: object, key: str, known: Sequence[str]) -> str:
        """One of the words in `known`."""
        if value not in known:
            raise self.error(
                key,
                f"must be one of {', '.join(known)}, not {_shown(value)}{nearest(value, known)}",
            )
        return str(value)

    def flag(self, value: object, key: str) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {_shown(value)}")
        return value

    def integer(self, value: object, key: str) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"must be a whole number, not {_shown(value)}")
        return value

    def number(self, value: object, key: str) -> float:
        """A share between 0 and 1."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            raise self.error(key, f"must be a number between 0 and 1, not {_shown(value)}")
        return float(value)

    def texts(self, value: object, key: str) -> tuple[str, ...]:
        """A list of strings."""
        if not isinstance(value, list):
            raise self.error(key, f"must be a list of words, not {_shown(value)}")
        return tuple(self.text(item, f"{key}[{number}]") for number, item in enumerate(value))

    def lines(self, value: object, key: str) -> dict[str, tuple[int, ...]]:
        """A mapping of splits to lists of line numbers."""
        rows = self.mapping(value, key)
        for split, numbers in rows.items():
            if not isinstance(numbers, list):
                raise self.error(
                    f"{key}.{split}", f"must be a list of lines, not {_shown(numbers)}"
                )
        return {
            split: tuple(self.integer(number, f"{key}.{split}") for number in numbers)
            for split, numbers in rows.items()
        }

    def mapping(self, value: object, key: str) -> dict[str, Any]:
        """A mapping whose keys are strings."""
        if not isinstance(value, dict):
            raise self.error(key, f"must be a mapping, not {_shown(value)}")
        return {self.text(k, f"{key}.{k}"): v for k, v in value.items()}

    def text_mapping(self, value: object, key: str) -> dict[str, str]:
        """A mapping of strings to strings."""
        return {k: self.text(v, f"{key}.{k}") for k, v in self.mapping(value, key).items()}

    def files(self, value: object, key: str) -> dict[str, FileSource]:
        """Split to path, or split to `{path, sha256}`."""
        sources = {}
        for split, source in self.mapping(value, key).items():
            where = f"{key}.{split}"
            row = {"path": source} if isinstance(source, str) else self.mapping(source, where)
            self.keys(row, ["path", "sha256"], f"{where}.")
            sha256 = row.get("sha256")
            if "path" not in row:
                raise self.error(f"{where}.path", "is missing")
            if sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", str(sha256)):
                raise self.error(f"{where}.sha256", "must be 64 hexadecimal digits")
            sources[split] = FileSource(self.text(row["path"], f"{where}.path"), sha256)
        return sources

    def hub(self, value: object, key: str) -> HubSource:
        """`{repo, splits, config, revision}`."""
        row = self.mapping(value, key)
        self.keys(row, [f.name for f in fields(HubSource)], f"{key}.")
        for needed in ("repo", "splits"):
            if needed not in row:
                raise self.error(f"{key}.{needed}", "is missing")
        return HubSource(
            repo=self.text(row["repo"], f"{key}.repo"),
            splits=self.text_mapping(row["splits"], f"{key}.splits"),
            **{k: self.text(row[k], f"{key}.{k}") for k in ("config", "revision") if k in row},
        )

    def variants(self, value: object, key: str) -> dict[str, VariantConfig]:
        """Variant to `{arguments, key_words}`."""
        found = {}
        for name, keys in self.mapping(value, key).items():
            where = f"{key}.{name}"
            row = self.mapping(keys, where)
            self.keys(row, [f.name for f in fields(VariantConfig)], f"{where}.")
            for needed in ("arguments", "key_words"):
                if needed not in row:
                    raise self.error(f"{where}.{needed}", "is missing")
            found[name] = VariantConfig(
                self.patterns(row["arguments"], f"{where}.arguments"),
                self.texts(row["key_words"], f"{where}.key_words"),
            )
        return found

    def patterns(self, value: object, key: str) -> dict[str, regex.Pattern[str]]:
        """One regular expression, a list of them, or a mapping of template names to them."""
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            value = {f"{number}": pattern for number, pattern in enumerate(value, start=1)}
        return {
            template: self.pattern(expression, f"{key}.{template}")
            for template, expression in self.text_mapping(value, key).items()
        }

    def pattern(self, expression: str, key: str) -> regex.Pattern[str]:
        """A regular expression whose groups hold the arguments."""
        if len(expression) > MAX_PATTERN:
            raise self.error(key, f"has more than {MAX_PATTERN:,} characters")
        counts = re.findall(r"\{(?:\d*,)?(\d+)", expression)
        if math.prod(max(1, int(count)) for count in counts) > MAX_REPEATS:
            raise self.error(
                key, f"repeats something more than {MAX_REPEATS:,} times, with {{...}}"
            )
        try:
            pattern = regex.compile(expression)
        except (regex.error, RecursionError) as error:
            raise self.error(key, f"is no regular expression: {error}") from None
        if pattern.groups == len({KEPT} & pattern.groupindex.keys()):
            raise self.error(key, "has no group (...) that holds an argument")
        return pattern
