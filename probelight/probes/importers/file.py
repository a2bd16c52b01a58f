"""Reads a file of items in whatever form its name and setup say it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from probelight.io.tables import delimiter_of
from probelight.probes.importers.ai2 import read_ai2
from probelight.probes.importers.items import ItemFile
from probelight.probes.importers.minimal_pairs import read_pairs
from probelight.probes.importers.tables import read_table
from probelight.probes.record import Setup

FORMS = ("jsonl", "csv", "tsv")  # endings of the names of files


def read_file(
    path: str | Path, setup: Setup | None = None, candidates: Sequence[str] = (), **options: Any
) -> ItemFile:
    """Reads one file, in the form that its name and the setup say.

    Args:
        path: A .csv or .tsv table (`probes.importers.tables`), minimal pairs, or the AI2 format;
            as it is or compressed.
        setup: What is asked of the items; none asks for what any of them has.
        candidates: The choices of every item of a table that has no column of them.
        **options: Of `probelight.probes.importers.items.read_items`.

    Raises:
        RecordError: If the file is malformed; the message names file and line.
        FileNotFoundError: If there is no such file.
    """
    if setup == "minimal_pair":
        return read_pairs(path, **options)
    if delimiter_of(path):
        return read_table(path, setup, candidates=candidates, **options)
    return read_ai2(path, setup, **options)


def told_setup(paths: Iterable[str | Path]) -> Setup | None:
    """The setup of files for which none is given: tables of sentences have a mask."""
    return "mc_mlm" if all(delimiter_of(path) for path in paths) else None
