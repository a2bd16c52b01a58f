"""ConceptNet 5.7 as a knowledge source: its English statements, streamed (Talmor 2020)."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from probelight.builders.progress import tracked_lines
from probelight.io.errors import RecordError

DEFAULT_PATH = Path("conceptnet-assertions-5.7.0.csv.gz")
ADDRESS = f"https://s3.amazonaws.com/conceptnet/downloads/2019/edges/{DEFAULT_PATH}"


class Edge(NamedTuple):
    """A statement: pen UsedFor writing."""

    relation: str  # without "/r/"
    start: str  # the words of a concept, without part of speech and sense
    end: str
    weight: float  # how much speaks for it; 1.0 is one contributor


def read_conceptnet(path: Path, relations: Collection[str]) -> Iterator[Edge]:
    """Read the English statements of some relations, named without "/r/", in file order.

    The file has five tab-separated columns (URI, relation, start, end, JSON with the weight). A
    FileNotFoundError says where to get it; a RecordError names the malformed line.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no ConceptNet assertions here. Download {ADDRESS} (475 MB), and give its "
            "path as --source, or as `source:` in --config"
        )
    relation_uris = {f"/r/{name}" for name in relations}
    prefix = "/c/en/"
    for number, line in tracked_lines(path, "ConceptNet"):
        cells = line.split("\t")
        if len(cells) != 5:
            raise RecordError(f"{path}:{number}: {len(cells)} columns between tabs; 5 are needed")
        _, relation, start, end, notes = cells
        if not relation.startswith("/r/"):
            raise RecordError(
                f"{path}:{number}: {relation[:60]!r} is not a relation like /r/UsedFor"
            )
        if relation in relation_uris and start.startswith(prefix) and end.startswith(prefix):
            try:
                weight = float(json.loads(notes)["weight"])
            except (ValueError, TypeError, KeyError, RecursionError):
                weight = math.nan
            if not math.isfinite(weight):
                raise RecordError(
                    f'{path}:{number}: the last column must be JSON with a "weight": {notes[:60]!r}'
                )
            # "toy store" of /c/en/toy_store/n/wn/artifact
            first, second = (
                uri.removeprefix(prefix).partition("/")[0].replace("_", " ") for uri in (start, end)
            )
            yield Edge(relation.removeprefix("/r/"), first, second, weight)
