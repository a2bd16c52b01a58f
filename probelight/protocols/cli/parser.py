"""A protocol's command from its arguments to its call; mistakes are answered in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin

import yaml
from jsonargparse import SUPPRESS, ArgumentParser, get_loader, set_loader
from jsonargparse.typing import register_type

from probelight.io.escaping import visible
from probelight.io.package import (
    PACKAGE,
    as_typed,
    current_class_path,
    program,
    shipped_path,
    with_current_class_paths,
)
from probelight.io.ranges import NotBlank, Settings, check_settings
from probelight.protocols.cli.command import Command, Option, declared, short_help
from probelight.protocols.cli.errors import explained
from probelight.results.record import set_command

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

CONFIG_OPTIONS = {"--config", "-c"}


def _path(text: str) -> Path:
    """Return what is typed for a `Path`, whose empty text would be the current folder."""
    if not NotBlank().admits(text):
        raise ValueError(f"give {NotBlank()}")
    return Path(text)


register_type(Path, str, _path, fail_already_registered=False)

_load_yaml = get_loader("yaml")
set_loader("yaml", lambda text: with_current_class_paths(_load_yaml(text)), (yaml.YAMLError,))


def parse_and_call(name: str, function: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Parse the arguments of a protocol's function and call it."""
    set_command(name, arguments)
    named = declared(function).named
    thing = arguments[0] if named and arguments and not arguments[0].startswith("-") else ""
    kind = resolve_name(named)(thing) if thing else None
    parser = command_parser(f"{name} {thing}".strip(), function, kind)
    given = parser.parse_args(arguments[1:] if thing else arguments)
    for declaring in filter(None, (function, kind)):
        check_settings(declaring, given.as_dict(), "--")
    parsed = parser.instantiate(given)
    parsed.pop("config", None)
    if kind is not None:
        settings = {field.name: parsed.pop(field.name) for field in fields(kind)}
        parsed["name"], parsed["settings"] = thing, kind(**settings)
    function(**parsed)


def command_parser(
    name: str, function: Callable[..., Any], settings: type[Settings] | None = None
) -> CommandParser:
    """Return the parser of a command's function, whose arguments are its options.

    Args:
        name: The command.
        function: Its function.
        settings: Of what the command names (`Command.named`): its fields are options too.
    """
    command = declared(function)
    parser = CommandParser(
        prog=f"{program()} {name}",
        description=(function.__doc__ or "").split("\n")[0],
        default_config_files=[PACKAGE / command.config] if command.config else [],
    )
    parser.add_argument("--help_all", action=_HelpAll, help="show every option and exit")
    parser.add_argument("--config", action="config", help="YAML file with any of these keys")
    own = {field.name for field in fields(settings)} if settings else set()
    skipped: set[str | int] = {"name", "settings", *own} if command.named else set()
    parser.add_function_arguments(function, as_positional=command.positional, skip=skipped)
    for action in parser._actions:
        kind = getattr(action, "_typehint", None)
        if not action.option_strings and get_origin(kind) is list:
            action.nargs, action.metavar = "+", action.dest
            action._typehint = get_args(kind)[0]  # type: ignore[attr-defined]
    if settings:
        parser.add_class_arguments(settings)
    parser.command = command
    parser.needed = frozenset(action.dest for action in parser._actions if action.required)
    return parser


