"""How a function is declared as a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from probelight.io.settings import checked

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """The description of a command whose options are the arguments of a function.

    Args:
        example: A whole command line that can be typed.
        options: The options that matter most, by spaces: --help explains them, --help_all all.
        positional: Whether required arguments are positional.
        named: "module:function" that returns the settings class for the first argument: its fields
            are options too, and the command is called with `name` and `settings`.
        config: A YAML file of defaults, below the project's root.
    """

    example: str = ""
    options: str = ""
    positional: bool = False
    named: str = ""
    config: str | None = None


DECLARED: dict[Callable[..., Any], Command] = {}


def command(description: Command) -> Callable[[Function], Function]:
    """Declare a function as a command; its arguments are checked (RangeError) in Python too."""

    def declare(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            bound = signature.bind(*arguments, **options).arguments
            return function(**checked(function, bound, lambda key: f"{function.__name__}: {key}"))

        DECLARED[call] = description
        return cast(Function, call)

    return declare
