"""The training text of the bundled models, from dictionaries and free texts; their vocabulary."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from probelight.builders.sources.gcide import read_gcide
from probelight.builders.sources.wordnet import mostly_noun, open_wordnet, plain
from probelight.io.atomic import remove_leftovers, write_bytes_atomic, write_text_atomic
from probelight.io.errors import UsageError, nearest
from tools.documents import (
    SUPPLEMENT_SOURCE,
    Document,
    gcide_documents,
    read_remarks,
    remark_documents,
    wordnet_documents,
)
from tools.free_texts import FREE_TEXTS, free_text_documents

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY, TEXT, TOKENS = "vocab.txt", "text.txt.gz", "tokens.npz"


DICTIONARIES = {
    "wordnet": "WordNet 3.0: glosses, examples, taxonomy, parts, opposites",
    "wordnet_relations": "WordNet 3.0, with every relation and all examples",
    "gcide": "GCIDE, the senses of 1913",
    "gcide_supplement": "GCIDE, the senses of the supplement of 1913",
    "gcide_remarks": "GCIDE, collocations, quotations and notes of 1913",
}


def source_titles(sources: Sequence[str]) -> list[str]:
    """Return what is read under the names of sources, and the package of each free text."""
    texts = {n: f"{text.title} (package {text.package})" for n, text in FREE_TEXTS.items()}
    return [{**DICTIONARIES, **texts}[source] for source in sources]


def build_text(
    folder: Path,
    *,
    sources: Sequence[str],
    texts_dir: str,
    common_words: int,
    wordnet_dir: str,
    gcide_path: str,
    whole_words: Sequence[str],
    num_nouns: int,
    vocab_size: int,
    held_out_rate: float,
    seed: int,
) -> None:
    """Build a folder: `vocab.txt`, one piece per line in id order, `text.txt.gz`, `tokens.npz`.

    The text, a sentence per line, is what a probe's contamination is looked for in.
    Each of `whole_words`, the numbers 0 to 120 and `num_nouns` frequent nouns is one piece. A
    `held_out_rate` of the documents is kept for measuring; `seed` words WordNet's relations.
    `sources` are names of `DICTIONARIES` and `FREE_TEXTS`, the latter read below `texts_dir`.
    Dictionary entries are left out if none of their names is made of the `common_words` most
    frequent English words alone (0 keeps every entry). A UsageError names a source that is
    neither, a FileNotFoundError the package of a missing file.
    """
    documents = documents_of(sources, texts_dir, common_words, wordnet_dir, gcide_path, seed)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [str(n) for n in range(121)]
    single_pieces = [*whole_words, *numbers, *frequent_nouns(open_wordnet(wordnet_dir), num_nouns)]
    texts = [plain(s) for d in documents for s in d.sentences]
    pieces = train_wordpiece(texts, single_pieces, vocab_size)
    write_text_atomic(folder / VOCABULARY, "\n".join(pieces) + "\n")
    lines = "".join(f"{text}\n" for text in texts)
    write_bytes_atomic(folder / TEXT, gzip.compress(lines.encode(), mtime=0))
    buffer = io.BytesIO()
    np.savez(buffer, **vars(tokenise(documents, pieces, held_out_rate)))
    write_bytes_atomic(folder / TOKENS, buffer.getvalue())
    remove_leftovers(folder)


def documents_of(
    sources: Sequence[str],
    texts_dir: str,
    common_words: int,
    wordnet_dir: str,
    gcide_path: str,
    seed: int,
) -> list[Document]:
    """Return the documents of the sources; arguments and errors are those of `build_text`."""
    allowed_sources = (*DICTIONARIES, *FREE_TEXTS)
    for source in sources:
        if source not in allowed_sources:
            raise UsageError(
                f"data.sources: no source is called {source!r}{nearest(source, allowed_sources)}; "
                f"choose from {', '.join(allowed_sources)}"
            )
    wordnet = open_wordnet(wordnet_dir)
    read: dict[str, Callable[[], Iterable[Document]]] = {
        "wordnet": lambda: wordnet_documents(wordnet, seed),
        "wordnet_relations": lambda: wordnet_documents(wordnet, seed, every_relation=True),
        "gcide": lambda: gcide_documents(read_gcide(gcide_path)),
        "gcide_supplement": lambda: gcide_documents(read_gcide(gcide_path, SUPPLEMENT_SOURCE)),
        "gcide_remarks": lambda: remark_documents(read_remarks(gcide_path)),
        **{name: partial(free_text_documents, name, texts_dir) for name in FREE_TEXTS},
    }
    documents = [document for source in sources for document in read[source]()]
    if common_words:
        common = is_common(common_words)
        documents = [d for d in documents if not d.words or any(map(common, d.words))]
    return documents


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
    # In an order of their own: the trainer's differs from run to run.
    characters = sorted(
        (piece for piece in trained if len(piece.removeprefix("##")) == 1),
        key=lambda piece: (piece.startswith("##"), piece),
    )
    pieces = dict.fromkeys([*SPECIAL_TOKENS, *characters, *(w.lower() for w in whole_words)])
    if len(pieces) > vocab_size:
        raise ValueError(
            f"vocab_size={vocab_size} is too small: {len(pieces)} tokens must be in the vocabulary"
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


def is_common(num_words: int) -> Callable[[str], bool]:
    """Return a test of whether all parts of a name are among the most frequent English words."""
    from wordfreq import top_n_list

    frequent = frozenset(top_n_list("en", num_words))
    return lambda name: frequent.issuperset(re.split(r"[\s-]+", name.lower()))


@dataclass(frozen=True)
class DocumentStore:
    """Documents as one flat array of token ids."""

    ids: np.ndarray  # (T,) of all sentences, one after the other
    sentence_starts: np.ndarray  # (S + 1,) offsets into `ids`
    document_starts: np.ndarray  # (D + 1,) offsets into `sentence_starts`
    held_out: np.ndarray  # (D,) whether a document is kept for measuring
    in_order: np.ndarray  # (D,) whether a document is running text

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
        in_order=np.array([d.in_order for d in documents]),
    )
