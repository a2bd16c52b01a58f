"""MC-QA (Talmor 2020): a logit for each question-answer pair, softmax over the answers.

Shapes: B batch, K choices, P distinct pairs in a batch, L tokens, H hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.io.atomic import whole_folder
from probelight.io.ranges import (
    GradNorm,
    LearningRate,
    MaxLength,
    NumChoices,
    Seed,
    ShareOrAll,
    WeightDecay,
)
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.batches import Batch, mask_choices
from probelight.models.checkpoints.description import has_choice_head
from probelight.models.checkpoints.folder import HEAD_KINDS, PretrainedError, agree, head_settings
from probelight.models.checkpoints.forms import ENCODER, MULTIPLE_CHOICE
from probelight.models.checkpoints.loading import load_pretrained
from probelight.models.checkpoints.source import EMBEDDED, quiet_transformers, resolve
from probelight.models.checkpoints.weights import run_encoder
from probelight.models.heads.choice_head import (
    CHECKPOINT_HEAD,
    HeadKind,
    answers_questions,
    fresh_head,
    restore_head,
    save_head,
)
from probelight.models.heads.last_layer import EncoderAt

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
DEFAULT_HEAD = "mlp"
DEFAULT_MAX_LENGTH = 256
_NUM_GROUPS = 3
_WORTH_GROUPING = 0.9  # share of the padded tokens above which one pass is as quick


class SentenceChoice(ChoiceModule):
    """An encoder that reads `[CLS] question [SEP] answer [SEP]` and gives the pair one logit.

    Everything is trained. Pairs that occur more than once in a batch are read once.

    Args:
        model_name_or_path: "embedded", a folder, or a name on the Hub. A folder written by
            `save_pretrained` gives back its head too.
        head: "mlp", one hidden layer on the output at [CLS] (Talmor 2020); "linear", one layer on
            it (Richardson 2020); "pooler", the checkpoint's pooler and one fresh layer, as
            `AutoModelForMultipleChoice`; "multiple_choice", all of a checkpoint that was saved as
            one of those, its trained head included. None: the checkpoint's own, or "mlp".
        max_length: Longest pair in tokens. None: the folder's own, or 256.
        num_choices: Pads every question to so many choices with empty ones, scored like any other
            (Richardson 2020). None: the folder's own, or no padding. It is saved with the model,
            which is scored with as many choices wherever it is used.
        learning_rate: Peak rate of AdamW.
        weight_decay: On everything but biases and norms.
        warmup_share: Share of the steps in which the rate rises.
        revision: Branch, tag or commit on the Hub.
        random_weights: Fresh weights in the same architecture.
        seed: Of the fresh head, and of the fresh weights.
        max_grad_norm: Clip gradients to this norm; None does not clip.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded whole, does not begin its inputs with
            [CLS], has no pooler where one is asked for, or was saved with another head or number
            of choices.
    """

    def __init__(
        self,
        model_name_or_path: str = EMBEDDED,
        head: HeadKind | None = None,
        max_length: MaxLength | None = None,
        num_choices: NumChoices | None = None,
        learning_rate: LearningRate = 1e-5,
        weight_decay: WeightDecay = 0.1,
        warmup_share: ShareOrAll = 0.06,
        revision: str | None = None,
        random_weights: bool = False,
        seed: Seed = 0,
        max_grad_norm: GradNorm | None = None,
    ) -> None:
        if head not in (None, *HEAD_KINDS):
            raise ValueError(f"head={head!r}: choose one of {', '.join(HEAD_KINDS)}")
        super().__init__(learning_rate, weight_decay, warmup_share, max_grad_norm)
        self.save_hyperparameters()
        saved = head_settings(model_name_or_path) or {}
        own_head = agree("head", head, saved.get("head"), model_name_or_path)
        if own_head is None and has_choice_head(model_name_or_path, revision):
            own_head = CHECKPOINT_HEAD
        self.head_kind = own_head or DEFAULT_HEAD
        self.max_length: int = max_length or saved.get("max_length") or DEFAULT_MAX_LENGTH
        self.num_choices = agree(
            "num_choices", num_choices, saved.get("num_choices"), model_name_or_path
        )
        has_own_head = self.head_kind == CHECKPOINT_HEAD
        self.transformer, self.tokenizer = load_pretrained(
            MULTIPLE_CHOICE if has_own_head else ENCODER,
            model_name_or_path,
            revision,
            random_weights,
            seed,
            pooler=self.head_kind == "pooler",
        )
        if not has_own_head:
            _refuse_without_cls(self.transformer, self.tokenizer, model_name_or_path)
        self.reader = EncoderAt(self.transformer)
        self.head = fresh_head(self.head_kind, self.transformer.config, seed)
        if saved and not random_weights and not has_own_head:
            restore_head(self.head, Path(resolve(model_name_or_path)))
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        from probelight.encoding.sentence import SentenceChoiceEncoder

        return SentenceChoiceEncoder(
            self.tokenizer, max_length=self.max_length, num_choices=self.num_choices
        )

    def features(self, batch: Batch) -> Tensor:
        """(P, H): what the head reads of each distinct pair; (P, 1) with the checkpoint's own head.

        Pairs of unlike length run in groups of like length: the same numbers up to rounding,
        without the work on the padding.
        """
        groups = length_groups(batch["attention_mask"])
        if len(groups) == 1:
            return self._features(batch)
        parts = [self._features(_rows_of(batch, rows, length)) for rows, length in groups]
        order = torch.cat([rows for rows, _ in groups])
        return torch.cat(parts)[order.argsort()]

    def _features(self, batch: Batch) -> Tensor:
        if self.head_kind == CHECKPOINT_HEAD:
            one_choice = {name: batch[name][:, None] for name in INPUTS if name in batch}
            logits: Tensor = run_encoder(self.transformer, one_choice).logits
            return logits
        first = batch["input_ids"].new_zeros(len(batch["input_ids"]))  # [CLS], see `Padding`
        output = self.reader(batch, first)
        if self.head_kind == "pooler":
            pooled: Tensor = output.pooler_output
            return pooled
        features: Tensor = output.last_hidden_state[:, 0]
        return features

    def forward(self, batch: Batch) -> Tensor:
        pair_logits = self.head(self.features(batch))[:, 0]  # (P,)
        return mask_choices(pair_logits[batch["pair_index"]], batch["choice_mask"])

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Writes encoder, head and tokenizer without pickle.

        `AutoModel.from_pretrained(folder)` loads the encoder, `from_folder` all of it; with the
        head "multiple_choice" so does `AutoModelForMultipleChoice.from_pretrained`. The folder
        appears whole or not at all; one that is there is replaced.

        Args:
            folder: The folder.
            state_dict: The module's weights where its own parameters hold only a shard of them.
        """
        whole = self.state_dict() if state_dict is None else state_dict
        encoder, head = (part_of(whole, name) for name in ("transformer.", "head."))
        with quiet_transformers(), whole_folder(Path(folder)) as fresh:
            self.transformer.save_pretrained(fresh, state_dict=encoder)
            self.tokenizer.save_pretrained(fresh)
            settings = {"max_length": self.max_length, "num_choices": self.num_choices}
            save_head(fresh, self.head_kind, head, settings)

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> SentenceChoice:
        """The module that `save_pretrained`, or transformers' own for multiple choice, wrote.

        Args:
            folder: The folder.
            **overrides: Arguments of the constructor, such as `learning_rate`.

        Raises:
            PretrainedError: If the folder is not one of those, or is damaged.
        """
        if not answers_questions(str(folder)):
            raise PretrainedError(
                f"{folder} holds no saved model; give a folder that a run wrote, such as "
                "RUN/checkpoints/best, or one of an AutoModelForMultipleChoice"
            )
        return cls(str(folder), **overrides)


