"""Completion of command lines by the shell, through argcomplete: commands, options and names.

`eval "$(register-python-argcomplete probelight)"` turns it on in bash and zsh.
"""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import Any, Literal, get_args, get_origin

from probelight.io.package import BUNDLED_MODELS, CONFIGS

_PROBES = "probe probes probe.name phrasings against original.sets plan.probes plan.curve_probes"
# Options that take the name of a file in a folder of configs/.
_FOLDERS = {**dict.fromkeys(_PROBES.split(), "probe"), "models": "model", "baselines": "model"}


def complete(
    summaries: Mapping[str, str], groups: set[str], function_of: Callable[[str], Any]
) -> None:
    """Write what may follow on the shell's command line, and end the process."""
    import argcomplete
    from argcomplete.lexers import split_line

    completer = ArgumentParser()
    first = int(os.environ["_ARGCOMPLETE"])  # of the words behind the program
    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    words = split_line(line, point)[3][first:]
    num_words = 2 if groups & {*words[:1]} else 1
    command = " ".join(words[:num_words])
    os.environ["_ARGCOMPLETE"] = str(first + min(num_words, len(words)))
    if command not in summaries:
        completer.add_argument("--version", action="store_true")
        matching = [n for name in summaries if (n := name.split())[: len(words)] == words]
        next_words = list(dict.fromkeys(name[len(words)] for name in matching))
        completer.add_argument("command", choices=next_words)
        argcomplete.autocomplete(completer)
    # Only now: it imports jsonargparse.
    from probelight.cli.parsing import LIGHTNING, command_parser
    from probelight.commands.command import DECLARED

    if command in LIGHTNING:  # all options would need Lightning, which takes seconds to import
        for name in LIGHTNING[command].options.split():
            completer.add_argument(f"--{name}")
        argcomplete.autocomplete(completer)
    else:
        function = function_of(command)
        source, subject = DECLARED[function].named, "".join(words[num_words : num_words + 1])
        is_named = source and subject and not subject.startswith("-")
        settings = resolve_name(source)(subject) if is_named else None
        os.environ["_ARGCOMPLETE"] = str(first + num_words + bool(settings))
        parser = command_parser(command, function, settings)
        for action in parser._actions:
            action.option_strings = [o for o in action.option_strings if not o.endswith("+")]
            if action.nargs != 0:
                action.completer = _values  # type: ignore[attr-defined]
        parser.parse_args([])  # jsonargparse calls argcomplete


def _values(prefix: str, action: Action, parser: Any, **_: Any) -> list[str]:
    """Return the values that an option may have, or files; in a list behind its last comma."""
    from argcomplete.completers import FilesCompleter

    from probelight.models.registry import AUTO, MODEL_TYPES

    list_prefix = prefix[: prefix.rfind(",") + 1] if action.dest in parser.lists else ""
    allowed_values = list(_choices(getattr(action, "_typehint", None)))
    if folder := _FOLDERS.get(action.dest):
        allowed_values = sorted(path.stem for path in (CONFIGS / folder).glob("*.yaml"))
    elif action.dest == "model.kind":
        allowed_values = [*MODEL_TYPES, AUTO]
    if action.dest in {"models", "model.name_or_path"}:
        allowed_values += BUNDLED_MODELS
    completions = [list_prefix + name for name in allowed_values]
    completions = [text for text in completions if text.startswith(prefix)]
    return completions or list(FilesCompleter()(prefix))


def _choices(hint: Any) -> Iterator[str]:
    """Yield the values that a type lists."""
    if hint is bool:
        yield from ("true", "false")
    elif get_origin(hint) is Literal:
        yield from map(str, get_args(hint))
    else:
        for member in get_args(hint):
            yield from _choices(member)
