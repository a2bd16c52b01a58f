"""Tables of items, .csv or .tsv: an item on each line below the header.

    sentence,gold,choices
    A whale is [MASK] than a mouse.,larger,larger|smaller

In .tsv a quotation mark is a part of its cell. Minimal pairs may lack the header: then
there are two columns, the right sentence and the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probelight.io.errors import RecordError
from probelight.io.escaping import listed
from probelight.io.files import cells_of
from probelight.probes.importers.columns import BAD, GOOD, JUDGEMENTS, field_of, letter_words
from probelight.probes.importers.rows import ItemFile, RowReader

_NAMED = {"\t": "tabs", ",": "commas", ";": "semicolons"}
_HEADER_WORDS = {*JUDGEMENTS, "sentence", "sentences", "version", "form", "target"}


class ItemTable:
    """The lines of a table, which are given to a reader of rows; the first may be the header."""

    def __init__(self, delimiter: str, are_pairs: bool) -> None:
        self._delimiter, self._are_pairs = delimiter, are_pairs
        self._columns: Sequence[str] = ()
        self._has_header = True

    def add(self, line: int, text: str, reader: RowReader) -> None:
        """Read a line; RecordError names file and line."""
        with reader.errors_at(line):
            cells = cells_of(text, self._delimiter, "pair" if self._are_pairs else "item")
            if not self._columns:
                self._start(cells, reader)
                if self._has_header:
                    return
            if len(cells) != len(self._columns):
                advice = ' (put a cell with a comma in "...")' if self._delimiter == "," else ""
                if self._are_pairs:
                    advice += f"; several wrong sentences need a header ({GOOD}, {BAD}, {BAD})"
                raise RecordError(
                    f"{len(cells)} cell(s), but the header has {len(self._columns)} columns with "
                    f"{_NAMED[self._delimiter]} between them{advice}"
                )
        reader.add(line, self._columns, [cell or None for cell in cells])

    def _start(self, cells: Sequence[str], reader: RowReader) -> None:
        """Take the first line as the header, unless it can only be a pair of sentences."""
        if len(cells) == 1 and (marks := [mark for mark in _NAMED if mark in cells[0]]):
            raise RecordError(
                f"this line has {_NAMED[marks[0]]} between its cells, but the file's name asks "
                f"for {_NAMED[self._delimiter]}: save it with commas as .csv, or with tabs as .tsv"
            )
        if self._are_pairs and not {GOOD, BAD} & {field_of(cell) for cell in cells}:
            self._columns, self._has_header = (GOOD, BAD), False
        else:
            self._columns = cells
            reader.layout(cells)

    def notices(self, item_file: ItemFile) -> tuple[str, ...]:
        """Return how the first line was read; RecordError if it may be names of columns."""
        if self._has_header:
            return ()
        first, *later = [record.choices for record in item_file.records]
        if first and _may_be_names(first, later):
            raise RecordError(
                f"{item_file.records[0].where}: {listed(first)}: are these sentences or names of "
                f"columns? In either case, write a first line with the names {GOOD} and {BAD}"
            )
        return ("the file has no header: its first column is read as the right sentences",)


def _may_be_names(first: Sequence[str], later: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line of a table of pairs is unlike the sentences below it."""
    lengths = [len(text.split()) for texts in later for text in texts]
    endings = {bool(re.search(r"\W$", text)) for texts in later for text in texts} or {True}
    ends = [bool(re.search(r"\W$", text)) for text in first]
    longest = max(len(text.split()) for text in first)
    words = {word for text in first for word in letter_words(text)}
    return (
        (endings == {True} and not all(ends))
        or longest < min(lengths, default=0)
        or (longest < 5 and not all(ends) and bool(words & _HEADER_WORDS))
        or all(text.isascii() and text.isidentifier() for text in first)
    )
