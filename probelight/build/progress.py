"""A bar with the time left, for builders that take more than some seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TypeVar

from probelight.io.files import LARGE, read_lines

T = TypeVar("T")
_hidden = False


def hide_bars() -> None:
    """Show no bars in this process: a terminal has room for those of one process."""
    global _hidden
    _hidden = True


def tracked(items: Sequence[T], what: str) -> Iterable[T]:
    """Yield items one by one, with a bar on stderr where that is a terminal.

    Args:
        items: What is worked on.
        what: Stands before the bar.
    """
    from rich.console import Console  # not above: lists and --help are quick
    from rich.progress import track

    console = Console(stderr=True)
    shown = console.is_terminal and not _hidden
    return track(items, what, console=console, transient=True, disable=not shown)


def tracked_lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a large source, compressed or not, with a bar as in `tracked`.

    Args:
        path: The file; the bar goes by how much of it, as it lies, was read.
        what: Stands before the bar.

    Raises:
        RecordError: If it is damaged, or not UTF-8; the message names the line.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    shown = console.is_terminal

    def opened(one: Path) -> AbstractContextManager[IO[bytes]]:
        return progress.open(
            one, "rb", description=what, console=console, transient=True, disable=not shown
        )

    yield from read_lines(path, limit=LARGE, watched=opened)
