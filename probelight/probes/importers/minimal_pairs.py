"""Reads minimal pairs: two or more whole sentences, of which the right one should be likelier.

A `.tsv` or `.csv` file (as it is or compressed) has a pair a line, the right sentence first; any
other holds a JSON object a line, with the fields of BLiMP (Warstadt et al. 2020) or in the AI2
format with an empty stem:

    {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "UID": "...", "pairID": "0"}

More wrong sentences than one are a list under `sentence_bad`, or several columns of that name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.errors import RecordError, nearest
from probelight.io.tables import cells_of, delimiter_of
from probelight.probes.importers.ai2_row import LABELS, label_text, parse_row, record_from_row
from probelight.probes.importers.items import ItemFile, read_items
from probelight.probes.record import META_FIELDS, Record

GOOD, BAD = "sentence_good", "sentence_bad"
# How a header may call a column, in lower case; META_FIELDS have their own names.
_COLUMNS = {"good": GOOD, "bad": BAD, "uid": "UID", "paradigm": "UID", "pairid": "pairID"}
_COLUMNS |= {name: name for name in ("id", GOOD, BAD, *META_FIELDS) if name not in _COLUMNS}


def read_pairs(
    path: str | Path,
    *,
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> ItemFile:
    """Reads a whole file of minimal pairs; what is malformed is named with file and line.

    Args:
        path: The file. The ending of its name says whether it is a table.
        name: As in `read_items`.
        leave_out: As there; a header is a line, too.
        ids_repeat: As there.

    Raises:
        RecordError: If a line is malformed, sentences of an item are the same, an id repeats, or
            the file is empty, damaged or not UTF-8.
        FileNotFoundError: If there is no such file.
    """
    delimiter = delimiter_of(path)
    table = _Table(delimiter) if delimiter else None

    def parse(text: str, line: int) -> Record | None:
        row = table.row(text) if table else parse_row(text)
        if row is None:
            return None
        if "question" not in row:
            row = ai2_row(row)
        return record_from_row(row, "minimal_pair", position=line)

    read = read_items(path, parse, name=name, leave_out=leave_out, ids_repeat=ids_repeat)
    return replace(read, notices=read.notices + (table.notices if table else ()))


def ai2_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A pair with the fields of BLiMP as a row of the AI2 format.

    Its id is `id`, or UID and `pairID`, which alone repeats from paradigm to paradigm.

    Raises:
        RecordError: If a sentence is missing.
    """
    for key in (GOOD, BAD):
        if row.get(key) in (None, []):
            near = "" if key in row else nearest(key, list(row))
            raise RecordError(f"`{key}` is missing or null{near}; a sentence is needed")
    wrong = row[BAD] if isinstance(row[BAD], list) else [row[BAD]]
    texts = [row[GOOD], *wrong]
    if len(texts) > len(LABELS):
        raise RecordError(f"{len(texts)} sentences; 2 to {len(LABELS)} are needed")
    notes = {name: row[name] for name in META_FIELDS if row.get(name) not in (None, "")}
    identifier = row.get("id")
    if row.get("UID") not in (None, ""):
        notes["paradigm"] = label_text(row["UID"], "`UID`")
    if identifier is None and (pair := row.get("pairID")) not in (None, ""):
        known = (notes.get("paradigm"), label_text(pair, "`pairID`"))
        identifier = "-".join(str(part) for part in known if part)
    choices = [{"label": label, "text": text} for label, text in zip(LABELS, texts, strict=False)]
    question = {"stem": "", "choices": choices}
    return {"id": identifier, "question": question, "answerKey": LABELS[0], "notes": notes}


class _Table:
    """Lines of a .tsv or .csv file as rows with the fields of BLiMP.

    A first line that names columns says what they are; without one there are two, the right
    sentence and the wrong one. In .tsv a quotation mark is a part of the sentence.

    Attributes:
        notices: How the columns were read.
    """

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.names: Sequence[str] = ()
        self.notices: tuple[str, ...] = ()

    def row(self, text: str) -> dict[str, Any] | None:
        """The cells of a line by column; None for the header.

        Raises:
            RecordError: If the cells are not those that the columns ask for.
        """
        cells = cells_of(text, self.delimiter, "pair")
        if not self.names:
            self.names = self._header(cells)
            if self.names:
                return None
            self.names = (GOOD, BAD)
            self.notices = (
                "the file has no header: its first column is read as the right sentences",
            )
        if len(cells) != len(self.names):
            raise RecordError(self._miscounted(len(cells)))
        pairs = list(zip(self.names, cells, strict=True))
        wrong = [cell for column, cell in pairs if column == BAD]
        return {**{c: cell for c, cell in pairs if c and cell}, BAD: wrong}

    def _header(self, cells: Sequence[str]) -> tuple[str, ...]:
        """The fields that the columns are, "" for one that is not read; none without a header."""
        names = [_field(cell) for cell in cells]
        if not {GOOD, BAD} & set(names):
            if all(cell.isascii() and cell.isidentifier() for cell in cells):
                raise RecordError(
                    f"{', '.join(cells)}: are these sentences, or names of columns? Call the "
                    f"columns {GOOD} and {BAD}; a first line that does so is needed here either way"
                )
            return ()
        if names.count(GOOD) != 1 or BAD not in names:
            other = GOOD if names.count(GOOD) != 1 else BAD
            raise RecordError(
                f"the header needs one column {GOOD} and one or more {BAD}; it has "
                f"{names.count(other)} named {other}{nearest(other, cells)}"
            )
        if twice := {name for name in names if name and name != BAD and names.count(name) > 1}:
            raise RecordError(f"the header has two columns for {min(twice)}")
        if unread := [cell for cell, name in zip(cells, names, strict=True) if not name]:
            self.notices = (f"columns that are not read: {', '.join(unread)}",)
        return tuple(names)

    def _miscounted(self, found: int) -> str:
        between = "tabs" if self.delimiter == "\t" else "commas"
        return (
            f"{found} cell(s), where there are {len(self.names)} columns with {between} between "
            f"them; more than one wrong sentence needs a header ({GOOD}, {BAD}, {BAD})"
        )


def _field(cell: str) -> str:
    name = cell.lower().replace(" ", "_")
    numbered = re.fullmatch(r"((?:sentence_)?bad)_?\d+", name)
    return _COLUMNS.get(numbered[1] if numbered else name, "")
