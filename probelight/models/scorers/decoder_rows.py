"""What a language model's own head knows of whole words, as the start of a head over words.

Shapes: U words, V entries of a vocabulary, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from probelight.encoding.candidates import INSIDE, CandidateTable
from probelight.encoding.tokens import tokenise
from probelight.io.errors import RecordError


def word_rows(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[str],
    answer_prefix: str = "auto",
) -> tuple[Tensor, Tensor]:
    """A row and a bias for each word, from the rows of its pieces inside a sentence.

    Of a word that is one piece they are those of the head; of several pieces the mean of theirs. A
    head without a bias gives 0.

    Args:
        model: A `PreTrainedModel` with a linear head over its vocabulary.
        tokenizer: Its tokenizer.
        words: U of them.
        answer_prefix: What stands before a word; "auto" finds out from the tokenizer.

    Returns:
        (U, H) and (U,), where the head is.

    Raises:
        RecordError: If a word has no pieces.
    """
    decoder = model.get_output_embeddings()
    table = CandidateTable(tokenizer, answer_prefix)
    table.add(INSIDE, words)
    store, _ = tokenise(tokenizer, list(table.texts))
    weight = decoder.weight.detach()
    bias = weight.new_zeros(len(weight))
    # BART adds a bias of its own behind its head.
    for added in (getattr(decoder, "bias", None), getattr(model, "final_logits_bias", None)):
        if added is not None:
            bias = bias + added.detach().reshape(-1)
    rows, biases = [], []
    for word in words:
        pieces = torch.from_numpy(table.pieces(INSIDE, word, store).astype("int64"))
        if not len(pieces):
            raise RecordError(f"the candidate {word!r} has no tokens")
        pieces = pieces.to(weight.device)
        rows.append(weight[pieces].mean(dim=0))
        biases.append(bias[pieces].mean())
    return torch.stack(rows), torch.stack(biases)
