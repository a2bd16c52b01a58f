"""A tiny masked LM that has most words of the small sets as entries of its vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# "monopoly" and "vegetable" are split, "tipped" and "dangerous" are not known.
WORDS = (
    "he caught the pass . loved football baseball mono ##poly she lit a candle ate cake cookies "
    "toast owner forgot which waitress customer had served worked for camper saw bear girl seen "
    "eaten trout is not fish tool an ant insect vege ##table diving may be isn ' t very safe "
    "rockets are aren fast slow coach asked player team signed left cat animal machine book text "
    "person one other ,"
).split()


@pytest.fixture(scope="session")
def asked_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "asked"
    vocabulary = [*SPECIAL, *WORDS]
    BertTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=1.0,  # so that contexts differ in what they say
    )
    torch.manual_seed(0)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder
