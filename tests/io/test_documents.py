from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import yaml

from probelight.io.documents import (
    json_object,
    number_of,
    parse_yaml,
    read_yaml,
    whole_number_of,
    yaml_text,
)
from probelight.io.errors import ConfigError, RecordError
from probelight.io.settings import STRICT, typed


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
    with pytest.raises(ValueError, match=r"^f: it must be a mapping of keys to values, not None$"):
        typed(Outer, None, "f")
    with pytest.raises(ValueError, match=r"^f: .*surrogates not allowed"):
        typed(Outer, {"name": "\ud800"}, "f")


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
        ({"nam": 1}, "f: `nam` is not a known key (did you mean 'name'?)"),
        ({"files": {"path": {"pth": ""}}},
         "f: `files.path.pth` is not a known key (did you mean 'path'?)"),
        ({"many": [{"liness": []}]},
         "f: `many[0].liness` is not a known key (did you mean 'lines'?)"),
        ({1: 2}, "f: `1` is not a known key"),
        ({"name": list(range(99))}, "f: `name` must be text in quotes, not "
         + str(list(range(99)))[:80] + "..."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(change: dict[Any, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(Outer, {"name": "n", **change}, "f", ConfigError)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_whatever_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        json_object(text, hint="; so")
    assert json_object('{"a": [1, null], "b": "é"}') == {"a": [1, None], "b": "é"}


def test_a_file_is_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("a: 1\nb: [x, {c: null}]\nd: 1.5\n")
    assert read_yaml(path) == {"a": 1, "b": ["x", {"c": None}], "d": 1.5}
    path.write_text("a: &words [x]\nb: {c: *words}\nd: &base {e: 1}\nf: {<<: *base, e: 2}\n")
    assert read_yaml(path) == {"a": ["x"], "b": {"c": ["x"]}, "d": {"e": 1}, "f": {"e": 2}}
    path.write_text("# only a comment\n")
    assert read_yaml(path) is None


def nested(levels: int, width: int = 9) -> str:
    """A list of lists of ... by aliases: a few hundred bytes that stand for width ** levels."""
    aliases = [", ".join([f"*a{level}"] * width) for level in range(levels)]
    rows = [f"a{level}: &a{level} [{below}]" for level, below in enumerate(["x", *aliases])]
    return "\n".join([*rows, ""])


HOSTILE = {
    "nested aliases": (nested(9), r"line 6: .* its aliases stand for more than 100,000 values"),
    "nested mappings": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}\n" for n in range(1, 40)),
        r"aliases stand for more than 100,000 values",
    ),
    "merged mappings": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)),
        r"aliases stand for more than 100,000 values",
    ),
    "an alias of itself": ("a: &a [*a]", "line 1: not readable as YAML: an alias contains itself"),
    "nested brackets": ("a: " + "[" * 200, "line 1: .* values nested more than 50 levels deep"),
    "a key twice below": ("files: [{a: 1, a: 2}]", "line 1: .* the key 'a' is given twice"),
    "a large file": (
        "# " + "x" * 2**16,
        "more than 65,536 bytes, the limit for a file of settings",
    ),
    "no YAML": ("setup: mc_mlm\nchance: 'a", "line 2: .* while scanning a quoted scalar, found"),
    "an object": ("a: !!python/object/apply:os.system [ls]", "could not determine a constr"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_yaml_is_refused_soon_in_one_line_with_its_file(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(
        ConfigError, match=rf"mine\.yaml: .*{message}|mine\.yaml:1: {message}"
    ) as error:
        read_yaml(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"zero\.yaml: a device or a pipe"):
        read_yaml(tmp_path / "zero.yaml")
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/none\.yaml: No such file$"):
        read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" -0.5 ", -0.5), ("+3.", 3), (".5", 0.5), ("1e-3", 0.001), (2, 2), (0.25, 0.25)],
)
def test_texts_of_numbers_are_read(text: object, number: float) -> None:
    assert number_of(text) == number
    assert number_of(text, finite=False) == number


@pytest.mark.parametrize(
    "text",
    [True, False, None, [1], "", " ", "true", "1_000", "1_0.5", "\u0661", "\uff13", "1\u0660",
     "nan", "0x10", "1:30", "1,5", "\u22121", "1e999", "-1e999", 10**400, math.nan, b"1"],
)  # fmt: skip
def test_texts_of_no_number_are_nan(text: object) -> None:
    assert math.isnan(number_of(text))
    assert math.isnan(number_of(text, finite=False))
    assert whole_number_of(text) is None


@pytest.mark.parametrize("text", ["-inf", "-Infinity", -math.inf])
def test_infinities_are_numbers_where_they_are_allowed(text: object) -> None:
    assert math.isnan(number_of(text))
    assert number_of(text, finite=False) == -math.inf


def test_whole_numbers_have_no_fraction() -> None:
    assert (whole_number_of("12"), whole_number_of(3), whole_number_of("2.0")) == (12, 3, 2)
    assert whole_number_of("2.5") is None


@pytest.mark.parametrize("text", ["1_000", "1:30", "0x10", "010", "-1_0.5", "1_0e-5"])
def test_a_setting_that_only_yaml_takes_for_a_number_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=f"{text} can be a number or a text"):
        parse_yaml(f"shots: [{text}]")
    assert parse_yaml(f"shots: '{text}'") == {"shots": text}


@pytest.mark.parametrize(
    "text",
    ["1e5", "1234e56", "12e5678", "1_0e-5", "1:30", "010", "0b01", "0x1f", "0o17", "\u0661", "1.5",
     "-3", "true", "null", "yes", "2026-01-02", "~", "", " a", "a: b", "# a", "two\nlines"],
)  # fmt: skip
def test_a_text_is_written_so_that_any_reader_of_yaml_reads_it_as_a_text(text: str) -> None:
    written = yaml_text({"revision": [text], text: 1})
    assert parse_yaml(written) == yaml.safe_load(written) == {"revision": [text], text: 1}


def test_numbers_and_texts_of_settings_stay_what_they_are() -> None:
    text = "[10, -0.5, 1e-5, 2.5E3, -1.e2, 0, 0.0, true, null, step_10, 12:ab, 1.2.3, 2026-01-02"
    settings = parse_yaml(f"{text}, 1e5x, 12e, 0bf2f7, 0b2, 0xyz, 12e3f]")
    assert settings[:9] == [10, -0.5, 1e-5, 2500, -100, 0, 0.0, True, None]
    assert " ".join(settings[9:]) == "step_10 12:ab 1.2.3 2026-01-02 1e5x 12e 0bf2f7 0b2 0xyz 12e3f"
    assert parse_yaml(yaml_text(settings)) == yaml.safe_load(yaml_text(settings)) == settings
    nan, yes = parse_yaml("[.nan, yes]")
    assert nan != nan
    assert yes is True
