"""Errors of user input: items, configs and requests."""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import Any

# How torch, C++, the loader of shared libraries, threads and modules written in C put it.
_NO_MEMORY = (
    *("allocate memory", "bad_alloc", "failed to map segment", "can't start new thread"),
    "error return without exception set",
)


# How CUDA, its libraries and Metal put it where torch has no error of its own: they get memory from
# the driver, which torch's own stock of it may have used up.
_DEVICE_IS_FULL = (
    *("_STATUS_ALLOC_FAILED", "DEVICE_ALLOCATION_FAILED", "CUDA error: out of memory"),
    *("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate", "MPS backend out of memory"),
)


class ProbelightError(Exception):
    """Whatever is wrong with what the user gave: an item, a file, a setting, a checkpoint."""


class RecordError(ProbelightError, ValueError):
    """A malformed item or file; the message names the file, the line and the mistake."""


class ConfigError(ProbelightError, ValueError):
    """A config is wrong or missing; the message names file and key."""


class UsageError(ProbelightError, ValueError):
    """A command cannot do what the user asked for; the message says what to change."""


class NoMemoryError(UsageError):
    """What was asked for does not fit into memory; the message says where, and what does."""


# Neither word of a pair may be suggested for the other.
_PAIRS = (
    "good/bad right/wrong correct/incorrect grammatical/ungrammatical acceptable/unacceptable "
    "before/after first/last min/max start/end gold/distractor true/false yes/no train/test "
    "larger/smaller older/younger always/never synonym/antonym"
).split()
_OPPOSITES = {a: b for pair in _PAIRS for a, b in (pair.split("/"), pair.split("/")[::-1])}


def nearest(word: object, candidates: Sequence[str]) -> str:
    """Return a suggestion for a mistyped word, or nothing; all that are one slip away are named."""
    word, known_words = str(word), list(dict.fromkeys(candidates))
    matches = close_matches(word, known_words)
    slips = [match for match in matches if is_one_slip(word, match)]
    named = " or ".join(map(repr, slips or matches[:1]))
    return f" (did you mean {named}?)" if matches else ""


def close_matches(word: str, candidates: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Return the known words that are spelled most like one, without any that says the opposite."""

    def meanings(text: str) -> set[str]:  # of mistyped words too
        words = re.findall(r"[^\W\d_]+", text.lower())
        word_matches = [(each, difflib.get_close_matches(each, _OPPOSITES, 1)) for each in words]
        return {match[0] for each, match in word_matches if match and match[0][0] == each[0]}

    def is_opposite(text: str) -> bool:
        meant = meanings(text)
        return any(_OPPOSITES[m] in meant and m not in meant for m in meanings(word))

    matches = difflib.get_close_matches(word, candidates, 3, cutoff)
    slips = [text for text in matches if is_one_slip(word, text)]
    return slips + [text for text in matches if text not in slips and not is_opposite(text)]


def is_one_slip(word: str, candidate: str) -> bool:
    """Return whether one letter is missing, added or wrong, or two neighbours are swapped."""
    differing = [i for i, (a, b) in enumerate(zip(word, candidate, strict=False)) if a != b]
    start = differing[0] if differing else min(len(word), len(candidate))
    end, candidate_end = word[start:], candidate[start:]
    is_swapped = end[:2][::-1] + end[2:] == candidate_end
    return is_swapped or candidate_end[1:] in {end, end[1:]} or end[1:] == candidate_end


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, then what it comes from, back to the first."""
    step: BaseException | None = error
    while step is not None:
        yield step
        step = step.__cause__ or step.__context__


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception is, or comes from, main memory that was not given."""
    return any(
        isinstance(step, MemoryError)
        or getattr(step, "errno", None) == errno.ENOMEM
        or any(text in str(step) for text in _NO_MEMORY)
        for step in causes(error)
    )


def is_out_of_device_memory(error: BaseException) -> bool:
    """Return whether an exception says that a GPU has no memory left, whichever library does."""
    is_torch_error = type(error).__name__ == "OutOfMemoryError"  # torch is not imported for this
    return is_torch_error or any(text in str(error) for text in _DEVICE_IS_FULL)


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
def quietly() -> Iterator[None]:
    """Print nothing, and turn a command's mistakes into ProbelightErrors in the words of Python."""
    token = FROM_PYTHON.set(True)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    except ProbelightError as error:
        error.args = (in_python_words(str(error)),)
        raise
    except FileNotFoundError as error:
        raise MissingFileError(str(error)) from error
    except (NotADirectoryError, IsADirectoryError, PermissionError, ValueError) as error:
        raise UsageError(in_python_words(str(error))) from error
    except TypeError as error:  # of an argument that nothing has checked
        raise UsageError(f"an argument is missing, or of a wrong type: {error}") from error
    finally:
        FROM_PYTHON.reset(token)
