"""The pairs of segments that the bundled model is trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from probelight.protocols.pretraining import CLS, IGNORE, MASK, SEP, DictionaryText
from tests.fixtures.dictionary import PIECES, small_dictionary


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
        whole = torch.where(chosen, batch["labels"], batch["input_ids"])
        places = (whole[:, 1:] == suffix).nonzero()
        for row, place in places.tolist():
            assert chosen[row, place + 1] == chosen[row, place]
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


def test_training_and_held_out_documents_are_apart(text: DictionaryText) -> None:
    together = np.concatenate([text.train_documents, text.held_out_documents])
    assert sorted(together.tolist()) == list(range(30))
    assert len(text.held_out_documents) > 0
