from __future__ import annotations

import inspect
import re
import shlex

import pytest
from pytorch_lightning import Trainer

from probelight.protocols import cli
from probelight.protocols.cli import dispatch
from probelight.protocols.cli.command import (
    LIGHTNING,
    Command,
    Option,
    command,
    declared,
    fit_help,
    short_help,
)
from tests.fixtures.checkout import ROOT


def test_a_command_is_the_function_that_it_was_and_what_is_said_of_it() -> None:
    def paint(what: str) -> str:
        return what

    said = Command(example="train.py paint --what house", shown="what")
    assert command(said)(paint) is paint
    assert declared(paint) is said
    with pytest.raises(KeyError):
        declared(declared)


@pytest.mark.parametrize("name", dispatch.PROTOCOLS)
def test_every_command_has_a_line_an_example_of_itself_and_a_config_that_is_there(
    name: str,
) -> None:
    said = declared(dispatch.function_of(name))
    assert dispatch.PROTOCOLS[name][1]
    assert f"{said.example} ".startswith(f"train.py {name} ")
    assert said.config is None or (ROOT / said.config).is_file()


LINES, COLUMNS = 48, 100  # two screens
COMMANDS = [*dispatch.PROTOCOLS, *LIGHTNING]
# Commands without a folder of results: what their config holds in its place.
WITHOUT_FOLDER = {
    "doctor": "{}",
    "explain": "item: ",
    "probes list": "{}",
    "probes validate": "file: ",
    "probes stats": "file: ",
}


def said_by(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    try:
        code = cli.main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_it_fits_two_screens(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said_by([*command.split(), "--help"], capsys).splitlines()
    assert lines[0].startswith(f"usage: train.py {command}")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_it_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = said_by([*command.split(), "--help"], capsys)
    full = said_by([*command.split(), "--help_all"], capsys)
    shown = re.findall(r"^  (--[\w.]+)", short, flags=re.MULTILINE)
    assert shown or command in WITHOUT_FOLDER
    assert set(shown) <= set(re.findall(r"(?:^|, ) *(--[\w.]+)", full, flags=re.MULTILINE))
    assert len(full.splitlines()) > len(short.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_its_example_can_be_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by([*command.split(), "--help"], capsys)
    script, *arguments = shlex.split(
        said.split("example:\n")[1].split("\n\n")[0].replace("\\\n", "")
    )
    assert script == "train.py"
    assert " ".join(arguments).startswith(command)
    printed = said_by([*arguments, "--print_config"], capsys)
    given = LIGHTNING.get(command) or declared(dispatch.function_of(command))
    assert WITHOUT_FOLDER.get(command, "output_dir: ") in printed
    assert " ".join([script, *arguments]) == given.example


def test_what_must_be_given_and_what_is_there_without(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(said_by(["inoculate", "--help"], capsys).split())
    assert "--original.name Its name in tables. (required)" in said
    assert "--dose k, the number of probe examples; none takes 100, or all that are left" in said
    assert "--epochs Epochs; each one's model is a candidate for M*. (default: 3)" in said
    said = " ".join(said_by(["demo", "--help"], capsys).split())
    assert "--plan.curve_probes Probes with a learning curve. (default: ['taxonomy_small'" in said


def test_what_is_given_by_place_is_in_capitals(capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by(["report", "-h"], capsys)
    assert said.startswith("usage: train.py report FOLDER... [--config")


def test_long_examples_are_lines_that_a_shell_takes_as_one() -> None:
    said = short_help("train.py x", "Does.", [], "train.py x " + "--option value " * 10)
    example = said.split("example:\n")[1].split("\n\n")[0].splitlines()
    assert [line.endswith(" \\") for line in example] == [True, False]


def test_an_option_too_long_for_its_column_has_a_line_of_its_own() -> None:
    options = [Option("--a", "short"), Option("--" + "b" * 40, "long")]
    lines = short_help("train.py x", "Does.", options, "train.py x").splitlines()
    assert lines[4:7] == [f"  {'--a':<28}short", f"  --{'b' * 40}", f"{'':<30}long"]


def test_the_options_of_the_trainer_are_its_arguments() -> None:
    arguments = inspect.signature(Trainer).parameters
    for description in LIGHTNING.values():
        names = [w.removeprefix("trainer.") for w in description.shown.split() if "." in w]
        assert names
        assert set(names) <= arguments.keys()


def test_the_help_of_fit_names_the_classes_that_it_takes() -> None:
    for line in (
        "probelight.lightning_modules.masked_choice.MaskedChoice",
        "probelight.datamodules.probe.",
    ):
        assert line in fit_help("fit")