def part_of(state_dict: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights of a submodule under its own names."""
    named = ((name, value) for name, value in state_dict.items() if name.startswith(prefix))
    return {name.removeprefix(prefix): value for name, value in named}


def length_groups(attention_mask: Tensor) -> list[tuple[Tensor, int]]:
    """Rows of like length and the tokens of the longest of them.

    One group where grouping would save little: each group is a pass of its own.

    Args:
        attention_mask: (P, L).
    """
    num_pairs, width = attention_mask.shape
    lengths = attention_mask.sum(dim=1)
    order = lengths.argsort(stable=True)
    everything = [(order, width)]
    if num_pairs < 8 * _NUM_GROUPS:
        return everything
    groups = [(rows, int(lengths[rows[-1]])) for rows in order.tensor_split(_NUM_GROUPS)]
    padded = sum(len(rows) * length for rows, length in groups)
    return groups if padded < _WORTH_GROUPING * num_pairs * width else everything


def _rows_of(batch: Batch, rows: Tensor, length: int) -> Batch:
    return {name: batch[name][rows, :length] for name in INPUTS if name in batch}


def _refuse_without_cls(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str
) -> None:
    if getattr(model.config, "is_encoder_decoder", False):
        raise PretrainedError(f"{name}: {type(model).__name__} is no encoder, MC-QA needs one")
    first = tokenizer("a", "b")["input_ids"][0]
    if tokenizer.cls_token_id is None or first != tokenizer.cls_token_id:
        raise PretrainedError(
            f"{name}: {type(tokenizer).__name__} does not begin its inputs with a [CLS] token, "
            "whose output MC-QA reads"
        )
