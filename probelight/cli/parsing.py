"""The parser of a command, its short help, its call.

The commands of LightningCLI are described here too: their help must not import Lightning, which
takes seconds. Mistakes are answered in one line.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin

import yaml
from docstring_parser import parse_from_object as parse_docstring
from jsonargparse import SUPPRESS, ArgumentParser, get_loader, set_dumper, set_loader
from jsonargparse.typing import register_type

from probelight.cli.arguments import CommandLine, KnownOptions, one_line_error, read_command_line
from probelight.commands.command import DECLARED, Command
from probelight.io.documents import parse_yaml, refuse_odd_number, yaml_text
from probelight.io.escaping import brief
from probelight.io.package import PACKAGE, as_typed, program
from probelight.io.process import check_num_processes, printed_once
from probelight.io.ranges import NOT_BLANK
from probelight.io.settings import Settings, checked, hints_of, lists_of
from probelight.results.record import set_command

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

HELP_ALL = "--help_all"  # jsonargparse's own help
WIDTH = 100
_TYPED = 26  # columns of an option as it is typed; a longer one has a line of its own
_wrapped = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


def short_help(
    prog: str, summary: str, options: Mapping[str, str], example: str, num_more: int | None = None
) -> str:
    """Return the text of `--help`: what the command does, the options that matter, an example.

    `options` has the explanation of each by how it is typed; `num_more` is the number of those that
    only `--help_all` shows, None if it is unknown.
    """
    numbers = {None: "all other options", 1: "the one other option"}
    other_options = numbers.get(num_more, f"the other {num_more} options")
    hint = f"--help_all shows {other_options}. " if num_more != 0 else ""
    end = (
        f"{hint}--print_config prints all options as YAML; --config FILE.yaml reads such a file, "
        "or a part of it."
    )
    typed = _wrapped(as_typed(example), WIDTH - 4, initial_indent="  ", subsequent_indent="    ")
    lines = [f"usage: {prog} [--config FILE.yaml] [--option value ...]", ""]
    lines += [*_wrapped(as_typed(summary), WIDTH), ""]
    for option, text in options.items():
        texts = _wrapped(as_typed(text), WIDTH - _TYPED - 4) or [""]
        if len(option) > _TYPED:
            lines.append(f"  {option}")
        else:
            lines.append(f"  {option:<{_TYPED}}  {texts.pop(0)}".rstrip())
        lines += [f"{'':{_TYPED + 4}}{line}" for line in texts]
    lines += ["", "example:", " \\\n".join(typed), "", *_wrapped(end, WIDTH)]
    return "\n".join(lines)


_RUN = "output_dir ckpt_path"
_DEVICES = "trainer.accelerator trainer.devices trainer.strategy trainer.precision"
_EVALUATION = f"config model data {_RUN} {_DEVICES} trainer.enable_progress_bar"
_CONFIG = "--config configs/experiment/fit_masked_choice.yaml"
_STATE = "--ckpt_path runs/fit/checkpoints/last.ckpt"
LIGHTNING = {
    "fit": Command(
        example=f"train.py fit {_CONFIG} --trainer.max_epochs 1 --output_dir runs/fit",
        options=f"config model data {_RUN} checkpoint_every checkpoint_minutes seed_everything "
        "trainer.max_epochs trainer.gradient_clip_val trainer.accumulate_grad_batches "
        f"{_DEVICES} matmul_precision",
    ),
    "validate": Command(example=f"train.py validate {_CONFIG} {_STATE}", options=_EVALUATION),
    "test": Command(example=f"train.py test {_CONFIG} {_STATE}", options=_EVALUATION),
    "predict": Command(
        example=f"train.py predict {_CONFIG} {_STATE} --output_dir runs/predictions",
        options=_EVALUATION,
    ),
}
# A test finds each among the hundreds of options that LightningCLI makes.
_TEXTS = {
    "config": "YAML file with any of these keys; of several files, the last one wins.",
    "model": "The module, a class of lightning_modules, such as "
    "probelight.lightning_modules.masked_choice.MaskedChoice. Give its arguments as --model.NAME; "
    "--model.help CLASS lists them.",
    "data": "The data module, such as probelight.datamodules.probe.ProbeDataModule. Give its "
    "arguments as --data.NAME; --data.help CLASS lists them.",
    "output_dir": "Folder for checkpoints, metrics, predictions and config. (default: runs/fit)",
    "ckpt_path": "Checkpoint to start from; by default, fit resumes from the newest one in "
    "output_dir.",
    "checkpoint_every": "Steps between checkpoints. (default: by time instead)",
    "checkpoint_minutes": "Minimum time in minutes between checkpoints that are saved by time. "
    "(default: 2)",
    "seed_everything": "Seed for the order of items, fresh weights and dropout. (default: 0)",
    "trainer.max_epochs": "Number of passes over the train items.",
    "trainer.gradient_clip_val": "Clip gradients to this norm.",
    "trainer.accumulate_grad_batches": "Batches per optimiser step. (default: 1)",
    "trainer.accelerator": "cpu, gpu (cuda or mps), or auto (a GPU if any). (default: auto)",
    "trainer.devices": "Number of devices, with one process each; -1 uses all. (default: auto)",
    "trainer.strategy": "Such as ddp, for several devices. (default: auto)",
    "trainer.precision": "Such as bf16-mixed; below 32 bits, results change.",
    "trainer.enable_progress_bar": "Show progress and the time left. (default: true)",
    "matmul_precision": "high (TF32) is several times faster than highest on GPUs with tensor "
    "cores, but changes results. (default: highest)",
}


def fit_help(command: str, summary: str) -> str:
    """Return the short help of a command of LightningCLI."""
    options = {f"--{name}": _TEXTS[name] for name in LIGHTNING[command].options.split()}
    summary = f"{summary[0].upper()}{summary[1:]}."
    return short_help(f"{program()} {command}", summary, options, LIGHTNING[command].example)


def parse_and_call(name: str, function: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Parse the arguments of a protocol's function and call it."""
    set_command(name, arguments)
    source = DECLARED[function].named
    subject = arguments[0] if source and arguments and not arguments[0].startswith("-") else ""
    settings = resolve_name(source)(subject) if subject else None
    parser = command_parser(f"{name} {subject}".strip(), function, settings)
    parsed = parser.parse_args(arguments[1:] if subject else arguments)
    for declaring in filter(None, (function, settings)):
        checked(declaring, parsed.as_dict(), parser.arguments.location)
    parsed = parser.instantiate(parsed)
    parsed.pop("config", None)
    if settings is not None:
        values = {field.name: parsed.pop(field.name) for field in fields(settings)}
        parsed["name"], parsed["settings"] = subject, settings(**values)
    if (trainer := parsed.get("trainer")) is None:
        function(**parsed)
        return
    check_num_processes(trainer.devices)
    with printed_once():
        function(**parsed)


