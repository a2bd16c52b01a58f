"""Where heads over words begin: at the rows of a model's own head."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import RobertaTokenizer

from probelight.io.errors import RecordError
from probelight.models.scorers.decoder_rows import word_rows

HIDDEN = 4


class Headed:
    """What of a language model the rows are read off."""

    def __init__(self, tokenizer: RobertaTokenizer, bias: bool) -> None:
        torch.manual_seed(0)
        self.head = nn.Linear(HIDDEN, len(tokenizer), bias=bias)

    def get_output_embeddings(self) -> nn.Linear:
        return self.head


def test_a_word_has_the_row_of_its_piece_or_the_mean_of_its_pieces(
    byte_bpe: RobertaTokenizer,
) -> None:
    model = Headed(byte_bpe, bias=True)
    one, several = "older", "antelopes"
    ids: dict[str, Any] = {
        word: byte_bpe(f"a {word}", add_special_tokens=False)["input_ids"][1:]
        for word in (one, several)
    }
    assert (len(ids[one]), len(ids[several]) > 1) == (1, True)
    weight, bias = word_rows(model, byte_bpe, [several, one])
    rows, biases = model.head.weight.detach(), model.head.bias.detach()
    torch.testing.assert_close(weight[1], rows[ids[one][0]])
    torch.testing.assert_close(bias[1], biases[ids[one][0]])
    of_all = sum(rows[i] for i in ids[several]) / len(ids[several])
    torch.testing.assert_close(weight[0], of_all)
    torch.testing.assert_close(bias[0], sum(biases[i] for i in ids[several]) / len(ids[several]))
    assert not weight.requires_grad


def test_a_head_without_bias_gives_none_and_a_bias_behind_it_counts(
    byte_bpe: RobertaTokenizer,
) -> None:
    model: Any = Headed(byte_bpe, bias=False)
    assert word_rows(model, byte_bpe, ["older"])[1].tolist() == [0.0]
    model.final_logits_bias = torch.arange(len(byte_bpe), dtype=torch.float32)[None]
    [piece] = byte_bpe(" older", add_special_tokens=False)["input_ids"]
    assert word_rows(model, byte_bpe, ["older"])[1].tolist() == [piece]


def test_a_word_without_pieces_is_refused(byte_bpe: RobertaTokenizer) -> None:
    def nothing(texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[] for _ in texts]}

    with pytest.raises(RecordError, match="the candidate 'older' has no tokens"):
        word_rows(Headed(byte_bpe, bias=False), nothing, ["older"])  # type: ignore[arg-type]
