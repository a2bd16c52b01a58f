"""Prints the story of a command's results."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from probelight.io.escaping import visible
from probelight.reports.overview.story import ASCII, BARS, story
from probelight.reports.page.provenance import notices
from probelight.results.load import load_results


def print_story(folder: Path, *end: str) -> None:
    """Prints in at most 25 lines what the results of a folder say.

    Args:
        folder: That of the results.
        *end: One or two lines that stand at the end, of any length.
    """
    console = Console()
    results = load_results(folder)
    lines = story(results)
    if not _shows(console, BARS):
        lines = [line.translate(ASCII) for line in lines]
    lines += ["", *map(visible, end)] if lines else end
    if number := len(notices(results)):
        lines.append(f"{number} {'notice stands' if number == 1 else 'notices stand'} on the page")
    for line in lines:
        # What a terminal of another encoding has no sign for, such as a letter of an item.
        shown = line if _shows(console, line) else line.encode("ascii", "replace").decode()
        console.print(Text(shown), soft_wrap=True)


def _shows(console: Console, text: str) -> bool:
    try:
        text.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
