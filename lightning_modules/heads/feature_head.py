"""Heads on the frozen features of a scorer, with one row per candidate, whatever its tokens.

So a head learns which word belongs to a text, not how that word is spelled.

Shapes: B batch, H hidden, U candidate words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.lightning_modules.heads.stacked_heads import HeadRows
from probelight.models.networks import Batch, own_random_state
from probelight.models.scorer import Scorer

SPREAD = 0.02  # of fresh weights, as in BERT's head and the authors' baseline
_EPSILON = 1e-12  # BERT's


def fresh_hidden_layer(size: int, seed: int) -> tuple[nn.Linear, nn.LayerNorm]:
    """Return a seeded dense map (H -> H) and the norm of a hidden layer; GELU goes between them."""
    with own_random_state(seed):
        dense, norm = nn.Linear(size, size), nn.LayerNorm(size, eps=_EPSILON)
        nn.init.normal_(dense.weight, std=SPREAD)
        nn.init.zeros_(dense.bias)
    return dense, norm


class FrozenFeatures(nn.Module):
    """The features of a language model that is not trained, and the heads that a curve starts from.

    Mode `linear` starts from `head`, the rows of `Scorer.word_rows`. Mode `mlp` starts from
    `fresh_head`: a seeded dense map (H to H), GELU and a norm before the same rows, since these
    models do not have the pre-trained transform of masked language models. `words` (U,) are all
    candidates that the items will have.
    """

    def __init__(self, scorer: Scorer, words: Sequence[str]) -> None:
        super().__init__()
        self.scorer = scorer
        self.network = scorer.network
        self.words = tuple(words)
        self.question = scorer.features()
        self.head = HeadRows(*scorer.word_rows(self.words))

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def encoder(self) -> ChoiceEncoder:
        """Return the encoder of items, with the places of their candidates among the words."""
        from probelight.encoding.candidates import NumberedEncoder

        return NumberedEncoder(self.question.encoder, self.words)

    def features(self, batch: Batch) -> Tensor:
        """Return the model's output (B, H)."""
        return self.question.answer(batch)

    def fresh_head(self, seed: int) -> HeadRows:
        """Return the head of mode `mlp`, with a seeded hidden layer."""
        weight, bias = self.head.weight, self.head.bias
        dense, norm = fresh_hidden_layer(weight.shape[1], seed)
        return HeadRows(weight, bias, (dense.to(self.device), F.gelu, norm.to(self.device)))

    def fingerprint(self) -> str:
        """Return the sha256 of the model's weights, as hex."""
        return self.scorer.fingerprint()
