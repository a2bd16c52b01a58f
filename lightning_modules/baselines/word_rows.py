"""Rows of a matrix that have words for names, and grow as new words are met.

A model over word vectors does not know its words when it is made: they come with the data. Rows
are made by name, so a word's first value does not depend on which words came before it, and saved
rows are matched by name when they are loaded.

Shapes: V words, D numbers a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from probelight.encoding.encoded_set import Ids
from probelight.encoding.word_vectors import WordVectors
from probelight.probes.record import MASK

_PADDING_WORD = ""


class RowMaker(Protocol):
    """A maker of the first values of rows.

    Attributes:
        dimension: D.
    """

    dimension: int

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about the rows."""
        ...

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Return rows (W, D) of words, and whether each is known."""
        ...


class SeededRows:
    """Normal numbers drawn from a seed and the word: the same ones whichever words come first.

    Args:
        dimension: D.
        spread: Their standard deviation.
        seed: The seed.
    """

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
    """Vectors of a file; zero, or seeded numbers as large as the file's, for words without one.

    The mask is a word of its own and never counts as unknown.

    Args:
        vectors: The file.
        unknown: "zero" or "seeded".
        seed: Of the seeded ones.
    """

    def __init__(self, vectors: WordVectors, unknown: str = "zero", seed: int = 0) -> None:
        self.vectors = vectors
        self.dimension = vectors.dimension
        self.unknown = unknown
        self._seed = seed

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence if the file is not there."""
        if not self.vectors.missing:
            return ()
        return (
            f"{self.vectors.name} is not there, or has changed since the model was made: only the "
            "words saved with it have vectors",
        )

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Return rows (W, D), and whether each word has a vector."""
        found = self.vectors.find(words)
        if self.unknown == "seeded":
            rows, _ = SeededRows(self.dimension, self.vectors.spread, self._seed)(words)
        else:
            rows = torch.zeros(len(words), self.dimension)
        for row, word in zip(rows, words, strict=True):
            if word in found:
                row.copy_(torch.from_numpy(found[word]))
        return rows, [word in found or word == MASK for word in words]


class WordRows(nn.Module):
    """A matrix (V, D) with a row a word, a `WordIndex`; row 0 is the padding, and zero.

    Rows are added while records are encoded, which Lightning does before it makes the optimiser.

    Args:
        make: Makes the rows.
        trainable: Whether they are trained.
        bias: Also keep a number a word, 0 at first.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    spelling: Tensor
    known: Tensor

    def __init__(self, make: RowMaker, *, trainable: bool, bias: bool = False) -> None:
        super().__init__()
        self._make = make
        self._rows = {_PADDING_WORD: 0}
        self.weight = nn.Parameter(torch.zeros(1, make.dimension), requires_grad=trainable)
        self.bias = nn.Parameter(torch.zeros(1), requires_grad=trainable) if bias else None
        # The words are state as the rows are: without them a saved matrix would mean nothing.
        self.register_buffer("spelling", _spelled([_PADDING_WORD]))
        self.register_buffer("known", torch.ones(1, dtype=torch.uint8))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the maker of the rows has to say."""
        return self._make.notices

    @property
    def words(self) -> list[str]:
        """The words in the order of their rows, the padding first."""
        return list(self._rows)

    def ids(self, words: Sequence[str]) -> Ids:
        """Return rows (W,) of words, from 1 on; a word that has none gets one."""
        if new := self._without_row(words):
            self._grow(new, *self._make(new))
        return self._places(words)

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Return those words, all with a row, for which there was no vector."""
        known = self.known.tolist()
        return {word for word in words if not known[self._rows[word]]}

    def _without_row(self, words: Iterable[str]) -> list[str]:
        return [word for word in dict.fromkeys(words) if word not in self._rows]

    def _places(self, words: Iterable[str]) -> Ids:
        return np.array([self._rows[word] for word in words], dtype=np.int64)

    def _grow(self, words: Sequence[str], rows: Tensor, known: Sequence[bool]) -> None:
        for word in words:
            self._rows[word] = len(self._rows)
        self.weight = _longer(self.weight, rows)
        if self.bias is not None:
            self.bias = _longer(self.bias, torch.zeros(len(words)))
        new = torch.tensor(known, dtype=torch.uint8).to(self.known)
        self.known = torch.cat([self.known, new])
        self.spelling = _spelled(self._rows).to(self.known.device)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if f"{prefix}spelling" in state_dict:
            saved = bytes(state_dict[f"{prefix}spelling"].tolist()).decode().split("\n")
            if new := self._without_row(saved):
                blank = torch.zeros(len(new), self._make.dimension)  # filled below
                self._grow(new, blank, [True] * len(new))
            places = torch.from_numpy(self._places(saved))
            own = {"weight": self.weight, "known": self.known, "bias": self.bias}
            # By name: the rows of this module may be in another order, and be more.
            for name, value in own.items():
                if value is not None and f"{prefix}{name}" in state_dict:
                    rows = value.detach().clone()
                    rows[places] = state_dict[f"{prefix}{name}"].to(rows)
                    state_dict[f"{prefix}{name}"] = rows
            state_dict[f"{prefix}spelling"] = self.spelling
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _longer(parameter: nn.Parameter, more: Tensor) -> nn.Parameter:
    longer = torch.cat([parameter.detach(), more.to(parameter)])
    return nn.Parameter(longer, requires_grad=parameter.requires_grad)


def _spelled(words: Iterable[str]) -> Tensor:
    """Return the words as UTF-8 bytes, one a line; no word holds a line end."""
    return torch.tensor(list("\n".join(words).encode()), dtype=torch.uint8)
