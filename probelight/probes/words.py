"""The content words of a text (Talmor 2020, section 5), and the stems of words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from probelight.io.documents import whole_number_of
from probelight.io.errors import RecordError
from probelight.io.files import LARGE, read_lines
from probelight.probes.record import Record

# The closed classes of English (Quirk et al. 1985, chapter 2); the paper's list is not published.
# The answers of some probes ("not", "always", "larger") are content words here.
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
    """Return the words and numbers of a text in lower case, without function words and masks."""
    return [
        word
        for word in _WORD.findall(text.replace("[MASK]", " ").lower())
        if word not in FUNCTION_WORDS
    ]


def telling_words(text: str) -> list[str]:
    """Return the words of a text, of any script, without function words unless it has no others."""
    words = words_in(text)
    return [word for word in words if word not in FUNCTION_WORDS] or words


def words_in(text: str) -> list[str]:
    """Return all words and numbers of a text, of any script, in lower case."""
    return _TOKEN.findall(text.lower())


def stems_in(text: str) -> frozenset[str]:
    """Return the stems of all words of a text."""
    return frozenset(map(stem_of, words_in(text)))


@lru_cache(maxsize=100_000)
def stem_of(word: str) -> str:
    """Return the stem of an English word in any case: "poke", "poking" and "poked" have one.

    Snowball's English stemmer (Porter 2001). Irregular forms ("broke") keep stems of their own.
    """
    stem: str = _stemmer().stemWord(word.lower())
    return stem


@cache
def _stemmer() -> Any:
    import snowballstemmer  # not above: it loads the stemmers of forty languages

    return snowballstemmer.stemmer("english")


@dataclass(frozen=True)
class Unigrams:
    """Counts of some words of a corpus."""

    counts: Mapping[str, int]
    num_tokens: int  # running words of the whole corpus
    num_types: int  # different words of the whole corpus


@dataclass(frozen=True)
class CorpusFit:
    """How common a probe's content words are in a corpus."""

    mean_log_probability: float  # over the running content words
    num_words: int
    num_unseen: int  # words that the corpus lacks


def read_unigrams(path: str | Path, words: Collection[str]) -> Unigrams:
    """Read a count file (plain, .gz or .zip): a word, a tab or spaces, and its count on each line.

    Only `words`, in lower case, are kept. A RecordError names the line that is malformed.
    """
    kept_words = frozenset(words)
    counts: Counter[str] = Counter()
    num_tokens = num_types = 0
    for number, line in read_lines(path, limit=LARGE):
        if not line.strip():
            continue
        cells = line.rsplit(maxsplit=1)
        count = whole_number_of(cells[-1])
        if len(cells) != 2 or count is None or count < 0:
            raise RecordError(
                f"{path}:{number}: {line[:60]!r} is not a word and its count, with a tab or spaces "
                "between them"
            )
        num_tokens += count
        num_types += 1
        word = cells[0].strip().lower()
        if word in kept_words:
            counts[word] += count
    if num_tokens == 0:
        raise RecordError(f"{path}: the file has no word counts")
    return Unigrams(dict(counts), num_tokens, num_types)


def words_of_records(records: Iterable[Record]) -> Counter[str]:
    """Count the content words of stems and choices."""
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(content_words(" ".join((record.stem, *record.choices))))
    return counts


def corpus_fit(words: Mapping[str, int], corpus: Unigrams) -> CorpusFit:
    """Measure how common a probe's content words (`words_of_records`) are in a corpus.

    A word's probability is (count + 1) / (tokens + types + 1): add-one, with one type unseen. A
    ValueError says that there are no words.
    """
    total = sum(words.values())
    if not total:
        raise ValueError("the probe has no content words")
    log_size = math.log(corpus.num_tokens + corpus.num_types + 1)
    log_sum = math.fsum(
        n * (math.log(corpus.counts.get(word, 0) + 1) - log_size) for word, n in words.items()
    )
    unseen = sum(n for word, n in words.items() if not corpus.counts.get(word))
    return CorpusFit(log_sum / total, total, unseen)
