"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from probelight.reports.figure import PALETTE, Figure
from probelight.reports.kit.table import Cell, Table
from probelight.reports.kit.text import ABSENT, count, percent
from probelight.reports.overview.grid import grid
from probelight.reports.page.glossary import linked, used
from probelight.reports.page.provenance import commits, duration, notices, total_seconds
from probelight.reports.sections import Made
from probelight.results.load import Results

TEMPLATES = Path(__file__).parents[1]  # each package of the report may have a part of the page


def to_html(
    results: Results, sections: Sequence[Made], items: str = "", target: Path | None = None
) -> str:
    """The whole page; its only variable parts are the numbers.

    Args:
        results: What was read.
        sections: What was made of it.
        items: HTML of the section with every item; empty for none.
        target: Folder of the page, from which links lead to the runs' folders; none do without.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.loader, environment.lstrip_blocks = FileSystemLoader(TEMPLATES), True
    environment.filters |= {
        "inline_svg": inline_svg,
        "strong_numbers": strong_numbers,
        "groups": _groups,
        "repeats": _repeats,
        "measured": measured,
        "breakable": _breakable,
        "percent": percent,
        "lead": _lead,
        "terms": linked,
    }
    arrows = (figure for own in sections for figure in own.figures if figure.name == "arrows")
    return environment.get_template("page/page.html").render(
        title=title(results),
        facts=facts(results),
        left_out=results.left_out,
        notices=notices(results),
        overview=grid(results),
        arrows=next(arrows, None),
        sections=[
            section
            for section in sections
            if section.name != "overview" and (section.figures or section.tables or section.summary)
        ],
        items=Markup(items),
        glossary=used(text for section in sections for text in _texts(section)),
        folders=_folders(results, target) if target else {},
    )


def title(results: Results) -> str:
    """What the page answers, from the protocols that there are results of."""
    every = sorted({run.model for run in results.runs if run.model})
    # Baselines and random weights are what the models are held against.
    beside = {run.model for run in results.runs if run.role in ("baseline", "control")}
    models = [model for model in every if model not in beside] or every
    who = models[0] if len(models) == 1 else f"{len(models)} models" if models else "the model"
    if results.of("zero_shot") or results.of("grid"):
        also = ", and what inoculation cost" if results.of("inoculation") else " before training"
        return f"What {who} knew{also}"
    if results.of("inoculation"):
        return f"What inoculation gave {who}, and what it cost"
    if all(run.protocol == "compare" for run in results.runs):
        return "Which systems differ on the same items"
    expected = results.of("diagnose") and not results.of("curve")
    return f"What {who} {'expected' if expected else 'learned'}"


def facts(results: Results) -> list[str]:
    """The line under the title."""
    probes = {row.probe for row in results.rows if row.probe and row.protocol != "original"}
    said = ["Probelight report on " + results.name, _plural(len(results.runs), "run")]
    said += [_plural(len(probes), "probe"), f"{duration(total_seconds(results))} of computing"]
    made_with = commits(results)
    if len(made_with) == 1:
        changed = " with local changes" if made_with[0].endswith("+changes") else ""
        said.append(f"commit {made_with[0][:7]}{changed}")
    return said


def inline_svg(figure: Figure) -> Markup:
    """A figure for use inside the page: no outside names, its own ids, the page's colours."""
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{figure.name}-', svg)
    svg = re.sub(r'(<use[^>]*? href="#)', rf"\1{figure.name}-", svg)
    svg = svg.replace("url(#", f"url(#{figure.name}-")
    # A link of a figure is for the pointer alone: what it leads to has a link in words too.
    svg = svg.replace(' target="_blank"', ' tabindex="-1" aria-hidden="true"')
    for colour, variable in PALETTE.items():
        svg = re.sub(colour, f"var({variable})", svg, flags=re.IGNORECASE)
    role = "group" if "<a " in svg else "img"  # an image may hold nothing that can be followed
    label = f'role="{role}" aria-label="{escape(figure.title)}"'
    width = re.search(r'width="([\d.]+)pt"', svg)
    size = f' style="max-width: {float(width[1]) * 1.42:.0f}px"' if width else ""
    # A title may hold whatever a model's name holds, a backslash too.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', lambda m: f"{m[1]} {label}{size}", svg, count=1)
    return Markup(re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1))


def strong_numbers(sentence: str) -> Markup:
    """Makes the percentages of a sentence stand out, those outside of brackets."""
    text = str(escape(sentence))
    outside = re.split(r"(\([^()]*\))", text)
    return Markup(
        "".join(
            part if part.startswith("(") else re.sub(r"(\d[\d.]*%)", r"<strong>\1</strong>", part)
            for part in outside
        )
    )


def _texts(section: Made) -> Iterator[str]:
    """What a section says, without the cells of its tables."""
    yield from (section.title, *section.summary)
    yield from (figure.caption for figure in section.figures)
    for table in section.tables:
        yield from (table.title, table.note, *(column.label for column in table.columns))
        yield from (column.group for column in table.columns)


def _lead(note: str) -> tuple[str, str]:
    """A note's first sentence, and the rest of it."""
    first, _, rest = re.sub(r"(?<=[.!?]) (?=[A-Z“])", "\n", note, count=1).partition("\n")
    return first, rest


def _folders(results: Results, target: Path) -> dict[str, str]:
    """By key each run's folder as an address relative to that of the page."""
    if results.folder is None:
        return {}
    root = os.path.relpath(results.folder, target.resolve())
    return {run.key: quote(f"{Path(root, run.path).as_posix()}/") for run in results.runs}


def measured(table: Table) -> Table:
    """The table without the columns that nothing was measured for; its files keep them."""
    columns = [
        (column, cells)
        for column, *cells in zip(table.columns, *table.rows, strict=True)
        if any(cell.text != ABSENT for cell in cells)
    ]
    rows = tuple(zip(*(cells for _, cells in columns), strict=True))
    return replace(table, columns=tuple(column for column, _ in columns), rows=rows)


def _groups(table: Table) -> list[tuple[str, int]]:
    """Group headings with the number of columns they span; empty where no column has one."""
    groups = groupby(column.group for column in table.columns)
    spans = [(group, len(list(own))) for group, own in groups]
    return spans if any(group for group, _ in spans) else []


def _repeats(table: Table) -> list[int]:
    """How many leading text cells of each row only repeat the row above; they are set quietly."""
    repeats = []
    above: tuple[Cell, ...] = ()
    for row in table.rows:
        number = 0
        for column, cell, other in zip(table.columns, row, above, strict=False):
            if column.align != "left" or column.code or cell != other:
                break
            number += 1
        repeats.append(number if number < len(row) else 0)
        above = row
    return repeats


def _breakable(text: str) -> Markup:
    """Lets long names break behind their underscores."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
