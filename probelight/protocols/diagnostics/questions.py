"""What each diagnostic set asks of a model's outputs, for predictions and for probabilities.

How a number is counted stands in `metrics.diagnostics`; here stands what is compared with what, and
which parts of a set are measured alone. The parts are those of Ettinger (2020), tables 4 to 14.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from probelight.metrics.diagnostics import ARTICLES
from probelight.probes.diagnostics.items import (
    CONSTRAINTS,
    InferenceItem,
    Item,
    NegatedPair,
    NegationItem,
    RoleItem,
    SentencePair,
)
from probelight.probes.diagnostics.sets import DiagnosticSet
from probelight.results.subset import Article, ClozeBin, Constraint, Statements, Subset

NATURALNESS = {"Y": "natural", "N": "less natural"}


@dataclass(frozen=True)
class Completion:
    """A prompt whose completion is held against those that people expect.

    Attributes:
        prompt: Its place.
        expected: Words that count as right: an expected completion counts by its first word.
        parts: The parts of the set that it belongs to.
        subject: The noun that the statement is about; empty where that is not asked.
    """

    prompt: int
    expected: tuple[str, ...]
    parts: tuple[Subset, ...] = ()
    subject: str = ""


@dataclass(frozen=True)
class Contrast:
    """Prompts of which one has a target that is better than those of the others.

    Attributes:
        good: Place of the better one.
        bad: Places of the others.
        parts: The parts of the set that it belongs to.
    """

    good: int
    bad: tuple[int, ...]
    parts: tuple[Subset, ...] = ()


@dataclass(frozen=True)
class Continuation:
    """A context that ends in an article, which asks for a vowel or a consonant.

    Attributes:
        prompt: Its place; of prompts with one context that of the first.
        article: The article, in lower case.
    """

    prompt: int
    article: str

    @property
    def parts(self) -> tuple[Subset, ...]:
        """The parts of the set that it belongs to."""
        return (Article(self.article),)


@dataclass(frozen=True)
class Negation:
    """A statement and its negation, with the same article at their ends where there is one.

    Attributes:
        first: Place of the statement.
        second: Place of its negation.
        parts: The parts of the set that they belong to.
    """

    first: int
    second: int
    parts: tuple[Subset, ...] = ()


@dataclass(frozen=True)
class Questions:
    """What a set asks.

    Attributes:
        completions: Of accuracy, and of errors that repeat the subject.
        contrasts: Of sensitivity.
        negated: Places of a context and its negation, of negation sensitivity.
        articles: Of obedience to "a" and "an", in the sets of Ettinger (2020).
        negations: Of words that "not" leaves as they are, in NEG-136.
    """

    completions: list[Completion] = field(default_factory=list)
    contrasts: list[Contrast] = field(default_factory=list)
    negated: list[tuple[int, int]] = field(default_factory=list)
    articles: list[Continuation] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)


def questions_of(data: DiagnosticSet) -> Questions:
    """What a set asks of the outputs for its prompts.

    CPRAG-102 has three prompts of one context: the first stands for it. The accuracy of negations
    is that of their affirmative statements, since for a negated one hardly any word is wrong.
    """
    asked, places = Questions(), count()
    bins = _cloze_bins(data)
    roles: dict[tuple[str, str], int] = {}
    for item in data.items:
        own = [next(places) for _ in item.prompts]
        if isinstance(item, InferenceItem):
            parts = (Constraint(CONSTRAINTS[item.constraint]),)
            asked.completions.append(Completion(own[0], _first_words(item.expected), parts))
            asked.contrasts.append(Contrast(own[0], tuple(own[1:]), parts))
        elif isinstance(item, RoleItem):
            upper = next(one for one in bins if item.cloze <= one.upper)
            asked.completions.append(Completion(own[0], _first_words(*item.expected), (upper,)))
            roles[item.pair, item.role] = own[0]
        elif isinstance(item, NegationItem):
            if item.licensing is None:
                expected, subject = _first_words(item.true_affirmative), _subject(item)
                asked.completions.append(Completion(own[0], expected, subject=subject))
            asked.contrasts.extend(_truths(item, own))
            asked.negations.extend(_negations(item, own))
        elif isinstance(item, SentencePair):
            negated = isinstance(item, NegatedPair)
            both = [Completion(*one) for one in zip(own, _targets(item), strict=True)]
            asked.completions.extend(both[:1] if negated else both)
            if negated:
                asked.negated.append((own[0], own[1]))
        if not isinstance(item, SentencePair):
            asked.articles.extend(_articles(item, own))
    pairs = dict.fromkeys(pair for pair, _ in roles)
    asked.contrasts.extend(Contrast(roles[pair, "a"], (roles[pair, "b"],)) for pair in pairs)
    return asked


def _truths(item: NegationItem, own: list[int]) -> Iterator[Contrast]:
    """True against false, of the statement and of its negation."""
    true_affirmative, false_negative, false_affirmative, true_negative = own
    for polarity, true, false in (
        ("affirmative", true_affirmative, false_affirmative),
        ("negative", true_negative, false_negative),
    ):
        parts: tuple[Subset, ...] = (Statements(polarity),)
        for part in _naturalness(item):
            parts += (part, Statements(polarity, part.naturalness))
        yield Contrast(true, (false,), parts)


def _negations(item: NegationItem, own: list[int]) -> Iterator[Negation]:
    """A statement and its negation: once, or once an article where its two words ask for both."""
    seen = set()
    for first, second in ((own[0], own[1]), (own[2], own[3])):
        context = item.prompts[first - own[0]].context
        if context not in seen:
            seen.add(context)
            yield Negation(first, second, _naturalness(item))


def _naturalness(item: NegationItem) -> tuple[Statements, ...]:
    return () if item.licensing is None else (Statements("", NATURALNESS[item.licensing]),)


def _subject(item: NegationItem) -> str:
    """The noun before the verb that "not" stands behind; empty where there is none."""
    words = item.negative.split()
    place = words.index("not") if "not" in words else 0
    return words[place - 2] if place >= 2 else ""


def _articles(item: Item, own: list[int]) -> Iterator[Continuation]:
    """The contexts that end in an article, each of them once."""
    places: dict[str, int] = {}
    for place, prompt in zip(own, item.prompts, strict=True):
        places.setdefault(prompt.context, place)
    for context, place in places.items():
        article = context.split()[-1].lower()
        if article in ARTICLES:
            yield Continuation(place, article)


def _cloze_bins(data: DiagnosticSet) -> list[ClozeBin]:
    """The quarters of ROLE-88, by the cloze value of the best completion."""
    cloze = [item.cloze for item in data.items if isinstance(item, RoleItem)]
    edges = np.percentile(cloze, [25, 50, 75, 100]).tolist() if cloze else []
    return [ClozeBin(upper) for upper in dict.fromkeys(edges)]


def _targets(item: SentencePair) -> list[tuple[str, ...]]:
    return [(prompt.target,) for prompt in item.prompts]


def _first_words(*completions: str) -> tuple[str, ...]:
    return tuple(completion.split()[0] for completion in completions)
