"""Word vectors for the baselines, from the text that the bundled model is trained on.

The largest singular vectors of the positive pointwise mutual information of words within a window:
what GloVe and word2vec factorise too (Levy & Goldberg 2014), but the same numbers at every run.
`python -m tools.word_vectors assets/word_vectors.txt` makes those that are shipped.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse import auto_cli
from scipy import sparse
from scipy.sparse.linalg import svds

from probelight.builders.sources.gcide import read_gcide
from probelight.builders.sources.wordnet import open_wordnet, plain
from probelight.io.atomic import write_text_atomic
from tools.documents import gcide_documents, wordnet_documents

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[.,;:?!()\"-]")
_CONTEXT_POWER = 0.75  # smooths the share of a context word, so that rare ones score less
_SINGULAR_POWER = 0.5  # how much the first, most general directions count
# Numbers and closed answers, which the probes need however rare the text has them.
PROBE_WORDS = (
    *map(str, range(121)),
    *"never rarely sometimes often always younger older larger smaller not really first".split(),
    *"second third blah ya foo snap woo boo da wee foe fee".split(),
)
_BLOCK = 2_000_000  # tokens counted at once


def build_vectors(output_path: Path) -> Path:
    """Build the shipped file, assets/word_vectors.txt; a missing source is a FileNotFoundError.

    Args:
        output_path: File to write.
    """
    documents = chain(wordnet_documents(open_wordnet()), gcide_documents(read_gcide()))
    texts = (" . ".join(map(plain, document.sentences)) for document in documents)
    build_word_vectors(texts, output_path)
    return output_path


def build_word_vectors(
    texts: Iterable[str],
    output_path: Path,
    num_words: int = 10_000,
    dimension: int = 50,
    window: int = 5,
    extra_words: Sequence[str] = PROBE_WORDS,
) -> list[str]:
    """Write vectors in GloVe's text format, frequent words first; return the words.

    `texts` are documents, over whose ends no `window` reaches; a neighbour counts 1 / distance.
    `extra_words` get a vector however rare they are, if they occur at all.
    """
    # Interned, the ten million tokens are pointers to a few distinct strings.
    tokens = [[sys.intern(word) for word in _WORD.findall(text.lower())] for text in texts]
    counts = Counter(word for text in tokens for word in text)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    candidates = dict.fromkeys([*(w for w in extra_words if w in counts), *ranked])
    chosen = set(islice(candidates, num_words))
    words = [word for word in ranked if word in chosen]
    if len(words) <= dimension:
        raise ValueError(f"{len(words)} words are too few for vectors of {dimension} dimensions")
    counted = cooccurrences(tokens, words, window)
    vectors = factorise(positive_pmi(counted), dimension)
    rows = zip(words, vectors, strict=True)
    lines = [f"{word} {' '.join(f'{value:.4g}' for value in row)}\n" for word, row in rows]
    write_text_atomic(Path(output_path), "".join(lines))
    return words


def cooccurrences(texts: Iterable[Sequence[str]], words: Sequence[str], window: int) -> Any:
    """Return (W, W) symmetric counts of word pairs within `window`, weighted by 1 / distance."""
    index = {word: number for number, word in enumerate(words)}
    shape = (len(words), len(words))
    total = sparse.csr_matrix(shape, dtype=np.float64)

    def counted(block: list[int]) -> Any:
        ids = np.array(block, dtype=np.int64)
        counts = sparse.csr_matrix(shape, dtype=np.float64)
        for distance in range(1, window + 1):
            first, second = ids[:-distance], ids[distance:]
            both = (first >= 0) & (second >= 0)
            weights = np.full(int(both.sum()), 1.0 / distance)
            counts = counts + sparse.csr_matrix((weights, (first[both], second[both])), shape=shape)
        return counts

    block: list[int] = []
    for text in texts:
        block += [index.get(token, -1) for token in text]
        block += [-1] * window  # no pair reaches over the end of a text
        if len(block) > _BLOCK:
            total = total + counted(block)
            block = []
    total = total + counted(block)
    return (total + total.T).tocsr()


def positive_pmi(counts: Any) -> Any:
    """Return (W, W) max(0, log p(w, c) / (p(w) p(c))), with the context's share smoothed."""
    rows = np.asarray(counts.sum(axis=1)).ravel()
    contexts = np.asarray(counts.sum(axis=0)).ravel() ** _CONTEXT_POWER
    cells = counts.tocoo()
    share = cells.data / rows[cells.row]
    values = np.log(share * contexts.sum() / contexts[cells.col])
    positive = values > 0
    positive_cells = (values[positive], (cells.row[positive], cells.col[positive]))
    return sparse.csr_matrix(positive_cells, shape=counts.shape)


def factorise(matrix: Any, dimension: int) -> FloatArray:
    """Return (W, D) leading singular vectors, scaled; rows have unit mean square.

    Fixed start vector and signs (a column's largest number is positive): the output is
    reproducible.
    """
    start = np.ones(min(matrix.shape))
    singular_vectors, values, _ = svds(matrix, k=dimension, v0=start, solver="arpack")
    order = np.argsort(-values, kind="stable")
    vectors = singular_vectors[:, order] * values[order] ** _SINGULAR_POWER
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(dimension)])
    return np.asarray(vectors / np.sqrt(np.mean(vectors**2)))


if __name__ == "__main__":
    auto_cli(build_vectors, as_positional=True)
