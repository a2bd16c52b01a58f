"""The words of a command line, with the YAML files that they name read by the one guarded reader.

A file is given to the parser as the text of its mapping: the parser opens none itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from probelight.io.documents import read_yaml
from probelight.io.errors import ConfigError, UsageError, nearest
from probelight.io.package import (
    PACKAGE,
    current_class_path,
    shipped_path,
    with_current_class_paths,
)

CONFIG_OPTIONS = {"--config", "-c"}
# Groups of options that people give a value, and the option of the section that they mean.
MEANT = {"model": "name_or_path", "probe": "name", "original": "name", "data": "path"}


class Known(NamedTuple):
    """What a command takes.

    Attributes:
        options: The names of its options; none where classes that are chosen have more.
        sections: Those with options below them: `model` of `model.name_or_path`. Each takes a YAML
            file with these, or with the section's name above them.
        lists: The names of options and of what is given by place that are lists.
    """

    options: Collection[str] = ()
    sections: Collection[str] = ()
    lists: Collection[str] = ()


@dataclass
class Given:
    """A command line.

    Attributes:
        words: Its words as the parser takes them.
        options: The names of the options among them, without dashes.
        files: By path what each YAML file holds, as keys of the command.
    """

    words: list[str] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    files: dict[str, Any] = field(default_factory=dict)

    def place(self, key: str) -> str:
        """Return how messages call an option: by its file and key where a file gives it."""
        if not any(
            key == name or key.startswith((f"{name}.", f"{name}[")) for name in self.options
        ):
            for path, content in reversed(self.files.items()):
                if _holds(content, key.replace("[", ".").replace("]", "").split(".")):
                    return f"{path}: {key}"
        return f"--{key}"


def read_words(words: Sequence[str], known: Known) -> Given:
    """Read a command line and the files that it names.

    An option may be written with hyphens, as `--output-dir`, and a list as `a,b`. A section of a
    file that is empty is left out, so that its defaults hold.

    Args:
        words: The words after the command.
        known: What the command takes.

    Raises:
        ConfigError: If a file is missing, cannot be read, or holds no mapping.
        UsageError: If a section is given what is no file.
    """
    given, left = Given(), iter(words)
    for word in left:
        if not word.startswith("-"):
            given.words.append(current_class_path(word))
            continue
        name, equals, value = word.partition("=")
        key = name.lstrip("-")
        if not known.options or key.replace("-", "_") in {*known.options, *known.sections}:
            key = key.replace("-", "_")
            name = f"--{key}" if name.startswith("--") else name
        is_config = name in CONFIG_OPTIONS
        if is_config or (name.startswith("--") and key in {*known.sections, *known.lists}):
            following = value if equals else next(left, None)
            if following is None or (not following and key not in known.lists):
                raise UsageError(f"{name}: its value is missing")
            value = following
            if key in known.lists:
                is_yaml = value.startswith("[") or value == "null"
                value = value if is_yaml else json.dumps(_parts(value))
            else:
                value = _mapping(value, "" if is_config else key, known, given.files)
            given.words.append(f"{name}={value}")
        else:
            given.words.append(f"{name}{equals}{current_class_path(value)}")
        if not (is_config or key in known.sections):
            given.options.add(key)
    return given


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _mapping(value: str, section: str, known: Known, files: dict[str, Any]) -> str:
    """Return the mapping that a config or a section is given, as text; a class as it is."""
    if value.startswith("{"):
        return value
    path = shipped_path(value)
    if not Path(path).exists():
        if section and not known.options:  # a class
            return current_class_path(value)
        raise _no_file(value, section)
    content = read_yaml(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError(f"{value}: give a mapping of keys to values")
    content = with_current_class_paths(content or {})
    if section and content.keys() == {section}:
        content = content[section] or {}
    content = _fitted(content, section, known)
    files[value] = {section: content} if section else content
    return json.dumps(content, default=str)


def _no_file(value: str, section: str) -> UsageError | ConfigError:
    """Return what to answer to a value that is no file."""
    if section in MEANT:
        meant = f"--{section}.{MEANT[section]} {value}"
        preset = Path("configs") / section / f"{Path(value).name}.yaml"
        if (PACKAGE / preset).is_file() and section == "model":
            meant = f"--config {preset} or {meant}"
        return UsageError(f"--{section} {value}: there is no such YAML file; give {meant}")
    folders = {Path(value).parent, Path(shipped_path(str(Path(value).parent)))}
    there = sorted(path.name for folder in folders for path in folder.glob("*.yaml"))
    return ConfigError(f"{value}: there is no such file{nearest(Path(value).name, there)}")


def _fitted(content: Mapping[str, Any], place: str, known: Known) -> dict[str, Any]:
    """Return what a file holds without sections that are empty, its lists `a,b` as such."""
    found = {}
    for key, value in content.items():
        name = f"{place}.{key}" if place else str(key)
        if isinstance(value, Mapping) and name in known.sections:
            value = _fitted(value, name, known)
        elif isinstance(value, str) and name in known.lists:
            value = _parts(value)
        if value is not None or name not in known.sections:
            found[key] = value
    return found


def _holds(found: Any, key: Sequence[str]) -> bool:
    """Whether what a file holds has a key, also below names, in lists and in `init_args`."""
    if not key:
        return True
    if isinstance(found, list):
        rest = key[1:] if key[0].isdecimal() else key
        return any(_holds(one, rest) for one in found)
    if not isinstance(found, Mapping):
        return False
    if key[0] in found and _holds(found[key[0]], key[1:]):
        return True
    return any(_holds(one, key) for one in found.values())
