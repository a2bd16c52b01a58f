"""The head of MC-QA: drawn fresh, saved beside its encoder, and told from other folders.

Shapes: P pairs, H hidden.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from probelight.models.checkpoints.description import has_choice_head
from probelight.models.checkpoints.folder import (
    HEAD_FORMAT,
    HEAD_SETTINGS,
    is_sentence_choice_folder,
    one_error,
)
from probelight.models.checkpoints.weights import check_numbers, own_random_state

HeadKind = Literal["mlp", "linear", "pooler", "multiple_choice"]

CHECKPOINT_HEAD = "multiple_choice"
HEAD_WEIGHTS = "head.safetensors"


def fresh_head(kind: str, config: Any, seed: int) -> nn.Sequential:
    """A head (P, H) -> (P, 1), drawn as the checkpoint's layers once were; empty if it has one."""
    if kind == CHECKPOINT_HEAD:
        return nn.Sequential()
    size, spread = int(config.hidden_size), getattr(config, "initializer_range", 0.02)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    with own_random_state(seed):
        if kind == "mlp":
            layers["dense"] = nn.Linear(size, size)
            layers["activation"] = nn.Tanh()
        layers["dropout"] = nn.Dropout(_dropout_of(config))
        layers["score"] = nn.Linear(size, 1)
        for layer in layers.values():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=spread)
                nn.init.zeros_(layer.bias)
    return nn.Sequential(layers)


def _dropout_of(config: Any) -> float:
    """The checkpoint's dropout before a classifier, under any of the names it goes by."""
    names = ("classifier_dropout", "seq_classif_dropout", "hidden_dropout_prob", "dropout")
    values = (getattr(config, name, None) for name in names)
    return float(next((value for value in values if value is not None), 0.0))


def save_head(
    folder: Path, kind: str, weights: Mapping[str, Tensor], settings: Mapping[str, int | None]
) -> None:
    """Writes a head beside its encoder: its settings, and its weights unless the encoder has them.

    Args:
        folder: The encoder's folder.
        kind: The head.
        weights: Of the head.
        settings: What else is saved with it, such as `num_choices`.
    """
    if kind != CHECKPOINT_HEAD:
        whole = {name: value.contiguous() for name, value in weights.items()}
        save_file(whole, folder / HEAD_WEIGHTS, metadata={"format": "pt"})
    text = json.dumps({"format": HEAD_FORMAT, "head": kind, **settings}, indent=2) + "\n"
    (folder / HEAD_SETTINGS).write_text(text, encoding="utf-8")


def restore_head(head: nn.Module, folder: Path) -> None:
    """Gives a head the weights that `save_head` wrote.

    Raises:
        PretrainedError: If there are none, they are damaged, or of another head.
    """
    with one_error(folder, "head"):
        head.load_state_dict(load_file(folder / HEAD_WEIGHTS))
    check_numbers(folder, head.named_parameters())


def answers_questions(name_or_path: str, revision: str | None = None) -> bool:
    """Whether a checkpoint was trained to choose among answers, here or with transformers' own.

    Raises:
        PretrainedError: If its config cannot be read, or is of a kind that is not supported.
    """
    return is_sentence_choice_folder(name_or_path) or has_choice_head(name_or_path, revision)
