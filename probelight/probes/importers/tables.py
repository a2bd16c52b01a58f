"""Reads items from a plain table, .csv or .tsv, as it is or compressed: an item a line.

    sentence,gold,choices
    A whale is [MASK] than a mouse.,larger,larger|smaller

Nothing is guessed: the name of the file says what parts the cells, the header which column is
what. In .tsv a quotation mark is a part of its cell.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from probelight.io.errors import RecordError, nearest
from probelight.io.tables import cells_of, delimiter_of
from probelight.probes.importers.ai2_row import meta_of
from probelight.probes.importers.items import ItemFile, read_items
from probelight.probes.record import MASK, OTHER_MASK, Record, Setup, validate

_NAMED = {"\t": "tabs", ",": "commas", ";": "semicolons"}
_STEM, _GOLD, _CHOICES = "sentence", "gold", "choices"
# What a header may call a column; the first of each is what messages say.
_NAMES = {
    _STEM: (_STEM, "text", "stem", "question"),
    _GOLD: (_GOLD, "answer", "label"),
    _CHOICES: (_CHOICES, "candidates"),
    "id": ("id",),
    "cluster": ("cluster", "group"),
}
_FACTS = ("hops", "distractor_type", "distractor_hops", "template", "source")
_FIELDS = {name: field for field, names in _NAMES.items() for name in names}
_FIELDS |= {name: name for name in _FACTS}


def read_table(
    path: str | Path,
    setup: Setup | None = None,
    *,
    candidates: Sequence[str] = (),
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> ItemFile:
    """Reads a whole table; the first malformed line is an error that names file and line.

    Args:
        path: A file whose name `delimiter_of` knows.
        setup: "mc_mlm" also asks for exactly one `[MASK]` in every sentence.
        candidates: The choices of every item, where no column holds them.
        name: As in `read_items`.
        leave_out: As there; the header is a line, too.
        ids_repeat: As there.

    Raises:
        RecordError: If the header does not say where sentence, gold and choices are, a line does
            not fit it, a gold is none of its choices, an id repeats, or the file is empty, damaged
            or not UTF-8.
        FileNotFoundError: If there is no such file.
    """
    delimiter = delimiter_of(path)
    assert delimiter is not None
    table = _Table(delimiter, candidates)

    def parse(text: str, line: int) -> Record | None:
        record = table.record(text, line)
        if record and setup == "mc_mlm" and not (MASK in record.stem or OTHER_MASK.search(text)):
            raise RecordError(
                f"no {MASK} in the sentence; exactly one is needed (questions without one need "
                "--data.setup mc_qa)"
            )
        return record and validate(record, setup)

    read = read_items(path, parse, name=name, leave_out=leave_out, ids_repeat=ids_repeat)
    told = () if _CHOICES in table.fields else table.candidates
    return replace(read, notices=read.notices + table.notices, choices=told)


class _Table:
    """The lines of a table as items; the first is the header.

    Attributes:
        notices: Which columns are not read.
    """

    def __init__(self, delimiter: str, candidates: Sequence[str]) -> None:
        self.delimiter = delimiter
        self.candidates = tuple(candidates)
        self.fields: Sequence[str] = ()
        self.notices: tuple[str, ...] = ()

    def record(self, text: str, line: int) -> Record | None:
        """The item of a line, not validated yet; None for the header.

        Raises:
            RecordError: If there is none; the message says what is wrong, not where.
        """
        cells = cells_of(text, self.delimiter)
        if not self.fields:
            self.fields = self._header(cells)
            return None
        if len(cells) != len(self.fields):
            parted = _NAMED[self.delimiter]
            quoted = ' (a cell with a comma stands in "...")' if self.delimiter == "," else ""
            raise RecordError(
                f"{len(cells)} cell(s), where the header has {len(self.fields)} columns with "
                f"{parted} between them{quoted}"
            )
        row = dict(zip(self.fields, cells, strict=True))
        choices = _choices(row[_CHOICES]) if _CHOICES in row else self.candidates
        facts = {fact: row[fact] for fact in ("cluster", *_FACTS) if row.get(fact)}
        return Record(
            id=row.get("id", ""),
            stem=row[_STEM],
            choices=choices,
            answer=_answer(row[_GOLD], choices),
            meta=meta_of(facts),
            position=line,
        )

    def _header(self, cells: Sequence[str]) -> tuple[str, ...]:
        """The field that each column is, "" for one that is not read."""
        fields = tuple(_FIELDS.get(cell.lower().replace(" ", "_"), "") for cell in cells)
        for field in (_STEM, _GOLD, *([] if self.candidates else [_CHOICES])):
            if field not in fields:
                raise RecordError(self._missing(field, cells))
        for field in filter(None, fields):
            same = [cell for cell, other in zip(cells, fields, strict=True) if other == field]
            if len(same) > 1:
                raise RecordError(f"{' and '.join(same)} are both the {field}; keep one of them")
        named = [cell or f"column {number}" for number, cell in enumerate(cells, start=1)]
        if unread := [name for name, field in zip(named, fields, strict=True) if not field]:
            self.notices = (f"columns that are not read: {', '.join(unread)}",)
        return fields

    def _missing(self, field: str, cells: Sequence[str]) -> str:
        parted = _NAMED[self.delimiter]
        if len(cells) == 1:
            for other in _NAMED:
                if other in cells[0]:
                    return (
                        f"this line has {_NAMED[other]} between its cells, and the cells of this "
                        f"file are parted by {parted}: save it with commas as .csv, or with tabs "
                        "as .tsv"
                    )
        if "sentence_good" in [cell.lower() for cell in cells]:
            return (
                "these are columns of minimal pairs, whole sentences; their setup is minimal_pair"
            )
        names = " or ".join(_NAMES[field][1:])
        if field == _CHOICES:
            names += " (those of all items: --data.choices a,b, where a command has it)"
        return (
            f"no column is the {field}: the first line must name the columns, {_STEM}, {_GOLD} and "
            f"{_CHOICES}; {field} may be called {names}. It has {', '.join(cells)}"
        )


def _choices(cell: str) -> tuple[str, ...]:
    """The choices of one cell: a JSON list, or texts with | or ; between them."""
    if cell.startswith("["):
        try:
            found = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"the choices {cell[:60]!r} are no JSON list: {error}") from None
        if not all(isinstance(text, str) for text in found):
            raise RecordError(f"the choices {cell[:60]!r} are not all texts")
        return tuple(text.strip() for text in found)
    if "|" in cell and ";" in cell:
        raise RecordError(f"the choices {cell[:60]!r} have both | and ; between them; write one")
    found = [text.strip() for text in cell.split("|" if "|" in cell else ";")]
    if len(found) < 2:
        raise RecordError(
            f"{len(found)} choice(s) in {cell[:60]!r}; at least 2 are needed, with | or ; between "
            "them, or as a JSON list"
        )
    return tuple(found)


def _answer(gold: str, choices: Sequence[str]) -> int:
    if not gold:
        raise RecordError("no gold: its cell is empty")
    if gold not in choices:
        raise RecordError(
            f"the gold {gold[:60]!r} is none of the choices {', '.join(choices)}"
            f"{nearest(gold, choices)}; write the choice itself, as it stands there"
        )
    return choices.index(gold)
