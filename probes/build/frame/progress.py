"""A bar with the time left, for builders that take more than some seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Sequence[T], what: str) -> Iterable[T]:
    """The items one by one, with a bar on stderr where that is a terminal.

    Args:
        items: What is worked on.
        what: Stands before the bar.
    """
    from rich.console import Console  # not above: lists and --help are quick
    from rich.progress import track

    console = Console(stderr=True)
    shown = console.is_terminal
    return track(items, what, console=console, transient=True, disable=not shown)
