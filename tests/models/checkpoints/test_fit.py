from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from transformers import BartConfig, BertTokenizer, MT5Config, PreTrainedModel

from probelight.models.checkpoints.fit import (
    longest_text,
    num_positions,
    refuse_foreign_tokenizer,
)
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM

TinyModel = Callable[..., PreTrainedModel]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(num_words: int) -> BertTokenizer:
    words = [*SPECIAL, *(f"w{i}" for i in range(num_words))]
    return BertTokenizer(vocab={word: i for i, word in enumerate(words)})


def test_a_vocabulary_may_leave_rows_to_spare_but_no_more(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")  # 60 rows
    for num_words in (55, 20, 10):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(num_words))
    with pytest.raises(PretrainedError, match="here: the tokenizer has 14 entries, the model 60"):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(9))
    with pytest.raises(PretrainedError, match="has 61 entries, the model only 60"):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(56))


def test_a_form_asks_for_its_own_special_tokens(tiny_model: TinyModel) -> None:
    model, maskless, padless = tiny_model("bert"), tokenizer(40), tokenizer(40)
    maskless.mask_token = None
    refuse_foreign_tokenizer(ENCODER, "here", model, maskless)
    with pytest.raises(PretrainedError, match="here: the tokenizer has no mask token"):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, maskless)
    padless.pad_token = None
    with pytest.raises(PretrainedError, match="here: the tokenizer has no padding token"):
        refuse_foreign_tokenizer(ENCODER, "here", model, padless)


@pytest.mark.parametrize(
    ("architecture", "places"),
    [("bert", 64), ("roberta", 63), ("mpnet", 62), ("modernbert", sys.maxsize)],
)
def test_places_are_counted_from_behind_the_paddings(
    architecture: str, places: int, tiny_model: TinyModel
) -> None:
    assert num_positions(tiny_model(architecture)) == places


def test_places_are_counted_where_they_are_learned() -> None:
    assert longest_text(BartConfig(max_position_embeddings=30)) == 30
    assert longest_text(MT5Config()) > 10**9
