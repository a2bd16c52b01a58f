""""""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest

from probelight.io.errors import ConfigError, RecordError
from probelight.io.typed import STRICT, json_object, typed


@dataclass(frozen=True)
class Inner:
    path: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    __pydantic_config__: ClassVar = STRICT

    name: str
    share: float = 0.5
    size: Literal["small", "large"] = "small"
    files: Mapping[str, Inner] = field(default_factory=dict)
    one: Inner | None = None
    many: tuple[Inner, ...] = ()
    flag: bool = False


def test_a_mapping_is_the_dataclass_with_its_parts() -> None:
    value = {"name": "n", "share": 1, "files": {"a": {"path": "p", "lines": [1, 2]}}, "one": None}
    assert typed(Outer, value, "f") == Outer("n", 1.0, files={"a": Inner("p", (1, 2))})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "f: `name` must be text in quotes, not 3"),
        ({"share": "1"}, "f: `share` must be a number, not '1'"),
        ({"share": True}, "f: `share` must be a number, not True"),
        ({"flag": 1}, "f: `flag` must be true or false, not 1"),
        ({"files": []}, "f: `files` must be a mapping, not []"),
        ({"one": "p"}, "f: `one` must be a mapping of keys to values, not 'p'"),
        ({"one": {}}, "f: `one.path` is missing"),
        ({"many": {}}, "f: `many` must be a list, not {}"),
        ({"many": [{"path": "", "lines": [1, 1.5]}]},
         "f: `many[0].lines[1]` must be a whole number, not 1.5"),
        ({"size": "smal"}, "f: `size` must be 'small' or 'large', not 'smal' "
         "(did you mean 'small'?)"),
        ({"nam": 1}, "f: `nam` is no key (did you mean 'name'?)"),
        ({"files": {"path": {"pth": ""}}}, "f: `files.path.pth` is no key (did you mean 'path'?)"),
        ({"many": [{"liness": []}]}, "f: `many[0].liness` is no key (did you mean 'lines'?)"),
        ({1: 2}, "f: `1` is no key"),
        ({"name": list(range(99))}, "f: `name` must be text in quotes, not "
         + str(list(range(99)))[:80] + "..."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(change: dict[Any, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(Outer, {"name": "n", **change}, "f", ConfigError)
    assert str(caught.value) == message


def test_what_is_no_mapping_or_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^f: it must be a mapping of keys to values, not None$"):
        typed(Outer, None, "f")
    with pytest.raises(ValueError, match=r"^f: .*surrogates not allowed"):
        typed(Outer, {"name": "\ud800"}, "f")


def test_an_object_is_read() -> None:
    assert json_object('{"a": [1, null], "b": "é"}') == {"a": [1, None], "b": "é"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "a list, where an object is needed; so"),
        ("null", "missing or null, where"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": ', "invalid JSON: .* at character 7; so"),
        ('{"a": "\\ud800"}', "half of a character"),
        ("[" * 100_000, "invalid JSON"),
    ],
)
def test_whatever_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        json_object(text, hint="; so")
