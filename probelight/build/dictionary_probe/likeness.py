"""When two definitions may say the same, so that the one is no wrong answer beside the other."""

from __future__ import annotations

import re
from functools import cache

from probelight.probes.words import stem_of

_ALIKE = 0.34  # share of the shorter one's content words
_NUM_LETTERS = 5  # that tell a word and what is made of it
_FEW_LETTERS = 4
ARTICLES = frozenset(("a", "an", "the", "to", "or", "and"))  # and the like: they say nothing
_FUNCTION_WORDS = frozenset(
    "a an and any anything as at be been being by for from had has have having in into is it its "
    "made make not of off on one or other out over some something such than that the their them "
    "they this to up upon was what which who whom whose with without act acts state quality kind "
    "manner pertaining relating person thing things used use take takes taking give gives put puts "
    "cause causes bring esp especially hence like more very etc place form body come go part "
    "parts".split()
)
_ENDING = re.compile(r"(?<=\w\w\w)(?:e?s|ed|ing|er|e|y|ly|ness)$")
_WORD = re.compile(r"[^\W\d_]+")


@cache
def beginnings(text: str, num_letters: int = _NUM_LETTERS) -> frozenset[str]:
    """The content words of a text, cut to their beginnings: "heated" is as "heating"."""
    words = _WORD.findall(text.lower())
    return frozenset(w[:num_letters] for w in words if w not in _FUNCTION_WORDS and len(w) > 1)


def overlap(one: str, other: str) -> float:
    """How many of its content words the shorter text shares with the other, as a share.

    A text without any is taken to share all that it has.
    """
    ours, theirs = beginnings(one), beginnings(other)
    return len(ours & theirs) / min(len(ours), len(theirs)) if ours and theirs else 1.0


def spells(word: str, definition: str) -> bool:
    """Whether a definition tells a word by spelling: it has the word, or one made from it."""
    stem = stem_of(word)
    return any(
        stem_of(token) == stem
        or (token not in _FUNCTION_WORDS and _is_made_of(word.lower(), token))
        for token in _WORD.findall(definition.lower())
    )


def _is_made_of(word: str, token: str) -> bool:
    """Whether two words have a stem in common ("hitter", "hits"), or the one is in the other."""
    if len(token) >= _FEW_LETTERS and token[:_NUM_LETTERS] in word:
        return True  # also "unhappy", "happy"
    shorter, longer = sorted((_stem(word), _stem(token)), key=len)
    more = len(longer) - len(shorter)
    return len(shorter) > 2 and longer.startswith(shorter) and (more < 3 or len(shorter) > 3)


@cache
def _stem(word: str) -> str:
    """A word without its ending, roughly: enough to see that two are forms of one."""
    stem = _ENDING.sub("", word)
    return stem[:-1] if stem != word and stem[-2:-1] == stem[-1:] else stem


@cache
def synonyms_in(definition: str) -> frozenset[str]:
    """What a definition gives in a word of its own: "To bear; to endure" gives both."""
    clauses = [_WORD.findall(clause) for clause in re.split(r"[;,:]", definition.lower())]
    words = [[w for w in c if w not in ARTICLES] for c in clauses]
    return frozenset(clause[0] for clause in words if len(clause) == 1)


def say_the_same(one: str, other: str) -> bool:
    """Whether two definitions share many of their words, or a synonym that both give."""
    return overlap(one, other) > _ALIKE or not synonyms_in(one).isdisjoint(synonyms_in(other))


def share_a_word(one: str, other: str) -> bool:
    """Whether definitions have any content word in common, "joined" and "joint" too.

    Two senses of one word that do are often hard to tell apart.
    """
    return not beginnings(one, _FEW_LETTERS).isdisjoint(beginnings(other, _FEW_LETTERS))
