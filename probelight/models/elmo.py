"""ELMo as the word vectors of a baseline: `--model.vectors elmo:OPTIONS.json,WEIGHTS.hdf5`.

A CNN over characters and a stack of LSTMs in each direction (Peters et al. 2018). Everything is as
in the authors' TensorFlow program, except that its LSTMs keep the states of the previous batch, and
ours begin each text with 0, so no text depends on another.

Shapes: N texts, L words, M characters per word, P numbers of the projection, D = 2P numbers per
word, H cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.encoded_set import ChoiceEncoder, Ids
from probelight.encoding.word_vectors import WordVectorsError
from probelight.encoding.words import split_words
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of, user_path
from probelight.io.ranges import Width, Within
from probelight.io.settings import typed
from probelight.models.checkpoint_files import read_settings
from probelight.models.token_vectors import FrozenModel, FrozenOrigin, TokenVectors
from probelight.probes.record import MASK

NUM_CHARACTERS = 261  # 256 bytes, begin and end of a sentence and of a word, padding
_Clip = Annotated[float, Within(0, 1_000_000, above=True)] | None


@dataclass(frozen=True)
class _Embedding:
    dim: Width  # C


@dataclass(frozen=True)
class _CharacterOptions:
    filters: tuple[tuple[Width, Width], ...]  # (width, number) of a group
    activation: Literal["relu", "tanh"]
    n_highway: Annotated[int, Within(0, 1_000)]
    embedding: _Embedding
    max_characters_per_token: Annotated[int, Within(3, 100_000)]  # with the two around a word
    n_characters: Literal[261, 262]


@dataclass(frozen=True)
class _LSTMOptions:
    n_layers: Width  # per direction
    dim: Width  # H
    projection_dim: Width  # P
    cell_clip: _Clip  # largest absolute value of a cell
    proj_clip: _Clip  # of the projection
    use_skip_connections: bool  # add a layer's input to its output, from the second layer on


@dataclass(frozen=True)
class ElmoOptions:
    """The options that the vectors depend on, under the keys of the authors' file."""

    __pydantic_config__: ClassVar = {"strict": True}

    char_cnn: _CharacterOptions
    lstm: _LSTMOptions

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the options in a file; errors name the file and the key."""
        path = user_path(path)
        options = typed(cls, read_settings(path), str(path), WordVectorsError)
        characters = options.char_cnn
        widest = max((width for width, _ in characters.filters), default=0)
        if not 0 < widest <= characters.max_characters_per_token:
            raise WordVectorsError(
                f"{path}: `char_cnn.filters` must not be empty or wider than the longest word"
            )
        return options

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield each dataset of the weights, and its shape."""
        characters, lstm = self.char_cnn, self.lstm
        size, num_filters = characters.embedding.dim, sum(n for _, n in characters.filters)
        yield "char_embed", (NUM_CHARACTERS, size)
        for i, (width, number) in enumerate(characters.filters):
            yield f"CNN/W_cnn_{i}", (1, width, size, number)
            yield f"CNN/b_cnn_{i}", (number,)
        for i in range(characters.n_highway):
            for gate in ("carry", "transform"):
                yield f"CNN_high_{i}/W_{gate}", (num_filters, num_filters)
                yield f"CNN_high_{i}/b_{gate}", (num_filters,)
        yield "CNN_proj/W_proj", (num_filters, lstm.projection_dim)
        yield "CNN_proj/b_proj", (lstm.projection_dim,)
        for direction in range(2):
            for layer in range(lstm.n_layers):
                cell = cell_name(direction, layer)
                yield f"{cell}/W_0", (2 * lstm.projection_dim, 4 * lstm.dim)
                yield f"{cell}/B", (4 * lstm.dim,)
                yield f"{cell}/W_P_0", (lstm.dim, lstm.projection_dim)


