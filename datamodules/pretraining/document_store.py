"""Documents as one flat array of token ids, each split into sentences, some of them held out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from probelight.build.sources.verbalise import Document, plain
from probelight.datamodules.pretraining.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class DocumentStore:
    """Documents as one flat array of token ids.

    Attributes:
        ids: (T,) token ids of all sentences, one after the other.
        sentence_starts: (S + 1,) offsets into `ids`.
        document_starts: (D + 1,) offsets into `sentence_starts`.
        held_out: (D,) whether a document is kept for measuring.
    """

    ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray
    held_out: np.ndarray

    def sentences(self, document: int) -> list[np.ndarray]:
        """Token ids of each sentence of a document."""
        first, last = self.document_starts[document], self.document_starts[document + 1]
        bounds = self.sentence_starts[first : last + 1]
        return [self.ids[a:b] for a, b in pairwise(bounds)]

    def lengths(self) -> np.ndarray:
        """(D,) tokens of each document."""
        return np.diff(self.sentence_starts[self.document_starts])


def tokenise(documents: list[Document], pieces: list[str], held_out_rate: float) -> DocumentStore:
    """Tokenises every sentence once; documents are held out by the hash of their key."""
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer({p: i for i, p in enumerate(pieces)}, lowercase=True)
    sentences = [plain(s) for d in documents for s in d.sentences]
    encoded = tokenizer.encode_batch(sentences, add_special_tokens=False)
    lengths = [len(e.ids) for e in encoded]
    held_out = [_unit_hash(d.key) < held_out_rate for d in documents]
    assert tuple(pieces[:5]) == SPECIAL_TOKENS
    assert len(pieces) < 2**16, "token ids are stored in 16 bits"
    return DocumentStore(
        ids=np.fromiter((i for e in encoded for i in e.ids), np.uint16, sum(lengths)),
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]),
        document_starts=np.concatenate([[0], np.cumsum([len(d.sentences) for d in documents])]),
        held_out=np.array(held_out),
    )


def _unit_hash(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
