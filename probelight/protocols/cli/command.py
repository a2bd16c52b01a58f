"""What a command is besides its function: declared beside it, read by train.py and by --help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """What is said of a command where its options are those of its function.

    Args:
        summary: Its line among the commands; none leaves it out of them.
        example: A whole command line that can be typed.
        shown: The options that matter most, by spaces: --help explains them, --help_all all.
        positional: Required arguments are given by place.
        named: A function that gives the settings of what the first argument names: their fields
            are options too, and the command is called with `name` and `settings`.
        config: The YAML file, below the project's root, whose keys hold where none are given.
    """

    summary: str
    example: str = ""
    shown: str = ""
    positional: bool = False
    named: str = ""
    config: str | None = None


_DECLARED: dict[Callable[..., Any], Command] = {}


def command(said: Command) -> Callable[[Function], Function]:
    """Declares a function as a command, and leaves it as it is."""

    def declare(function: Function) -> Function:
        _DECLARED[function] = said
        return function

    return declare


def declared(function: Callable[..., Any]) -> Command:
    """What was said of a function."""
    return _DECLARED[function]