def cell_name(direction: int, layer: int) -> str:
    """Return the group of an LSTM's datasets; direction 0 reads forward, 1 backward."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def read_weights(path: str | Path, options: ElmoOptions) -> dict[str, Tensor]:
    """Read the datasets that the options describe, by name, as float32.

    Errors name the file and the dataset that is missing, has another shape or is not finite.
    """
    try:
        import h5py
    except ImportError as error:
        raise UsageError(f"ELMo's weights need h5py ({error}); pip install -e '.[elmo]'") from error
    path = user_path(path)
    weights = {}
    try:
        with h5py.File(path, "r") as file:
            for name, shape in options.shapes():
                dataset = file.get(name)
                if not isinstance(dataset, h5py.Dataset):
                    raise WordVectorsError(f"{path}: no dataset {name}; are these ELMo's weights?")
                if dataset.shape != shape:
                    raise WordVectorsError(
                        f"{path}: {name} has the shape {dataset.shape}, but the options say "
                        f"{shape}; do the two files belong together?"
                    )
                if dataset.dtype.kind != "f":
                    raise WordVectorsError(
                        f"{path}: {name} has the type {dataset.dtype}, not floating-point numbers"
                    )
                weights[name] = torch.from_numpy(dataset[...]).float()
                if not weights[name].isfinite().all():
                    raise WordVectorsError(f"{path}: {name} has values that are not finite")
    except OSError as error:
        raise WordVectorsError(f"{path} cannot be read as HDF5: {error}") from error
    return weights


_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _PADDING = range(256, 261)
_FORGET_BIAS = 1.0  # TensorFlow adds it when the cell runs


class BiLM(nn.Module):
    """Computes the states of all layers for a text; nothing is trained."""

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._residual = options.lstm.use_skip_connections
        self.words = CharacterCNN(options, weights)
        self.onward, self.backwards = (
            nn.ModuleList(
                ProjectedLSTM(options, weights, cell_name(direction, layer))
                for layer in range(options.lstm.n_layers)
            )
            for direction in range(2)
        )

    def forward(self, characters: Tensor) -> Tensor:
        """Return states (L, layers + 1, 2P) of (L + 2, M); first the words' own vectors, twice."""
        words = self.words(characters)
        onward = self._states(words, self.onward)
        backwards = self._states(words.flip(0), self.backwards).flip(0)
        return torch.cat([onward, backwards], dim=-1)[1:-1]

    def _states(self, words: Tensor, layers: nn.ModuleList) -> Tensor:
        states = [words]
        for layer in layers:
            below = states[-1]
            above = layer(below)
            states.append(above + below if self._residual and len(states) > 1 else above)
        return torch.stack(states, dim=1)


class CharacterCNN(nn.Module):
    """Words to vectors: convolutions over characters, maxima, highway layers and a projection."""

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._activation = F.relu if options.char_cnn.activation == "relu" else torch.tanh
        self._num_groups = len(options.char_cnn.filters)
        self._num_highway = options.char_cnn.n_highway
        for name, value in weights.items():
            if not name.startswith("RNN"):
                self.register_buffer(name.replace("/", "_"), value)

    def forward(self, characters: Tensor) -> Tensor:
        """Return vectors (L, P) of words of characters (L, M)."""
        embedded = F.embedding(characters, self.char_embed)[:, None]  # type: ignore[arg-type]
        groups = []
        for i in range(self._num_groups):
            weight, bias = self._pair("CNN", f"cnn_{i}")
            # One row of characters as an image one pixel high, as TensorFlow has it.
            convolved = F.conv2d(embedded.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias)
            groups.append(self._activation(convolved[:, :, 0].amax(dim=-1)))
        states = torch.cat(groups, dim=-1)
        for i in range(self._num_highway):
            carry = torch.sigmoid(self._linear(states, f"CNN_high_{i}", "carry"))
            transformed = F.relu(self._linear(states, f"CNN_high_{i}", "transform"))
            states = carry * transformed + (1 - carry) * states
        return self._linear(states, "CNN_proj", "proj")

    def _linear(self, states: Tensor, group: str, name: str) -> Tensor:
        weight, bias = self._pair(group, name)
        return states @ weight + bias

    def _pair(self, group: str, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"{group}_W_{name}"), self.get_buffer(f"{group}_b_{name}")


