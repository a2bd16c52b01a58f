"""Whether a config, a tokenizer and weights are of a kind known here, and belong together."""

from __future__ import annotations

import sys
from typing import Any

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.checkpoints.folder import PretrainedError, one_error
from probelight.models.checkpoints.forms import CAUSAL_LM, MASKED_LM, SEQ2SEQ_LM, Form

_SPOKEN = {"pad_token": "padding token"}


def refuse_other_families(form: Form, config: Any, source: str) -> None:
    """Refuses a model that cannot be loaded in a form.

    Raises:
        PretrainedError: The message names its kind.
    """
    if form.admits(config):
        return
    name = f"{source}: {config.model_type} ({type(config).__name__}) is"
    found = "no model of the kind that is asked for"
    if getattr(config, "is_encoder_decoder", False):
        found = "an encoder-decoder model"
        if not SEQ2SEQ_LM.admits(config):
            raise PretrainedError(
                f"{name} {found} of a family that is not read here: T5, BART and relatives are, "
                "which were taught to fill blanks"
            )
    elif CAUSAL_LM.admits(config):
        found = "a causal language model"
    elif MASKED_LM.admits(config):
        found = "a masked language model"
    raise PretrainedError(
        f"{name} {found}, and was to be read as another kind; where a command has it, "
        "--model.kind auto reads it as what it is"
    )


def refuse_foreign_tokenizer(
    form: Form, source: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Refuses a tokenizer whose vocabulary is not that of the model, or lacks a token needed.

    Raises:
        PretrainedError: If it does not fit.
    """
    with one_error(source, "tokenizer"):
        num_rows = len(model.get_input_embeddings().weight)  # type: ignore[arg-type]
        entries = tokenizer.get_vocab()
        # Words of every kind: one without a piece for the unknown fails here, not in the data.
        tokenizer(["a word", "zyx \u2603 1", ""])
    if (most := max(len(entries), 1 + max(entries.values(), default=0))) > num_rows:
        raise PretrainedError(
            f"{source}: the tokenizer has {most} entries, the model only {num_rows}: "
            "they do not belong together"
        )
    # Rows are often padded to a round number, and some published models have a third to spare.
    if 4 * len(entries) < num_rows:
        raise PretrainedError(
            f"{source}: the tokenizer has {len(entries)} entries, the model {num_rows}: "
            "they do not belong together"
        )
    for name in form.needs:
        if getattr(tokenizer, f"{name}_id") is None:
            said = _SPOKEN.get(name, name.replace("_", " "))
            raise PretrainedError(f"{source}: the tokenizer has no {said}")


def num_positions(model: PreTrainedModel) -> int:
    """The longest input in tokens that a model has places for; few tokenizers know it themselves.

    RoBERTa and relatives count from behind the padding's place, so that they have fewer places
    than rows.
    """
    rows: Any = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    if not isinstance(rows, nn.Embedding):
        return sys.maxsize  # positions are relative, or rotations
    first = 0 if rows.padding_idx is None else rows.padding_idx + 1
    return rows.num_embeddings - first


def longest_text(config: Any) -> int:
    """The longest text in tokens that a model was made for, by its settings.

    Unlike `num_positions` it also bounds rotated positions; T5's, which are relative, have none.
    """
    kinds = ("", "encoder_", "decoder_")
    found = [getattr(config, f"max_{kind}position_embeddings", None) for kind in kinds]
    return min((n for n in found if isinstance(n, int) and n > 0), default=sys.maxsize)
