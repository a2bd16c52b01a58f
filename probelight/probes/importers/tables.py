"""Reading items from tables, .csv or .tsv, and minimal pairs, plain or compressed.

A table has an item on each line below its header:

    sentence,gold,choices
    A whale is [MASK] than a mouse.,larger,larger|smaller

In .tsv a quotation mark is a part of its cell.

Minimal pairs are in a table with the right sentence first, or a JSON object on each line with the
fields of BLiMP (Warstadt et al. 2020), or in the AI2 format with an empty stem:

    {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "UID": "...", "pairID": "0"}

Several wrong sentences are a list under `sentence_bad`, or columns of that name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from probelight.io.errors import RecordError, nearest
from probelight.io.escaping import listed
from probelight.io.files import DataFile, cells_of, delimiter_of
from probelight.probes.importers.items import (
    LABELS,
    ItemFile,
    Options,
    ai2_row,
    label_text,
    meta_of,
    parse_row,
    read_items,
    record_from_row,
)
from probelight.probes.record import MASK, META_FIELDS, OTHER_MASK, Record, Setup, validate

_NAMED = {"\t": "tabs", ",": "commas", ";": "semicolons"}
_STEM, _GOLD, _CHOICES = "sentence", "gold", "choices"
# The names of a column in a header; messages have the first of each.
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
    **options: Unpack[Options],
) -> ItemFile:
    """Read a table of items, with the options and errors of `read_items`; line 1 is the header.

    `candidates` are the choices of every item, where no column holds them.
    """
    delimiter = delimiter_of(path)
    assert delimiter is not None
    table = _ItemTable(delimiter, candidates)

    def parse(text: str, line: int) -> Record | None:
        record = table.record(text, line)
        if record and setup == "mc_mlm" and not (MASK in record.stem or OTHER_MASK.search(text)):
            raise RecordError(
                f"no {MASK} in the sentence; exactly one is needed (questions without one need "
                "--data.setup mc_qa)"
            )
        return record and validate(record, setup)

    read = read_items(path, parse, **options)
    files = read.files
    if _CHOICES not in table.fields:  # other choices make other items
        sha256 = hashlib.sha256(json.dumps(table.candidates).encode()).hexdigest()
        name = f"choices of all items - {', '.join(table.candidates)}"
        files += (DataFile(name, sha256, len(read.records)),)
    return replace(read, files=files, notices=read.notices + table.notices)


class _ItemTable:
    """The lines of a table as items; the first is the header. `notices` names unread columns."""

    def __init__(self, delimiter: str, candidates: Sequence[str]) -> None:
        self.delimiter = delimiter
        self.candidates = tuple(candidates)
        self.fields: Sequence[str] = ()
        self.notices: tuple[str, ...] = ()

    def record(self, text: str, line: int) -> Record | None:
        """Return the item of a line, not validated yet; None for the header."""
        cells = cells_of(text, self.delimiter)
        if not self.fields:
            self.fields = self._header(cells)
            return None
        if len(cells) != len(self.fields):
            parted = _NAMED[self.delimiter]
            quoted = ' (put a cell with a comma in "...")' if self.delimiter == "," else ""
            raise RecordError(
                f"{len(cells)} cell(s), but the header has {len(self.fields)} columns with "
                f"{parted} between them{quoted}"
            )
        row = dict(zip(self.fields, cells, strict=True))
        choices = _choices(row[_CHOICES]) if _CHOICES in row else self.candidates
        gold = row[_GOLD]
        if not gold:
            raise RecordError("no gold: its cell is empty")
        if gold not in choices:
            raise RecordError(
                f"the gold {gold[:60]!r} is not one of the choices {listed(choices)}"
                f"{nearest(gold, choices)}; write the exact text of a choice"
            )
        facts = {fact: row[fact] for fact in ("cluster", *_FACTS) if row.get(fact)}
        return Record(
            id=row.get("id", ""),
            stem=row[_STEM],
            choices=choices,
            answer=choices.index(gold),
            meta=meta_of(facts),
            position=line,
        )

    def _header(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Return the field of each column, "" for one that is not read."""
        fields = tuple(_FIELDS.get(cell.lower().replace(" ", "_"), "") for cell in cells)
        for field in (_STEM, _GOLD, *([] if self.candidates else [_CHOICES])):
            if field not in fields:
                raise RecordError(self._missing(field, cells))
        for field in filter(None, fields):
            same = [cell for cell, other in zip(cells, fields, strict=True) if other == field]
            if len(same) > 1:
                raise RecordError(f"{' and '.join(same)} both name the {field}; keep one of them")
        named = [cell or f"column {number}" for number, cell in enumerate(cells, start=1)]
        if unread := [name for name, field in zip(named, fields, strict=True) if not field]:
            self.notices = (f"columns ignored: {listed(unread)}",)
        return fields

    def _missing(self, field: str, cells: Sequence[str]) -> str:
        parted = _NAMED[self.delimiter]
        if len(cells) == 1:
            for other in _NAMED:
                if other in cells[0]:
                    return (
                        f"this line has {_NAMED[other]} between its cells, but the file's name "
                        f"asks for {parted}: save it with commas as .csv, or with tabs as .tsv"
                    )
        if "sentence_good" in [cell.lower() for cell in cells]:
            return "these are columns of minimal pairs, whole sentences; use the setup minimal_pair"
        names = " or ".join(_NAMES[field])
        if field == _CHOICES:
            names += " (or give --data.choices a,b for all items, if the command has it)"
        return (
            f"no column for the {field}: the first line must name a column for each of {_STEM}, "
            f"{_GOLD} and {_CHOICES}. It has {listed(cells)}; rename the one that holds the "
            f"{field} to {names}"
        )