class OneLineErrors(ArgumentParser):
    """A parser that says what is wrong and what was meant, without the list of all options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Part of an option's name stands for none: what it stands for would change with new ones.
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_args(self, args: Any = None, *rest: Any, **options: Any) -> Any:
        """Parse a command line, which may name shipped configs and classes by their old paths."""
        words = list(sys.argv[1:] if args is None else args)
        for place, word in enumerate(words):
            if place and words[place - 1] in CONFIG_OPTIONS:
                words[place] = shipped_path(word)
            elif word.partition("=")[0] in CONFIG_OPTIONS:
                name, equals, path = word.partition("=")
                words[place] = f"{name}{equals}{shipped_path(path)}"
            else:
                name, equals, value = word.rpartition("=")
                words[place] = f"{name}{equals}{current_class_path(value)}"
        return super().parse_args(words, *rest, **options)

    def parse_object(self, obj: Any, *rest: Any, **options: Any) -> Any:
        """Parse a config in memory, such as the arguments that a checkpoint holds."""
        return super().parse_object(with_current_class_paths(obj), *rest, **options)

    def format_help(self, *args: Any, **options: Any) -> str:
        """Return the help with the program's name as it was typed."""
        return as_typed(super().format_help(*args, **options))

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """End the command with one line on stderr and the exit code of a usage error."""
        if not self.exit_on_error:  # a parser within a parser, which says it for both
            super().error(message, ex)
        parser = getattr(ex, "subcommand_parser", None) or self
        known = {}
        for action in parser._actions:
            # Under its name how an option is typed; what is given by place is in capitals.
            names = [option for option in action.option_strings if not option.endswith("+")]
            name, typed = (names[-1].lstrip("-"), names[-1]) if names else (action.dest, "")
            known[name] = typed or name.upper()
        defaults = [str(path) for path in parser.default_config_files]
        line = explained(message, known, [*given_configs(self.args or sys.argv), *defaults])
        prog = parser.prog.replace(" [options]", "")
        print(visible(as_typed(f"{prog}: error: {line}")), file=sys.stderr)
        self.exit(2)


def given_configs(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the files that a command line gives with --config or -c, in its order."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in CONFIG_OPTIONS:
            yield value if equals else following


class CommandParser(OneLineErrors):
    """A parser with a help of two screens at most; `command_parser` makes one.

    An argument by place that is a list takes one word or more.

    Attributes:
        command: What is declared of the command; None for jsonargparse's own help.
        needed: The options that must be given. While it parses, jsonargparse unmarks them.
    """

    command: Command | None = None
    needed: frozenset[str] = frozenset()

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the short help, or jsonargparse's own once `--help_all` has asked for it."""
        if self.command is None or not self.command.example:
            super().print_help(file)
            return
        known = {action.dest: action for action in self._actions if action.default != SUPPRESS}
        shown = [known[name] for name in self.command.shown.split()]
        places = [_typed(action) for action in shown if not action.option_strings]
        defaults = self.get_defaults(skip_validation=True)  # those of its config among them
        options = [
            Option(_typed(action), f"{action.help or ''}{self._note(action, defaults)}")
            for action in shown
        ]
        num_more = len(known.keys() - {"config"}) - len(shown)
        prog, summary = " ".join([self.prog, *places]), self.description or ""
        print(short_help(prog, summary, options, self.command.example, num_more), file=file)

    def _check_value_key(self, action: argparse.Action, value: Any, *rest: Any, **more: Any) -> Any:
        if action.nargs == "+" and isinstance(value, str):
            value = [value]  # a config names one without the brackets of a list
        return super()._check_value_key(action, value, *rest, **more)

    def _note(self, action: argparse.Action, defaults: Any) -> str:
        """Return what stands behind an option's text: its default, or that it must be given."""
        default = defaults.get(action.dest)
        if not action.option_strings or default == "":
            return ""
        if default is None:
            return " (required)" if action.dest in self.needed else ""
        return f" (default: {str(default).lower() if isinstance(default, bool) else default})"


class _HelpAll(argparse._HelpAction):  # jsonargparse leaves this kind out of what is parsed
    """Prints jsonargparse's own help, hundreds of lines."""

    def __call__(self, parser: Any, *args: Any, **kwargs: Any) -> None:
        parser.command = None
        super().__call__(parser, *args, **kwargs)


def _typed(action: argparse.Action) -> str:
    """Return an option as it is typed; what is given by place has its name in capitals."""
    place = action.dest.upper() + ("..." if action.nargs == "+" else "")
    return next(iter(action.option_strings), place)
