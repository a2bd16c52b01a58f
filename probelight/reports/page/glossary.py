"""The words of the page, each explained once; headings of tables lead here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape


@dataclass(frozen=True)
class Term:
    """A word of the page.

    Attributes:
        name: Its address, behind `term-`.
        word: How it is explained under.
        meaning: What it means.
        headings: How headings of columns write it, divided by blanks.
    """

    name: str
    word: str
    meaning: str
    headings: str = ""


GLOSSARY = (
    Term("chance", "chance", "the score of guessing evenly among the choices of an item", "chance"),
    Term(
        "majority",
        "majority",
        "the score of always giving the most frequent right answer",
        "majority",
    ),
    Term(
        "interval",
        "95% interval",
        "the range in brackets or below a number: how far it could move with other items of the "
        "same kind, and with other seeds where there are several; where it holds chance, the score "
        "shows nothing",
    ),
    Term(
        "n",
        "n, groups",
        "the items measured; items that share a concept, a word or a sentence are one group, and "
        "intervals draw whole groups",
        "n",
    ),
    Term("macro", "macro", "the mean of the accuracies of each right answer", "macro"),
    Term(
        "zero-shot",
        "zero-shot",
        "before any training: the model fills the mask, or scores the sentences, as it came",
        "zero-shot",
    ),
    Term(
        "control",
        "control",
        "the same items with something taken away: without language (nolang), with disturbed "
        "language (pert), with random weights; what remains does not need it",
        "control",
    ),
    Term("size", "N", "training examples of a learning curve", "N"),
    Term("seed", "seed", "one repetition, with other examples in another order", "seed seeds"),
    Term(
        "mlp",
        "MLP, linear",
        "what is trained on the model's features while the model itself stays: a small head with "
        "one hidden layer, or one without",
        "MLP mlp linear trained",
    ),
    Term(
        "ws",
        "WS",
        "the accuracies of a learning curve averaged, those of few examples weighing most: high "
        "where little training is enough (Talmor et al. 2020)",
        "WS",
    ),
    Term("max", "MAX", "the best accuracy of a learning curve", "MAX"),
    Term(
        "langsense",
        "LangSense",
        "WS minus that of a control, in points: what the model owes to the language",
        "LangSense",
    ),
    Term(
        "medal",
        "medal",
        "the verdict of Talmor et al. (2020) on a probe: full, partial or none, by score, by "
        "baselines and by LangSense",
    ),
    Term(
        "embedded",
        "embedded",
        "the small language model that comes with Probelight; it has read two dictionaries",
    ),
    Term(
        "inoculation",
        "inoculation, k",
        "training on k examples of a probe a model that was trained on another, original task",
        "k",
    ),
    Term(
        "cost",
        "cost",
        "points lost on the original task by an inoculation, on the same items",
        "cost",
    ),
    Term(
        "average",
        "average, M*",
        "the mean of probe and original-task accuracy, by which settings and checkpoints are "
        "chosen, on items that are not reported (Richardson & Sabharwal 2020)",
        "average M*",
    ),
    Term(
        "strict",
        "soft, strict",
        "of each concept the share of its questions that are right; strict: whether all are",
        "soft strict",
    ),
    Term("hops", "hops", "edges of the taxonomy between a concept and an answer", "hops"),
    Term(
        "tie",
        "tie",
        "several choices share the best score; the item counts in part",
        "ties tied",
    ),
    Term(
        "p",
        "p, adjusted p",
        "how often a difference as large would come by chance alone if there were none; adjusted "
        "for the number of comparisons in the table (Benjamini & Hochberg)",
        "p",
    ),
    Term(
        "letters",
        "letters",
        "systems that share one are not told apart, which does not say that they are equally good",
        "letters",
    ),
)
_BY_HEADING = {word: term for term in GLOSSARY for word in term.headings.split()}
_WORD = re.compile(r"[\w*]+(?:-[\w*]+)*")


def used(texts: Iterable[str]) -> list[Term]:
    """The terms that texts have a word of, in the order of the glossary."""
    words = {word for text in texts for word in _WORD.findall(text)}
    return [
        term
        for term in GLOSSARY
        if words & {*term.headings.split(), *_WORD.findall(term.word.replace("95% ", ""))}
    ]


def linked(label: str) -> Markup:
    """The heading of a column, with its words that the glossary has leading there."""
    parts, end, seen = [], 0, set()
    for match in _WORD.finditer(label):
        term = _BY_HEADING.get(match[0])
        if term and term.name not in seen:
            seen.add(term.name)
            parts += [escape(label[end : match.start()]), _link(match[0], term)]
            end = match.end()
    return Markup("").join([*parts, escape(label[end:])])


def _link(word: str, term: Term) -> Markup:
    return Markup('<a class="term" href="#term-{}" title="{}">{}</a>').format(
        term.name, term.meaning, word
    )