class ProjectedLSTM(nn.Module):
    """TensorFlow's `LSTMCell` with a projection, over a sequence; its first states are 0."""

    gates: Tensor
    bias: Tensor
    projection: Tensor

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor], name: str) -> None:
        super().__init__()
        self._cell_clip = options.lstm.cell_clip
        self._projection_clip = options.lstm.proj_clip
        self.register_buffer("gates", weights[f"{name}/W_0"])
        self.register_buffer("bias", weights[f"{name}/B"])
        self.register_buffer("projection", weights[f"{name}/W_P_0"])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return states (L, P) of inputs (L, P)."""
        size = inputs.shape[1]
        gate_inputs = inputs @ self.gates[:size] + self.bias
        recurrent = self.gates[size:]
        state, cell = inputs.new_zeros(size), inputs.new_zeros(len(self.projection))
        states = []
        for step in gate_inputs:
            input_gate, proposed, forget_gate, output_gate = (step + state @ recurrent).chunk(4)
            remembered = torch.sigmoid(forget_gate + _FORGET_BIAS) * cell
            cell = remembered + torch.sigmoid(input_gate) * torch.tanh(proposed)
            if self._cell_clip is not None:
                cell = cell.clamp(-self._cell_clip, self._cell_clip)
            state = torch.sigmoid(output_gate) * torch.tanh(cell) @ self.projection
            if self._projection_clip is not None:
                state = state.clamp(-self._projection_clip, self._projection_clip)
            states.append(state)
        return torch.stack(states)


class FrozenElmo(FrozenModel):
    """ELMo, read from its two files: the states of all its layers for each text."""

    def __init__(self, options: str, weights: str) -> None:
        super().__init__()
        self.options = ElmoOptions.load(options)
        self.dimension = 2 * self.options.lstm.projection_dim
        self.room = self.options.char_cnn.max_characters_per_token - 2
        self._model = BiLM(self.options, read_weights(weights, self.options)).eval()
        checksums = f"{sha256_of(user_path(options))} {sha256_of(user_path(weights))}"
        self.sha256 = hashlib.sha256(checksums.encode()).hexdigest()
        self._ids: dict[str, int] = {}
        self._words: list[bytes] = []

    def ids(self, words: Sequence[str]) -> Ids:
        """Return ids (W,) of words, from 1 on; a new word gets a new id."""
        for word in words:
            if word not in self._ids:
                self._words.append(word.encode("utf-8", "ignore"))
                self._ids[word] = len(self._words)
        return np.array([self._ids[word] for word in words], dtype=np.int64)

    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """Return states (L, layers + 1, D) of the words (L,) of a text."""
        words = [list(self._words[i - 1][: self.room]) for i in ids]
        rows = [
            [_WORD_BEGIN, *word, _WORD_END, *[_PADDING] * (self.room - len(word))]
            for word in ([_SENTENCE_BEGIN], *words, [_SENTENCE_END])
        ]
        characters = torch.tensor(rows)  # (L + 2, M) bytes, and the signs around them
        # What is kept serves later trainings too, whatever their precision.
        with torch.autocast(device.type, enabled=False):
            states: Tensor = self._model.to(device)(characters.to(device))
        return states


# Shared by all that read the same one: nothing of it is trained.
_loaded = lru_cache(maxsize=2)(FrozenElmo)


class ElmoVectors(TokenVectors):
    """gamma sum_j s_j h_j over the layers h_j of a frozen ELMo (Peters et al. 2018, equation 1).

    s is the softmax of one number per layer. These numbers and gamma are trained and saved with the
    baseline; ELMo itself is not. Before training, the vectors are the means of the layers.

    Raises:
        PretrainedError: If the options are not a JSON object.
        WordVectorsError: If one of the files cannot be used.
        UsageError: If one of the files is not given, or h5py is not installed.
    """

    origin: FrozenOrigin[FrozenElmo]

    def __init__(self, files: str, dimension: int | None, sha256: str | None) -> None:
        super().__init__()
        options, comma, weights = files.partition(",")
        if not (options and comma and weights):
            raise UsageError(f"elmo:{files}: give two files, as elmo:OPTIONS.json,WEIGHTS.hdf5")
        load = partial(_loaded, options, weights)
        self.origin = FrozenOrigin(f"elmo:{files}", load, dimension, sha256)
        num_layers = ElmoOptions.load(options).lstm.n_layers + 1  # with the words' own vectors
        self.layer_weights = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self._masked = False
        self._long: set[str] = set()

    @property
    def notices(self) -> tuple[str, ...]:
        notices = []
        if self._masked:
            notices.append(f"ELMo has no mask token: {MASK} is read as a word, letter by letter")
        if self._long:
            notices.append(
                f"{len(self._long)} words were cut, because ELMo reads at most "
                f"{self.origin.model.room} bytes of a word"
            )
        return tuple(notices)

    def split(self, text: str) -> list[str]:
        """Return the words of a text as they are written, because ELMo distinguishes capitals."""
        return split_words(text, lower=False)

    def ids(self, words: Sequence[str]) -> Ids:
        self._masked |= MASK in words
        room = self.origin.model.room
        self._long.update(word for word in words if len(word.encode("utf-8", "ignore")) > room)
        return self.origin.model.ids(words)

    def forward(self, ids: Tensor) -> Tensor:
        layers = self.origin.model.padded(ids)
        shares = self.layer_weights.softmax(dim=0)[:, None]
        return self.gamma * (shares * layers).sum(dim=2)

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        assert self.origin.model  # raises if it is missing or another one
        return super().encoder(max_length, num_choices)
