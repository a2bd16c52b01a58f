"""Word prediction and sensitivity (Ettinger 2020, section 5), of what any model said."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from unicodedata import normalize

MARGIN = 0.01  # in points of probability
ARTICLES = ("a", "an")
_VOWEL = re.compile(r"[aeiou]")
# Letters that are not spoken as they are written: "hour"; "unit" beside "uncle", "one" beside "on".
_SILENT_H = re.compile(r"h(?:eir|erb(?!ert|iv)|on(?:est|or|our)|our)")
_CONSONANT = re.compile(
    r"(?:one|once)(?!\w)|ones|oneness|eu|ewe|u(?:biq|gand|k[ru]|lyss|nani|ni(?![mn]|dent)|"
    r"r(?:an|ea|[iou])|s[aeiu]|t(?:ah|[eio]))"
)


def in_top(predictions: Sequence[str], expected: Collection[str], k: int) -> bool:
    """Whether an expected word is among a model's k best ones; case counts.

    Args:
        predictions: The model's words, the best one first.
        expected: Words that are right.
        k: How many of the model's words count.
    """
    return not set(predictions[:k]).isdisjoint(expected)


def prefers(good: float, bad: Collection[float], margin: float = 0.0) -> bool:
    """Whether a good completion is more probable than every bad one, by more than a margin.

    Args:
        good: Its probability.
        bad: Those of the bad ones.
        margin: What the difference must exceed.
    """
    return all(good - other > margin for other in bad)


def says(predictions: Sequence[str], word: str) -> bool:
    """Whether a model's best word is this one, whatever its case."""
    return bool(predictions) and predictions[0].casefold() == word.casefold()


def obeys_article(predictions: Sequence[str], article: str) -> bool:
    """Whether a model's best word can be behind the article that is before it.

    Behind "an" it must begin with the sound of a vowel, behind "a" with that of a consonant. The
    sound is told from the letters: the first one decides, but for a silent h ("hour", "honest",
    "heir", "herb" as Americans say it) and for the sounds of "you" and "won" ("unit", "user",
    "euro", "one"). Abbreviations count as if they were words. What does not begin with a letter
    (figures, signs, the piece of a word) obeys neither, nor does a model that has no word to say.

    Args:
        predictions: The model's words, the best one first.
        article: "a" or "an".
    """
    if not predictions or not predictions[0][:1].isalpha():
        return False
    word = normalize("NFKD", predictions[0].casefold())  # é begins as e does
    vowel = bool(_SILENT_H.match(word) or (_VOWEL.match(word) and not _CONSONANT.match(word)))
    return vowel == (article == "an")


def keeps_word(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a model's best word behind two contexts is the same one; case counts.

    Args:
        first: Its words behind the one, the best one first.
        second: Its words behind the other.
    """
    return bool(first) and first[:1] == second[:1]
