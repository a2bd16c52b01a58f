"""Progress bars of builders that take more than some seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, TypeVar

from probelight.io.files import LARGE, read_lines

T = TypeVar("T")


def tracked(items: Sequence[T], description: str) -> Iterable[T]:
    """Yield items with a progress bar on stderr, where that is a terminal."""
    from rich.progress import track  # not above: lists and --help are quick

    return track(items, description, **_display_options())


def tracked_lines(path: Path, description: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a large source, compressed or not, with a bar as in `tracked`.

    A RecordError names the line that is damaged or not UTF-8.
    """
    from rich import progress

    def opened(path: Path) -> Any:
        return progress.open(path, "rb", description=description, **_display_options())

    yield from read_lines(path, limit=LARGE, watched=opened)


def _display_options() -> dict[str, Any]:
    """Return rich's options: a bar only in the first process, as a terminal has room for one."""
    from rich.console import Console

    console = Console(stderr=True)
    hidden = not console.is_terminal or parent_process() is not None
    return {"console": console, "transient": True, "disable": hidden}
