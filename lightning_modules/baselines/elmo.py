"""ELMo as the vectors of a baseline: `--model.vectors elmo:OPTIONS.json,WEIGHTS.hdf5`.

A CNN over characters and an LSTM stack in each direction (Peters et al. 2018). Everything is as in
the authors' TensorFlow program, but that its LSTMs go on with the states of the batch before and
ours begin each text with 0, so that no text hangs on another.

Shapes: N texts, L words, M characters a word, P numbers of the projection, D = 2P numbers a word,
H cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.encoded_set import Ids
from probelight.encoding.words import words_of
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of, user_path
from probelight.lightning_modules.baselines.elmo_weights import ElmoOptions, cell_name, read_weights
from probelight.lightning_modules.baselines.token_vectors import (
    FrozenModel,
    FrozenOrigin,
    TokenVectors,
)
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
        """Return ids (W,) of words, from 1 on; one that is not known yet gets one."""
        for word in words:
            if word not in self._ids:
                self._words.append(word.encode("utf-8", "ignore"))
                self._ids[word] = len(self._words)
        return np.array([self._ids[word] for word in words], dtype=np.int64)

    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """Return states (L, layers + 1, D) of the words (L,) of a text."""
        words = [self._words[i - 1] for i in ids]
        characters = text_characters(words, self.options.max_characters)
        # What is kept serves later trainings too, whatever their precision.
        with torch.autocast(device.type, enabled=False):
            found: Tensor = self._model.to(device)(characters.to(device))
        return found


# Shared by all that read the same one: nothing of it is trained.
_loaded = lru_cache(maxsize=2)(FrozenElmo)


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
        """Load those of OPTIONS.json,WEIGHTS.hdf5; see `FrozenOrigin`.

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
        notices = []
        if self._masked:
            notices.append(f"ELMo knows no mask: {MASK} is read as a word of its letters")
        if self._long:
            notices.append(
                f"{len(self._long)} words are longer than the {self._room} bytes that ELMo reads "
                "of a word, and were cut"
            )
        return tuple(notices)

    @property
    def _room(self) -> int:
        return self._frozen.model.options.max_characters - 2

    def split(self, text: str) -> list[str]:
        """Return the words of a text as they are written: ELMo knows capitals."""
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


_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _PADDING = range(256, 261)
_FORGET_BIAS = 1.0  # TensorFlow adds it when the cell runs


def text_characters(words: list[bytes], length: int) -> Tensor:
    """Return ids (L + 2, M) of the words' bytes, between those of the sentence's begin and end.

    Args:
        words: UTF-8; of a word of more than M - 2 bytes the rest is cut.
        length: M.
    """
    signs = [[_SENTENCE_BEGIN], *(list(word[: length - 2]) for word in words), [_SENTENCE_END]]
    rows = [[_WORD_BEGIN, *word, _WORD_END] for word in signs]
    return torch.tensor([row + [_PADDING] * (length - len(row)) for row in rows])


class BiLM(nn.Module):
    """The states of all layers for a text.

    Args:
        options: What it is made of.
        weights: As `read_weights` gives them; they are not trained.
    """

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._residual = options.residual
        self.words = CharacterCNN(options, weights)
        self.onward, self.backwards = (
            nn.ModuleList(
                ProjectedLSTM(options, weights, cell_name(direction, layer))
                for layer in range(options.num_layers)
            )
            for direction in range(2)
        )

    def forward(self, characters: Tensor) -> Tensor:
        """Return (L, layers + 1, 2P) of (L + 2, M): the words' own vectors, twice, are first."""
        words = self.words(characters)
        onward = self._states(words, self.onward)
        backwards = self._states(words.flip(0), self.backwards).flip(0)
        return torch.cat([onward, backwards], dim=-1)[1:-1]

    def _states(self, words: Tensor, layers: nn.ModuleList) -> Tensor:
        found = [words]
        for layer in layers:
            below = found[-1]
            above = layer(below)
            found.append(above + below if self._residual and len(found) > 1 else above)
        return torch.stack(found, dim=1)


class CharacterCNN(nn.Module):
    """Words to vectors: convolutions over characters, their maxima, highway layers, a projection.

    Args:
        options: What it is made of.
        weights: As `read_weights` gives them.
    """

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._activation = F.relu if options.activation == "relu" else torch.tanh
        self._num_groups = len(options.filters)
        self._num_highway = options.num_highway
        for name, value in weights.items():
            if not name.startswith("RNN"):
                self.register_buffer(name.replace("/", "_"), value)

    def forward(self, characters: Tensor) -> Tensor:
        """Return vectors (L, P) of words of characters (L, M)."""
        given = F.embedding(characters, self.char_embed)[:, None]  # type: ignore[arg-type]
        groups = []
        for i in range(self._num_groups):
            weight, bias = self._pair("CNN", f"cnn_{i}")
            # One row of characters as an image one pixel high, as TensorFlow has it.
            found = F.conv2d(given.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias)
            groups.append(self._activation(found[:, :, 0].amax(dim=-1)))
        states = torch.cat(groups, dim=-1)
        for i in range(self._num_highway):
            carry = torch.sigmoid(self._linear(states, f"CNN_high_{i}", "carry"))
            changed = F.relu(self._linear(states, f"CNN_high_{i}", "transform"))
            states = carry * changed + (1 - carry) * states
        return self._linear(states, "CNN_proj", "proj")

    def _linear(self, states: Tensor, group: str, name: str) -> Tensor:
        weight, bias = self._pair(group, name)
        return states @ weight + bias

    def _pair(self, group: str, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"{group}_W_{name}"), self.get_buffer(f"{group}_b_{name}")


class ProjectedLSTM(nn.Module):
    """TensorFlow's `LSTMCell` with a projection, over a sequence; its first states are 0.

    Args:
        options: How large it is, and where it is clipped.
        weights: As `read_weights` gives them.
        name: Of its group.
    """

    gates: Tensor
    bias: Tensor
    projection: Tensor

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor], name: str) -> None:
        super().__init__()
        self._cell_clip = options.cell_clip
        self._projection_clip = options.projection_clip
        self.register_buffer("gates", weights[f"{name}/W_0"])
        self.register_buffer("bias", weights[f"{name}/B"])
        self.register_buffer("projection", weights[f"{name}/W_P_0"])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return states (L, P) of inputs (L, P)."""
        size = inputs.shape[1]
        given = inputs @ self.gates[:size] + self.bias
        recurrent = self.gates[size:]
        state, cell = inputs.new_zeros(size), inputs.new_zeros(len(self.projection))
        found = []
        for step in given:
            enter, new, forget, leave = (step + state @ recurrent).chunk(4)
            kept = torch.sigmoid(forget + _FORGET_BIAS) * cell
            cell = kept + torch.sigmoid(enter) * torch.tanh(new)
            if self._cell_clip is not None:
                cell = cell.clamp(-self._cell_clip, self._cell_clip)
            state = torch.sigmoid(leave) * torch.tanh(cell) @ self.projection
            if self._projection_clip is not None:
                state = state.clamp(-self._projection_clip, self._projection_clip)
            found.append(state)
        return torch.stack(found)
