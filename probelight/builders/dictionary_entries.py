"""Senses of a dictionary that can be asked about, and which of them differ for certain.

Definitions that may mean the same cannot be the right and a wrong answer of one question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from probelight.builders.hygiene import Finding
from probelight.builders.sources.gcide import Sense
from probelight.probes.record import Record
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
    """Return the content words of a text, cut to their first letters ("heated" as "heating")."""
    words = _WORD.findall(text.lower())
    return frozenset(w[:num_letters] for w in words if w not in _FUNCTION_WORDS and len(w) > 1)


def overlap(first: str, second: str) -> float:
    """Return the share of the shorter text's content words that the other has; 1 if it has none."""
    ours, theirs = beginnings(first), beginnings(second)
    return len(ours & theirs) / min(len(ours), len(theirs)) if ours and theirs else 1.0


def contains_form(word: str, definition: str) -> bool:
    """Return whether a definition has the word or a form of it, so that spelling gives it away.

    Forms share a stem ("hitter", "hits"), or one contains the other ("unhappy", "happy").
    """
    word, stem, ending_off = word.lower(), stem_of(word), _without_ending(word.lower())
    for token in _WORD.findall(definition.lower()):
        if stem_of(token) == stem:
            return True
        if token in _FUNCTION_WORDS:
            continue
        if len(token) >= _FEW_LETTERS and token[:_NUM_LETTERS] in word:
            return True
        shorter, longer = sorted((ending_off, _without_ending(token)), key=len)
        more = len(longer) - len(shorter)
        if len(shorter) > 2 and longer.startswith(shorter) and (more < 3 or len(shorter) > 3):
            return True
    return False


@cache
def _without_ending(word: str) -> str:
    """Strip an ending, roughly: enough to see that two words are forms of one."""
    stem = _ENDING.sub("", word)
    return stem[:-1] if stem != word and stem[-2:-1] == stem[-1:] else stem


@cache
def synonyms_in(definition: str) -> frozenset[str]:
    """Return the one-word clauses of a definition: both of "To bear; to endure"."""
    clauses = [_WORD.findall(clause) for clause in re.split(r"[;,:]", definition.lower())]
    words = [[w for w in c if w not in ARTICLES] for c in clauses]
    return frozenset(clause[0] for clause in words if len(clause) == 1)


def say_the_same(first: str, second: str) -> bool:
    """Return whether two definitions share many words, or a synonym that both give."""
    return overlap(first, second) > _ALIKE or not synonyms_in(first).isdisjoint(synonyms_in(second))


def share_a_word(first: str, second: str) -> bool:
    """Return whether definitions share any content word ("joined" and "joint" count as one).

    Two senses of one word that do are often hard to tell apart.
    """
    return not beginnings(first, _FEW_LETTERS).isdisjoint(beginnings(second, _FEW_LETTERS))


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
    """A sense that can be asked about."""

    name: str  # as in released notes: word, part of speech, number among the senses
    word: str  # in lower case
    pos: str  # n, v, a or adv
    surface_form: str  # the word as it is in the usage
    usage: str  # an expression with the word in this sense
    definition: str


def read_entries(senses: Iterable[Sense]) -> Iterator[Entry]:
    """Yield the senses to ask about, without repeating a definition, or a word with its usage."""
    num_senses, seen = Counter[str](), set[str]()
    for sense in senses:
        word, pos = sense.word.lower(), _PARTS.get(sense.part_of_speech)
        num_senses[word] += 1
        if pos is None or not word.isalpha() or len(word) < 2:
            continue
        definition = clean_definition(sense.definition)
        if definition is None or definition in seen or contains_form(word, definition):
            continue
        for surface_form, usage in _usages(sense, word, pos):
            key = f"{word}: {usage.lower()}"
            if contains_form(surface_form, definition):
                continue
            if key not in seen and overlap(usage, definition) == 0:
                seen |= {key, definition}
                name = f"{word}.{pos}.{num_senses[word]}"
                yield Entry(name, word, pos, surface_form, usage, definition)
                break


