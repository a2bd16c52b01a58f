"""The short help of a command: what it does, the dozen options that matter, an example."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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
    """The text of `--help`.

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
    typed = _wrapped(example, WIDTH - 4, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(
        [
            f"usage: {prog} [--config FILE.yaml] [--option value ...]",
            "",
            *_wrapped(summary, WIDTH),
            "",
            *(line for option in options for line in _lines(option)),
            "",
            "example:",
            " \\\n".join(typed),
            "",
            *_wrapped(end, WIDTH),
        ]
    )


def _lines(option: Option) -> list[str]:
    left = f"  {option.typed:<{_TYPED}}  "
    texts = _wrapped(option.text, WIDTH - _TYPED - 4) or [""]
    lines = [f"{'':{_TYPED + 4}}{text}" for text in texts]
    if len(option.typed) > _TYPED:
        return [left.rstrip(), *lines]
    return [f"{left}{texts[0]}".rstrip(), *lines[1:]]
