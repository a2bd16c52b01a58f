"""The report as one self-contained HTML page; `glossary.yaml` explains its words."""

from __future__ import annotations

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

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.reports.estimates import BEFORE, count, percent, when_of
from probelight.reports.figure import PALETTE, Figure
from probelight.reports.overview.grid import grid
from probelight.reports.page.items import Items
from probelight.reports.page.provenance import commits, computing_time
from probelight.reports.sections import Made
from probelight.reports.table import Table
from probelight.results.load import WATCH, Results
from probelight.results.watched import trained_models

TEMPLATES = Path(__file__).parents[1]  # the overview has a part of the page
GLOSSARY = Path(__file__).with_name("glossary.yaml")
WORD = re.compile(r"([\w*]+(?:-[\w*]+)*)")
SCRIPTS = Path(__file__).with_name("script")
ITEMS_SCRIPTS = ("data", "address", "chosen", "cards", "items")  # one scope, in this order


def to_html(
    results: Results,
    sections: Sequence[Made],
    items: Items | None = None,
    target: Path | None = None,
) -> str:
    """Return the whole page, with links from its folder `target` to those of the runs."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.loader, environment.lstrip_blocks = FileSystemLoader(TEMPLATES), True
    environment.filters |= {
        "inline_svg": inline_svg,
        "strong_numbers": strong_numbers,
        "repeats": _repeats,
        # Long names break behind their underscores.
        "breakable": lambda text: Markup(str(escape(text)).replace("_", "_<wbr>")),
        "percent": percent,
        "sentences": lambda note: re.split(r"(?<=[.!?]) (?=[A-Z“])", note, maxsplit=1),
        "terms": linked,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    figures = {figure.name: figure for section in sections for figure in section.figures}
    names = ("page", *ITEMS_SCRIPTS) if items else ("page",)
    page, *parts = ((SCRIPTS / f"{name}.js").read_text(encoding="utf-8") for name in names)
    script = page + "".join(['(() => {\n"use strict";\n', *parts, "})();\n"] if parts else "")
    folders = {}
    if target and results.folder:
        root = os.path.relpath(results.folder, target.resolve())
        folders = {run.key: quote(f"{Path(root, run.path).as_posix()}/") for run in results.runs}
    return environment.get_template("page/page.html").render(
        policy=policy(script, in_files=bool(items and items.files)),
        title=title(results),
        counts=counts(results),
        results=results,
        overview=grid(results),
        arrows=figures.get("arrows"),
        sections=[section for section in sections if section.name != "overview"],
        items=items,
        glossary=used(text for section in sections for text in _texts(section)),
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


def title(results: Results) -> str:
    """Return what the page answers, by the protocols of its results."""
    watched = trained_models(results)
    every = sorted({watched.get(run.path, run.model) for run in results.runs if run.model})
    # Models are compared with baselines and random weights.
    references = {run.model for run in results.runs if run.role in ("baseline", "control")}
    models = [model for model in every if model not in references] or every
    who = models[0] if len(models) == 1 else f"{len(models)} models" if models else "the model"
    trained = results.of("inoculation") or results.of(WATCH)
    if answered := results.of("zero_shot") + results.of("grid"):
        is_known = {when_of(run) for run in answered} == {BEFORE}
        also = ", learned and forgot" if trained else " before training" if is_known else ""
        return f"What {who} {'knew' if is_known else 'scored'}{also}"
    if trained:
        return f"What {who} learned and forgot"
    if all(run.protocol == "compare" for run in results.runs):
        return "Which systems differ on the same items"
    if all(run.protocol == "forgetting" for run in results.runs):
        return "Which items were lost and gained"
    expected = results.of("diagnose") and not results.of("curve")
    return f"What {who} {'expected' if expected else 'learned'}"


def counts(results: Results) -> list[str]:
    """Return the parts of the line under the title."""
    probes = {row.probe for row in results.rows if row.probe and row.protocol != "original"}
    numbers = [(len(results.runs), "run"), (len(probes), "probe")]
    found = [f"Probelight report on {results.name}"]
    found += [f"{count(number)} {noun}{'' if number == 1 else 's'}" for number, noun in numbers]
    found.append(f"{computing_time(results)} of computing")
    made_with = commits(results)
    if len(made_with) == 1:
        changed = " with local changes" if made_with[0].endswith("+changes") else ""
        found.append(f"commit {made_with[0][:7]}{changed}")
    return found


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
    found = re.match(r'<svg width="([\d.]+)pt" height="[^"]*"', svg)
    assert found, "matplotlib writes the size first"
    style = f"width: {float(found[1]) * 1.42:.0f}px"
    return Markup(f'<svg {label} style="{style}"{svg[found.end() :]}')


def strong_numbers(sentence: str) -> Markup:
    """Emphasize the percentages of a sentence that are not in brackets."""
    pattern = r"(\([^()]*\))|(\d[\d.]*%)"
    return Markup(
        re.sub(pattern, lambda m: m[1] or f"<strong>{m[2]}</strong>", str(escape(sentence)))
    )


@dataclass(frozen=True)
class Term:
    """A word of the page, what it means, and how headings of columns write it."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    meaning: str
    headings: tuple[str, ...] = ()


@cache
def glossary() -> Mapping[str, Term]:
    """Return the terms by their address, without `term-` in front."""
    return {
        name: typed(Term, term, f"{GLOSSARY}: {name}") for name, term in read_yaml(GLOSSARY).items()
    }


def used(texts: Iterable[str]) -> dict[str, Term]:
    """Return the terms that the texts use, in the order of the glossary."""
    words = {word for text in texts for word in WORD.findall(text)}
    return {
        name: term
        for name, term in glossary().items()
        if words & {*term.headings, *WORD.findall(term.word.replace("95% ", ""))}
    }


def linked(label: str) -> Markup:
    """Return a column's heading with its first use of each term linked to the glossary."""
    names = {word: name for name, term in glossary().items() for word in term.headings}
    link = Markup('<a class="term" href="#term-{}" title="{}">{}</a>')
    parts = []
    for part in WORD.split(label):
        name = names.pop(part, "")  # the first of equal words leads there
        parts.append(link.format(name, glossary()[name].meaning, part) if name else escape(part))
    return Markup("").join(parts)


def _texts(section: Made) -> Iterator[str]:
    """Return the texts of a section, without the cells of its tables."""
    yield from (section.title, section.summary)
    yield from (figure.caption for figure in section.figures)
    for table in section.tables:
        yield from (table.title, table.note)
        yield from (text for column in table.columns for text in (column.label, column.group))


def _repeats(table: Table) -> list[int]:
    """Return how many leading text cells of each row repeat the row above, to be set quietly."""
    repeats = [0]
    quiet = [column.align == "left" and not column.code for column in table.columns]
    for above, row in pairwise(table.rows):
        same = [a and b == c for a, b, c in zip(quiet, above, row, strict=True)]
        repeats.append(0 if all(same) else same.index(False))
    return repeats
