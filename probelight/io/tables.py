"""Tables as text: what parts the cells, by the ending of a file's name, and the cells of a line."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probelight.io.errors import RecordError, nearest
from probelight.io.files import delimiter_of, read_lines


def cells_of(text: str, delimiter: str, item: str = "item") -> list[str]:
    """The cells of a line, without the white space around them.

    Args:
        text: The line.
        delimiter: What parts them.
        item: What a line holds, for the message.

    Raises:
        RecordError: If its quotation marks do not fit.
    """
    if delimiter == "\t":
        return [cell.strip() for cell in text.split("\t")]
    try:
        return [cell.strip() for cell in next(csv.reader([text], strict=True))]
    except csv.Error as error:
        raise RecordError(
            f"{error}; each {item} is on one line, a sentence with a comma or a quotation mark "
            'in "...", and a quotation mark in it is written twice'
        ) from None


@dataclass(frozen=True)
class Table:
    """What a file holds.

    Attributes:
        path: The file.
        header: The names of its columns, as they are there.
        rows: Line and cells, one a column.
    """

    path: Path
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def places(self, known: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """Which column is what, of those that are there.

        Args:
            known: What is read, with the names that a header may give it, in lower case.

        Raises:
            RecordError: If two columns are the same.
        """
        found: dict[str, int] = {}
        for place, name in enumerate(self.header):
            what = next((what for what, names in known.items() if name.lower() in names), None)
            if what in found:
                raise RecordError(
                    f"{self.path}:1: the columns {self.header[found[what]]} and {name} are both "
                    f"the {what}"
                )
            if what is not None:
                found[what] = place
        return found

    def lacking(self, what: str, names: Sequence[str]) -> RecordError:
        """The error about a column that is not there."""
        near = nearest(names[0], self.header)
        if len(self.header) == 1:
            near += " (cells are parted by commas in .csv, by tabs in .tsv)"
        return RecordError(
            f"{self.path}:1: no column for the {what}{near}; it is called {' or '.join(names)}, "
            f"and here are {', '.join(self.header)}"
        )

    def unread(self, places: Mapping[str, int]) -> tuple[str, ...]:
        """A notice of the columns that are not read; nothing where all are."""
        names = [name for i, name in enumerate(self.header) if i not in places.values()]
        return (f"columns that are not read: {', '.join(names)}",) if names else ()


def read_table(path: Path) -> Table:
    """Read a file with commas, or tabs where its name ends in .tsv.

    Raises:
        RecordError: If it is empty, no such file, or a row has another number of cells than the
            header; the message names file and line.
        OSError: If it cannot be read.
    """
    lines = (f"{text}\n" for _, text in read_lines(path))
    # In .tsv a quotation mark is a part of the text, as in files of minimal pairs.
    reader = (
        csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        if delimiter_of(path) == "\t"
        else csv.reader(lines, strict=True)
    )
    header: tuple[str, ...] = ()
    rows = []
    line = 1
    try:
        for cells in reader:
            own = tuple(cell.strip() for cell in cells)
            if not header and any(own):
                header = own
                if "" in own:
                    raise RecordError(
                        f"{path}:{line}: column {own.index('') + 1} has no name; each needs "
                        "one (pandas leaves its index out with to_csv(..., index=False))"
                    )
            elif any(own):
                if len(own) != len(header):
                    raise RecordError(
                        f"{path}:{line}: {len(own)} cell(s), where the header has {len(header)}"
                    )
                rows.append((line, own))
            line = reader.line_num + 1
    except csv.Error as error:
        raise RecordError(f"{path}:{line}: {error}") from None
    if not rows:
        raise RecordError(f"{path}:1: a header and rows are needed; there are {len(rows)} rows")
    return Table(path, header, tuple(rows))
