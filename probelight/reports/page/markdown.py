"""The report as one Markdown file for a pull request: what was found, the numbers folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from probelight.io.escaping import markdown, visible
from probelight.reports.kit.table import Table
from probelight.reports.kit.text import count
from probelight.reports.page.html import facts, title
from probelight.reports.page.provenance import notices
from probelight.reports.sections import Made
from probelight.reports.table import to_markdown
from probelight.results.load import Results

OPEN_FIRST = "overview"  # the section whose tables are seen at once
MOST_SHOWN = 4_000  # characters of a table; GitHub takes 65,536 of a description
_NO_LINK = str.maketrans({"[": "&#91;", "]": "&#93;"})


def to_markdown_report(results: Results, sections: Sequence[Made]) -> str:
    """What the page says, short: tables are folded, long ones and figures linked as files."""
    parts = [f"# {markdown(title(results))}", markdown(", ".join(facts(results)) + ".")]
    if results.left_out:
        parts.append(_folded("Left out of this report", [_bullets(results.left_out)], opened=True))
    for section in sections:
        if section.figures or section.tables or section.summary:
            parts += [f"## {markdown(section.title)}", *_section(section)]
    if said := notices(results):
        parts += ["## Notices", _folded(f"{count(len(said))} said by the runs", [_bullets(said)])]
    return "\n\n".join(parts) + "\n"


def _section(section: Made) -> Iterator[str]:
    tables = section.tables
    if section.name == OPEN_FIRST:
        for table in tables:
            yield from (_shown(table), _folded("How to read it", [markdown(table.note)]))
        tables = ()
    if section.summary:
        yield _bullets(section.summary)
    for figure in section.figures:
        yield f"![{markdown(figure.title)}](figures/{figure.name}.png)"
        yield _folded("How to read the figure", [markdown(figure.caption)])
    for table in tables:
        if not table.rows:  # its note says why
            yield _folded(table.title, [markdown(table.note)])
            continue
        rows = f"{count(len(table.rows))} row{'' if len(table.rows) == 1 else 's'}"
        note = [markdown(table.note)] if table.note else []
        yield _folded(f"{table.title} ({rows})", [_shown(table), *note])


def _shown(table: Table) -> str:
    """The table, or where it is."""
    text = to_markdown(table)
    if len(text) <= MOST_SHOWN:
        return text
    files = (f"[tables/{table.name}.{kind}](tables/{table.name}.{kind})" for kind in ("md", "csv"))
    return f"It is long: {' and '.join(files)} have it."


def _folded(summary: str, parts: Sequence[str], opened: bool = False) -> str:
    # GitHub reads Markdown in it only behind an empty line; others make links of the first, too.
    said = escape(visible(summary), quote=False).translate(_NO_LINK)
    opening = f"<details{' open' if opened else ''}><summary>{said}</summary>"
    return "\n\n".join([opening, *parts, "</details>"])


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {markdown(text)}" for text in texts)
