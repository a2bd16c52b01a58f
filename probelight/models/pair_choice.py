"""The choice among answers to a question (MC-QA): a logit for each question-answer pair.

The head is drawn fresh, and saved with its encoder.

Shapes: B items, K choices, P distinct pairs, L tokens, H hidden.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from probelight.encoding.sentence import SentenceChoiceEncoder
from probelight.models.checkpoint_errors import PretrainedError, one_error
from probelight.models.checkpoint_files import (
    DEFAULT_MAX_LENGTH,
    HEAD_FORMAT,
    HEAD_KINDS,
    HEAD_SETTINGS,
    CheckpointRef,
    agree,
    head_settings,
    is_sentence_choice_folder,
)
from probelight.models.last_layer import EncoderAt
from probelight.models.loading import ENCODER, MULTIPLE_CHOICE, has_choice_head, load_pretrained
from probelight.models.networks import (
    INPUTS,
    Batch,
    check_numbers,
    mask_choices,
    own_random_state,
    run_encoder,
)
from probelight.models.scorer import Reader

HeadKind = Literal["mlp", "linear", "pooler", "multiple_choice"]

DEFAULT_HEAD = "mlp"
CHECKPOINT_HEAD = "multiple_choice"
HEAD_WEIGHTS = "head.safetensors"


class PairChoice:
    """An encoder that reads `[CLS] question [SEP] answer [SEP]` and gives the pair one logit.

    Pairs that occur more than once in a batch are read once.

    Its settings are those of `SentenceChoice`, which trains it; `read` loads the checkpoint. A head
    that its folder does not have is drawn from the seed of `ref`.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded whole, does not begin its inputs with
            [CLS], lacks a pooler that the head needs, or was saved with another head or number of
            choices.
    """

    def __init__(
        self,
        ref: CheckpointRef,
        head: HeadKind | None = None,
        max_length: int | None = None,
        num_choices: int | None = None,
        read: Reader = load_pretrained,
    ) -> None:
        if head not in (None, *HEAD_KINDS):
            raise ValueError(f"head={head!r}: choose one of {', '.join(HEAD_KINDS)}")
        saved = head_settings(ref) or {}
        own_head = agree("head", head, saved.get("head"), ref)
        if own_head is None and has_choice_head(ref):
            own_head = CHECKPOINT_HEAD
        self.head_kind = own_head or DEFAULT_HEAD
        self.max_length: int = max_length or saved.get("max_length") or DEFAULT_MAX_LENGTH
        self.num_choices = agree("num_choices", num_choices, saved.get("num_choices"), ref)
        has_own_head = self.head_kind == CHECKPOINT_HEAD
        self.transformer, self.tokenizer = read(
            MULTIPLE_CHOICE if has_own_head else ENCODER,
            ref,
            pooler=self.head_kind == "pooler",
        )
        if not has_own_head:
            cls = self.tokenizer.cls_token_id
            if cls is None or self.tokenizer("a", "b")["input_ids"][0] != cls:
                raise PretrainedError(
                    f"{ref}: {type(self.tokenizer).__name__} does not put a [CLS] token "
                    "first, which MC-QA needs"
                )
        self.reader = EncoderAt(self.transformer.base_model)
        self.notices = self.reader.by_length.notices
        self.head = fresh_head(self.head_kind, self.transformer.config, ref.seed)
        self.head_is_saved = bool(saved) and not ref.random_weights and not has_own_head
        if self.head_is_saved:
            restore_head(self.head, ref.folder)
        self.head.to(self.transformer.device, self.transformer.dtype)

    @property
    def network(self) -> nn.Module:
        """Encoder and head, under the names that a trained module gives them."""
        return nn.ModuleDict({"transformer": self.transformer, "head": self.head})

    def encoder(self) -> SentenceChoiceEncoder:
        """Return the encoder of records."""
        return SentenceChoiceEncoder(self.tokenizer, self.max_length, self.num_choices)

    def __call__(self, batch: Batch) -> Tensor:
        """Return the logits (B, K) of the choices, -inf where there is none."""
        pair_logits = self.head(self.features(batch))[:, 0]  # (P,)
        return mask_choices(pair_logits[batch["pair_index"]], batch["choice_mask"])

    def features(self, batch: Batch) -> Tensor:
        """Return what the head reads of each distinct pair (P, H); (P, 1) with its own head."""
        if self.head_kind == CHECKPOINT_HEAD:

            def logits(pairs: Batch) -> Tensor:
                one_choice = {name: tensor[:, None] for name, tensor in pairs.items()}
                choice_logits: Tensor = run_encoder(self.transformer, one_choice).logits
                return choice_logits

            return self.reader.by_length({n: batch[n] for n in INPUTS if n in batch}, logits)
        first = batch["input_ids"].new_zeros(len(batch["input_ids"]))  # [CLS], see `Padding`
        return self.reader(batch, first, pooled=self.head_kind == "pooler")


def fresh_head(kind: str, config: Any, seed: int, size: int | None = None) -> nn.Sequential:
    """Draw a head (P, H) -> (P, 1) as the checkpoint's layers once were; empty for its own.

    H is `size`, or that of the hidden states.
    """
    if kind == CHECKPOINT_HEAD:
        return nn.Sequential()
    size, spread = size or int(config.hidden_size), getattr(config, "initializer_range", 0.02)
    # The dropout before a classifier, under any of the names that it goes by.
    names = ("classifier_dropout", "seq_classif_dropout", "hidden_dropout_prob", "dropout")
    rates = (getattr(config, name, None) for name in names)
    dropout = float(next((rate for rate in rates if rate is not None), 0.0))
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    with own_random_state(seed):
        if kind == "mlp":
            layers["dense"] = nn.Linear(size, size)
            layers["activation"] = nn.Tanh()
        layers["dropout"] = nn.Dropout(dropout)
        layers["score"] = nn.Linear(size, 1)
        for layer in layers.values():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=spread)
                nn.init.zeros_(layer.bias)
    return nn.Sequential(layers)


def save_head(
    folder: Path, kind: str, weights: Mapping[str, Tensor], settings: Mapping[str, Any]
) -> None:
    """Write a head into its encoder's folder, with settings such as `num_choices`.

    A head without weights of its own, such as one that the encoder has, is its name alone.
    """
    if weights:
        contiguous = {name: value.contiguous() for name, value in weights.items()}
        save_file(contiguous, folder / HEAD_WEIGHTS, metadata={"format": "pt"})
    text = json.dumps({"format": HEAD_FORMAT, "head": kind, **settings}, indent=2) + "\n"
    (folder / HEAD_SETTINGS).write_text(text, encoding="utf-8")


def restore_head(head: nn.Module, folder: Path) -> None:
    """Give a head the weights that `save_head` wrote; refuse those of another head."""
    with one_error(folder, "head"):
        weights = load_file(folder / HEAD_WEIGHTS)
        check_numbers(folder, weights.items())
        head.load_state_dict(weights)


def answers_questions(ref: CheckpointRef) -> bool:
    """Return whether a checkpoint was trained to choose among answers, here or by transformers."""
    return is_sentence_choice_folder(ref) or has_choice_head(ref)
