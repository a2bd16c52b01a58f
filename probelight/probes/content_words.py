"""The content words of a text (Talmor 2020, section 5), and the stems of words."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

# The closed classes of English (Quirk et al. 1985, chapter 2), the paper's list is not published.
# The answers of some probes ("not", "always", "larger") are content here: they are what is asked.
FUNCTION_WORDS = frozenset(
    (
        # Articles and determiners.
        "a an the this that these those some any each every either neither no all both half such "
        "another other others much many more most few fewer fewest little less least several "
        "enough "
        # Pronouns.
        "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him "
        "his himself she her hers herself it its itself they them their theirs themselves one "
        "ones who whom whose which what where when why how that there here someone somebody "
        "something anyone anybody anything everyone everybody everything nobody nothing none "
        # Prepositions.
        "about above across after against along among amongst around as at before behind below "
        "beneath beside besides between beyond by despite down during except for from in inside "
        "into like near of off on onto out outside over past per since through throughout till to "
        "toward towards under until up upon via with within without "
        # Conjunctions.
        "and or but nor so yet if because although though while whereas unless than whether "
        # Auxiliaries.
        "am is are was were be been being have has had having do does did doing done can could "
        "may might must shall should will would ought cannot "
        # Clitics.
        "s t d ll m re ve "
    ).split()
)
_WORD = re.compile(r"[a-z]+|\d+")
_TOKEN = re.compile(r"[^\W_]+")


def content_words(text: str) -> list[str]:
    """Words and numbers of a text in lower case, in order, without function words and masks."""
    return [
        word
        for word in _WORD.findall(text.replace("[MASK]", " ").lower())
        if word not in FUNCTION_WORDS
    ]


def telling_words(text: str) -> list[str]:
    """Words of any script in lower case without function words; all, where it has no others."""
    words = words_in(text)
    return [word for word in words if word not in FUNCTION_WORDS] or words


def words_in(text: str) -> list[str]:
    """All words and numbers of a text, of any script, in lower case and in order."""
    return _TOKEN.findall(text.lower())


def stems_in(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem_of, words_in(text)))


@lru_cache(maxsize=100_000)
def stem_of(word: str) -> str:
    """Return the stem of an English word: "poke", "poking" and "poked" have one.

    Snowball's English stemmer (Porter 2001). Irregular forms ("broke") keep stems of their own.

    Args:
        word: In any case.
    """
    stem: str = _stemmer().stemWord(word.lower())
    return stem


@cache
def _stemmer() -> Any:
    import snowballstemmer  # not above: it loads the stemmers of forty languages

    return snowballstemmer.stemmer("english")
