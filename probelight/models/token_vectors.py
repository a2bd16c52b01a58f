"""The first part of a baseline over word vectors: tokens, their ids, and a vector for each.

This module has the interface of every source of vectors, and the common part of sources that are
frozen models; `vector_sources` has the sources.

Shapes: N texts, L tokens, D numbers per token.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from probelight.encoding.encoded_set import ChoiceEncoder, Ids
from probelight.encoding.word_vectors import WordVectors, WordVectorsError
from probelight.encoding.words import PADDING_ID, split_words
from probelight.probes.record import MASK


class TokenVectors(nn.Module, ABC):
    """Turns texts into tokens, tokens into ids, and ids into vectors, for a baseline over them.

    A source decides how a text is split and which ids its tokens have, from 1 on; 0 is padding. It
    is a `WordIndex`, and a module whose weights are saved and trained with the baseline's. The
    vector of a token may depend only on the tokens of its own text.
    """

    origin: WordVectors | FrozenOrigin[Any]  # for the folder of a saved model

    @property
    def dimension(self) -> int:
        """Return D, the numbers per token."""
        return self.origin.dimension

    def split(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return split_words(text)

    @property
    def notices(self) -> tuple[str, ...]:
        """Return notices about the vectors for readers of the results."""
        return ()

    @abstractmethod
    def ids(self, words: Sequence[str]) -> Ids:
        """Return ids (W,) of tokens; a new token gets a new id."""

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Return the tokens that have no vector; all of them must have ids already."""
        return set()

    @abstractmethod
    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors (N, L, D) of ids (N, L); 0 at padding and for tokens without a vector."""

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors (N, L, D), and which tokens (N, L) are not padding."""
        return self(ids), ids != PADDING_ID

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        """Return the encoder that turns items into batches of ids; see `WordPairEncoder`."""
        from probelight.encoding.words import WordPairEncoder

        return WordPairEncoder(self, max_length, num_choices, self.split)


_MOST_KEPT = 2**28  # numbers; a GiB


class FrozenModel(ABC):
    """A frozen model that computes the states of each text once and keeps them.

    Each text is read alone, so its states do not depend on other texts. At most 1 GiB is kept;
    further texts are read each time.
    """

    dimension: int  # numbers per state
    sha256: str  # of the model's files or weights, as hex

    def __init__(self) -> None:
        self._states: dict[bytes, Tensor] = {}
        self._num_stored = 0

    @abstractmethod
    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """Return states (L, ...) of the tokens (L,) of a text, whose ids begin with 1."""

    @torch.inference_mode(False)  # what is kept during an evaluation is trained on later
    @torch.no_grad()
    def padded(self, ids: Tensor) -> Tensor:
        """Return states (N, L, ...) of texts (N, L); 0 at padding. Each text is read once."""
        states = []
        for row in ids.cpu().numpy():
            text = row[row != PADDING_ID]
            text_states = self._states.get(text.tobytes())
            if text_states is None:
                text_states = self.read(text, ids.device)
                if self._num_stored + text_states.numel() <= _MOST_KEPT:
                    self._states[text.tobytes()] = text_states.cpu()
                    self._num_stored += text_states.numel()
            states.append(text_states.to(ids.device))
        stacked_states = pad_sequence(states, batch_first=True)
        padded = stacked_states.new_zeros(*ids.shape, *stacked_states.shape[2:])
        padded[:, : stacked_states.shape[1]] = stacked_states
        return padded


Model = TypeVar("Model", bound=FrozenModel)


class FrozenOrigin(Generic[Model]):
    """The source of states, as `--model.vectors` names it; the model is loaded when it is needed.

    A saved baseline passes its `dimension` and `sha256`, so that the model need not be loaded to
    know them; a model with another sha256 is an error.
    """

    def __init__(
        self, source: str, load: Callable[[], Model], dimension: int | None, sha256: str | None
    ) -> None:
        self.source = source
        self._load = load
        self._expected_sha256 = sha256
        self.sha256 = sha256 or self.model.sha256
        self.dimension: int = dimension or self.model.dimension

    @cached_property
    def model(self) -> Model:
        """Load the model."""
        model = self._load()
        if self._expected_sha256 not in (None, model.sha256):
            raise WordVectorsError(
                f"{self.source}: its weights differ from those that the model was trained with"
            )
        return model


_PADDING_WORD = ""


