"""Reads a probe's YAML file strictly: what is wrong is said with the file and the key."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import regex

from probelight.io.errors import ConfigError
from probelight.io.escaping import visible
from probelight.io.limits import MAX_PATTERN, MAX_REPEATS
from probelight.io.typed import typed
from probelight.io.yaml_file import read_yaml
from probelight.probes.catalog import DOMAIN_STEMS, EMBEDDED, KEPT, ProbeConfig
from probelight.probes.record import MASK


def read_config(path: Path) -> ProbeConfig:
    """Reads and checks one file; see `probelight.probes.catalog.load_probe_config`."""
    row = read_yaml(path)
    if isinstance(row, dict):
        row = _spelled_out({"name": path.stem, **_stripped(row)})
    config = typed(ProbeConfig, row, str(path), ConfigError)
    for problem in _problems(config, path):
        raise ConfigError(f"{path}: {problem}")
    base_url = config.base_url
    if base_url is None and not (config.hub or config.get):
        base_url = "."
    if base_url not in (None, EMBEDDED) and "://" not in base_url:
        base_url = str(path.absolute().parent / Path(base_url).expanduser())
    return replace(config, base_url=base_url)


def _stripped(value: Any) -> Any:
    """The value with no blanks around its texts."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if isinstance(value, dict):
        return {_stripped(key): _stripped(item) for key, item in value.items()}
    return value


def _spelled_out(row: Mapping[str, Any]) -> dict[str, Any]:
    """A file's keys with each value in its longest form."""
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
    if isinstance(patterns := row.get("arguments"), str | list):
        patterns = [patterns] if isinstance(patterns, str) else patterns
        row["arguments"] = {str(number): one for number, one in enumerate(patterns, start=1)}
    return row


def _problems(config: ProbeConfig, path: Path) -> Iterator[str]:
    """What the types do not say: values that cannot be, and keys that do not fit each other."""
    if config.name != path.stem:
        yield f"`name` must be the name of the file, {path.stem!r}"
    if visible(path.stem) != path.stem:
        yield "`name` holds control characters; rename the file"
    if config.num_choices < 2:
        yield "`num_choices` must be at least 2"
    if not 0 < config.chance < 1:
        yield f"`chance` must be a number between 0 and 1, not {config.chance}"
    if abs(config.chance - 1 / config.num_choices) > 5e-4 and not config.chance_note:
        yield (
            f"`chance` is {config.chance} where 1 / num_choices is {1 / config.num_choices:.4f}; "
            "correct it, or explain it under `chance_note`"
        )
    for split, file in config.files.items():
        if file.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
            yield f"`files.{split}.sha256` must be 64 hexadecimal digits"
    if config.candidates and len(set(config.candidates)) != config.num_choices:
        yield f"`candidates` must be {config.num_choices} different words"
    if config.nonsense and set(config.nonsense) != set(config.candidates):
        yield "`nonsense` must name each of the candidates, and nothing else"
    if len(set(config.nonsense.values())) < len(config.nonsense):
        yield "`nonsense` gives two candidates the same word"
    if config.domain_stem and (problem := _domain_problem(config)):
        yield f"`domain_stem` {problem}"
    if config.group_by == "arguments" and not config.arguments:
        yield "`group_by` is `arguments`, so `arguments` must say how to find them"
    if config.setup == "minimal_pair":
        parts = ("candidates", "arguments", "key_words", "nonsense", "variants")
        for key in filter(partial(getattr, config), parts):
            yield f"`{key}` is not of minimal pairs, which are whole sentences"
    if not config.splits:
        yield "`files` is missing, and there is no `hub` either"
    own = {"": config.arguments}
    own |= {f"variants.{name}.": one.arguments for name, one in config.variants.items()}
    for place, arguments in own.items():
        for name, expression in arguments.items():
            if problem := _pattern_problem(expression):
                yield f"`{place}arguments.{name}` {problem}"


def _domain_problem(config: ProbeConfig) -> str:
    """Why the items' choices cannot stand at the domain stem; empty where they can."""
    num_masks = config.domain_stem.count(MASK)
    if config.setup not in DOMAIN_STEMS:
        return f"is for stems with choices, and {config.setup} has none; leave it out"
    if config.setup == "mc_mlm" and num_masks != 1:
        return f"has {num_masks} {MASK}; it needs exactly one, where the candidates stand"
    if config.setup == "mc_qa" and num_masks:
        return f"has a {MASK}; answers stand behind it, so leave that out"
    return ""


def _pattern_problem(expression: str) -> str:
    """Why this is no regular expression whose groups hold the arguments; empty where it is."""
    if len(expression) > MAX_PATTERN:
        return f"has more than {MAX_PATTERN:,} characters"
    counts = re.findall(r"\{(?:\d*,)?(\d+)", expression)
    if math.prod(max(1, int(count)) for count in counts) > MAX_REPEATS:
        return f"repeats something more than {MAX_REPEATS:,} times, with {{...}}"
    try:
        pattern = regex.compile(expression)
    except (regex.error, RecursionError) as error:
        return f"is no regular expression: {error}"
    if pattern.groups == len({KEPT} & pattern.groupindex.keys()):
        return "has no group (...) that holds an argument"
    return ""
