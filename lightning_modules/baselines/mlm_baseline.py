"""The MLM-baseline (Talmor 2020, section 2.3): word vectors without context, and a head as MC-MLM.

Shapes: B batch, T tokens (20), K choices, D numbers per word, H = T x D, V candidate words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.encoding.word_vectors import EMBEDDED, word_vectors
from probelight.io import ranges
from probelight.lightning_modules.baselines.word_module import WordModule
from probelight.lightning_modules.heads.feature_head import SPREAD, fresh_hidden_layer
from probelight.models.networks import Batch, mask_choices
from probelight.models.token_vectors import SeededRows, VectorRows, WordRows

_MODES = ("zero_shot", "mlp", "linear")


class WordHead(nn.Module):
    """FF_MLM with fresh weights: dense (H -> H), GELU, LayerNorm, one decoder row per candidate.

    It has the interface of `CandidateHead`. The initial row of a candidate depends only on the seed
    and its word.
    """

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        self.dense, self.layer_norm = fresh_hidden_layer(size, seed)
        self.decoder = WordRows(SeededRows(size, SPREAD, seed), trainable=True, bias=True)

    @property
    def weight(self) -> nn.Parameter:
        """Return the decoder's weight (V, H)."""
        return self.decoder.weight

    @property
    def bias(self) -> nn.Parameter:
        """Return the decoder's bias (V,)."""
        assert self.decoder.bias is not None
        return self.decoder.bias

    def transform_steps(self) -> Iterator[Callable[[Tensor], Tensor]]:
        yield from (self.dense, F.gelu, self.layer_norm)

    def score(self, h: Tensor, candidate_ids: Tensor) -> Tensor:
        """Return logits (B, K) of the candidates (B, K) at h (B, H)."""
        for step in self.transform_steps():
            h = step(h)
        rows = F.embedding(candidate_ids, self.weight)
        return torch.einsum("be,bke->bk", h, rows) + self.bias[candidate_ids]


class MLMBaseline(WordModule):
    """Puts the vectors of the first 20 words side by side, into a fresh head as in MC-MLM.

    A shorter sentence is padded with zeros; the mask and words without a vector are zeros too. The
    vectors are frozen, so only the head learns, and zero-shot it guesses. The settings are those of
    the authors' baseline (Talmor 2020). Their code also has a dropout of 0.5 before the activation,
    which their paper does not mention. It is left out here: on age_comparison, with 62 to 1,000
    examples, it changed the mean accuracy of four seeds by no more than seeds differ.

    Args:
        vectors: "embedded", or a file in GloVe's text format; see `WordVectors`.
        mode: "mlp" trains the head, "linear" only its decoder, "zero_shot" nothing.
        num_tokens: T, the number of words that are read.
        weight_decay: Weight decay of Adam, as a penalty on the square of every weight.
        seed: Seed of the head's weights.
        dimension: Numbers per word vector. None reads it from the file; with it, the file may be
            missing.
        vectors_sha256: Checksum of the file; a file with another one counts as missing.
        options: The other arguments of `WordModule`.

    Raises:
        WordVectorsError: If the file of vectors cannot be used.
    """

    kind = "mlm_baseline"
    saved = ("num_tokens", "seed")
    why_frozen = "mode zero_shot trains nothing; choose mlp or linear"

    def __init__(
        self,
        vectors: str = EMBEDDED,
        mode: Literal["zero_shot", "mlp", "linear"] = "mlp",
        num_tokens: ranges.Width = 20,
        weight_decay: ranges.WeightDecay = 0.1,
        seed: ranges.Seed = 0,
        dimension: ranges.Width | None = None,
        vectors_sha256: str | None = None,
        **options: Any,
    ) -> None:
        if mode not in _MODES:
            raise ValueError(
                f"mode={mode!r}: choose one of {', '.join(_MODES)}; the vectors are never trained"
            )
        vector_table = word_vectors(vectors, dimension, vectors_sha256)
        super().__init__(vector_table, weight_decay=weight_decay, **options)
        self.mode = mode
        self.num_tokens = num_tokens
        self.words = WordRows(VectorRows(vector_table), trainable=False)
        self.head = WordHead(num_tokens * vector_table.dimension, seed)
        if mode == "zero_shot":
            self.head.requires_grad_(False)
        if mode == "linear":
            self.head.dense.requires_grad_(False)
            self.head.layer_norm.requires_grad_(False)
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        from probelight.encoding.words import WordMaskedEncoder

        return WordMaskedEncoder(self.words, self.head.decoder, self.num_tokens)

    def features(self, batch: Batch) -> Tensor:
        """Return the vectors of the words of each item, side by side: (B, H)."""
        return F.embedding(batch["input_ids"], self.words.weight).flatten(1)

    def forward(self, batch: Batch) -> Tensor:
        logits = self.head.score(self.features(batch), batch["candidate_ids"])
        return mask_choices(logits, batch["choice_mask"])

    def fresh_head(self, seed: int) -> WordHead:
        """Return a new head with this seed, and a row for each word that is known here."""
        head = WordHead(self.head.dense.in_features, seed)
        head.decoder.ids(self.head.decoder.words[1:])  # the first one is the padding
        return head.to(self.device)
