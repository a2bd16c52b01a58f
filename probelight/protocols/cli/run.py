"""A protocol's command from its arguments to its end."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, get_args, get_origin

from jsonargparse import SUPPRESS

from probelight.io.package import PACKAGE
from probelight.io.ranges import Settings, check_settings
from probelight.protocols.cli.command import Command, declared
from probelight.protocols.cli.help import Option, short_help
from probelight.protocols.cli.parser import OneLineErrors
from probelight.results.provenance import set_command

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def run_command(name: str, function: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Parses the arguments of a protocol's function and calls it."""
    set_command(name, arguments)
    said = declared(function)
    things = [word for word in arguments[:1] if said.named and not word.startswith("-")]
    thing = things[0] if things else ""
    kind = resolve_name(said.named)(thing) if thing else None
    parser = command_parser(f"{name} {thing}".strip(), function, kind)
    given = parser.parse_args(arguments[1:] if thing else arguments)
    for declaring in filter(None, (function, kind)):
        check_settings(declaring, given.as_dict(), "--")
    parsed = parser.instantiate(given)
    parsed.pop("config", None)
    if kind is not None:
        settings = {one.name: parsed.pop(one.name) for one in fields(kind)}
        parsed["name"], parsed["settings"] = thing, kind(**settings)
    function(**parsed)


def command_parser(
    name: str, function: Callable[..., Any], settings: type[Settings] | None = None
) -> CommandParser:
    """The parser of a command's function, whose arguments are its options.

    Args:
        name: The command.
        function: Its function.
        settings: Of what the command names (`Command.named`): its fields are options too.
    """
    said = declared(function)
    parser = CommandParser(
        prog=f"train.py {name}",
        description=(function.__doc__ or "").split("\n")[0],
        default_config_files=[PACKAGE / said.config] if said.config else [],
    )
    parser.add_argument("--help_all", action=_HelpAll, help="show every option and exit")
    parser.add_argument("--config", action="config", help="YAML file with any of these keys")
    own = {one.name for one in fields(settings)} if settings else set()
    skipped: set[str | int] = {"name", "settings", *own} if said.named else set()
    parser.add_function_arguments(function, as_positional=said.positional, skip=skipped)
    for action in parser._actions:
        kind = getattr(action, "_typehint", None)
        if not action.option_strings and get_origin(kind) is list:
            action.nargs, action.metavar = "+", action.dest
            action._typehint = get_args(kind)[0]  # type: ignore[attr-defined]
    if settings:
        parser.add_class_arguments(settings)
    parser.said = said
    parser.needed = frozenset(action.dest for action in parser._actions if action.required)
    return parser


class CommandParser(OneLineErrors):
    """A parser with a help of two screens at most; `command_parser` makes one.

    An argument by place that is a list takes one word or more.

    Attributes:
        said: What is declared of the command; none has jsonargparse's own help.
        needed: The options that must be given. While it parses, jsonargparse unmarks them.
    """

    said: Command | None = None
    needed: frozenset[str] = frozenset()

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Prints the short help, or jsonargparse's own once `--help_all` has asked for it."""
        if self.said is None or not self.said.example:
            super().print_help(file)
            return
        known = {action.dest: action for action in self._actions if action.default != SUPPRESS}
        shown = [known[name] for name in self.said.shown.split()]
        places = [_typed(action) for action in shown if not action.option_strings]
        defaults = self.get_defaults(skip_validation=True)  # those of its config among them
        options = [
            Option(_typed(one), f"{one.help or ''}{self._note(one, defaults.get(one.dest))}")
            for one in shown
        ]
        num_more = len(known.keys() - {"config"}) - len(shown)
        prog, summary = " ".join([self.prog, *places]), self.description or ""
        print(short_help(prog, summary, options, self.said.example, num_more), file=file)

    def _check_value_key(self, action: argparse.Action, value: Any, *rest: Any, **more: Any) -> Any:
        if action.nargs == "+" and isinstance(value, str):
            value = [value]  # a config names one without the brackets of a list
        return super()._check_value_key(action, value, *rest, **more)

    def _note(self, action: argparse.Action, default: Any) -> str:
        """What stands behind the text of an option: its default, or that it must be given."""
        if not action.option_strings or default == "":
            return ""
        if default is None:
            return " (required)" if action.dest in self.needed else ""
        return f" (default: {str(default).lower() if isinstance(default, bool) else default})"


class _HelpAll(argparse._HelpAction):  # jsonargparse leaves this kind out of what is parsed
    """Prints jsonargparse's own help, hundreds of lines."""

    def __call__(self, parser: Any, *args: Any, **kwargs: Any) -> None:
        parser.said = None
        super().__call__(parser, *args, **kwargs)


def _typed(action: argparse.Action) -> str:
    place = action.dest.upper() + ("..." if action.nargs == "+" else "")
    return next(iter(action.option_strings), place)
