"""ELMo's released weight format: options as JSON beside weights as HDF5 (Peters et al. 2018).

Shapes, as TensorFlow wrote them: C numbers a character, F filters of all widths together, P numbers
of the projection, H cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from probelight.encoding.word_vectors import WordVectorsError
from probelight.io.errors import UsageError
from probelight.io.files import user_path
from probelight.models.checkpoint_files import read_settings

if TYPE_CHECKING:
    import h5py

NUM_CHARACTERS = 261  # 256 bytes, begin and end of a sentence and of a word, padding
_ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class ElmoOptions:
    """What the options file says, as far as the vectors hang on it.

    Attributes:
        filters: (width, number) of each group of convolutions.
        activation: Of the convolutions: "relu" or "tanh".
        num_highway: Highway layers over their maxima.
        character_size: C.
        max_characters: Of a word, the two that begin and end it included.
        num_layers: Of each direction.
        num_cells: H.
        projection_size: P.
        cell_clip: Largest absolute value of a cell; None clips none.
        projection_clip: The same of what is projected.
        residual: Whether a layer's input is added to its output, from the second layer on.
    """

    filters: tuple[tuple[int, int], ...]
    activation: str
    num_highway: int
    character_size: int
    max_characters: int
    num_layers: int
    num_cells: int
    projection_size: int
    cell_clip: float | None
    projection_clip: float | None
    residual: bool

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the options of a file.

        Raises:
            PretrainedError: If it is no JSON object.
            WordVectorsError: If a key is missing or holds what it cannot; file and key are named.
        """
        path = user_path(path)
        values = _OptionsFile(path, read_settings(path))
        options = cls(
            filters=values.filters(),
            activation=values.one_of("char_cnn.activation", _ACTIVATIONS),
            num_highway=values.whole("char_cnn.n_highway", least=0),
            character_size=values.whole("char_cnn.embedding.dim"),
            max_characters=values.whole("char_cnn.max_characters_per_token", least=3),
            num_layers=values.whole("lstm.n_layers"),
            num_cells=values.whole("lstm.dim"),
            projection_size=values.whole("lstm.projection_dim"),
            cell_clip=values.clip("lstm.cell_clip"),
            projection_clip=values.clip("lstm.proj_clip"),
            residual=values.one_of("lstm.use_skip_connections", (True, False)),
        )
        values.one_of("char_cnn.n_characters", (NUM_CHARACTERS, NUM_CHARACTERS + 1))
        if max(width for width, _ in options.filters) > options.max_characters:
            raise values.wrong("char_cnn.filters", "a filter is wider than the longest word")
        return options

    @property
    def num_filters(self) -> int:
        """F."""
        return sum(number for _, number in self.filters)

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield each dataset of the weights, and its shape."""
        yield "char_embed", (NUM_CHARACTERS, self.character_size)
        for i, (width, number) in enumerate(self.filters):
            yield f"CNN/W_cnn_{i}", (1, width, self.character_size, number)
            yield f"CNN/b_cnn_{i}", (number,)
        for i in range(self.num_highway):
            for gate in ("carry", "transform"):
                yield f"CNN_high_{i}/W_{gate}", (self.num_filters, self.num_filters)
                yield f"CNN_high_{i}/b_{gate}", (self.num_filters,)
        yield "CNN_proj/W_proj", (self.num_filters, self.projection_size)
        yield "CNN_proj/b_proj", (self.projection_size,)
        for direction in range(2):
            for layer in range(self.num_layers):
                cell = cell_name(direction, layer)
                yield f"{cell}/W_0", (2 * self.projection_size, 4 * self.num_cells)
                yield f"{cell}/B", (4 * self.num_cells,)
                yield f"{cell}/W_P_0", (self.num_cells, self.projection_size)


def cell_name(direction: int, layer: int) -> str:
    """Return the group of an LSTM's datasets; direction 0 reads onward, 1 backward."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def read_weights(path: str | Path, options: ElmoOptions) -> dict[str, Tensor]:
    """Read the datasets that the options speak of, by name, as float32.

    Raises:
        UsageError: If h5py is not installed.
        WordVectorsError: If the file cannot be read, or a dataset is missing, has another shape
            than the options say, or holds what is no finite number; file and dataset are named.
    """
    try:
        import h5py
    except ImportError as error:
        raise UsageError(f"ELMo's weights need h5py ({error}); pip install -e '.[elmo]'") from error
    path = user_path(path)
    try:
        with h5py.File(path, "r") as file:
            return {name: _read(file, path, name, shape) for name, shape in options.shapes()}
    except OSError as error:
        raise WordVectorsError(f"{path} cannot be read as HDF5: {error}") from error


def _read(file: h5py.File, path: Path, name: str, shape: tuple[int, ...]) -> Tensor:
    import h5py

    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise WordVectorsError(f"{path}: no dataset {name}; are these ELMo's weights?")
    if found.shape != shape:
        raise WordVectorsError(
            f"{path}: {name} has the shape {found.shape}, the options say {shape}; do both files "
            "belong together?"
        )
    if found.dtype.kind != "f":
        raise WordVectorsError(f"{path}: {name} holds {found.dtype}, no numbers with a fraction")
    weights = torch.from_numpy(found[...]).float()
    if not weights.isfinite().all():
        raise WordVectorsError(f"{path}: {name} holds what is no finite number")
    return weights


class _OptionsFile:
    """Values of an options file by their path of keys, each checked."""

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self._path = path
        self._options = options

    def wrong(self, key: str, why: str) -> WordVectorsError:
        return WordVectorsError(f"{self._path}: {key}: {why}")

    def whole(self, key: str, least: int = 1) -> int:
        value = self._value(key)
        if type(value) is not int or value < least:
            raise self.wrong(key, f"{value!r} is no whole number from {least} on")
        return value

    def clip(self, key: str) -> float | None:
        value = self._value(key)
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            raise self.wrong(key, f"{value!r} is neither null nor a number above 0")
        return float(value)

    def one_of(self, key: str, known: tuple[Any, ...]) -> Any:
        value = self._value(key)
        if not any(value is one or (type(value) is type(one) and value == one) for one in known):
            raise self.wrong(key, f"{value!r} is none of {', '.join(map(repr, known))}")
        return value

    def filters(self) -> tuple[tuple[int, int], ...]:
        key = "char_cnn.filters"
        value = self._value(key)
        well_formed = isinstance(value, list) and bool(value)
        for pair in value if well_formed else ():
            numbers = pair if isinstance(pair, list) and len(pair) == 2 else (0,)
            well_formed &= all(type(number) is int and number > 0 for number in numbers)
        if not well_formed:
            raise self.wrong(key, f"{value!r} is no list of [width, number]")
        return tuple((width, number) for width, number in value)

    def _value(self, key: str) -> Any:
        value: Any = self._options
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise self.wrong(key, "not there; are these ELMo's options?")
            value = value[part]
        return value