def clean_definition(text: str) -> str | None:
    """Return the first sentence of a definition without remarks, or None if it is unfit."""
    text = _SUBSENSE.split(text)[-1]
    text = _REMARK.sub("", _first_sentence(_OPENING.sub("", text))).strip(" .,;:")
    text = text[:1].upper() + text[1:]
    if len(text) not in _LENGTHS or not text[0].isalpha() or text.count("(") != text.count(")"):
        return None
    return None if _REFERENCE.search(text) or _UNFIT.search(text) else text


def _usages(sense: Sense, word: str, pos: str) -> Iterator[tuple[str, str]]:
    """Yield each fit usage with the word as it appears there: (shown word, usage)."""
    inflections = inflections_of(word, pos)
    quoted = _QUOTED.findall(" ".join([sense.definition, *sense.examples]))
    for example in (*sense.examples, *quoted):
        if _SUBSENSE.search(example):
            return  # what follows is of another sense
        usage = _first_sentence(example).strip(" .,;:")
        usage = _LOOSE_END.sub("", _EXPLAINED.sub("", usage)).strip(" .,;:")
        if _REFERENCE.search(usage) or _UNFIT.search(usage) or usage.endswith("'"):
            continue
        words = _LETTERS.findall(usage)
        surface_form = next((w for w in words if w.lower() in inflections), None)
        context_words = {w.lower() for w in words if w != surface_form} - ARTICLES
        if surface_form and context_words and len(usage.split()) in _USAGE_WORDS:
            yield surface_form, usage


def _first_sentence(text: str) -> str:
    for end in _NEXT_SENTENCE.finditer(text):
        if not _ABBREVIATION.search(text[: end.start()]):
            return text[: end.start()]
    return text


def inflections_of(word: str, pos: str) -> set[str]:
    """Return a word and its regular inflections."""
    endings = {"n": ("s", "es"), "v": ("s", "es", "ed", "ing", "d")}.get(pos, ())
    inflections = {word, *(word + end for end in endings)}
    if word.endswith("y") and endings:
        inflections |= {word[:-1] + "ies", word[:-1] + "ied"}
    if word.endswith("e") and pos == "v":
        inflections.add(word[:-1] + "ing")
    if pos == "v":
        inflections |= {word + word[-1] + "ed", word + word[-1] + "ing"}
    return inflections


class DistinctSenses:
    """Decides whether the definition of one entry is wrong where that of another is right.

    `senses` is the whole dictionary: the one-word clauses of a definition are synonyms of its word.
    """

    def __init__(self, senses: Iterable[Sense]) -> None:
        self._synonyms: dict[str, set[str]] = {}
        for sense in senses:
            for word in synonyms_in(sense.definition):
                self._synonyms.setdefault(sense.word.lower(), set()).add(word)

    def __call__(self, first: Entry, second: Entry) -> bool:
        """Return whether the definition of either entry is wrong for the other."""
        ours, theirs = synonyms_in(first.definition), synonyms_in(second.definition)
        if say_the_same(first.definition, second.definition) or self._linked(ours, theirs):
            return False
        if first.word == second.word:
            return not share_a_word(first.definition, second.definition)
        return not (self._linked([first.word], theirs) or self._linked([second.word], ours))

    def _linked(self, ours: Iterable[str], theirs: Iterable[str]) -> bool:
        """Return whether two words are equal or synonyms."""
        return any(
            word == other_word
            or other_word in self._synonyms.get(word, ())
            or word in self._synonyms.get(other_word, ())
            for word in ours
            for other_word in theirs
        )


def check_senses(records: Sequence[Record]) -> list[Finding]:
    """Find wrong answers that nearly repeat the gold, in DictionaryQA's items (`sense_choices`)."""
    return [
        Finding("wrong answer like the gold", record.where, f"{text[:60]!r}, {record.gold[:60]!r}")
        for record in records
        if "sense_choices" in record.meta
        for text in record.wrong
        if say_the_same(text, record.gold)
    ]
