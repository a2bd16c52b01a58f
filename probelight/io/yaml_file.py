"""YAML files of a person: read whole or refused with file and line, never without bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from probelight.io.errors import ConfigError, RecordError
from probelight.io.files import read_text
from probelight.io.limits import MAX_YAML_DEPTH, MAX_YAML_NODES, SETTINGS


def read_yaml(path: str | Path) -> Any:
    """What a YAML file holds.

    Raises:
        ConfigError: If there is no such file or it is too large, no YAML, gives a key twice, or
            its aliases stand for more than a file of settings needs; the message names the file
            and, where it can, the line.
    """
    try:
        loader = _Loader(read_text(path, SETTINGS))
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _count_nodes(node, {})
            _refuse_repeated_keys(node, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or 'No such file'}") from None
    except RecordError as error:  # it names the file
        raise ConfigError(str(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: {_said(error)}") from None


def check_configs(arguments: Sequence[str]) -> None:
    """Reads each file that a command line gives as `--config`, before a parser does.

    That one takes what has no end, writes out aliases, and names no file in what it says.

    Raises:
        ConfigError: As `read_yaml`. A file that is not there is left to the parser.
    """
    for place, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option == "--config":
            path = value if equals else "".join(arguments[place + 1 : place + 2])
            if path and Path(path).exists():
                read_yaml(path)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """One that stops at some depth: a file of brackets alone would end in the stack's limit."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_YAML_DEPTH:
            what = f"values within values {MAX_YAML_DEPTH} times"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=self.get_mark())
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _count_nodes(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """How many nodes one stands for, its aliases written out; each is looked at once."""
    if node in known:
        if not known[node]:
            raise yaml.MarkedYAMLError(
                problem="an alias holds itself", problem_mark=node.start_mark
            )
        return known[node]
    known[node] = 0  # until it is counted: an alias to it from within has no end
    number = 1
    if isinstance(node, yaml.MappingNode):
        number += sum(_count_nodes(key, known) + _count_nodes(v, known) for key, v in node.value)
    elif isinstance(node, yaml.SequenceNode):
        number += sum(_count_nodes(item, known) for item in node.value)
    if number > MAX_YAML_NODES:
        raise _error(f"its aliases stand for more than {MAX_YAML_NODES:,} values", node)
    known[node] = number
    return number


def _refuse_repeated_keys(node: yaml.Node, seen: set[yaml.Node]) -> None:
    """YAML would silently keep the last of them."""
    if node in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item, seen)
        return
    keys = set[str]()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                raise _error(f"the key {key.value!r} is given twice", key)
            keys.add(key.value)
        _refuse_repeated_keys(value, seen)


def _error(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _said(error: Exception) -> str:
    """One line about what is wrong, with the line of the file where it is known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        what = ", ".join(filter(None, [error.context, error.problem]))
        return f"line {error.problem_mark.line + 1}: not readable as YAML: {what}"
    return f"not readable as YAML: {' '.join(str(error).split())}"