def _choices(cell: str) -> tuple[str, ...]:
    """Return the choices of one cell: a JSON list, or texts separated by | or ;."""
    if cell.startswith("["):
        try:
            found = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"the choices {cell[:60]!r} are not a JSON list: {error}") from None
        if not all(isinstance(text, str) for text in found):
            raise RecordError(f"the choices {cell[:60]!r} are not all texts")
        return tuple(text.strip() for text in found)
    if "|" in cell and ";" in cell:
        raise RecordError(f"the choices {cell[:60]!r} have both | and ; between them; use one")
    found = [text.strip() for text in cell.split("|" if "|" in cell else ";")]
    if len(found) < 2:
        raise RecordError(
            f"{cell[:60]!r} is read as {len(found)} choice(s), but at least 2 are needed; separate "
            "them with | or ;, or write a JSON list"
        )
    return tuple(found)


GOOD, BAD = "sentence_good", "sentence_bad"
# How a header may call a column, in lower case; META_FIELDS have their own names.
_COLUMNS = {"good": GOOD, "bad": BAD, "uid": "UID", "paradigm": "UID", "pairid": "pairID"}
_COLUMNS |= {name: name for name in ("id", GOOD, BAD, *META_FIELDS) if name not in _COLUMNS}


def read_pairs(path: str | Path, **options: Unpack[Options]) -> ItemFile:
    """Read a file of minimal pairs, a table or not, with the options and errors of `read_items`."""
    delimiter = delimiter_of(path)
    table = _PairTable(delimiter) if delimiter else None

    def parse(text: str, line: int) -> Record | None:
        row = table.row(text) if table else parse_row(text)
        if row is None:
            return None
        if "question" not in row:
            row = pair_row(row)
        return record_from_row(row, "minimal_pair", position=line)

    read = read_items(path, parse, **options)
    return replace(read, notices=read.notices + (table.notices if table else ()))


def pair_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a pair with the fields of BLiMP into a row of the AI2 format.

    Its id is `id`, or UID and `pairID`, which alone repeats from paradigm to paradigm.
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
    return {"id": identifier, "notes": notes, **ai2_row("", texts, LABELS[0])}


class _PairTable:
    """Lines of a .tsv or .csv file as rows with BLiMP's fields; `notices` say how they were read.

    Without a header there are two columns, the right sentence and the wrong one.
    """

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.names: Sequence[str] = ()
        self.notices: tuple[str, ...] = ()

    def row(self, text: str) -> dict[str, Any] | None:
        """Return the cells of a line by column; None for the header."""
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
            between = "tabs" if self.delimiter == "\t" else "commas"
            raise RecordError(
                f"{len(cells)} cell(s), but there are {len(self.names)} columns with {between} "
                f"between them; more than one wrong sentence needs a header ({GOOD}, {BAD}, {BAD})"
            )
        pairs = list(zip(self.names, cells, strict=True))
        wrong = [cell for column, cell in pairs if column == BAD]
        return {**{c: cell for c, cell in pairs if c and cell}, BAD: wrong}

    def _header(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Return the field of each column, "" for one that is not read; none without a header."""
        lower = [cell.lower().replace(" ", "_") for cell in cells]
        # Wrong sentences may be numbered: bad_1, bad_2.
        names = [_COLUMNS.get(re.sub(r"(?<=bad)_?\d+$", "", name), "") for name in lower]
        if not {GOOD, BAD} & set(names):
            if all(cell.isascii() and cell.isidentifier() for cell in cells):
                raise RecordError(
                    f"{listed(cells)}: are these sentences or names of columns? In either case, "
                    f"write a first line with the names {GOOD} and {BAD}"
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
            self.notices = (f"columns ignored: {listed(unread)}",)
        return tuple(names)
