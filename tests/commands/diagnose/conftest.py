"""A tiny masked LM that has most words of the small sets as entries of its vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.tiny import SPECIAL, write_bert

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
    """Its folder; weights are so large that contexts differ in what they say."""
    folder = tmp_path_factory.mktemp("models") / "asked"
    size = {"hidden_size": 16, "layers": 1, "max_length": 64}
    return write_bert(folder, [*SPECIAL, *WORDS], **size, initializer_range=1.0)


@pytest.fixture(scope="session")
def plain(asked_model: Path) -> Callable[[str], dict[str, float]]:
    """Behind a context, the probability of every entry, the best one first."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model: Any = AutoModelForMaskedLM.from_pretrained(asked_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(asked_model)

    def probabilities(context: str) -> dict[str, float]:
        inputs = tokenizer(f"{context} [MASK] .", return_tensors="pt")
        mask_position = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            probs = model(**inputs).logits[0, mask_position].double().softmax(0)
        pairs = zip(tokenizer.convert_ids_to_tokens(range(len(probs))), probs.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))

    return probabilities
