"""An uncased WordPiece vocabulary that holds given words as one piece each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from probelight.build.sources.wordnet import mostly_noun

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_wordpiece(texts: Iterable[str], whole_words: Sequence[str], vocab_size: int) -> list[str]:
    """Trains WordPiece and puts `whole_words` in as single pieces.

    Args:
        texts: Training text.
        whole_words: Words that must be one piece (candidates, numbers, frequent nouns).
        vocab_size: Size of the result, special tokens included.

    Returns:
        The pieces in id order: special tokens, single characters, `whole_words`, then the most
        frequent trained pieces.

    Raises:
        ValueError: If the words that must be whole do not fit.
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
    """The most frequent English nouns by `wordfreq`, by two readings of "noun".

    A word that WordNet lists as a noun at all, and one that it counts as a noun at least as often
    as anything else; the union of the first `num_nouns` of each.
    """
    from wordfreq import top_n_list

    words = (word for word in top_n_list("en", 8 * num_nouns) if len(word) > 1)
    words = (word for word in words if word.isascii() and word.isalpha())
    listed = [word for word in words if wordnet.synsets(word, "n")]
    mostly = (word for word in listed if mostly_noun(wordnet, word))
    return list(dict.fromkeys([*listed[:num_nouns], *islice(mostly, num_nouns)]))
