"""The parsers of our commands: as jsonargparse's, but a mistake is answered in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml
from jsonargparse import ArgumentParser, get_loader, set_loader
from jsonargparse.typing import register_type

from probelight.io.aliases import current_class_path, with_current_class_paths
from probelight.io.escaping import visible
from probelight.io.ranges import NotBlank
from probelight.protocols.cli.mistakes import explained


def _path(text: str) -> Path:
    """What is typed for a `Path`, whose empty text would be the current folder."""
    if not NotBlank().admits(text):
        raise ValueError(f"give {NotBlank()}")
    return Path(text)


register_type(Path, str, _path, fail_already_registered=False)

_load_yaml = get_loader("yaml")
set_loader("yaml", lambda text: with_current_class_paths(_load_yaml(text)), (yaml.YAMLError,))


class OneLineErrors(ArgumentParser):
    """A parser that says what is wrong and what was meant, without the list of all options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Part of an option's name stands for none: what it stands for would change with new ones.
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_args(self, args: Any = None, *rest: Any, **options: Any) -> Any:
        """Parses a command line; the class paths in it may be those of an earlier version."""
        words = [
            "".join([*word.rpartition("=")[:2], current_class_path(word.rpartition("=")[2])])
            for word in (sys.argv[1:] if args is None else args)
        ]
        return super().parse_args(words, *rest, **options)

    def parse_object(self, obj: Any, *rest: Any, **options: Any) -> Any:
        """Parses a config in memory, such as the arguments that a checkpoint holds."""
        return super().parse_object(with_current_class_paths(obj), *rest, **options)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Ends the command with the line, on stderr, and the exit code of a usage error."""
        if not self.exit_on_error:  # a parser within a parser, which says it for both
            super().error(message, ex)
        parser = getattr(ex, "subcommand_parser", None) or self
        known = dict(_typed(action) for action in parser._actions)
        defaults = [str(path) for path in parser.default_config_files]
        line = explained(message, known, [*given_configs(self.args or sys.argv), *defaults])
        prog = parser.prog.replace(" [options]", "")
        print(visible(f"{prog}: error: {line}"), file=sys.stderr)
        self.exit(2)


def given_configs(arguments: Sequence[str]) -> Iterator[str]:
    """The files that a command line gives with --config or -c, in its order."""
    for word, behind in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in {"--config", "-c"}:
            yield value if equals else behind


def _typed(action: Any) -> tuple[str, str]:
    """An option's name and how it is typed, the long form; a place has its name in capitals."""
    names = [option for option in action.option_strings if not option.endswith("+")]
    return (names[-1].lstrip("-"), names[-1]) if names else (action.dest, action.dest.upper())
