from __future__ import annotations

import numpy as np

from probelight.build.sources.verbalise import Document
from probelight.datamodules.pretraining.document_store import tokenise
from probelight.datamodules.pretraining.vocabulary import SPECIAL_TOKENS

PIECES = [*SPECIAL_TOKENS, "a", "dog", "##s", "bark", "."]


def test_documents_come_back_sentence_by_sentence() -> None:
    documents = [
        Document("dog", "wordnet", ("A dog bark .", "dogs")),
        Document("bark", "gcide", ("bark",)),
    ]
    store = tokenise(documents, PIECES, held_out_rate=0.0)
    assert [s.tolist() for s in store.sentences(0)] == [[5, 6, 8, 9], [6, 7]]
    assert [s.tolist() for s in store.sentences(1)] == [[8]]
    assert store.lengths().tolist() == [6, 1]
    assert not store.held_out.any()


def test_documents_are_held_out_by_their_key() -> None:
    documents = [Document(f"w{i}", "wordnet", ("a dog",)) for i in range(400)]
    store = tokenise(documents, PIECES, held_out_rate=0.25)
    assert 0.15 < store.held_out.mean() < 0.35
    again = tokenise(documents[::-1], PIECES, held_out_rate=0.25)
    assert np.array_equal(store.held_out, again.held_out[::-1])
