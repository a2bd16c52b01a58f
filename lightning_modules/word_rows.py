"""Rows of a matrix that have words for names, and grow as new words are met.

A model over word vectors does not know its words when it is made: they come with the data. Rows
are made by name, so a word's first value does not depend on which words came before it, and saved
rows are matched by name when they are loaded.

Shapes: V words, D numbers a word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from datamodules.encoded_set import Ids
from datamodules.word_vectors import WordVectors
from lightning_modules.pretrained import PretrainedError, whole_folder
from probes.record import MASK

WORD_SETTINGS = "word_module.json"
WORD_WEIGHTS = "model.safetensors"
_FORMAT = 1
_PADDING_WORD = ""


class RowMaker(Protocol):
    """Makes the first values of rows.

    Attributes:
        dimension: D.
    """

    dimension: int

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about the rows."""
        ...

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Rows (W, D) of words, and whether each is known."""
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
        """Rows (W, D); all words are known."""
        rows = torch.stack([self._row(word) for word in words])
        return rows * self.spread, [True] * len(words)

    def _row(self, word: str) -> Tensor:
        digest = hashlib.sha256(f"{self.seed} {word}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        return torch.randn(self.dimension, generator=generator)


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
        """Says so if the file is not there."""
        if not self.vectors.missing:
            return ()
        return (f"{self.vectors.name} is not there: only words saved with the model have vectors",)

    def __call__(self, words: Sequence[str]) -> tuple[Tensor, list[bool]]:
        """Rows (W, D), and whether each word has a vector."""
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
        """(W,) rows of words, from 1 on; a word that has none gets one."""
        self._add([word for word in dict.fromkeys(words) if word not in self._rows])
        return np.array([self._rows[word] for word in words], dtype=np.int64)

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Those of these words, all with a row, for which there was no vector."""
        known = self.known.tolist()
        return {word for word in words if not known[self._rows[word]]}

    @torch.no_grad()
    def _add(self, words: Sequence[str]) -> None:
        if not words:
            return
        rows, known = self._make(words)
        for word in words:
            self._rows[word] = len(self._rows)
        self.weight = _longer(self.weight, rows)
        if self.bias is not None:
            self.bias = _longer(self.bias, torch.zeros(len(words)))
        self.known = torch.cat([self.known, torch.tensor(known, dtype=torch.uint8).to(self.known)])
        self.spelling = _spelled(self._rows).to(self.known.device)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if f"{prefix}spelling" in state_dict:
            saved = bytes(state_dict[f"{prefix}spelling"].tolist()).decode().split("\n")
            places = torch.from_numpy(np.concatenate([[0], self.ids(saved[1:])]).astype(np.int64))
            own = {"weight": self.weight, "known": self.known, "bias": self.bias}
            # By name: the rows of this module may stand in another order, and be more.
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
    """The words as UTF-8 bytes, one a line; no word holds a line end."""
    return torch.tensor(list("\n".join(words).encode()), dtype=torch.uint8)


def save_word_module(
    module: nn.Module, folder: str | Path, kind: str, settings: Mapping[str, Any]
) -> None:
    """Writes a module over word rows without pickle: weights, words and settings.

    The folder appears whole or not at all; one that is there is replaced.
    """
    with whole_folder(Path(folder)) as fresh:
        weights = {name: value.contiguous() for name, value in module.state_dict().items()}
        save_file(weights, fresh / WORD_WEIGHTS, metadata={"format": "pt"})
        text = json.dumps({"format": _FORMAT, "kind": kind, **settings}, indent=2) + "\n"
        (fresh / WORD_SETTINGS).write_text(text, encoding="utf-8")


def is_word_folder(folder: str | Path) -> bool:
    """Whether this is a folder that `save_word_module` wrote."""
    return (Path(folder).expanduser() / WORD_SETTINGS).is_file()


def word_settings(folder: str | Path) -> dict[str, Any]:
    """The settings in a folder that `save_word_module` wrote, its `kind` among them.

    Raises:
        PretrainedError: If there are none, or they cannot be read.
    """
    path = Path(folder).expanduser() / WORD_SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        form = settings.pop("format")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise PretrainedError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    if form != _FORMAT:
        raise PretrainedError(f"{path}: format {form!r} is not known here")
    return dict(settings)


def load_word_weights(module: nn.Module, folder: str | Path) -> None:
    """Fills a module with the weights and words of such a folder.

    Raises:
        PretrainedError: If they are damaged or do not fit.
    """
    try:
        module.load_state_dict(load_file(Path(folder).expanduser() / WORD_WEIGHTS))
    except Exception as error:
        # A damaged file raises safetensors' own error, a missing or foreign one others.
        first = str(error).splitlines()[0]
        raise PretrainedError(
            f"cannot load the weights of folder {folder}: {type(error).__name__}: {first}"
        ) from error
