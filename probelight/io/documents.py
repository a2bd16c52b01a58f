"""JSON and YAML files, and the numbers in texts: what is damaged is refused in one line."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import yaml

from probelight.io.errors import ConfigError, RecordError
from probelight.io.files import RESULTS, SETTINGS, read_text

MAX_JSON_DEPTH = 50  # values within values; Python's stack ends at some hundreds
_TOO_DEEP = f"values nested more than {MAX_JSON_DEPTH} levels deep"
_MAX_DIGITS = 1_000  # Python has a limit of 4,300
MAX_INTEGER = 2**63 - 1  # of numpy's and pandas' columns
MAX_YAML_NODES = 100_000  # with each alias counted as what it stands for
MAX_YAML_DEPTH = 50


def json_object(text: str, needed: str = "an object is needed", hint: str = "") -> dict[str, Any]:
    """Return the JSON object of one line; RecordError if it is none, or gives a key twice.

    The message says what is `needed` instead and ends with the `hint`; it does not say where.
    """
    try:
        row = _OBJECTS.decode(text)
        if text.count("{") + text.count("[") > MAX_JSON_DEPTH and isinstance(row, dict | list):
            _check_depth(row, MAX_JSON_DEPTH)
    except json.JSONDecodeError as error:
        raise RecordError(f"invalid JSON: {error.msg} at character {error.pos + 1}{hint}") from None
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:  # a thousand brackets
        raise RecordError(f"invalid JSON: {error}") from None
    try:
        if "\\u" in text:
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:  # "\\ud800": no file can hold it, no tokenizer takes it
        half = error.object[error.start]
        raise RecordError(
            f"\\u{ord(half):04x} is half of a character; write the whole character"
        ) from None
    if not isinstance(row, dict):
        raise RecordError(f"{kind_of(row)}, where {needed}{hint}")
    return row


def finite_json(text: str) -> Any:
    """Return a JSON value; ValueError for numbers not finite or over 64 bits and deep nesting."""
    try:
        of_64_bits = partial(_integer, most=MAX_INTEGER)
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, parse_int=of_64_bits
        )
        if isinstance(value, dict | list):
            _check_depth(value, MAX_JSON_DEPTH)
    except RecursionError:
        raise RecordError(_TOO_DEEP) from None
    return value


def kind_of(value: object) -> str:
    """Return the type of a JSON value in words, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names |= {int: "a number", float: "a number", type(None): "missing or null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise RecordError(f"the number {digits[:40]} is too large")
    return value


def _integer(digits: str, most: float = math.inf) -> int:
    if len(digits) > _MAX_DIGITS or abs(int(digits)) > most:
        raise RecordError(f"a number of {len(digits):,} digits is too large: {digits[:40]}...")
    return int(digits)


def _check_depth(value: dict[str, Any] | list[Any], levels_left: int) -> None:
    if not levels_left:
        raise RecordError(_TOO_DEEP)
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            _check_depth(item, levels_left - 1)


def _no_constant(constant: str) -> NoReturn:
    raise RecordError(f"invalid JSON: {constant} is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a repeated key, of which JSON would silently keep the last."""
    row = dict(pairs)
    if len(row) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise RecordError(f"the key {key!r} is given twice in one object")
    return row


_OBJECTS = json.JSONDecoder(
    parse_constant=_no_constant, parse_int=_integer, object_pairs_hook=_unique
)


def read_json(path: str | Path, parse: Callable[[str], Any] = finite_json) -> Any:
    """Read a JSON file, or the list of lines of a JSON Lines file; ValueError names a damaged one.

    Files of other programs, which may write NaN, are parsed by `json.loads`.
    """
    text, line = read_text(path, RESULTS), ""
    try:
        if Path(path).suffix != ".jsonl":
            return parse(text)
        values = []
        for number, row in enumerate(text.split("\n"), start=1):
            line = f"line {number}: "
            if row:
                values.append(parse(row))
        return values
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a whole JSON file ({line}{error})") from error


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file; ConfigError names the file and, where it can, the line.

    It refuses a missing or too large file, no YAML, a key given twice, and aliases that stand for
    more than a file of settings needs.
    """
    try:
        return parse_yaml(read_text(path, SETTINGS))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or 'No such file'}") from None
    except RecordError as error:  # it names the file
        raise ConfigError(str(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        line, problem = "", " ".join(str(error).split())
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            line = f"line {error.problem_mark.line + 1}: "
            problem = ", ".join(filter(None, [error.context, error.problem]))
        raise ConfigError(f"{path}: {line}not readable as YAML: {problem}") from None


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text; yaml.YAMLError as `read_yaml` refuses it."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_nodes(node, {})
        _refuse_repeated_keys(node, set())
        return loader.construct_document(node)
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """A loader with a limit of depth, so that nested brackets cannot overflow the stack."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_YAML_DEPTH:
            problem = f"values nested more than {MAX_YAML_DEPTH} levels deep"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark())
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and node.style is None:
            try:
                refuse_odd_number(node.value)
            except ValueError as error:
                raise _error(str(error), node) from None
        self.depth -= 1
        return node


# As everybody else but YAML 1.1 has it: 1e-5 is a number, and a day is a text.
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _count_nodes(node: yaml.Node, counts: dict[yaml.Node, int]) -> int:
    """Count the nodes below a node, with aliases written out."""
    if node in counts:
        if not counts[node]:
            raise _error("an alias contains itself", node)
        return counts[node]
    counts[node] = 0  # until it is counted: an alias to it from within has no end
    number = 1
    if isinstance(node, yaml.MappingNode):
        number += sum(_count_nodes(key, counts) + _count_nodes(v, counts) for key, v in node.value)
    elif isinstance(node, yaml.SequenceNode):
        number += sum(_count_nodes(item, counts) for item in node.value)
    if number > MAX_YAML_NODES:
        raise _error(f"its aliases stand for more than {MAX_YAML_NODES:,} values", node)
    counts[node] = number
    return number


def _refuse_repeated_keys(node: yaml.Node, seen: set[yaml.Node]) -> None:
    """Refuse a repeated key, of which YAML would silently keep the last."""
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


AMBIGUOUS = "can be a number or a text; write a number as 1000, and a text in quotes"
_LIKE_A_NUMBER = re.compile(  # with digits of any script
    r"[-+]?(\d[\d_]*(:[\d_]+)*(\.[\d_]*)?(e[-+]?\d+)?|0b[01_]+|0o[0-7_]+|0x[\da-f_]+)$",
    re.IGNORECASE,
)
_OCTAL = re.compile(r"[-+]?0\d")
_TOO_LARGE = 2**1023
_INFINITY = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)


