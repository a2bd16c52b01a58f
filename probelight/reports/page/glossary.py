"""The words of the page, which headings of tables lead to; `glossary.yaml` explains them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from markupsafe import Markup, escape

from probelight.io.documents import STRICT, read_yaml, typed

PATH = Path(__file__).with_name("glossary.yaml")
WORD = re.compile(r"[\w*]+(?:-[\w*]+)*")


@dataclass(frozen=True)
class Term:
    """A word of the page, what it means, and how headings of columns write it."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    meaning: str
    headings: tuple[str, ...] = ()


@cache
def glossary() -> Mapping[str, Term]:
    """Return the terms by their address, without the `term-` in front of it."""
    return {name: typed(Term, term, f"{PATH}: {name}") for name, term in read_yaml(PATH).items()}


def used(texts: Iterable[str]) -> dict[str, Term]:
    """Return the terms that texts have a word of, in the order of the glossary."""
    words = {word for text in texts for word in WORD.findall(text)}
    return {
        name: term
        for name, term in glossary().items()
        if words & {*term.headings, *WORD.findall(term.word.replace("95% ", ""))}
    }


def linked(label: str) -> Markup:
    """Return the heading of a column, with the words that the glossary has leading there."""
    names = {word: name for name, term in glossary().items() for word in term.headings}
    parts, end, seen = [], 0, set()
    for match in WORD.finditer(label):
        name = names.get(match[0])
        if name and name not in seen:
            seen.add(name)
            link = Markup('<a class="term" href="#term-{}" title="{}">{}</a>')
            link = link.format(name, glossary()[name].meaning, match[0])
            parts += [escape(label[end : match.start()]), link]
            end = match.end()
    return Markup("").join([*parts, escape(label[end:])])
