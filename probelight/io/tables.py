"""Tables as text: the cells of a line, and a whole file as a frame that knows its lines."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from probelight.io.errors import RecordError
from probelight.io.files import delimiter_of, read_lines

if TYPE_CHECKING:
    import pandas as pd


def cells_of(text: str, delimiter: str, item: str = "item") -> list[str]:
    """Return the cells of a line, without the white space around them.

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


def read_table(path: Path) -> pd.DataFrame:
    """Return the cells of a file with commas, or tabs where its name ends in .tsv, all as text.

    The columns are called as in its header, and each row as "file:line".

    Raises:
        RecordError: If it is empty, no such file, or a row has another number of cells than the
            header; the message names file and line.
        OSError: If it cannot be read.
    """
    import pandas as pd  # not above: --help is quick

    lines = (f"{text}\n" for _, text in read_lines(path))
    # In .tsv a quotation mark is a part of the text, as in files of minimal pairs.
    reader = (
        csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        if delimiter_of(path) == "\t"
        else csv.reader(lines, strict=True)
    )
    header: list[str] = []
    rows: dict[str, list[str]] = {}
    line = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not header and any(cells):
                header = cells
                if "" in cells:
                    raise RecordError(
                        f"{path}:{line}: column {cells.index('') + 1} has no name; each needs "
                        "one (pandas leaves its index out with to_csv(..., index=False))"
                    )
            elif any(cells):
                if len(cells) != len(header):
                    raise RecordError(
                        f"{path}:{line}: {len(cells)} cell(s), where the header has {len(header)}"
                    )
                rows[f"{path}:{line}"] = cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise RecordError(f"{path}:{line}: {error}") from None
    if not rows:
        raise RecordError(f"{path}:1: a header and rows are needed; there are no rows")
    return pd.DataFrame([*rows.values()], index=[*rows], columns=header, dtype=object)
