"""Senses that can be asked about: a short definition, and a usage with the word in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from probelight.build.dictionary_probe.likeness import ARTICLES, overlap, spells
from probelight.build.sources.gcide import Sense

_LENGTHS = range(12, 161)  # characters of a definition
_USAGE_WORDS = range(2, 19)
_PARTS = {"n": "n", "v": "v", "a": "a", "adj": "a", "adv": "adv"}
_SUBSENSE = re.compile(r"(?:^|[\s;,])\([a-z]\)\s")
_OPENING = re.compile(
    r"^((Hence|Specifically|Specif\.|Figuratively|Fig\.|Symbolically|Also|Especially|Esp\.)[,;:]*\s+"
    r"|\([^)]*\)\s*|pl\.\s+)+"
)
_NEXT_SENTENCE = re.compile(r"\.\s+(?=[A-Z\"(])")
# "; -- said of a flying machine": on the word, not what it means.
_REMARK = re.compile(
    r"\s*(?:[;,:]\s*|--\s*)+(?:(?:but|and|now|also|chiefly|often|usually|generally|commonly|formerly"
    r"|sometimes|frequently|especially|only|mostly|rarely|esp\.?)\s+)*"
    r"(?:said|used|applied|opposed|followed|distinguished|contrasted|correlative|called|written"
    r"|with (?:of|to|from|on|in|with|for|by|at|into|upon|that)\b).*$|\s*--.*$"
)
_LOOSE_END = re.compile(r",?\s*(?:etc|\&c|and the like|or the like)\.?$|\s+--.*$")
_EXPLAINED = re.compile(r"[,:]?\s*(?:\(|\bthat is\b|\bi\. ?e\b|, (?:to|or|the|a|an) ).*$")
_ABBREVIATION = re.compile(r"\b(?:[A-Z][a-z]{0,2}|esp|specif|cf|pl|e\.g|i\.e)$")
# Cross-references, remarks on use, and what is left where a quotation or a label was cut out.
_REFERENCE = re.compile(
    r"\bSee\b|\bSame as\b|\bCf\b|\bObs|\bNote\b|\bSyn\b|\bsenses?\b of|\bprefix\b|\bsuffix\b"
    r"|[\[\]{}|\\<>\"\u201c\u201d*=]|(?<!\besp)(?<!\betc)\. |\bimp\.|\bp\. ?p\b|\bpl\b|,\s*,"
    r"|\(\s*\)|;\s*[,;]"
)
_UNFIT = re.compile(
    r"\b(negro\w*|nigger\w*|savages?|heathen\w*|jews?|jewish|mohammedan\w*|gyps(y|ies)|indians?|"
    r"coition|coitus|copulat\w*|harlot\w*|lewd\w*|whore\w*|prostitut\w*|rape\w*|sexual\w*|slut\w*|"
    r"idiots?|cripples?|lunatics?|squaws?|infidels?|sodom\w*|genital\w*|obscen\w*)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"\s*([A-Za-z][^"]+?)\s*"')
_LETTERS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class Entry:
    """A sense that can be asked about.

    Attributes:
        name: As the released notes name it: word, part of speech, place among the word's senses.
        word: The headword in lower case.
        part: "n", "v", "a" or "adv".
        shown: The word as it stands in the usage.
        usage: An expression with the word in this sense.
        definition: What the word means there.
    """

    name: str
    word: str
    part: str
    shown: str
    usage: str
    definition: str


def read_entries(senses: Iterable[Sense]) -> Iterator[Entry]:
    """The senses that can be asked about; no two have one definition, or one word and usage."""
    places, seen = Counter[str](), set[str]()
    for sense in senses:
        word, part = sense.word.lower(), _PARTS.get(sense.part_of_speech)
        places[word] += 1
        if part is None or not word.isalpha() or len(word) < 2:
            continue
        definition = clean_definition(sense.definition)
        if definition is None or definition in seen or spells(word, definition):
            continue
        for shown, usage in _usages(sense, word, part):
            key = f"{word}: {usage.lower()}"
            if spells(shown, definition):
                continue
            if key not in seen and overlap(usage, definition) == 0:
                seen |= {key, definition}
                yield Entry(f"{word}.{part}.{places[word]}", word, part, shown, usage, definition)
                break


def clean_definition(text: str) -> str | None:
    """The first sentence of a definition without remarks on the word, or None if it is unfit."""
    text = _SUBSENSE.split(text)[-1]
    text = _REMARK.sub("", _first_sentence(_OPENING.sub("", text))).strip(" .,;:")
    text = text[:1].upper() + text[1:]
    if len(text) not in _LENGTHS or not text[0].isalpha() or text.count("(") != text.count(")"):
        return None
    return None if _REFERENCE.search(text) or _UNFIT.search(text) else text


def _usages(sense: Sense, word: str, part: str) -> Iterator[tuple[str, str]]:
    """The word as it stands in a usage, and the usage, of each that is fit."""
    wanted = forms(word, part)
    quoted = _QUOTED.findall(" ".join([sense.definition, *sense.examples]))
    for example in (*sense.examples, *quoted):
        if _SUBSENSE.search(example):
            return  # what follows is of another sense
        usage = _first_sentence(example).strip(" .,;:")
        usage = _LOOSE_END.sub("", _EXPLAINED.sub("", usage)).strip(" .,;:")
        if _REFERENCE.search(usage) or _UNFIT.search(usage) or usage.endswith("'"):
            continue
        words = _LETTERS.findall(usage)
        shown = next((w for w in words if w.lower() in wanted), None)
        beside = {w.lower() for w in words if w != shown} - ARTICLES
        if shown and beside and len(usage.split()) in _USAGE_WORDS:
            yield shown, usage


def _first_sentence(text: str) -> str:
    for end in _NEXT_SENTENCE.finditer(text):
        if not _ABBREVIATION.search(text[: end.start()]):
            return text[: end.start()]
    return text


def forms(word: str, part: str) -> set[str]:
    """How a word may stand in a usage: as it is, or with its part of speech's regular endings."""
    ends = {"n": ("s", "es"), "v": ("s", "es", "ed", "ing", "d")}.get(part, ())
    found = {word, *(word + end for end in ends)}
    if word.endswith("y") and ends:
        found |= {word[:-1] + "ies", word[:-1] + "ied"}
    if word.endswith("e") and part == "v":
        found.add(word[:-1] + "ing")
    if part == "v":
        found |= {word + word[-1] + "ed", word + word[-1] + "ing"}
    return found
