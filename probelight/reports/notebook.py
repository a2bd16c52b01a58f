"""What a command found, for Python: frames, and tables and figures that a notebook shows."""

from __future__ import annotations

import io
import shutil
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from probelight.io.errors import UsageError, nearest, quietly, required_path

# What is heavy is imported where it is used.
if TYPE_CHECKING:
    import pandas as pd

    from probelight.reports.figure import Figure
    from probelight.reports.sections import Section
    from probelight.reports.table import Table

WIDTH = 120  # columns of a table in a terminal
MOST_ROWS = 60  # of a table in a notebook


class Results:
    """What a command found. In a notebook it is shown as tables with their figure.

    Args:
        folder: The command's folder.
        shown: The command whose tables are shown; "" shows those of all.

    Raises:
        MissingFileError: If it is no folder, or holds no result.
    """

    def __init__(self, folder: str | Path, shown: str = "") -> None:
        self.folder = required_path(folder, "folder")
        self._shown = shown
        from probelight.results import load as results_load

        self._figures: dict[str, list[Figure]] = {}  # by section
        with quietly():
            self._results = results_load.load_results(self.folder)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each number; `probelight.results.frames.NUMBERS` says what its columns are."""
        from probelight.results.frames import results_frame

        return results_frame(self._results).copy()

    @cached_property
    def items(self) -> pd.DataFrame:
        """A row for each item that was answered, with the score of every choice.

        `probelight.results.frames.ITEMS` says what its columns are; frames of two runs merge on
        `item`.
        """
        from probelight.results.frames import items_frame

        return items_frame(self._results).copy()

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the numbers should know, such as how many items were skipped."""
        return self._results.notices + self._results.left_out

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The command's tables, as the terminal shows them."""
        from probelight.reports.sections import make, printed, shown_sections

        if self._shown:
            return tuple(printed(self._shown, self._results))
        sections = (s for s in shown_sections(self._results) if s.protocols)
        return make((m for s in sections for m in s.tables), self._results)

    def _drawn(self, section: Section) -> list[Figure]:
        from probelight.reports.sections import make

        if section.name not in self._figures:
            self._figures[section.name] = [*make(section.figures, self._results)]
        return self._figures[section.name]

    def figure(self, name: str) -> Figure:
        """Return a figure of the page, by its own name or that of its section, such as "curves".

        It has an `svg`, a `png` and a `pdf()`, and a notebook shows it.

        Raises:
            UsageError: If these results have no such figure; the message names those they have.
        """
        from probelight.reports.sections import shown_sections

        sections = {section.name: section for section in shown_sections(self._results)}
        if name in sections and (drawn := self._drawn(sections[name])):
            return drawn[0]
        figures = {s.name: drawn[0] for s in sections.values() if (drawn := self._drawn(s))}
        figures |= {figure.name: figure for s in sections.values() for figure in self._drawn(s)}
        if name not in figures:
            available = f"there are {', '.join(figures)}" if figures else "these results have none"
            raise UsageError(f"there is no figure {name!r}{nearest(name, [*figures])}; {available}")
        return figures[name]

    def report(self, path: str | Path | None = None) -> Path:
        """Make the page with all tables and figures and return its path.

        Args:
            path: Where the page goes; None leaves it in the folder of the results.

        Raises:
            UsageError: If it is a folder.
        """
        from probelight.reports.build import build_report

        with quietly():
            page = build_report(self.folder)
        target = page if path is None else required_path(path, "path")
        if target.is_dir():
            raise UsageError(f"{target} is a folder; give a file such as {target}/page.html")
        if target.resolve() == page.resolve():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
        if (items := page.parent / "items").is_dir():  # what the page itself cannot hold
            shutil.copytree(items, target.parent / "items", dirs_exist_ok=True)
        return target

    def __repr__(self) -> str:
        from rich.console import Console

        from probelight.reports.formats import print_table

        text = io.StringIO()
        console = Console(file=text, width=WIDTH, color_system=None, force_jupyter=False)
        for table in self.tables:
            print_table(table, console)
        return text.getvalue() + f"results: {self.folder}"

    def _repr_html_(self) -> str:
        import pandas as pd

        from probelight.reports.sections import shown_sections

        blocks = []
        for table in self.tables:
            heads = [f"{column.group} {column.label}".strip() for column in table.columns]
            rows = [[f"{c.text} {c.detail}".strip() for c in row] for row in table.rows]
            html = pd.DataFrame(rows[:MOST_ROWS], columns=heads).to_html(index=False, border=0)
            blocks.append(f"<h4>{escape(table.title)}</h4>{html}")
            if (more := len(rows) - MOST_ROWS) > 0:
                blocks.append(f"<p>and {more:,} more rows in <code>.tables</code></p>")
        sections = (s for s in shown_sections(self._results) if s.name != "overview")
        blocks += next(([drawn[0].svg] for s in sections if (drawn := self._drawn(s))), [])
        return "\n".join(blocks)
