"""`train.py report FOLDER`: from result files to figures, tables, Markdown and one HTML page.

`page/glossary.yaml` explains the words of the page.
"""

from __future__ import annotations

import html
import os.path
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from probelight.io.atomic import (
    make_folder,
    remove_leftovers,
    write_bytes_atomic,
    write_text_atomic,
)
from probelight.io.documents import read_yaml
from probelight.io.escaping import markdown, visible
from probelight.io.settings import STRICT, typed
from probelight.reports.figure import PALETTE, Figure
from probelight.reports.formats import to_csv, to_latex, to_markdown
from probelight.reports.items import Items, items_of
from probelight.reports.numbers import BEFORE, count, percent, when_of
from probelight.reports.overview.glance import grid
from probelight.reports.provenance import commits, computing_time
from probelight.reports.sections import FORGETTING, SECTIONS, FilledSection, filled_sections
from probelight.reports.table import Table
from probelight.results.frames import trained_models
from probelight.results.load import WATCH, RunSet, load_results

MOST_NAMED = 12  # damaged files on the terminal
TEMPLATES = Path(__file__).parent  # the overview has a part of the page
PAGE = TEMPLATES / "page"
GLOSSARY = PAGE / "glossary.yaml"
WORD = re.compile(r"([\w*]+(?:-[\w*]+)*)")
SCRIPTS = PAGE / "script"
ITEMS_SCRIPTS = ("data", "address", "chosen", "cards", "items")  # one scope, in this order
OPEN = ("overview", "training")  # the sections whose tables are seen at once
MOST_SHOWN = 4_000  # characters of a table; GitHub takes 65,536 of a description
NO_LINK = str.maketrans({"[": "&#91;", "]": "&#93;"})


def build_report(
    folder: Path | Sequence[Path], output_dir: Path | None = None, medals: Path | None = None
) -> Path:
    """Make a report of all result files below one folder or several; return the page's path.

    Writes `report.html`, `report.md`, tables as `tables/*.csv`, `.md` and `.tex`, figures as
    `figures/*.png`, `.svg` and `.pdf`, and `items/*.js` where the page cannot hold all items. Each
    is written atomically, the page last; the same results give the same bytes. Prints which files
    could not be read and are left out.

    Args:
        folder: Output folder of a command, or one that holds several; any number of them.
        output_dir: Where the report goes; None means the (first) folder itself.
        medals: YAML file with another rule of when a model has earned a medal on a probe.

    Raises:
        FileNotFoundError: If a folder holds no result that can be read.
        ConfigError: If the rule cannot be read.
    """
    results = load_results(folder)
    for sentence in results.damaged[:MOST_NAMED]:
        print(f"left out: {sentence}")
    if len(results.damaged) > MOST_NAMED:
        print(f"left out: {len(results.damaged) - MOST_NAMED:,} more files, which the page names")
    sections = filled_sections(results, medals)
    target = output_dir or (folder if isinstance(folder, Path) else folder[0])
    make_folder(target)
    remove_leftovers(target)
    for figure in (figure for section in sections for figure in section.figures):
        write_text_atomic(target / "figures" / f"{figure.name}.svg", figure.svg)
        write_bytes_atomic(target / "figures" / f"{figure.name}.png", figure.png)
        write_bytes_atomic(target / "figures" / f"{figure.name}.pdf", figure.pdf())
    for table in (table for section in sections for table in section.tables):
        write_text_atomic(target / "tables" / f"{table.name}.csv", to_csv(table))
        write_text_atomic(target / "tables" / f"{table.name}.md", to_markdown(table) + "\n")
        write_text_atomic(target / "tables" / f"{table.name}.tex", to_latex(table))
    write_text_atomic(target / "report.md", to_markdown_report(results, sections))
    items = items_of(results)
    for name, text in items.files.items() if items else ():
        write_text_atomic(target / name, text)
    page_path = target / "report.html"
    write_text_atomic(page_path, to_html(results, sections, items, target))
    return page_path


