"""What baselines that read a question and its answers apart share: vectors, batches, folders.

Shapes: N texts, L tokens, D numbers a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor, nn

from probelight.lightning_modules.baselines.token_vectors import TokenVectors
from probelight.lightning_modules.baselines.word_module import WordModule
from probelight.lightning_modules.baselines.word_settings import word_settings
from probelight.models.checkpoints.folder import agree

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


class PairModule(WordModule):
    """A `WordModule` that gives pairs of question and answer a logit.

    Args:
        words: What gives tokens their vectors.
        settings: What a saved folder says besides the vectors, `max_length` and `num_choices` (see
            `ESIM`) among it.
        learning_rate: Rate of Adam.
        weight_decay: Of Adam, as a penalty on the squared weights.
        max_grad_norm: Clip gradients to this norm; None does not clip.
        monitor: Metric, higher is better, whose stand-still halves the rate; None leaves it
            constant.
    """

    def __init__(
        self,
        words: TokenVectors,
        settings: dict[str, Any],
        learning_rate: float,
        weight_decay: float,
        max_grad_norm: float | None,
        monitor: str | None,
    ) -> None:
        super().__init__(
            words.origin, settings, learning_rate, weight_decay, max_grad_norm, monitor
        )
        self.max_length: int = settings["max_length"]
        self.num_choices = settings["num_choices"]
        self.words = words

    def encoder(self) -> ChoiceEncoder:
        return self.words.encoder(self.max_length, self.num_choices)

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        self._settings["num_choices"] = self.num_choices  # which may have been set since
        super().save_pretrained(folder, state_dict)

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> Self:
        """As every `WordModule`.

        Raises:
            PretrainedError: If it was saved with another number of choices, too.
        """
        own = word_settings(folder).get("num_choices")
        given = agree("num_choices", overrides.get("num_choices"), own, str(folder))
        return super().from_folder(folder, **{**overrides, "num_choices": given})


def fresh_linear(input_size: int, output_size: int, bias: bool = True) -> nn.Linear:
    """A layer with Xavier's first weights, and a bias of 0 if it has one."""
    layer = nn.Linear(input_size, output_size, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
