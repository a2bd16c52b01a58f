"""MC-QA (Talmor 2020): a logit for each question-answer pair, and a softmax over the answers.

Shapes: B batch, K choices, P distinct pairs in a batch, L tokens, H hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io import ranges
from probelight.io.atomic import whole_folder
from probelight.io.package import BUNDLED_MODEL
from probelight.lightning_modules.base import PretrainedChoice, weights_under
from probelight.models.adapters import save_weights, train_adapter
from probelight.models.checkpoint_errors import PretrainedError, quiet_transformers
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.networks import Batch
from probelight.models.pair_choice import HeadKind, PairChoice, answers_questions, save_head


class SentenceChoice(PretrainedChoice):
    """An encoder that reads `[CLS] question [SEP] answer [SEP]` and gives each pair one logit.

    Either everything is trained, or an adapter and a fresh head. Pairs that occur more than once in
    a batch are read once.

    Args:
        model_name_or_path: "bookshelf-lm", a folder, or a name on the Hub. A folder that
            `save_pretrained` wrote also restores its head.
        head: "mlp", one hidden layer on the output at [CLS] (Talmor 2020); "linear", one layer on
            it (Richardson 2020); "pooler", the checkpoint's pooler and one fresh layer, like
            `AutoModelForMultipleChoice`; "multiple_choice", all of a checkpoint that such a class
            saved, including its trained head. None takes the checkpoint's own, or "mlp".
        max_length: Longest pair in tokens. None takes the folder's own, or 256.
        num_choices: Pad every question to this many choices with empty ones, scored like any other
            (Richardson 2020). None takes the folder's own, or does not pad. The number is saved
            with the model, and used wherever the model is scored.
        learning_rate: Peak learning rate of AdamW.
        options: The other arguments of `PretrainedChoice`.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded completely, does not begin its inputs
            with [CLS], lacks the pooler that the head needs, or was saved with another head or
            number of choices.
    """

    def __init__(
        self,
        model_name_or_path: str = BUNDLED_MODEL,
        head: HeadKind | None = None,
        max_length: ranges.MaxLength | None = None,
        num_choices: ranges.NumChoices | None = None,
        learning_rate: ranges.LearningRate = 1e-5,
        **options: Any,
    ) -> None:
        super().__init__(model_name_or_path, learning_rate, **options)
        self.pairs = PairChoice(self.ref, head, max_length, num_choices, self.read)
        self.transformer, self.head = self.pairs.transformer, self.pairs.head
        self.tokenizer, self.head_kind = self.pairs.tokenizer, self.pairs.head_kind
        self.max_length, self.num_choices = self.pairs.max_length, self.pairs.num_choices
        self.notices = self.pairs.notices
        keeps_head = self.adapters is not None and self.pairs.head_is_saved
        train_adapter(self.transformer, self.head, keeps_head)
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        return self.pairs.encoder()

    def forward(self, batch: Batch) -> Tensor:
        return self.pairs(batch)

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write encoder, head and tokenizer without pickle, completely or not at all.

        `AutoModel.from_pretrained(folder)` loads the encoder; `from_folder` loads all of it, and so
        does `AutoModelForMultipleChoice.from_pretrained` with the head "multiple_choice". If the
        encoder has an adapter, only the adapter is written, for `peft.PeftModel.from_pretrained`.
        After a sharded fit, pass the module's weights as `state_dict`, since its parameters are
        only a shard.
        """
        weights = self.state_dict() if state_dict is None else state_dict
        encoder, head = (weights_under(weights, name) for name in ("transformer.", "head."))
        with quiet_transformers(), whole_folder(Path(folder)) as fresh:
            save_weights(self.transformer, fresh, encoder)
            self.tokenizer.save_pretrained(fresh)
            settings = {"max_length": self.max_length, "num_choices": self.num_choices}
            save_head(fresh, self.head_kind, head, settings)

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> SentenceChoice:
        """Load a folder of `save_pretrained`, or of transformers' own multiple-choice classes.

        Further arguments are those of the constructor, such as `learning_rate`.

        Raises:
            PretrainedError: If the folder is not such a folder, or is damaged.
        """
        if not answers_questions(CheckpointRef.parse(folder)):
            raise PretrainedError(
                f"{folder} has no saved model; give a folder that a run wrote, such as "
                "RUN/checkpoints/best, or one of an AutoModelForMultipleChoice"
            )
        return cls(str(folder), **overrides)
