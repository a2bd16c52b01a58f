"""What a baseline over vectors begins with: tokens, their ids, and a vector for each.

Here is what every source of vectors offers, and what those that are frozen models share: the states
of a text are computed once. `vector_sources` holds the sources.

Shapes: N texts, L tokens, D numbers a token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from probelight.encoding.encoded_set import Ids
from probelight.encoding.word_vectors import WordVectorsError
from probelight.encoding.words import PADDING_ID, words_of

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


class Origin(Protocol):
    """Where vectors come from, for the folder of a saved model."""

    @property
    def source(self) -> str:
        """As `--model.vectors` names it."""
        ...

    @property
    def dimension(self) -> int:
        """D."""
        ...

    @property
    def sha256(self) -> str | None:
        """Of the files that they are made from, as hex."""
        ...


class TokenVectors(nn.Module, ABC):
    """Texts to tokens, tokens to ids, ids to vectors: what a baseline over vectors begins with.

    A source owns how a text is split and which ids its tokens have, from 1 on; 0 is padding. It is
    a `WordIndex`, and a module, so its weights are saved and trained with the baseline's, as far as
    it lets them be. A token's vector may depend on the other tokens of its text, and on no other
    text.
    """

    origin: Origin

    @property
    def dimension(self) -> int:
        """D."""
        return self.origin.dimension

    def split(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return words_of(text)

    @property
    @abstractmethod
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about the vectors."""

    @abstractmethod
    def ids(self, words: Sequence[str]) -> Ids:
        """Return ids (W,) of tokens; one that is not known yet gets one."""

    @abstractmethod
    def unknown(self, words: Iterable[str]) -> set[str]:
        """Return those tokens, all with ids already, for which there is no vector."""

    @abstractmethod
    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors (N, L, D) of ids (N, L), 0 at padding and where a token has none."""

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors (N, L, D), and which tokens (N, L) are no padding."""
        return self(ids), ids != PADDING_ID

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        """Return what turns records into batches of ids; see `WordPairEncoder`."""
        from probelight.encoding.words import WordPairEncoder

        return WordPairEncoder(self, max_length, num_choices, self.split)


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
        """Return states (L, ...) of the tokens (L,) of a text, whose ids begin with 1."""

    @torch.inference_mode(False)  # what is kept while a model is asked is trained on later
    @torch.no_grad()
    def states(self, ids: Ids, device: torch.device) -> Tensor:
        """Return the states that `read` gives, computed once a text."""
        key = ids.tobytes()
        if (known := self._kept.get(key)) is not None:
            return known.to(device)
        found = self.read(ids, device)
        if self._num_kept + found.numel() <= _MOST_KEPT:
            self._kept[key] = found.cpu()
            self._num_kept += found.numel()
        return found

    def padded(self, ids: Tensor) -> Tensor:
        """Return states (N, L, ...) of texts (N, L), 0 at padding."""
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
