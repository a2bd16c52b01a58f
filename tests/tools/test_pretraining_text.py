from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from probelight.io.errors import UsageError
from tools import pretraining_text
from tools.documents import Document
from tools.pretraining_text import (
    SPECIAL_TOKENS,
    DocumentStore,
    build_text,
    frequent_nouns,
    tokenise,
    train_wordpiece,
)

DOGS = ["the old dog barks at the younger dog"] * 20


# How often each word was counted as noun and as something else.
COUNTS = {"a": (9, 0), "don't": (9, 0), "time": (90, 10), "dog": (8, 0), "run": (5, 60)}
COUNTS |= {"walk": (3, 3)}


def lemma(pos: str, count: int) -> SimpleNamespace:
    synset = SimpleNamespace(pos=lambda: pos)
    return SimpleNamespace(synset=lambda: synset, count=lambda: count)


WORDNET = SimpleNamespace(
    synsets=lambda word, pos: pos == "n" and word in COUNTS,
    lemmas=lambda word: [lemma(*counts) for counts in zip("nv", COUNTS[word], strict=True)],
)


def test_characters_come_first_then_whole_words_then_what_was_trained() -> None:
    pieces = train_wordpiece(["aab aab"] * 20, ["zz", "Blah", "115"], vocab_size=13)
    *first, last = pieces
    assert first == [*SPECIAL_TOKENS, "a", "b", "##a", "##b", "zz", "blah", "115"]
    assert last in {"##ab", "aa", "aab"}


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vocab_size=10 is too small: \d+ tokens"):
        train_wordpiece(DOGS, ["younger", "Blah", "115"], vocab_size=10)


def test_nouns_are_those_listed_and_those_mostly_used_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["the", "run", "a", "don't", "time", "walk", "dog"]
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr("wordfreq.top_n_list", lambda *args: calls.append(args) or words)
    # Words of two letters or more. Listed: run and time. Mostly nouns: time, and walk, which is
    # one as often as not.
    assert frequent_nouns(WORDNET, 2) == ["run", "time", "walk"]
    assert calls == [("en", 16)]


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


SETTINGS: dict[str, Any] = {"wordnet_dir": "", "gcide_path": "", "texts_dir": "/", "seed": 0}
SETTINGS |= {"whole_words": ["dog"], "num_nouns": 0, "vocab_size": 400, "held_out_rate": 0.0}


def test_rare_entries_are_left_out_and_running_text_is_kept(
    tmp_path: Path, tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining_text, "open_wordnet", lambda _: tiny_wordnet)
    story = Document("alice:0", "alice", ("Down the hole .",), in_order=True)
    monkeypatch.setattr(pretraining_text, "free_text_documents", lambda *_: iter([story]))
    # Of "dog" and "domestic dog" one has only frequent words; no other entry has such a name.
    monkeypatch.setattr("wordfreq.top_n_list", lambda *_: ["dog", "down", "animals"])
    sources = ["wordnet_relations", "alice"]
    for common, expected in ((0, 27), (2, 2)):
        folder = tmp_path / str(common)
        build_text(folder, **SETTINGS, sources=sources, common_words=common)
        store = DocumentStore.read(folder)
        assert len(store.held_out) == expected
        assert store.in_order.tolist() == [False] * (expected - 1) + [True]


def test_a_mistyped_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"called 'alise' \(did you mean 'alice'\?\); choose from wor"
    ):
        build_text(tmp_path / "text", **SETTINGS, sources=["alise"], common_words=0)
    assert not (tmp_path / "text").exists()
