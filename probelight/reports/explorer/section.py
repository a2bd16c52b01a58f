"""The section of the page that shows every item of every run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from probelight.reports.explorer.data import everything
from probelight.reports.explorer.pack import packed
from probelight.results.load import Results

MOST_IN_PAGE = 15_000_000  # bytes of packed data; beyond that they are files beside the page
FOLDER = "items"
_HERE = Path(__file__).parent
_SCRIPTS = ("data", "address", "chosen", "cards", "explorer")  # one scope, in this order


class Explorer(NamedTuple):
    """The section, and the files that it reads.

    Attributes:
        html: The section; empty where no run answered items.
        files: Their content by path, from the page's folder; none where the page holds the data.
    """

    html: Markup
    files: Mapping[str, str]


def explorer(results: Results, most_in_page: int = MOST_IN_PAGE) -> Explorer:
    """The explorer of all items; the same results give the same bytes.

    Args:
        results: What was read.
        most_in_page: Bytes of packed data up to which the page holds them itself.
    """
    probes, unread = everything(results)
    if not probes:
        return Explorer(Markup(), {})
    data = packed(probes)
    beside = data.size > most_in_page
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    html = environment.from_string(_text("explorer.html")).render(
        index=_in_script({"probes": data.probes, "folder": FOLDER if beside else None}),
        parts=() if beside else data.parts,
        script=Markup("".join(_text(f"script/{name}.js") for name in _SCRIPTS)),
        num_items=sum(len(asked.items) for asked in probes.values()),
        unread=unread,
    )
    files = {f"{FOLDER}/{number}.js": _file(number, part) for number, part in enumerate(data.parts)}
    return Explorer(Markup(html), files if beside else {})


def _file(number: int, part: str) -> str:
    """A page that was opened from a disk may load scripts, not data."""
    return f'probelightItems({number},"{part}");\n'


def _in_script(value: object) -> Markup:
    """JSON that a script element holds as text: none of it ends the element or opens a comment."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
