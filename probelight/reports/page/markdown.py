"""The report as one Markdown file for a pull request: what was found, the numbers folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from probelight.io.escaping import markdown, visible
from probelight.reports.estimates import count
from probelight.reports.page.html import counts, title
from probelight.reports.sections import Made
from probelight.reports.table import Table, to_markdown
from probelight.results.load import Results

OPEN = ("overview", "training")  # the sections whose tables are seen at once
MOST_SHOWN = 4_000  # characters of a table; GitHub takes 65,536 of a description
NO_LINK = str.maketrans({"[": "&#91;", "]": "&#93;"})


def to_markdown_report(results: Results, sections: Sequence[Made]) -> str:
    """Return the page in short: tables are folded, long ones and figures are links to files."""
    parts = [f"# {markdown(title(results))}", markdown(", ".join(counts(results)) + ".")]
    if results.left_out:
        parts.append(_folded("Left out of this report", _bullets(results.left_out), is_open=True))
    for section in sections:
        parts += [f"## {markdown(section.title)}", *_section(section)]
    if results.notices:
        summary = f"{count(len(results.notices))} from the runs"
        parts += ["## Notices", _folded(summary, _bullets(results.notices))]
    return "\n\n".join(parts) + "\n"


def _section(section: Made) -> Iterator[str]:
    is_open = section.name in OPEN
    if is_open:
        for table in section.tables:
            yield from (_table(table), _folded("How to read it", markdown(table.note)))
    if section.summary:
        yield markdown(section.summary)
    for figure in section.figures:
        yield f"![{markdown(figure.title)}](figures/{figure.name}.png)"
        yield _folded("How to read the figure", markdown(figure.caption))
    for table in () if is_open else [table for table in section.tables if table.rows]:
        rows = f"{count(len(table.rows))} row{'' if len(table.rows) == 1 else 's'}"
        note = [markdown(table.note)] if table.note else []
        yield _folded(f"{table.title} ({rows})", _table(table), *note)


def _table(table: Table) -> str:
    """Return the table, or links to it if it is long."""
    text = to_markdown(table)
    if len(text) <= MOST_SHOWN:
        return text
    files = (f"[tables/{table.name}.{kind}](tables/{table.name}.{kind})" for kind in ("md", "csv"))
    return f"The table is long: see {' or '.join(files)}."


def _folded(summary: str, *parts: str, is_open: bool = False) -> str:
    # GitHub reads Markdown in it only behind an empty line; others make links of the first, too.
    text = escape(visible(summary), quote=False).translate(NO_LINK)
    opening = f"<details{' open' if is_open else ''}><summary>{text}</summary>"
    return "\n\n".join([opening, *parts, "</details>"])


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {markdown(text)}" for text in texts)
