"""Sources of word vectors, as `--model.vectors` names them: a file, an encoder or ELMo.

Shapes: N texts, L tokens of a text, D numbers per token, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from probelight.encoding.encoded_set import ChoiceEncoder, Ids
from probelight.encoding.tokens import Template
from probelight.encoding.word_vectors import WordVectors, vectors_kind, word_vectors
from probelight.encoding.words import PADDING_ID
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.elmo import ElmoVectors
from probelight.models.loading import ENCODER, load_pretrained
from probelight.models.networks import model_fingerprint, run_encoder
from probelight.models.token_vectors import (
    FrozenModel,
    FrozenOrigin,
    TokenVectors,
    VectorRows,
    WordRows,
)
from probelight.probes.record import MASK


class FileVectors(WordRows, TokenVectors):
    """Word vectors from a file, one row per word, independent of its context; see `VectorRows`."""

    def __init__(self, vectors: WordVectors, seed: int | None, *, trainable: bool) -> None:
        super().__init__(VectorRows(vectors, seed), trainable=trainable)
        self.origin = vectors

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, padding_idx=PADDING_ID)


class FrozenEncoder(FrozenModel):
    """The last hidden states of an encoder from `load_pretrained`, for each text."""

    def __init__(self, name_or_path: str) -> None:
        super().__init__()
        self.model, self.tokenizer = load_pretrained(ENCODER, CheckpointRef.parse(name_or_path))
        self.model.requires_grad_(False)
        self.template = Template.of(self.tokenizer, 1)
        self.dimension = self.model.config.hidden_size
        self.sha256 = model_fingerprint(self.model)
        self.room = int(self.tokenizer.model_max_length) - self.template.num_special  # pieces

    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """Return states (L, H) of the tokens (L,) of a text, without the special tokens around."""
        input_ids, types = self.template.assemble(ids - 1)
        batch = {
            "input_ids": input_ids,
            "token_type_ids": types,
            "attention_mask": np.ones_like(input_ids),
        }
        inputs = {name: torch.from_numpy(value)[None].to(device) for name, value in batch.items()}
        first = len(self.template.special_ids[0])
        output = run_encoder(self.model.to(device), inputs)  # type: ignore[arg-type]
        states: Tensor = output.last_hidden_state[0, first : first + len(ids)].float()
        return states


# Shared by all that read the same one: nothing of it is trained.
_loaded = lru_cache(maxsize=2)(FrozenEncoder)


class EncoderVectors(TokenVectors):
    """The last hidden states of a frozen encoder, one per token of its tokenizer.

    The encoder's weights are neither trained nor saved with a baseline. `dimension` and `sha256`
    are those of a saved baseline; see `FrozenOrigin`.

    Raises:
        PretrainedError: If the encoder cannot be loaded.
    """

    origin: FrozenOrigin[FrozenEncoder]

    def __init__(self, name_or_path: str, dimension: int | None, sha256: str | None) -> None:
        super().__init__()
        load = partial(_loaded, name_or_path)
        self.origin = FrozenOrigin(f"encoder:{name_or_path}", load, dimension, sha256)

    def split(self, text: str) -> list[str]:
        tokenizer: Any = self.origin.model.tokenizer
        text = text.replace(MASK, tokenizer.mask_token or MASK)
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        pieces: list[str] = tokenizer.convert_ids_to_tokens(ids)
        return pieces

    def ids(self, words: Sequence[str]) -> Ids:
        token_ids: Any = self.origin.model.tokenizer.convert_tokens_to_ids(list(words))
        return np.array(token_ids, dtype=np.int64) + 1  # 0 is padding

    def forward(self, ids: Tensor) -> Tensor:
        return self.origin.model.padded(ids)

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        return super().encoder(min(max_length, self.origin.model.room), num_choices)


# By the prefix in `--model.vectors`: makes vectors from the text after the colon, and from the
# dimension and the checksum of a saved model.
SOURCES: dict[str, Callable[[str, int | None, str | None], TokenVectors]] = {
    "encoder": EncoderVectors,
    "elmo": ElmoVectors,
}


def token_vectors(
    source: str,
    dimension: int | None = None,
    sha256: str | None = None,
    seed: int | None = None,
    *,
    trainable: bool = False,
) -> TokenVectors:
    """Return the vectors that `--model.vectors` names.

    Args:
        source: "embedded", a file in GloVe's text format (see `WordVectors`), or one of `SOURCES`,
            such as "encoder:NAME".
        dimension: D of a saved model; then the file may be missing.
        sha256: Checksum of the files of a saved model.
        seed: Seed of the vectors for words that a file lacks; None makes them zeros.
        trainable: Whether to train vectors that can be trained.

    Raises:
        WordVectorsError, PretrainedError: If the vectors cannot be read.
    """
    kind, name = vectors_kind(source)
    if kind:
        return SOURCES[kind](name, dimension, sha256)
    file_vectors = word_vectors(source, dimension, sha256)
    return FileVectors(file_vectors, seed, trainable=trainable)