def to_html(
    results: RunSet,
    sections: Sequence[FilledSection],
    items: Items | None = None,
    target: Path | None = None,
) -> str:
    """Return the whole page, with links from its folder `target` to those of the runs."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.loader, environment.lstrip_blocks = FileSystemLoader(TEMPLATES), True
    environment.filters |= {
        "inline_svg": inline_svg,
        "strong_numbers": strong_numbers,
        "repeats": _num_repeated,
        # Long names break behind their underscores.
        "breakable": lambda text: Markup(str(escape(text)).replace("_", "_<wbr>")),
        "percent": percent,
        "sentences": lambda note: re.split(r"(?<=[.!?]) (?=[A-Z“])", note, maxsplit=1),
        "terms": linked_heading,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    figures = {figure.name: figure for section in sections for figure in section.figures}
    names = ("page", *ITEMS_SCRIPTS) if items else ("page",)
    page, *scripts = ((SCRIPTS / f"{name}.js").read_text(encoding="utf-8") for name in names)
    script = page + "".join(['(() => {\n"use strict";\n', *scripts, "})();\n"] if scripts else "")
    folders = {}
    if target and results.folder:
        root = os.path.relpath(results.folder, target.resolve())
        folders = {run.key: quote(f"{Path(root, run.path).as_posix()}/") for run in results.runs}
    return environment.get_template("page/page.html").render(
        policy=policy(script, in_files=bool(items and items.files)),
        title=title(results),
        counts=counts(results),
        results=results,
        # A check asks what was forgotten, not what was known.
        overview=None if results.of(FORGETTING) else grid(results),
        leads=("training", "steps", *([FORGETTING] if results.of(FORGETTING) else [])),
        section_of={name: s.name for s in reversed(SECTIONS) for name in s.protocols},
        changes=figures.get("changes"),
        sections=[section for section in sections if section.name != "overview"],
        items=items,
        glossary=used_terms(text for section in sections for text in _section_texts(section)),
        folders=folders,
        script=Markup(script),
    )


def policy(script: str, in_files: bool) -> str:
    """Return the content security policy: no network, and no script but the page's.

    With `in_files`, items are in scripts next to the page. For a page opened from a disk these are
    not `'self'` in every browser, so any file of the disk may be one.
    """
    digest = b64encode(sha256(script.encode()).digest()).decode()
    files = " 'self' file:" if in_files else ""
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'{files}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def title(results: RunSet) -> str:
    """Return what the page answers, by the protocols of its results."""
    watched = trained_models(results)
    every = sorted({watched.get(run.path, run.model) for run in results.runs if run.model})
    # Models are compared with baselines and random weights.
    references = {run.model for run in results.runs if run.role in ("baseline", "control")}
    models = [model for model in every if model not in references] or every
    who = models[0] if len(models) == 1 else f"{len(models)} models" if models else "the model"
    trained = results.of("inoculation") or results.of(WATCH)
    if changed := results.of(FORGETTING):
        models = sorted({run.model for run in changed})
        return f"What {models[0] if len(models) == 1 else 'each model'} forgot, gained and kept"
    if answered := results.of("zero_shot") + results.of("grid"):
        is_known = {when_of(run) for run in answered} == {BEFORE}
        also = ", learned and forgot" if trained else " before training" if is_known else ""
        return f"What {who} {'knew' if is_known else 'scored'}{also}"
    if all(run.protocol == "compare" for run in results.runs):
        return "Which systems differ on the same items"
    if trained:
        return f"What {who} learned and forgot"
    expected = results.of("diagnose") and not results.of("curve")
    return f"What {who} {'expected' if expected else 'learned'}"


def counts(results: RunSet) -> list[str]:
    """Return the parts of the line under the title."""
    probes = {row.probe for row in results.rows if row.probe and row.protocol != "original"}
    sizes = [(len(results.runs), "run"), (len(probes), "probe")]
    phrases = [f"Probelight report on {results.name}"]
    phrases += [f"{count(number)} {noun}{'' if number == 1 else 's'}" for number, noun in sizes]
    phrases.append(f"{computing_time(results)} of computing")
    made_with = commits(results)
    if len(made_with) == 1:
        changed = " with local changes" if made_with[0].endswith("+changes") else ""
        phrases.append(f"commit {made_with[0][:7]}{changed}")
    return phrases


def inline_svg(figure: Figure) -> Markup:
    """Return a figure to be put into the page: its colours, no outside names, no clash of ids."""
    svg = figure.svg[figure.svg.index("<svg") :]
    outside = r'<metadata>.*?</metadata>| xmlns(:\w+)?="[^"]*"'
    svg = re.sub(outside, "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    svg = re.sub(r'(\bid="|<use[^>]*? href="#|url\(#)', rf"\1{figure.name}-", svg)
    # A link of a figure is for the pointer alone: what it leads to has a link in words too.
    svg = svg.replace(' target="_blank"', ' tabindex="-1" aria-hidden="true"')
    for colour, variable in PALETTE.items():
        svg = re.sub(colour, f"var({variable})", svg, flags=re.IGNORECASE)
    role = "group" if "<a " in svg else "img"  # an image may hold nothing that can be followed
    label = f'role="{role}" aria-label="{escape(figure.title)}"'
    size = re.match(r'<svg width="([\d.]+)pt" height="[^"]*"', svg)
    assert size, "matplotlib writes the size first"
    style = f"width: {float(size[1]) * 1.42:.0f}px"
    return Markup(f'<svg {label} style="{style}"{svg[size.end() :]}')


def strong_numbers(sentence: str) -> Markup:
    """Emphasize the percentages of a sentence that are not in brackets."""
    pattern = r"(\([^()]*\))|(\d[\d.]*%)"
    return Markup(
        re.sub(pattern, lambda m: m[1] or f"<strong>{m[2]}</strong>", str(escape(sentence)))
    )


@dataclass(frozen=True)
class GlossaryTerm:
    """A word of the page, what it means, and how headings of columns write it."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    meaning: str
    headings: tuple[str, ...] = ()


