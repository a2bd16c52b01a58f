"""Tables as text: what parts the cells, by the ending of a file's name, and the cells of a line."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from probelight.io.errors import RecordError

_ENDING = re.compile(r"\.(tsv|csv)(\.(gz|bz2|zip))?$", re.IGNORECASE)


def delimiter_of(path: str | Path) -> str | None:
    """What parts the cells of a table, by the ending of its name; None for a file that is none."""
    found = _ENDING.search(str(path))
    return None if found is None else "\t" if found[1].lower() == "tsv" else ","


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
