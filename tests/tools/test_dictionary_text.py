"""The pairs of segments that the bundled model is trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.fixtures.dictionary import PIECES, small_dictionary
from tools.dictionary_text import CLS, IGNORE, MASK, SEP, DictionaryText, MaskedPairs
from tools.documents import Document
from tools.pretraining_text import TOKENS, tokenise


@pytest.fixture
def text(tmp_path: Path) -> DictionaryText:
    data = DictionaryText(**small_dictionary(tmp_path))
    data.prepare_data()  # finds the cache and needs no dictionary
    data.setup()
    return data


def test_batches_fit_the_budget_and_the_longest_pair(text: DictionaryText) -> None:
    for batch in text.train_dataloader():
        rows, width = batch["input_ids"].shape
        assert rows * width <= 96
        assert width <= 24
        assert (batch["input_ids"][:, 0] == CLS).all()
        assert ((batch["input_ids"] == SEP).sum(1) >= 1).all()


def test_whole_words_are_masked(text: DictionaryText) -> None:
    suffix = PIECES.index("##s")
    seen = 0
    for batch in text.train_dataloader():
        chosen = batch["labels"] != IGNORE
        assert chosen.any(dim=1).all()
        assert not chosen[:, 0].any()
        original_ids = torch.where(chosen, batch["labels"], batch["input_ids"])
        places = (original_ids[:, 1:] == suffix).nonzero()
        for row, position in places.tolist():
            assert chosen[row, position + 1] == chosen[row, position]
            seen += 1
        assert (batch["input_ids"][chosen] == MASK).float().mean() > 0.5
    assert seen > 20


def test_an_epoch_is_a_function_of_seed_and_epoch(text: DictionaryText) -> None:
    loader = text.train_dataloader()
    first = [batch["input_ids"] for batch in loader]
    again = [batch["input_ids"] for batch in text.train_dataloader()]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    loader.epoch_sampler.set_epoch(1)
    second = [batch["input_ids"] for batch in loader]
    assert not all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(first, second, strict=True)
    )


def test_held_out_pairs_are_the_same_in_each_epoch(text: DictionaryText) -> None:
    loader = text.val_dataloader()
    first = [batch["input_ids"] for batch in loader]
    loader.epoch_sampler.set_epoch(1)
    second = [batch["input_ids"] for batch in loader]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_running_text_keeps_its_order_and_dictionaries_do_not(text: DictionaryText) -> None:
    """Sentence j of document i is "w(i) w(i+j)s w(i+20)", so its second word says which it is."""
    pairs = MaskedPairs(text.store, text.train_documents, None, text)

    def orders() -> set[tuple[int, ...]]:
        orders_seen = set()
        for index, document in enumerate(text.train_documents):
            item = pairs[index]
            ids = np.where(item["labels"] == IGNORE, item["ids"], item["labels"])
            words = [i - PIECES.index("w0") - document for i in ids[: (item["types"] == 0).sum()]]
            orders_seen.add(tuple(w for w in words[2::5] if 0 <= w < 3))
        return {order for order in orders_seen if len(order) == 2}

    assert orders() > {(0, 1)}
    text.store.in_order[:] = True
    assert orders() == {(0, 1)}


@pytest.mark.parametrize("swap_rate", [0.0, 1.0])
def test_a_definition_is_asked_for_without_its_word(swap_rate: float, tmp_path: Path) -> None:
    """Document i begins with "w(i) : w(i+20)" and goes on with "w(i) w(i+10)"."""
    text = DictionaryText(**small_dictionary(tmp_path), definition_rate=1.0, swap_rate=swap_rate)
    pieces = text.vocab_path.read_text().splitlines()
    word = {piece: i for i, piece in enumerate([*pieces, ":"])}
    text.vocab_path.write_text("\n".join(word) + "\n")
    documents = [
        Document(f"d{i}", "wordnet", (f"w{i} : w{i + 20}", f"w{i} w{i + 10}")) for i in range(30)
    ]
    np.savez(text.folder / TOKENS, **vars(tokenise(documents, [*word], held_out_rate=0.2)))
    text.setup()
    firsts, seconds = set(), set()
    for index, document in enumerate(text.train_documents):
        item = MaskedPairs(text.store, text.train_documents, None, text)[index]
        ids = np.where(item["labels"] == IGNORE, item["ids"], item["labels"])
        first, second = ids[item["types"] == 0][1:-1], ids[item["types"] == 1][:-1]
        sentence = [word[f"w{document}"], word["."]]
        more = [word[f"w{document}"], word[f"w{document + 10}"], word["."]]
        assert first.tolist() in (sentence, [*sentence, *more])
        firsts.add(len(first))
        assert second[1:].tolist() == [word["."]]
        seconds.add(int(second[0]) - word[f"w{document + 20}"])
        assert item["is_next"] == 1 - swap_rate
    assert firsts == {2, 5}
    assert (seconds == {0}) if swap_rate == 0 else (0 not in seconds and len(seconds) > 5)


def test_training_and_held_out_documents_are_apart(text: DictionaryText) -> None:
    together = np.concatenate([text.train_documents, text.held_out_documents])
    assert sorted(together.tolist()) == list(range(30))
    assert len(text.held_out_documents) > 0