def number_of(value: object, *, finite: bool = True) -> float:
    """Return a number, or that of its text in ASCII digits; nan for whatever is none.

    To Python `True` is 1, "1_000" is 1000, and digits of any script are digits: here they are
    none, nor is a number too large for a float. Infinities are only numbers if not `finite`.
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            return math.nan
        if not finite and math.isinf(number) and _INFINITY.fullmatch(text):  # not 1e999
            return number
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    elif not finite and isinstance(value, float):
        return value
    else:
        number = float(value) if abs(value) < _TOO_LARGE else math.nan
    return number if math.isfinite(number) else math.nan


def refuse_odd_number(text: str) -> None:
    """Raise ValueError for what YAML or Python alone take for a number: 1_000, 1:30, 0x10, 010."""
    if _LIKE_A_NUMBER.fullmatch(text) and (_OCTAL.match(text) or math.isnan(number_of(text))):
        raise ValueError(f"{text} {AMBIGUOUS}")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no types
    """A dumper that quotes a text which a loader, ours or another, could take for a number."""


_Dumper.add_implicit_resolver("!like_a_number", _LIKE_A_NUMBER, None)


def yaml_text(settings: Any) -> str:
    """Return settings as YAML that `parse_yaml` reads as the same settings."""
    return str(yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def whole_number_of(value: object) -> int | None:
    """Return a number without a fraction, or that of its text; None for whatever is none."""
    number = number_of(value)
    return int(number) if number.is_integer() else None
