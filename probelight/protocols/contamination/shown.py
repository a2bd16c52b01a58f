"""What was found as tables on the terminal, and as files: one line an item, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from probelight.io.atomic import write_text_atomic
from probelight.io.escaping import json_text, visible
from probelight.protocols.contamination.look import Found, Looked
from probelight.reports.contamination.tables import Counted, counts_table
from probelight.reports.kit.forms.plain import to_csv
from probelight.reports.kit.table import Table
from probelight.reports.terminal import print_table

ITEMS = "items.jsonl"


def counts_of(looked: Looked) -> Table | None:
    """How many items of each split each source has."""
    counted = list[Counted]()
    end = 0
    for part in looked.parts:
        begin, end = end, end + len(part.records)
        counted += [_counted(one, part.split, slice(begin, end)) for one in looked.found]
    return counts_table(counted, looked.ngram, looked.min_share)


def show(tables: Sequence[Table | None], notices: Sequence[str]) -> None:
    """Prints the tables there are, and what is to be said."""
    console = Console()
    for table in filter(None, tables):
        print_table(table, console)
    for notice in notices:
        console.print(Text(visible(f"notice: {notice}"), style="yellow"))


def write(folder: Path, tables: Sequence[Table | None], looked: Looked) -> None:
    """Writes the tables as csv files, and a line an item."""
    for table in filter(None, tables):
        write_text_atomic(folder / f"{table.name}.csv", to_csv(table))
    write_text_atomic(folder / ITEMS, "".join(json_text(row) + "\n" for row in _rows(looked)))
    print(f"items: {folder / ITEMS}")


def _counted(found: Found, split: str, of: slice) -> Counted:
    overlaps, shared = found.overlaps[of], found.shared[of]
    return Counted(
        source=found.name,
        split=split,
        num_items=len(overlaps),
        stem=sum(bool(one.stem) for one in overlaps),
        answer=sum(bool(one.answer) for one in overlaps),
        contaminated=sum(found.contaminated[of]),
        entire=sum(one.share == 1.0 for one in overlaps),
        concept=_known([one.concept for one in shared]),
        gold=_known([one.answer for one in shared]),
        longest=max(one.longest for one in overlaps),
    )


def _known(flags: Sequence[bool | None]) -> int | None:
    known = [flag for flag in flags if flag is not None]
    return sum(known) if known else None


def _rows(looked: Looked) -> Iterator[dict[str, Any]]:
    splits = [part.split for part in looked.parts for _ in part.records]
    items = zip(looked.records, splits, looked.in_any(), strict=True)
    for number, (record, split, contaminated) in enumerate(items):
        found = dict[str, Any]()
        for one in looked.found:
            found[one.name] = {**vars(one.overlaps[number])}
            if one.shared:
                shared = one.shared[number]
                found[one.name] |= {"concept": shared.concept, "same_answer": shared.answer}
        yield {
            "split": split,
            "id": record.id,
            "position": record.position,
            "question": record.stem,
            "answer": record.gold,
            "contaminated": contaminated,
            "found": found,
        }