def command_parser(
    name: str, function: Callable[..., Any], settings: type[Settings] | None = None
) -> CommandParser:
    """Return the parser of a command's function, whose arguments are its options.

    The fields of `settings` are options too: those of the named thing (`Command.named`).
    """
    command = DECLARED[function]
    parser = CommandParser(
        prog=f"{program()} {name}",
        description=(function.__doc__ or "").split("\n")[0],
        default_config_files=[PACKAGE / command.config] if command.config else [],
    )
    parser.add_argument("--config", action="config", help="YAML file with any of these keys")
    parser.lists = [*lists_of(function), *(lists_of(settings) if settings else ())]
    # jsonargparse knows no positional argument of several words.
    positional_lists = {
        name: get_args(hint)[0]
        for name, hint in hints_of(function).items()
        if command.positional and name != "return" and get_origin(hint) is list
    }
    skipped: set[str | int] = {*positional_lists}
    if command.named:
        names = [field.name for field in fields(settings)] if settings else []
        skipped.update(["name", "settings", *names])
    function = inspect.unwrap(function)
    parser.add_function_arguments(function, as_positional=command.positional, skip=skipped)
    texts = {text.arg_name: text.description for text in parse_docstring(function).params}
    for name, element_type in positional_lists.items():
        parser.add_argument(name, type=element_type, nargs="+", help=texts[name])
    if settings:
        parser.add_class_arguments(settings)
    parser.command = command
    parser.needed = frozenset(action.dest for action in parser._actions if action.required)
    return parser


