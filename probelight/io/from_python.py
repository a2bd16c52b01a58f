"""A command's work when Python calls it: nothing is printed, and every mistake is of one family."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from probelight.io.errors import ProbelightError, UsageError

# Whether a call from Python runs, which shows one bar for all jobs in place of a command's own.
FROM_PYTHON: ContextVar[bool] = ContextVar("from_python", default=False)


# A command line is as it is typed; an option may have its value behind it, where that is no word
# of the sentence: a placeholder, a list, a number, or what a comma or the end follows.
_OPTION = re.compile(
    r"`[^`]*`|(?<![\w-])--(?P<name>[a-z_]+)(?P<keys>(?:\.[a-z_]+)*)"
    r"(?: (?P<value>[A-Z][A-Z_]+\b|\[[^\]]*\]|(?:true|false|null)\b|\d+(?:\.\d+)?\b|"
    r"[a-z][\w-]*(?:,[\w-]+)*(?=[;,)`]|$| or | and )))?"
)


def in_python_words(message: str) -> str:
    """Return a command's message with its options as arguments: `--chat auto` is `chat="auto"`."""

    def argument(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        words = {"true": "True", "false": "False", "null": "None"}
        value = match["value"] or ""
        if re.match(r"[a-z]", value) and value not in words:
            names = [f'"{name}"' for name in value.split(",")]
            value = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        keys = match["keys"].split(".")[1:]
        if not value:
            return match["name"] + "".join(f'["{key}"]' for key in keys) + "=" * (not keys)
        value = words.get(value, value)
        for key in reversed(keys):
            value = f'{{"{key}": {value}}}'
        return f"{match['name']}={value}"

    return _OPTION.sub(argument, message)


class MissingFileError(ProbelightError, FileNotFoundError):
    """A file or folder that is not there."""


def required_path(path: Any, argument: str) -> Path:
    """Return an argument's path; UsageError if it is empty, or is not a path at all."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise UsageError(f"{argument} {path!r}: give a path (. is the current folder)")
    return Path(path)


@contextmanager
def quietly() -> Iterator[io.StringIO]:
    """Turn a command's mistakes into ProbelightErrors; yield its output instead of printing it."""
    token = FROM_PYTHON.set(True)
    try:
        with redirect_stdout(io.StringIO()) as printed:
            yield printed
    except ProbelightError as error:
        error.args = (in_python_words(str(error)),)
        raise
    except FileNotFoundError as error:
        raise MissingFileError(str(error)) from error
    except (NotADirectoryError, IsADirectoryError, PermissionError, ValueError) as error:
        raise UsageError(in_python_words(str(error))) from error
    finally:
        FROM_PYTHON.reset(token)
