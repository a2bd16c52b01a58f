"""The content words of a text (Talmor 2020, section 5), and the stems of words."""

from __future__ import annotations

import re
from functools import lru_cache

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
_ENGLISH = re.compile(r"[a-z]+")


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


# Endings of steps 2 to 4 of Porter (1980) and what takes their place, longer ones first.
_SECOND = (
    "ational:ate ization:ize fulness:ful ousness:ous iveness:ive tional:tion biliti:ble "
    "ation:ate alism:al aliti:al entli:ent ousli:ous iviti:ive ator:ate enci:ence anci:ance "
    "izer:ize abli:able alli:al eli:e"
)
_THIRD = "icate:ic ative: alize:al iciti:ic ical:ic ness: ful:"
_FOURTH = (
    "ement: ance: ence: able: ible: ment: ant: ent: ion: ism: ate: iti: ous: ive: ize: al: er: "
    "ic: ou:"
)


@lru_cache(maxsize=100_000)
def stem_of(word: str) -> str:
    """The stem of an English word: "poke", "poking" and "poked" have one, "empty" and "emptiness".

    Porter (1980, "An algorithm for suffix stripping"), with "ies" of words of four letters ("dies")
    as NLTK has it. Irregular forms ("broke") keep stems of their own, and words that have other
    letters than a to z stay as they are.

    Args:
        word: In any case.
    """
    stem = word.lower()
    if len(stem) < 3 or not _ENGLISH.fullmatch(stem):
        return stem
    if stem.endswith("ies"):
        stem = stem[:-1] if len(stem) == 4 else stem[:-2]
    elif stem.endswith("sses"):
        stem = stem[:-2]
    elif stem.endswith("s") and not stem.endswith("ss"):
        stem = stem[:-1]
    stem = _without_past(stem)
    if stem.endswith("y") and "v" in _letters(stem[:-1]):
        stem = f"{stem[:-1]}i"
    stem = _replaced(_replaced(stem, _SECOND, 1), _THIRD, 1)
    stem = _replaced(stem, _FOURTH, 2)
    if stem.endswith("e"):
        size = _measure(stem[:-1])
        if size > 1 or (size == 1 and not _ends_short(stem[:-1])):
            stem = stem[:-1]
    return stem[:-1] if stem.endswith("ll") and _measure(stem[:-1]) > 1 else stem


def _without_past(word: str) -> str:
    """A word without "-ed" or "-ing", and with the "e" that these took off (step 1b)."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((end for end in ("ed", "ing") if word.endswith(end)), "")
    stem = word.removesuffix(ending)
    if not ending or "v" not in _letters(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if stem[-2:-1] == stem[-1:] and _letters(stem)[-1] == "c" and stem[-1] not in "lsz":
        return stem[:-1]
    return f"{stem}e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _replaced(word: str, endings: str, least: int) -> str:
    """A word with the first of some endings replaced, if what stays before it is long enough."""
    for pair in endings.split():
        ending, _, other = pair.partition(":")
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            fits = _measure(stem) >= least and (ending != "ion" or stem.endswith(("s", "t")))
            return stem + other if fits else word
    return word


def _letters(word: str) -> str:
    """Each letter as "v" for a vowel or "c"; "y" is a vowel after a consonant."""
    kinds = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and kinds.endswith("c"))
        kinds += "v" if is_vowel else "c"
    return kinds


def _measure(word: str) -> int:
    """How many times consonants follow vowels: Porter's m."""
    return _letters(word).count("vc")


def _ends_short(word: str) -> bool:
    """Whether a word ends as "hop" does: consonant, vowel, and a consonant but w, x and y."""
    return _letters(word).endswith("cvc") and word[-1] not in "wxy"
