"""The explorer's data as compressed texts: the items of a probe, the answers of a model to them.

Each part is JSON, deflated and in base64, which a page can hold and a script can load from a file
beside it. `DecompressionStream("deflate")` of a browser reads it, as does `zlib.decompress`.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from probelight.reports.explorer.data import Asked, Item, json_columns
from probelight.reports.explorer.sheets import Sheet
from probelight.results.load import INOCULATION

Json = dict[str, Any]


class Packed(NamedTuple):
    """The data of the explorer.

    Attributes:
        probes: What there is: of each probe the part with its items, of each of its models the part
            with its answers and what they are called.
        parts: Base64 texts; `probes` names them by their place, from 0.
    """

    probes: tuple[Json, ...]
    parts: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(map(len, self.parts))


def packed(probes: Mapping[str, Asked]) -> Packed:
    """Packs all probes; the same data gives the same texts."""
    parts: list[str] = []

    def part(text: str) -> int:
        parts.append(base64.b64encode(zlib.compress(text.encode())).decode("ascii"))
        return len(parts) - 1

    index = []
    for name, asked in probes.items():
        models = [
            {
                "name": model,
                "part": part(f"[{','.join(_answers(sheet) for sheet in sheets)}]"),
                "sheets": [_told(sheet) for sheet in sheets],
                "shown": _shown(sheets),
            }
            for model, sheets in asked.sheets.items()
        ]
        items = part(json_columns(dict(_items(asked))))
        index.append({"name": name, "part": items, "models": models})
    return Packed(tuple(index), tuple(parts))


def _items(asked: Asked) -> Iterator[tuple[str, Sequence[Any]]]:
    """The columns of a probe's items; one without any value is left out."""
    for column, values in zip(Item._fields, zip(*asked.items, strict=True), strict=True):
        if any(value not in ((), "", None) for value in values):
            yield column, values
    names = ("group", "hops", "distractor_type", "distractor_hops")
    for column, values in zip(names, zip(*asked.facts, strict=True), strict=True):
        if any(value is not None for value in values):
            yield column, values


def _answers(sheet: Sheet) -> str:
    """A sheet's columns and the items they are of: [first, number], or each one."""
    first, num = sheet.places[0], len(sheet.places)
    in_a_row = sheet.places == tuple(range(first, first + num))
    places = {"row": [first, num]} if in_a_row else {"places": sheet.places}
    return f'{{"items":{json_columns(places)},"answers":{sheet.answers}}}'


def _told(sheet: Sheet) -> Json:
    run = sheet.run
    return {
        "name": sheet.name,
        "run": run.key,
        "label": sheet.label,
        "protocol": run.protocol.replace("_", " "),
    }


def _shown(sheets: Sequence[Sheet]) -> list[int]:
    """The sheets shown first: what was said after most training, and before it if anything was.

    [after, before] by their places; [one] where there is no other with the same items.
    """
    standard = [place for place, sheet in enumerate(sheets) if sheet.is_standard] or [0]
    largest = max(sheets[place].size for place in standard)
    after = next(place for place in standard if sheets[place].size == largest)
    items = set(sheets[after].places)
    untrained = [place for place in standard if sheets[place].size < largest]
    # What an inoculated model said before is said in the same way; zero shot may be in another.
    inoculated = sheets[after].run.protocol == INOCULATION
    for before in sorted(untrained, key=lambda place: sheets[place].before != inoculated):
        if not items.isdisjoint(sheets[before].places):
            return [after, before]
    return [after]
