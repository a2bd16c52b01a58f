"""MC-QA and MC-MLM with a causal or encoder-decoder model: the choice among continuations.

The logits of the choices are their zero-shot scores, so training starts from the model's zero-shot
answers (`probelight.models.continuation_choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io import ranges
from probelight.io.atomic import whole_folder
from probelight.lightning_modules.base import PretrainedChoice, weights_under
from probelight.models.adapters import save_weights, train_adapter
from probelight.models.checkpoint_errors import quiet_transformers
from probelight.models.continuation_choice import ContinuationChoice
from probelight.models.networks import Batch
from probelight.models.pair_choice import save_head


class CausalChoice(PretrainedChoice):
    """A language model that chooses among continuations of a stem, or words for a blank.

    Either everything is trained, or an adapter and a fresh head. All choices of an item are read in
    one pass, after their common beginning.

    Args:
        model_name_or_path: Folder, or name on the Hub, of a causal or encoder-decoder model. A
            folder that `save_pretrained` wrote also restores its scoring and its head.
        scoring: What the logits are: log-likelihoods of the choices ("sum"), divided by their
            number of tokens ("mean_token") or characters ("mean_char"), log-likelihoods of their
            letters after a prompt that lists them ("letter"), or the output of a head on the last
            token ("last_token"). "auto" takes the folder's own, or that of zero-shot scoring.
        setup: "mc_qa" for questions, "mc_mlm" for sentences with a blank. None takes the folder's
            own, or "mc_qa".
        head: Head for "last_token": "mlp", one hidden layer, or "linear".
        max_length: Longest text in tokens. None or 256 takes the folder's own, or 256.
        answer_prefix: Text before a candidate in an encoder-decoder model, as in `CandidateTable`.
        learning_rate: Peak learning rate of AdamW.
        options: The other arguments of `PretrainedChoice`.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded completely, is of another type, or was
            saved with another scoring.
    """

    def __init__(
        self,
        model_name_or_path: str,
        scoring: ranges.Scoring = "auto",
        setup: Literal["mc_qa", "mc_mlm"] | None = None,
        head: Literal["mlp", "linear"] | None = None,
        max_length: ranges.MaxLength | None = None,
        answer_prefix: str = "auto",
        learning_rate: ranges.LearningRate = 1e-5,
        **options: Any,
    ) -> None:
        super().__init__(model_name_or_path, learning_rate, **options)
        self.choice = ContinuationChoice(
            self.ref, scoring, setup, head, max_length, answer_prefix, self.read
        )
        self.model, self.head = self.choice.model, self.choice.head
        self.tokenizer, self.notices = self.choice.tokenizer, self.choice.notices
        keeps_head = self.adapters is not None and self.choice.head_is_saved
        train_adapter(self.model, self.head, keeps_head)
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        return self.choice.encoder()

    def forward(self, batch: Batch) -> Tensor:
        return self.choice(batch)

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write model, head and tokenizer without pickle, completely or not at all.

        `from_pretrained(folder)` of transformers loads the model; `from_folder` loads all of it. If
        the model has an adapter, only the adapter is written, for `peft.PeftModel.from_pretrained`.
        After a sharded fit, pass the module's weights as `state_dict`, since its parameters are
        only a shard.
        """
        weights = self.state_dict() if state_dict is None else state_dict
        model, head = (weights_under(weights, name) for name in ("model.", "head."))
        with quiet_transformers(), whole_folder(Path(folder)) as fresh:
            save_weights(self.model, fresh, model)
            self.tokenizer.save_pretrained(fresh)
            save_head(fresh, self.choice.head_kind, head, self.choice.settings())

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> CausalChoice:
        """Load a folder of `save_pretrained`, or any causal or encoder-decoder model.

        Further arguments are those of the constructor, such as `learning_rate`.

        Raises:
            PretrainedError: If the folder has no such model, or is damaged.
        """
        return cls(str(folder), **overrides)