@cache
def glossary() -> Mapping[str, GlossaryTerm]:
    """Return the terms by their address, without `term-` in front."""
    return {
        name: typed(GlossaryTerm, term, f"{GLOSSARY}: {name}")
        for name, term in read_yaml(GLOSSARY).items()
    }


def used_terms(texts: Iterable[str]) -> dict[str, GlossaryTerm]:
    """Return the terms that the texts use, in the order of the glossary."""
    words = {word for text in texts for word in WORD.findall(text)}
    return {
        name: term
        for name, term in glossary().items()
        if words & {*term.headings, *WORD.findall(term.word.replace("95% ", ""))}
    }


def linked_heading(label: str) -> Markup:
    """Return a column's heading with its first use of each term linked to the glossary."""
    names = {word: name for name, term in glossary().items() for word in term.headings}
    link = Markup('<a class="term" href="#term-{}" title="{}">{}</a>')
    pieces = []
    for word in WORD.split(label):
        name = names.pop(word, "")  # the first of equal words leads there
        pieces.append(link.format(name, glossary()[name].meaning, word) if name else escape(word))
    return Markup("").join(pieces)


def _section_texts(section: FilledSection) -> Iterator[str]:
    """Return the texts of a section, without the cells of its tables."""
    yield from (section.title, section.summary)
    yield from (figure.caption for figure in section.figures)
    for table in section.tables:
        yield from (table.title, table.note)
        yield from (text for column in table.columns for text in (column.label, column.group))


def _num_repeated(table: Table) -> list[int]:
    """Return how many leading text cells of each row repeat the row above, to be set quietly."""
    repeats = [0]
    quiet = [column.align == "left" and not column.code for column in table.columns]
    for above, row in pairwise(table.rows):
        same = [a and b == c for a, b, c in zip(quiet, above, row, strict=True)]
        repeats.append(0 if all(same) else same.index(False))
    return repeats


def to_markdown_report(results: RunSet, sections: Sequence[FilledSection]) -> str:
    """Return the page in short: tables are folded, long ones and figures are links to files."""
    blocks = [f"# {markdown(title(results))}", markdown(", ".join(counts(results)) + ".")]
    if results.left_out:
        blocks.append(_folded("Left out of this report", _bullets(results.left_out), is_open=True))
    for section in sections:
        blocks.append(f"## {markdown(section.title)}")
        is_open = section.name in OPEN
        for table in section.tables if is_open else ():
            blocks += [_table(table), _folded("How to read it", markdown(table.note))]
        if section.summary:
            blocks.append(markdown(section.summary))
        for figure in section.figures:
            blocks.append(f"![{markdown(figure.title)}](figures/{figure.name}.png)")
            blocks.append(_folded("How to read the figure", markdown(figure.caption)))
        for table in () if is_open else [table for table in section.tables if table.rows]:
            rows = f"{count(len(table.rows))} row{'' if len(table.rows) == 1 else 's'}"
            note = [markdown(table.note)] if table.note else []
            blocks.append(_folded(f"{table.title} ({rows})", _table(table), *note))
    if results.notices:
        heading = f"{count(len(results.notices))} from the runs"
        blocks += ["## Notices", _folded(heading, _bullets(results.notices))]
    return "\n\n".join(blocks) + "\n"


def _table(table: Table) -> str:
    """Return the table, or links to it if it is long."""
    text = to_markdown(table)
    if len(text) <= MOST_SHOWN:
        return text
    files = (f"[tables/{table.name}.{kind}](tables/{table.name}.{kind})" for kind in ("md", "csv"))
    return f"The table is long: see {' or '.join(files)}."


def _folded(summary: str, *blocks: str, is_open: bool = False) -> str:
    # GitHub reads Markdown in it only behind an empty line; others make links of the first, too.
    text = html.escape(visible(summary), quote=False).translate(NO_LINK)
    opening = f"<details{' open' if is_open else ''}><summary>{text}</summary>"
    return "\n\n".join([opening, *blocks, "</details>"])


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {markdown(text)}" for text in texts)
