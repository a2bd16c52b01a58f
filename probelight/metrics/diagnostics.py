"""Word prediction and sensitivity (Ettinger 2020, section 5), from the words of any model."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from unicodedata import normalize

MARGIN = 0.01  # in points of probability
ARTICLES = ("a", "an")
_VOWEL = re.compile(r"[aeiou]")
# Letters that are not spoken as they are written: "hour", "unit", "one".
_SILENT_H = re.compile(r"h(?:eir|erb(?!ert|iv)|on(?:est|or|our)|our)")
_CONSONANT = re.compile(
    r"(?:one|once)(?!\w)|ones|oneness|eu|ewe|u(?:biq|gand|k[ru]|lyss|nani|ni(?![mn]|dent)|"
    r"r(?:an|ea|[iou])|s[aeiu]|t(?:ah|[eio]))"
)


def in_top(predictions: Sequence[str], expected: Collection[str], k: int) -> bool:
    """Return whether an expected word is among a model's k best words (case-sensitive).

    Args:
        predictions: The model's words, the best one first.
        expected: Words that count as right.
        k: How many of the model's words to look at.
    """
    return not set(predictions[:k]).isdisjoint(expected)


def prefers(good: float, bad: Collection[float], margin: float = 0.0) -> bool:
    """Return whether the good completion is more probable than every bad one, by over a margin.

    Args:
        good: Probability of the good completion.
        bad: Probabilities of the bad completions.
        margin: Difference that must be exceeded.
    """
    return all(good - probability > margin for probability in bad)


def says(predictions: Sequence[str], word: str) -> bool:
    """Return whether a model's best word is `word` (not case-sensitive)."""
    return bool(predictions) and predictions[0].casefold() == word.casefold()


def obeys_article(predictions: Sequence[str], article: str) -> bool:
    """Return whether a model's best word fits the article before it, "a" or "an".

    The first letter of the word decides. Exceptions are a silent h ("hour", "honest", "heir", and
    "herb" as in American English) and words that begin with the sound of "you" or "won" ("unit",
    "user", "euro", "one"). Abbreviations count as words. A word that does not begin with a letter
    (a number, a sign, a part of a word) fits neither article.
    """
    if not predictions or not predictions[0][:1].isalpha():
        return False
    word = normalize("NFKD", predictions[0].casefold())  # é begins as e does
    vowel = bool(_SILENT_H.match(word) or (_VOWEL.match(word) and not _CONSONANT.match(word)))
    return vowel == (article == "an")


def keeps_word(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether a model's best word is the same after two contexts (case-sensitive).

    Args:
        first: The model's words after the first context, the best one first.
        second: The model's words after the second context.
    """
    return bool(first) and first[:1] == second[:1]
