"""ELMo's vectors for a baseline: `--model.vectors elmo:OPTIONS.json,WEIGHTS.hdf5`.

Shapes: N texts, L words, D = 2P numbers a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

from probelight.encoding.encoded_set import Ids
from probelight.encoding.words import words_of
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of, user_path
from probelight.lightning_modules.baselines.elmo.bilm import BiLM, text_characters
from probelight.lightning_modules.baselines.elmo.weights import ElmoOptions, read_weights
from probelight.lightning_modules.baselines.frozen_states import FrozenModel, FrozenOrigin
from probelight.lightning_modules.baselines.token_vectors import TokenVectors
from probelight.probes.record import MASK

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


class FrozenElmo(FrozenModel):
    """ELMo, which gives each text the states of all its layers.

    Args:
        options: The options file.
        weights: The weights.

    Raises:
        PretrainedError: If the options are no JSON object.
        WordVectorsError: If one of the files cannot be used.
        UsageError: If h5py is not installed.
    """

    def __init__(self, options: str, weights: str) -> None:
        super().__init__()
        self.options = ElmoOptions.load(options)
        self.dimension = 2 * self.options.projection_size
        self._model = BiLM(self.options, read_weights(weights, self.options)).eval()
        both = f"{sha256_of(user_path(options))} {sha256_of(user_path(weights))}"
        self.sha256 = hashlib.sha256(both.encode()).hexdigest()
        self._ids: dict[str, int] = {}
        self._words: list[bytes] = []

    def ids(self, words: Sequence[str]) -> Ids:
        """(W,) ids of words, from 1 on; one that is not known yet gets one."""
        for word in words:
            if word not in self._ids:
                self._words.append(word.encode("utf-8", "ignore"))
                self._ids[word] = len(self._words)
        return np.array([self._ids[word] for word in words], dtype=np.int64)

    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """(L, layers + 1, D) of the words (L,) of a text."""
        words = [self._words[i - 1] for i in ids]
        characters = text_characters(words, self.options.max_characters)
        # What is kept serves later trainings too, whatever their precision.
        with torch.autocast(device.type, enabled=False):
            found: Tensor = self._model.to(device)(characters.to(device))
        return found


@lru_cache(maxsize=2)
def _loaded(options: str, weights: str) -> FrozenElmo:
    """Shared by all that read the same one: nothing of it is trained."""
    return FrozenElmo(options, weights)


class ElmoVectors(TokenVectors):
    """gamma sum_j s_j h_j over the layers h_j of a frozen ELMo (Peters et al. 2018, equation 1).

    s is a softmax of a number a layer. These numbers and gamma are trained and saved with the
    baseline, ELMo is not; before any training the vectors are the means of the layers.

    Args:
        origin: Where the layers come from.
        num_layers: How many there are, that of the words' own vectors included.
    """

    def __init__(self, origin: FrozenOrigin[FrozenElmo], num_layers: int) -> None:
        super().__init__()
        self.origin = self._frozen = origin
        self.layer_weights = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self._masked = False
        self._long: set[str] = set()

    @classmethod
    def load(cls, files: str, dimension: int | None, sha256: str | None) -> Self:
        """Those of OPTIONS.json,WEIGHTS.hdf5; see `FrozenOrigin`.

        Raises:
            PretrainedError: If the options are no JSON object.
            WordVectorsError: If one of the files cannot be used.
            UsageError: If one of them is not named, or h5py is not installed.
        """
        options, comma, weights = files.partition(",")
        if not (options and comma and weights):
            raise UsageError(f"elmo:{files}: two files are wanted, elmo:OPTIONS.json,WEIGHTS.hdf5")
        origin = FrozenOrigin(
            f"elmo:{files}", partial(_loaded, options, weights), dimension, sha256
        )
        return cls(origin, ElmoOptions.load(options).num_layers + 1)

    @property
    def notices(self) -> tuple[str, ...]:
        said = []
        if self._masked:
            said.append(f"ELMo knows no mask: {MASK} is read as a word of its letters")
        if self._long:
            said.append(
                f"{len(self._long)} words are longer than the {self._room} bytes that ELMo reads "
                "of a word, and were cut"
            )
        return tuple(said)

    @property
    def _room(self) -> int:
        return self._frozen.model.options.max_characters - 2

    def split(self, text: str) -> list[str]:
        """The words of a text as they are written: ELMo tells capitals apart."""
        return words_of(text, lower=False)

    def ids(self, words: Sequence[str]) -> Ids:
        self._masked |= MASK in words
        room = self._room
        self._long.update(word for word in words if len(word.encode("utf-8", "ignore")) > room)
        return self._frozen.model.ids(words)

    def unknown(self, words: Iterable[str]) -> set[str]:
        return set()

    def forward(self, ids: Tensor) -> Tensor:
        layers = self._frozen.model.padded(ids)
        shares = self.layer_weights.softmax(dim=0)[:, None]
        return self.gamma * (shares * layers).sum(dim=2)

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        assert self._frozen.model  # one that is not there, or another one, is told of here
        return super().encoder(max_length, num_choices)
