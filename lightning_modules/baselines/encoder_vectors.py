"""A frozen encoder's last hidden states as the vectors of tokens: `--model.vectors encoder:NAME`.

Shapes: N texts, L pieces, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from datamodules.encoding.encoded_set import Ids
from datamodules.encoding.special_tokens import Template
from datamodules.words.tokens import PADDING_ID
from datamodules.words.vectors import WordVectorsError
from lightning_modules.baselines.token_vectors import TokenVectors
from lightning_modules.checkpoints.forms import ENCODER
from lightning_modules.checkpoints.loading import load_pretrained
from lightning_modules.checkpoints.weights import model_fingerprint, run_encoder
from probes.record import MASK

if TYPE_CHECKING:
    from datamodules.encoding.encoded_set import ChoiceEncoder

_MOST_KEPT = 2**28  # numbers; a GiB


class FrozenEncoder:
    """An encoder that gives each text its last hidden states, and keeps them.

    A text is read alone, so that its states hang on no other text, whatever is trained on them and
    wherever a training goes on. What is kept takes a GiB at most; texts beyond are read each time.

    Args:
        name_or_path: "embedded", a folder, or a name on the Hub.

    Raises:
        PretrainedError: If it cannot be loaded whole.
    """

    def __init__(self, name_or_path: str) -> None:
        self.model, self.tokenizer = load_pretrained(ENCODER, name_or_path)
        self.model.requires_grad_(False)
        self.template = Template.of(self.tokenizer, 1)
        self._kept: dict[bytes, Tensor] = {}
        self._num_kept = 0

    @cached_property
    def sha256(self) -> str:
        """Of its weights, as hex."""
        return model_fingerprint(self.model)

    @property
    def room(self) -> int:
        """Most pieces of a text."""
        return int(self.tokenizer.model_max_length) - self.template.num_special

    @torch.inference_mode(False)  # what is kept while a model is asked is trained on later
    @torch.no_grad()
    def states(self, ids: Ids, device: torch.device) -> Tensor:
        """(L, H) of the pieces (L,) of a text, without those of the special tokens around it."""
        key = ids.tobytes()
        if (known := self._kept.get(key)) is not None:
            return known.to(device)
        whole, types = self.template.assemble(ids)
        batch = {"input_ids": whole, "token_type_ids": types, "attention_mask": np.ones_like(whole)}
        given = {name: torch.from_numpy(value)[None].to(device) for name, value in batch.items()}
        first = len(self.template.parts[0])
        output = run_encoder(self.model.to(device), given)  # type: ignore[arg-type]
        found: Tensor = output.last_hidden_state[0, first : first + len(ids)].float()
        if self._num_kept + found.numel() <= _MOST_KEPT:
            self._kept[key] = found.cpu()
            self._num_kept += found.numel()
        return found


@lru_cache(maxsize=2)
def _loaded(name_or_path: str) -> FrozenEncoder:
    """Shared by all that read the same one: nothing of it is trained."""
    return FrozenEncoder(name_or_path)


class EncoderOrigin:
    """Where the states come from; what a saved folder says of them spares reading the weights.

    Args:
        name_or_path: Of the encoder.
        dimension: H, if it is known.
        sha256: Of the weights, if it is known: another encoder is refused when it is read.
    """

    def __init__(self, name_or_path: str, dimension: int | None, sha256: str | None) -> None:
        self.source = f"encoder:{name_or_path}"
        self._name = name_or_path
        self._wanted = sha256
        self.sha256 = sha256 or self.encoder.sha256
        self.dimension: int = dimension or self.encoder.model.config.hidden_size

    @cached_property
    def encoder(self) -> FrozenEncoder:
        """The encoder itself.

        Raises:
            PretrainedError: If it cannot be loaded.
            WordVectorsError: If it has other weights than are wanted.
        """
        found = _loaded(self._name)
        if self._wanted not in (None, found.sha256):
            raise WordVectorsError(
                f"{self.source}: its weights are others than those that the model was trained with"
            )
        return found


class EncoderVectors(TokenVectors):
    """The last hidden states of a frozen encoder, one a piece of its tokenizer.

    The encoder's weights are neither trained nor saved with a baseline.

    Args:
        origin: Where they come from.
    """

    notices: tuple[str, ...] = ()

    def __init__(self, origin: EncoderOrigin) -> None:
        super().__init__()
        self.origin = origin

    @classmethod
    def load(cls, name_or_path: str, dimension: int | None, sha256: str | None) -> Self:
        """Those of an encoder; see `EncoderOrigin`.

        Raises:
            PretrainedError: If it cannot be loaded.
        """
        return cls(EncoderOrigin(name_or_path, dimension, sha256))

    @property
    def _encoder(self) -> FrozenEncoder:
        origin = self.origin
        assert isinstance(origin, EncoderOrigin)
        return origin.encoder

    def split(self, text: str) -> list[str]:
        tokenizer: Any = self._encoder.tokenizer
        text = text.replace(MASK, tokenizer.mask_token or MASK)
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        pieces: list[str] = tokenizer.convert_ids_to_tokens(ids)
        return pieces

    def ids(self, words: Sequence[str]) -> Ids:
        found: Any = self._encoder.tokenizer.convert_tokens_to_ids(list(words))
        return np.array(found, dtype=np.int64) + 1  # 0 is padding

    def unknown(self, words: Iterable[str]) -> set[str]:
        return set()

    def forward(self, ids: Tensor) -> Tensor:
        rows = ids.cpu().numpy()
        texts = [row[row != PADDING_ID] - 1 for row in rows]
        states = [self._encoder.states(text, ids.device) for text in texts]
        padded = pad_sequence(states, batch_first=True)
        found = padded.new_zeros(len(rows), ids.shape[1], self.dimension)
        found[:, : padded.shape[1]] = padded
        return found

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        return super().encoder(min(max_length, self._encoder.room), num_choices)
