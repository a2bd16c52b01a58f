"""The training text of the bundled model, from WordNet and GCIDE, and its vocabulary."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from probelight.build.sources.gcide import read_gcide
from probelight.build.sources.verbalise import Document, gcide_documents, plain, wordnet_documents
from probelight.build.sources.wordnet import mostly_noun, open_wordnet
from probelight.io.atomic import remove_leftovers, write_bytes_atomic, write_text_atomic

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY, TOKENS = "vocab.txt", "tokens.npz"


def build_text(
    folder: Path,
    *,
    wordnet_dir: str,
    gcide_path: str,
    whole_words: Sequence[str],
    num_nouns: int,
    vocab_size: int,
    held_out_rate: float,
    seed: int,
) -> None:
    """Build `vocab.txt`, one piece per line in id order, and then `tokens.npz` in a folder.

    Each of `whole_words`, the numbers 0 to 120 and `num_nouns` frequent nouns is one piece. A
    `held_out_rate` of the documents is kept for measuring; `seed` words WordNet's relations.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wordnet = open_wordnet(wordnet_dir)
    documents = list(wordnet_documents(wordnet, seed))
    documents += gcide_documents(read_gcide(gcide_path))
    numbers = [str(n) for n in range(121)]
    whole = [*whole_words, *numbers, *frequent_nouns(wordnet, num_nouns)]
    texts = (plain(s) for d in documents for s in d.sentences)
    pieces = train_wordpiece(texts, whole, vocab_size)
    write_text_atomic(folder / VOCABULARY, "\n".join(pieces) + "\n")
    buffer = io.BytesIO()
    np.savez(buffer, **vars(tokenise(documents, pieces, held_out_rate)))
    write_bytes_atomic(folder / TOKENS, buffer.getvalue())
    remove_leftovers(folder)


def train_wordpiece(texts: Iterable[str], whole_words: Sequence[str], vocab_size: int) -> list[str]:
    """Train WordPiece, with `whole_words` as single pieces; return the pieces in id order.

    They are special tokens, single characters, `whole_words`, then the most frequent trained
    pieces, `vocab_size` in all. A ValueError says that the whole words do not fit.
    """
    from tokenizers import BertWordPieceTokenizer

    trainer = BertWordPieceTokenizer(lowercase=True)
    trainer.train_from_iterator(
        texts, vocab_size=vocab_size, min_frequency=2, show_progress=False, limit_alphabet=120
    )
    by_id = sorted(trainer.get_vocab().items(), key=lambda item: item[1])
    trained = [piece for piece, _ in by_id if piece not in SPECIAL_TOKENS]
    characters = [piece for piece in trained if len(piece.removeprefix("##")) == 1]
    pieces = dict.fromkeys([*SPECIAL_TOKENS, *characters, *(w.lower() for w in whole_words)])
    if len(pieces) > vocab_size:
        raise ValueError(
            f"vocab_size={vocab_size} is too small for {len(pieces)} pieces that must be in it"
        )
    more = (piece for piece in trained if piece not in pieces)
    return [*pieces, *islice(more, vocab_size - len(pieces))]


def frequent_nouns(wordnet: Any, num_nouns: int) -> list[str]:
    """Return the most frequent English nouns by `wordfreq`, by two readings of "noun".

    The union of the first `num_nouns` words that WordNet lists as a noun at all, and of the first
    that it counts as a noun at least as often as anything else.
    """
    from wordfreq import top_n_list

    words = (word for word in top_n_list("en", 8 * num_nouns) if len(word) > 1)
    words = (word for word in words if word.isascii() and word.isalpha())
    listed = [word for word in words if wordnet.synsets(word, "n")]
    mostly = (word for word in listed if mostly_noun(wordnet, word))
    return list(dict.fromkeys([*listed[:num_nouns], *islice(mostly, num_nouns)]))


@dataclass(frozen=True)
class DocumentStore:
    """Documents as one flat array of token ids."""

    ids: np.ndarray  # (T,) of all sentences, one after the other
    sentence_starts: np.ndarray  # (S + 1,) offsets into `ids`
    document_starts: np.ndarray  # (D + 1,) offsets into `sentence_starts`
    held_out: np.ndarray  # (D,) whether a document is kept for measuring

    def sentences(self, document: int) -> list[np.ndarray]:
        """Return the token ids of each sentence of a document."""
        first, last = self.document_starts[document : document + 2]
        return [self.ids[a:b] for a, b in pairwise(self.sentence_starts[first : last + 1])]

    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each document, (D,)."""
        return np.diff(self.sentence_starts[self.document_starts])

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `build_text` wrote."""
        with np.load(folder / TOKENS) as arrays:
            return cls(**{name: arrays[name] for name in arrays.files})


def tokenise(documents: list[Document], pieces: list[str], held_out_rate: float) -> DocumentStore:
    """Tokenise every sentence; documents are held out by the hash of their key."""
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer({p: i for i, p in enumerate(pieces)}, lowercase=True)
    sentences = [plain(s) for d in documents for s in d.sentences]
    encoded = tokenizer.encode_batch(sentences, add_special_tokens=False)
    lengths = [len(e.ids) for e in encoded]
    digests = [hashlib.sha256(d.key.encode()).hexdigest() for d in documents]
    held_out = [int(digest[:8], 16) / 2**32 < held_out_rate for digest in digests]
    assert tuple(pieces[:5]) == SPECIAL_TOKENS
    assert len(pieces) < 2**16, "token ids are stored in 16 bits"
    return DocumentStore(
        ids=np.fromiter((i for e in encoded for i in e.ids), np.uint16, sum(lengths)),
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]),
        document_starts=np.concatenate([[0], np.cumsum([len(d.sentences) for d in documents])]),
        held_out=np.array(held_out),
    )
