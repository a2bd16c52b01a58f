from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from probelight.io.ranges import NumItems, RangeError
from probelight.protocols.cli.command import Command, command, declared
from probelight.protocols.cli.parser import (
    OneLineErrors,
    command_parser,
    given_configs,
    parse_and_call,
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config", "a.yaml", "--seed", "1", "--config=b.yaml"],
        ["-c", "a.yaml", "-c", "b.yaml"],
        ["fit", "--config=a.yaml", "--config", "b.yaml"],
    ],
)
def test_the_configs_of_a_command_line_in_its_order(arguments: list[str]) -> None:
    assert list(given_configs(arguments)) == ["a.yaml", "b.yaml"]


def test_a_mistake_is_one_line_and_the_code_of_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = OneLineErrors(prog="train.py x")
    parser.add_argument("--epochs", type=int, default=1)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--epoch", "3"])
    assert capsys.readouterr().err == (
        "train.py x: error: there is no option --epoch (did you mean --epochs?); "
        "--help_all shows all\n"
    )


def test_a_mistake_in_a_config_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("epoch: 3\n")
    parser = OneLineErrors(prog="train.py x")
    parser.add_argument("--config", action="config")
    parser.add_argument("--epochs", type=int, default=1)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"--config={path}"])
    assert f"error: {path}: there is no key epoch (did you mean epochs?)" in capsys.readouterr().err


CALLS: list[tuple[str, int, str]] = []


@dataclass(frozen=True)
class Colours:
    """Colours.

    Args:
        first: The first one.
        second: The second one.
    """

    first: str = "red"
    second: str | None = None


@command(Command("train.py paint --what house", shown="what colours.first"))
def paint(what: str, coats: NumItems = 1, colours: Colours = Colours()) -> None:
    """Paints something.

    Args:
        what: A thing.
        coats: How often.
        colours: With what.
    """
    CALLS.append((what, coats, colours.first))


@command(Command(positional=True))
def wash(what: str) -> None:
    """Washes something."""
    CALLS.append((what, 0, ""))


@command(Command("train.py dry plate cup", shown="what", positional=True))
def dry(what: list[Path], coats: NumItems = 1) -> None:
    """Dries things.

    Args:
        what: Things.
    """
    CALLS.append((" and ".join(map(str, what)), coats, ""))


def settings_of(name: str) -> type[Colours]:
    assert name == "fence"
    return Colours


@command(Command(named=f"{__name__}:settings_of"))
def restore(coats: NumItems = 1, name: str = "", settings: Colours | None = None) -> None:
    """Restores something, or all."""
    CALLS.append((name, coats, settings.first if settings else ""))


def test_a_function_is_called_with_what_is_typed_or_in_a_config(tmp_path: Path) -> None:
    path = tmp_path / "paint.yaml"
    path.write_text("what: house\ncolours: {first: blue}\n")
    CALLS.clear()
    parse_and_call("paint", paint, [f"--config={path}", "--coats=2"])
    parse_and_call("wash", wash, ["car"])
    assert CALLS == [("house", 2, "blue"), ("car", 0, "")]


def test_a_list_by_place_is_one_word_or_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("what: pan\n")
    two.write_text("what: [pan, pot]\n")
    CALLS.clear()
    for words in (["cup"], ["--coats=2", "cup", "[a"], [f"--config={one}"], [f"--config={two}"]):
        parse_and_call("dry", dry, words)
    assert CALLS == [("cup", 1, ""), ("cup and [a", 2, ""), ("pan", 1, ""), ("pan and pot", 1, "")]
    with pytest.raises(SystemExit, match="2"):
        parse_and_call("dry", dry, [])
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("dry", dry, ["--help"])
    said = capsys.readouterr()
    assert "give WHAT" in said.err
    assert said.out.startswith("usage: train.py dry WHAT... [--config")


def test_what_is_named_first_has_options_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fence.yaml"
    path.write_text("first: green\n")
    CALLS.clear()
    parse_and_call("restore", restore, ["fence", "--coats=3", f"--config={path}"])
    parse_and_call("restore", restore, ["--coats=2"])
    parse_and_call("restore", restore, [])
    assert CALLS == [("fence", 3, "green"), ("", 2, ""), ("", 1, "")]
    with pytest.raises(SystemExit):
        parse_and_call("restore", restore, ["fence", "--frist=red"])
    assert "no option --frist (did you mean --first?)" in capsys.readouterr().err


def test_a_number_out_of_its_range_is_refused_before_the_call() -> None:
    with pytest.raises(RangeError, match="--coats 0: give a number from 1"):
        parse_and_call("paint", paint, ["--what=house", "--coats=0"])


def test_the_short_help_is_what_is_declared(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("paint", paint, ["--help"])
    assert capsys.readouterr().out.splitlines()[:8] == [
        "usage: train.py paint [--config FILE.yaml] [--option value ...]",
        "",
        "Paints something.",
        "",
        f"  {'--what':<28}A thing. (required)",
        f"  {'--colours.first':<28}The first one. (default: red)",
        "",
        "example:",
    ]


def test_help_all_shows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse_and_call("paint", paint, ["--help_all"])
    out = capsys.readouterr().out
    assert "--colours.second" in out
    assert "--coats" in out
    assert "--help_all" in out


def test_what_is_said_of_a_command_stands_beside_its_function() -> None:
    assert declared(paint).shown == "what colours.first"
    assert command_parser("paint", paint).needed == {"what"}
