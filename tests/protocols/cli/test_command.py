from __future__ import annotations

import pytest

from probelight.protocols import cli
from probelight.protocols.cli.command import Command, command, declared
from tests.fixtures.checkout import ROOT


def test_a_command_is_the_function_that_it_was_and_what_is_said_of_it() -> None:
    def paint(what: str) -> str:
        return what

    said = Command("paints", example="train.py paint --what house", shown="what")
    assert command(said)(paint) is paint
    assert declared(paint) is said
    with pytest.raises(KeyError):
        declared(declared)


@pytest.mark.parametrize("name", cli.PROTOCOLS)
def test_every_command_has_a_line_an_example_of_itself_and_a_config_that_is_there(
    name: str,
) -> None:
    said = declared(cli.function_of(name))
    assert said.summary
    assert f"{said.example} ".startswith(f"train.py {name} ")
    assert said.config is None or (ROOT / said.config).is_file()
