"""A frozen encoder's last hidden states as the vectors of tokens: `--model.vectors encoder:NAME`.

Shapes: N texts, L pieces, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import Ids
from probelight.encoding.tokens import Template
from probelight.lightning_modules.baselines.frozen_states import FrozenModel, FrozenOrigin
from probelight.lightning_modules.baselines.token_vectors import TokenVectors
from probelight.models.checkpoints.forms import ENCODER
from probelight.models.checkpoints.loading import load_pretrained
from probelight.models.checkpoints.weights import model_fingerprint, run_encoder
from probelight.probes.record import MASK

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


class FrozenEncoder(FrozenModel):
    """An encoder that gives each text its last hidden states.

    Args:
        name_or_path: "embedded", a folder, or a name on the Hub.

    Raises:
        PretrainedError: If it cannot be loaded whole.
    """

    def __init__(self, name_or_path: str) -> None:
        super().__init__()
        self.model, self.tokenizer = load_pretrained(ENCODER, name_or_path)
        self.model.requires_grad_(False)
        self.template = Template.of(self.tokenizer, 1)
        self.dimension = self.model.config.hidden_size
        self.sha256 = model_fingerprint(self.model)

    @property
    def room(self) -> int:
        """Most pieces of a text."""
        return int(self.tokenizer.model_max_length) - self.template.num_special

    def read(self, ids: Ids, device: torch.device) -> Tensor:
        """(L, H) of the pieces (L,) of a text, without those of the special tokens around it."""
        whole, types = self.template.assemble(ids - 1)
        batch = {"input_ids": whole, "token_type_ids": types, "attention_mask": np.ones_like(whole)}
        given = {name: torch.from_numpy(value)[None].to(device) for name, value in batch.items()}
        first = len(self.template.parts[0])
        output = run_encoder(self.model.to(device), given)  # type: ignore[arg-type]
        found: Tensor = output.last_hidden_state[0, first : first + len(ids)].float()
        return found


@lru_cache(maxsize=2)
def _loaded(name_or_path: str) -> FrozenEncoder:
    """Shared by all that read the same one: nothing of it is trained."""
    return FrozenEncoder(name_or_path)


class EncoderVectors(TokenVectors):
    """The last hidden states of a frozen encoder, one a piece of its tokenizer.

    The encoder's weights are neither trained nor saved with a baseline.

    Args:
        origin: Where they come from.
    """

    notices: tuple[str, ...] = ()

    def __init__(self, origin: FrozenOrigin[FrozenEncoder]) -> None:
        super().__init__()
        self.origin = self._frozen = origin

    @classmethod
    def load(cls, name_or_path: str, dimension: int | None, sha256: str | None) -> Self:
        """Those of an encoder; see `FrozenOrigin`.

        Raises:
            PretrainedError: If it cannot be loaded.
        """
        load = partial(_loaded, name_or_path)
        return cls(FrozenOrigin(f"encoder:{name_or_path}", load, dimension, sha256))

    def split(self, text: str) -> list[str]:
        tokenizer: Any = self._frozen.model.tokenizer
        text = text.replace(MASK, tokenizer.mask_token or MASK)
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        pieces: list[str] = tokenizer.convert_ids_to_tokens(ids)
        return pieces

    def ids(self, words: Sequence[str]) -> Ids:
        found: Any = self._frozen.model.tokenizer.convert_tokens_to_ids(list(words))
        return np.array(found, dtype=np.int64) + 1  # 0 is padding

    def unknown(self, words: Iterable[str]) -> set[str]:
        return set()

    def forward(self, ids: Tensor) -> Tensor:
        return self._frozen.model.padded(ids)

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        return super().encoder(min(max_length, self._frozen.model.room), num_choices)