@cache
def prepare_jsonargparse() -> None:
    """Make jsonargparse refuse empty paths, and read and write YAML as our files have it."""

    def parse_path(text: str | Path) -> Path:
        if not NOT_BLANK.admits(str(text)):  # it would be the current folder
            raise ValueError(f"give {NOT_BLANK}")
        return Path(text)

    register_type(Path, str, parse_path, fail_already_registered=False)
    load_yaml = get_loader("yaml")

    def parse_value(text: str) -> Any:
        refuse_odd_number(text)
        parse_yaml(text)
        return load_yaml(text)

    set_loader("yaml", parse_value, (yaml.YAMLError,))
    set_dumper("yaml", yaml_text)


class OneLineErrors(ArgumentParser):
    """A parser that says what is wrong and what was meant, without the list of all options."""

    arguments = CommandLine()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        prepare_jsonargparse()
        # No abbreviations: what they stand for would change with new options.
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def format_help(self, *args: Any, **options: Any) -> str:
        """Return the help with the program's name as it was typed."""
        return as_typed(super().format_help(*args, **options))

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """End the command with one line on stderr and the exit code of a usage error."""
        if not self.exit_on_error:  # a parser within a parser, which says it for both
            super().error(message, ex)
        parser = getattr(ex, "subcommand_parser", None) or self
        typed = {}
        for action in parser._actions:
            names = [option for option in action.option_strings if not option.endswith("+")]
            if names:
                typed[names[-1].lstrip("-")] = names[-1]
            else:  # a positional argument
                typed[action.dest] = action.dest.upper()
        line = one_line_error(message, typed, self.arguments)
        prog = parser.prog.replace(" [options]", "")
        print(brief(as_typed(f"{prog}: error: {line}")), file=sys.stderr)
        self.exit(2)


class CommandParser(OneLineErrors):
    """A parser with a help of two screens at most; `command_parser` makes one."""

    command: Command | None = None
    needed: frozenset[str] = frozenset()  # while it parses, jsonargparse unmarks the required ones
    lists: Collection[str] = ()

    @property
    def known_options(self) -> KnownOptions:
        """The options of the parser, for `read_arguments`."""
        options = [action.dest for action in self._actions if action.option_strings]
        paths = [name.split(".") for name in options]
        sections = {".".join(path[:depth]) for path in paths for depth in range(1, len(path))}
        hints = {action.dest: getattr(action, "_typehint", None) for action in self._actions}
        flags = [name for name, hint in hints.items() if hint is bool]
        return KnownOptions(options, sections - {*self.lists}, self.lists, flags)

    def parse_args(self, args: Any = None, *arguments: Any, **options: Any) -> Any:
        """Parse a command line, which may name shipped configs."""
        words = sys.argv[1:] if args is None else args
        if HELP_ALL in words:
            super().print_help()
            self.exit(0)
        self.arguments = read_command_line(words, self.known_options)
        return super().parse_args(self.arguments.words, *arguments, **options)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the short help; jsonargparse's own, hundreds of lines, where none is declared."""
        if self.command is None or not self.command.example:
            super().print_help(file)
            return
        actions = {action.dest: action for action in self._actions if action.default != SUPPRESS}
        help_actions = [actions[name] for name in self.command.options.split()]
        defaults = self.get_defaults(skip_validation=True)  # those of its config among them
        prog, options = self.prog, {}
        for action in help_actions:
            text, default = action.help or "", defaults.get(action.dest)
            if not action.option_strings:
                typed = action.dest.upper() + ("..." if action.nargs == "+" else "")
                prog = f"{prog} {typed}"
            else:
                typed = action.option_strings[0]
                if default not in (None, "", ()):
                    default = str(default).lower() if isinstance(default, bool) else default
                    text = f"{text} (default: {default})"
                elif default is None and action.dest in self.needed:
                    text = f"{text} (required)"
            options[typed] = text
        num_more, summary = len(actions.keys() - {"config"}) - len(help_actions), self.description
        print(short_help(prog, summary or "", options, self.command.example, num_more), file=file)
