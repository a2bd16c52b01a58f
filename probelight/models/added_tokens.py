"""Tokens that an adapter adds to its model: rows of the embeddings, as peft adds and saves them.

peft's `AutoPeftModel` gives a model as many rows as the tokenizer in the adapter's folder has
tokens. The rows are saved with the adapter, some of them under several names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.networks import own_random_state


def add_rows(model: Any, num_tokens: int) -> int:
    """Give a model rows of zeros up to so many tokens, and return how many were added."""
    num_rows = len(model.get_input_embeddings().weight)
    if num_tokens <= num_rows:
        return 0
    with own_random_state(0), torch.no_grad():
        model.resize_token_embeddings(num_tokens, mean_resizing=False)
        for _, layer in _row_layers(model):
            for weight in layer.parameters():
                weight[num_rows:] = 0.0
    return num_tokens - num_rows


def saved_rows(
    model: Any, num_added: int, weights_by_name: Mapping[str, Tensor], folder: Path, prefix: str
) -> dict[str, Tensor]:
    """Return an adapter's weights without the rows of a head that the model does not have.

    `prefix` is before the names of the model's own weights.

    Raises:
        PretrainedError: If a layer's rows for added tokens were not saved: they would be zeros.
    """
    num_tokens = len(model.get_input_embeddings().weight)
    rows = {name for name, weight in weights_by_name.items() if len(weight) == num_tokens}
    read = set[str]()
    for name, _ in _row_layers(model):
        saved = {row for row in rows if row.startswith(f"{prefix}{name}.")}
        if not saved:
            raise PretrainedError(
                f"{folder}: its tokenizer has {num_added} tokens that its model lacks, but their "
                f"rows of {name} were not saved with the adapter; save it again with "
                "save_embedding_layers=True"
            )
        read |= saved
    unread = rows - read if model.get_output_embeddings() is None else set[str]()
    return {name: weight for name, weight in weights_by_name.items() if name not in unread}


def is_copy(name: str, weights_by_name: Mapping[str, Tensor]) -> bool:
    """Return whether a weight is that of another name too."""
    twins = (weight for twin, weight in weights_by_name.items() if twin != name)
    return any(torch.equal(weights_by_name[name], weight) for weight in twins)


def _row_layers(model: Any) -> list[tuple[str, nn.Module]]:
    """Return the names of the layers with a row per token, and the layers; tied ones once."""
    names = {id(module): name for name, module in model.named_modules()}
    rows, head = model.get_input_embeddings(), model.get_output_embeddings()
    is_tied = head is None or head.weight is rows.weight  # an encoder has no head
    layers = [rows] if is_tied else [rows, head]
    return [(names[id(layer)], layer) for layer in layers]
