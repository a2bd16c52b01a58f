"""A command from its arguments to its call: what is declared of it, its parser, its short help.

Those of LightningCLI are declared here: the help must not import Lightning, which takes seconds.
Mistakes are answered in one line.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_origin

import yaml
from jsonargparse import SUPPRESS, ArgumentParser, get_loader, set_loader
from jsonargparse.typing import register_type

from probelight.io.documents import read_yaml
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
from probelight.protocols.cli.errors import explained
from probelight.results.record import set_command

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """The description of a command whose options are the arguments of a function.

    Args:
        example: A whole command line that can be typed.
        shown: The options that matter most, by spaces: --help explains them, --help_all all.
        positional: Required arguments are given by place.
        named: A function that gives the settings of what the first argument names: their fields
            are options too, and the command is called with `name` and `settings`.
        config: The YAML file, below the project's root, whose keys hold where none are given.
        summary: Its line among the commands, where it is no function's.
    """

    example: str = ""
    shown: str = ""
    positional: bool = False
    named: str = ""
    config: str | None = None
    summary: str = ""


_DECLARED: dict[Callable[..., Any], Command] = {}


def command(description: Command) -> Callable[[Function], Function]:
    """Declare a function as a command, and leave it as it is."""

    def declare(function: Function) -> Function:
        _DECLARED[function] = description
        return function

    return declare


def declared(function: Callable[..., Any]) -> Command:
    """Return what was declared of a function."""
    return _DECLARED[function]


CONFIG_OPTIONS = {"--config", "-c"}
WIDTH = 100
_TYPED = 26  # columns of an option as it is typed; a longer one has a line of its own
_wrapped = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class Option:
    """An option as it is typed, and what it is for."""

    typed: str
    text: str


def short_help(
    prog: str, summary: str, options: Sequence[Option], example: str, num_more: int | None = None
) -> str:
    """Return the text of `--help`: what it does, the dozen options that matter, an example.

    Args:
        prog: The command as it is typed, with what is given by place.
        summary: What it does.
        options: The options explained.
        example: A command line.
        num_more: How many other options `--help_all` shows; none leaves the number out.
    """
    others = "all others" if num_more is None else f"the other {num_more}"
    more = f"--help_all shows {others}; " if others != "the other 0" else ""
    end = (
        f"{more}--print_config prints all of them as YAML, and --config FILE.yaml takes such a "
        "file, or a part of it."
    )
    typed = _wrapped(as_typed(example), WIDTH - 4, initial_indent="  ", subsequent_indent="    ")
    lines = [f"usage: {prog} [--config FILE.yaml] [--option value ...]", ""]
    lines += [*_wrapped(as_typed(summary), WIDTH), ""]
    for option in options:
        texts = _wrapped(as_typed(option.text), WIDTH - _TYPED - 4) or [""]
        if len(option.typed) > _TYPED:
            lines.append(f"  {option.typed}")
        else:
            lines.append(f"  {option.typed:<{_TYPED}}  {texts.pop(0)}".rstrip())
        lines += [f"{'':{_TYPED + 4}}{text}" for text in texts]
    lines += ["", "example:", " \\\n".join(typed), "", *_wrapped(end, WIDTH)]
    return "\n".join(lines)


_RUN = "output_dir ckpt_path"
_DEVICES = "trainer.accelerator trainer.devices trainer.strategy trainer.precision"
_EVALUATION = f"config model data {_RUN} {_DEVICES} trainer.enable_progress_bar"
_CONFIG = "--config configs/experiment/fit_masked_choice.yaml"
_STATE = "--ckpt_path runs/fit/checkpoints/last.ckpt"

LIGHTNING = {
    "fit": Command(
        summary="train one module on one data module (LightningCLI)",
        example=f"train.py fit {_CONFIG} --trainer.max_epochs 1 --output_dir runs/fit",
        shown=f"config model data {_RUN} checkpoint_every checkpoint_minutes seed_everything "
        "trainer.max_epochs trainer.gradient_clip_val trainer.accumulate_grad_batches "
        f"{_DEVICES}",
    ),
    "validate": Command(
        summary="evaluate on the validation sets",
        example=f"train.py validate {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "test": Command(
        summary="evaluate on the test sets",
        example=f"train.py test {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "predict": Command(
        summary="write the score of every choice",
        example=f"train.py predict {_CONFIG} {_STATE} --output_dir runs/predictions",
        shown=_EVALUATION,
    ),
}

# A test finds each among the hundreds of options that LightningCLI makes.
_TEXTS = {
    "config": "YAML file with any of these keys; of several the last one holds.",
    "model": "The module, a class of lightning_modules, such as "
    "probelight.lightning_modules.masked_choice.MaskedChoice; its arguments are --model.NAME, and "
    "--model.help CLASS shows them.",
    "data": "The data module, such as probelight.datamodules.probe.ProbeDataModule; its arguments "
    "are --data.NAME, and --data.help CLASS shows them.",
    "output_dir": "Folder of the run: states, metrics, predictions, config. (default: runs/fit)",
    "ckpt_path": "A state to begin with; fit goes on by itself from the newest one in output_dir.",
    "checkpoint_every": "Steps between two states. (default: none, by the clock)",
    "checkpoint_minutes": "Minutes between two states at least, by the clock. (default: 2)",
    "seed_everything": "Seed of the order of items, of fresh weights and of dropout. (default: 0)",
    "trainer.max_epochs": "Passes over the train items.",
    "trainer.gradient_clip_val": "Clip gradients to this norm.",
    "trainer.accumulate_grad_batches": "Batches per optimiser step. (default: 1)",
    "trainer.accelerator": "cpu, gpu, or whatever there is. (default: auto)",
    "trainer.devices": "Devices, one process each; -1 takes all there are. (default: auto)",
    "trainer.strategy": "ddp for several devices. (default: auto)",
    "trainer.precision": "Such as bf16-mixed; less than 32 bits does change the numbers.",
    "trainer.enable_progress_bar": "Show progress and the time left. (default: true)",
}


def fit_help(command: str) -> str:
    """Return the short help of one of the commands of LightningCLI."""
    description = LIGHTNING[command]
    options = [Option(f"--{name}", _TEXTS[name]) for name in description.shown.split()]
    summary = f"{description.summary[0].upper()}{description.summary[1:]}."
    return short_help(f"{program()} {command}", summary, options, description.example)


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


@cache
def prepare_jsonargparse() -> None:
    """Have jsonargparse refuse empty paths, and find classes by old paths in any YAML it reads."""

    def path(text: str) -> Path:
        if not NotBlank().admits(text):  # it would be the current folder
            raise ValueError(f"give {NotBlank()}")
        return Path(text)

    register_type(Path, str, path, fail_already_registered=False)
    load = get_loader("yaml")
    set_loader("yaml", lambda text: with_current_class_paths(load(text)), (yaml.YAMLError,))


class OneLineErrors(ArgumentParser):
    """A parser that says what is wrong and what was meant, without the list of all options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        prepare_jsonargparse()
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
    for word, following in zip(arguments, [*arguments, ""][1:], strict=True):
        name, equals, value = word.partition("=")
        if name in CONFIG_OPTIONS:
            yield value if equals else following


def check_configs(arguments: Sequence[str]) -> None:
    """Read each file that a command line gives as a config, before a parser does.

    That takes what has no end, writes out aliases, and names no file in what it says.

    Raises:
        ConfigError: As `read_yaml`. A file that is not there is left to the parser.
    """
    for path in given_configs(arguments):
        if path and Path(path).exists():
            read_yaml(path)


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