class SeededRows:
    """Normal numbers drawn from a seed and the word, independent of the order of words."""

    notices: tuple[str, ...] = ()

    def __init__(self, dimension: int, spread: float, seed: int) -> None:
        self.dimension = dimension
        self.spread = spread
        self.seed = seed

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Return rows (W, D); all words are known."""
        rows = []
        for word in words:
            digest = hashlib.sha256(f"{self.seed} {word}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
            rows.append(torch.randn(self.dimension, generator=generator))
        return torch.stack(rows) * self.spread, [True] * len(words)


class VectorRows:
    """Vectors from a file; other words get zeros, or seeded numbers of the same scale.

    The mask is a word of its own and never counts as unknown.
    """

    def __init__(self, vectors: WordVectors, seed: int | None = None) -> None:
        self.vectors = vectors
        self.dimension = vectors.dimension
        self._seed = seed

    @property
    def notices(self) -> tuple[str, ...]:
        """Return a notice if the file is missing."""
        if not self.vectors.missing:
            return ()
        return (
            f"{self.vectors.name} is missing, or has changed since the model was trained: only "
            "words saved with the model have vectors",
        )

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Return rows (W, D), and whether each word has a vector."""
        vectors = self.vectors.find(words)
        if self._seed is not None:
            rows, _ = SeededRows(self.dimension, self.vectors.spread, self._seed)(words)
        else:
            rows = torch.zeros(len(words), self.dimension)
        for row, word in zip(rows, words, strict=True):
            if word in vectors:
                row.copy_(torch.from_numpy(vectors[word]))
        return rows, [word in vectors or word == MASK for word in words]


class WordRows(nn.Module):
    """A `WordIndex` with a matrix (V, D), one row per word; row 0 is the padding, and zero.

    `make` adds rows while items are encoded, before Lightning makes the optimiser. With `bias`
    there is also one number per word, initially 0.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    spelling: Tensor
    known: Tensor

    def __init__(
        self, make: SeededRows | VectorRows, *, trainable: bool, bias: bool = False
    ) -> None:
        super().__init__()
        self._make = make
        self._rows = {_PADDING_WORD: 0}
        self.weight = nn.Parameter(torch.zeros(1, make.dimension), requires_grad=trainable)
        self.bias = nn.Parameter(torch.zeros(1), requires_grad=trainable) if bias else None
        # The words are state as the rows are: without them a saved matrix would mean nothing.
        self.register_buffer("spelling", _spelled([_PADDING_WORD]))
        self.register_buffer("known", torch.ones(1, dtype=torch.uint8))

    @property
    def notices(self) -> tuple[str, ...]:
        return self._make.notices

    @property
    def words(self) -> list[str]:
        """Return the words in the order of their rows, the padding first."""
        return list(self._rows)

    def ids(self, words: Sequence[str]) -> Ids:
        """Return rows (W,) of words, from 1 on; a new word gets a new row."""
        if new := [word for word in dict.fromkeys(words) if word not in self._rows]:
            self._grow(new, *self._make(new))
        return np.array([self._rows[word] for word in words], dtype=np.int64)

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Return the words for which there was no vector; all of them must have a row."""
        has_vector = self.known.tolist()
        return {word for word in words if not has_vector[self._rows[word]]}

    def _grow(self, words: Sequence[str], rows: Tensor, have_vectors: Sequence[bool]) -> None:
        for word in words:
            self._rows[word] = len(self._rows)
        self.weight = _longer(self.weight, rows)
        if self.bias is not None:
            self.bias = _longer(self.bias, torch.zeros(len(words)))
        new = torch.tensor(have_vectors, dtype=torch.uint8).to(self.known)
        self.known = torch.cat([self.known, new])
        self.spelling = _spelled(self._rows).to(self.known.device)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *arguments: Any) -> None:
        if f"{prefix}spelling" in state_dict:
            saved = bytes(state_dict[f"{prefix}spelling"].tolist()).decode().split("\n")
            if new := [word for word in saved if word not in self._rows]:
                blank = torch.zeros(len(new), self._make.dimension)  # filled below
                self._grow(new, blank, [True] * len(new))
            saved_rows = torch.from_numpy(self.ids(saved))
            weights = {"weight": self.weight, "known": self.known, "bias": self.bias}
            # By name: the rows of this module may be in another order, and be more.
            for name, value in weights.items():
                if value is not None and f"{prefix}{name}" in state_dict:
                    rows = value.detach().clone()
                    rows[saved_rows] = state_dict[f"{prefix}{name}"].to(rows)
                    state_dict[f"{prefix}{name}"] = rows
            state_dict[f"{prefix}spelling"] = self.spelling
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _longer(parameter: nn.Parameter, more: Tensor) -> nn.Parameter:
    longer = torch.cat([parameter.detach(), more.to(parameter)])
    return nn.Parameter(longer, requires_grad=parameter.requires_grad)


def _spelled(words: Iterable[str]) -> Tensor:
    """Return the words as UTF-8 bytes, one per line; no word contains a line end."""
    return torch.tensor(list("\n".join(words).encode()), dtype=torch.uint8)
