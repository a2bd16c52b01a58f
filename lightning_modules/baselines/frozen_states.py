"""What vectors of frozen models share: states of texts read once, and where they come from.

Shapes: N texts, L tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from probelight.encoding.encoded_set import Ids
from probelight.encoding.word_vectors import WordVectorsError
from probelight.encoding.words import PADDING_ID

_MOST_KEPT = 2**28  # numbers; a GiB


class FrozenModel(ABC):
    """A frozen model that gives each text its states, and keeps them.

    A text is read alone, so that its states hang on no other text, whatever is trained on them and
    wherever a training goes on. What is kept takes a GiB at most; texts beyond are read each time.

    Attributes:
        dimension: Numbers a state.
        sha256: Of what the states are made with, as hex.
    """

    dimension: int
    sha256: str

    def __init__(self) -> None:
        self._kept: dict[bytes, Tensor] = {}
        self._num_kept = 0

    @abstractmethod
    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """(L, ...) states of the tokens (L,) of a text, whose ids begin with 1."""

    @torch.inference_mode(False)  # what is kept while a model is asked is trained on later
    @torch.no_grad()
    def states(self, ids: Ids, device: torch.device) -> Tensor:
        """As `read`, once a text."""
        key = ids.tobytes()
        if (known := self._kept.get(key)) is not None:
            return known.to(device)
        found = self.read(ids, device)
        if self._num_kept + found.numel() <= _MOST_KEPT:
            self._kept[key] = found.cpu()
            self._num_kept += found.numel()
        return found

    def padded(self, ids: Tensor) -> Tensor:
        """(N, L, ...) states of texts (N, L), 0 at padding."""
        rows = ids.cpu().numpy()
        states = [self.states(row[row != PADDING_ID], ids.device) for row in rows]
        found = pad_sequence(states, batch_first=True)
        whole = found.new_zeros(*ids.shape, *found.shape[2:])
        whole[:, : found.shape[1]] = found
        return whole


Model = TypeVar("Model", bound=FrozenModel)


class FrozenOrigin(Generic[Model]):
    """Where the states come from; what a saved folder says of them spares reading the weights.

    Args:
        source: As `--model.vectors` names it.
        load: Loads the model.
        dimension: Numbers a state, if it is known.
        sha256: Of the model, if it is known: another one is refused when it is read.
    """

    def __init__(
        self, source: str, load: Callable[[], Model], dimension: int | None, sha256: str | None
    ) -> None:
        self.source = source
        self._load = load
        self._wanted = sha256
        self.sha256 = sha256 or self.model.sha256
        self.dimension: int = dimension or self.model.dimension

    @cached_property
    def model(self) -> Model:
        """The model itself.

        Raises:
            PretrainedError: If it cannot be loaded.
            WordVectorsError: If it has other weights than are wanted.
        """
        found = self._load()
        if self._wanted not in (None, found.sha256):
            raise WordVectorsError(
                f"{self.source}: its weights are others than those that the model was trained with"
            )
        return found
