""""""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.io.yaml_file import check_configs, read_yaml


def test_a_file_is_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("a: 1\nb: [x, {c: null}]\nd: 1.5\n")
    assert read_yaml(path) == {"a": 1, "b": ["x", {"c": None}], "d": 1.5}
    path.write_text("# only a comment\n")
    assert read_yaml(path) is None


def test_aliases_that_stand_for_little_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("a: &words [x]\nb: {c: *words}\nd: &base {e: 1}\nf: {<<: *base, e: 2}\n")
    assert read_yaml(path) == {"a": ["x"], "b": {"c": ["x"]}, "d": {"e": 1}, "f": {"e": 2}}


def nested(levels: int, width: int = 9) -> str:
    """A list of lists of ... by aliases: a few hundred bytes that stand for width ** levels."""
    rows = ["a0: &a0 [x]"]
    for level in range(levels):
        rows.append(f"a{level + 1}: &a{level + 1} [{', '.join([f'*a{level}'] * width)}]")
    return "\n".join(rows) + "\n"


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
    "an alias of itself": ("a: &a [*a]", "line 1: not readable as YAML: an alias holds itself"),
    "nested brackets": ("a: " + "[" * 200, "line 1: .* values within values 50 times"),
    "a key twice below": ("files: [{a: 1, a: 2}]", "line 1: .* the key 'a' is given twice"),
    "a large file": ("# " + "x" * 2**16, "more than 65,536 bytes, the most of a file of settings"),
    "no YAML": ("setup: mc_mlm\nchance: 'a", "line 2: .* while scanning a quoted scalar, found"),
    "an object": ("a: !!python/object/apply:os.system [ls]", "could not determine a constr"),
    "a day that is none": ("citation: 2020-13-45", "not readable as YAML: month must be in 1..12"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_yaml_is_refused_soon_in_one_line_with_its_file(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(
        ConfigError, match=rf"mine\.yaml: .*{message}|mine\.yaml:1: {message}"
    ) as said:
        read_yaml(path)
    assert "\n" not in str(said.value)
    assert len(str(said.value)) < 1000


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"zero\.yaml: a device or a pipe"):
        read_yaml(tmp_path / "zero.yaml")
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/none\.yaml: No such file$"):
        read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize("as_one", [True, False])
def test_the_configs_of_a_command_line_are_read_before_its_parser_does(
    as_one: bool, tmp_path: Path
) -> None:
    good, twice = tmp_path / "good.yaml", tmp_path / "twice.yaml"
    good.write_text("a: 1\n")
    twice.write_text("a: 1\na: 2\n")

    def config(path: Path) -> list[str]:
        return [f"--config={path}"] if as_one else ["--config", str(path)]

    check_configs(["sweep", "run", *config(good), "--output_dir", str(twice)])
    with pytest.raises(ConfigError, match=r"twice\.yaml: line 2: .* the key 'a' is given twice"):
        check_configs(["sweep", "run", *config(good), *config(twice)])


def test_what_is_not_there_is_left_to_the_parser(tmp_path: Path) -> None:
    check_configs(["fit", f"--config={tmp_path}/none.yaml"])
    check_configs(["fit", f"--configs={tmp_path}"])  # another option


@pytest.mark.parametrize("arguments", [["--config"], ["--config="], ["zero-shot", "--config", ""]])
def test_a_config_without_a_name_is_left_to_the_parser(arguments: list[str]) -> None:
    check_configs(arguments)
