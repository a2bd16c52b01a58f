"""What WordNet says of a synset, where it can be shown: glosses, and sentences with its word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from probelight.build.sources.verbalise import plain

_MAX_TEXT = 110  # characters of a gloss: longer ones hold lists and remarks
# What is shipped is shown to everybody.
_UNFIT = re.compile(
    r"\b(offensive|obscene|slurs?|disparag\w*|derogatory|vulgar\w*|sexual\w*|genital\w*|rape|"
    r"masturbat\w*|copulat\w*|orgasm\w*|incest\w*|sodom\w*|whores?|suicid\w*|killing yourself)\b"
    r"|pejorative|pornogra|prostitut|--|; ;|; -",  # the last three: authors of quotations
    re.IGNORECASE,
)


def contexts_of(concept: Any, wordnet: Any) -> Iterator[tuple[str, str]]:
    """Of each fit example that has the concept's word: the word as it stands there, the example."""
    lemmas = {name.lower() for name in concept.lemma_names()}
    part = concept.pos()
    for example in concept.examples():
        sentence = plain(example).strip(" \"';")
        if "'" in sentence.replace("'s", "").replace("n't", "") or len(sentence.split()) < 3:
            continue
        if _UNFIT.search(sentence):
            continue
        for word in re.findall(r"[A-Za-z][A-Za-z-]*", sentence):
            base = wordnet.morphy(word.lower(), part)
            if word.lower() in lemmas or (base is not None and base in lemmas):
                yield word, sentence
                break


def is_fit(synset: Any) -> bool:
    """Whether a synset's gloss is short enough, and fit for everybody to read."""
    return is_fit_gloss(synset.definition())


def is_fit_gloss(gloss: str) -> bool:
    """`is_fit` for the text of a gloss."""
    return 8 <= len(gloss) <= _MAX_TEXT and not _UNFIT.search(gloss)
