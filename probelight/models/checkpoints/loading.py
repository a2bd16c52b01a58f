"""Loading of checkpoints: whole or refused, quiet, and with one clear error when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.checkpoints.description import Checkpoint, describe, has_choice_head
from probelight.models.checkpoints.fit import num_positions, refuse_foreign_tokenizer
from probelight.models.checkpoints.folder import PretrainedError, one_error
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM, Form
from probelight.models.checkpoints.source import quiet_transformers
from probelight.models.checkpoints.weights import check_numbers, own_random_state


def load_pretrained(
    form: Form,
    name_or_path: str,
    revision: str | None = None,
    random_weights: bool = False,
    seed: int = 0,
    *,
    pooler: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Loads a model in single precision and eval mode, and its tokenizer.

    Args:
        form: What of it is loaded, such as `MASKED_LM`.
        name_or_path: "embedded" (the model in this repository), a folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        random_weights: The same architecture with fresh weights, as a control of it.
        seed: Of the fresh weights.
        pooler: Keep an encoder's pooler, and ask that the checkpoint has it. Otherwise the pooler
            is dropped: it would be trained by nothing.

    Returns:
        The model and the tokenizer.

    Raises:
        PretrainedError: If there is no such checkpoint, it cannot be read, its kind is not
            supported, it lacks weights, or the tokenizer does not fit the model.
    """
    found = describe(form, name_or_path, revision, random_weights)
    with quiet_transformers():
        model = _fresh_model(found, seed) if random_weights else _trained_model(found, pooler)
    tokenizer = found.tokenizer
    refuse_foreign_tokenizer(form, found.source, model, tokenizer)
    _settle_pooler(model, form, found.source, pooler=pooler)
    tokenizer.model_max_length = min(tokenizer.model_max_length, num_positions(model))
    model.train(False)
    return model, tokenizer


def _fresh_model(found: Checkpoint, seed: int) -> PreTrainedModel:
    with one_error(found.source, "configuration"), own_random_state(seed):
        model: PreTrainedModel = found.form.auto_class.from_config(
            found.config, dtype=torch.float32
        )
    return model


def _trained_model(found: Checkpoint, pooler: bool) -> PreTrainedModel:
    form, source, options = found.form, found.source, dict(found.options)
    if any(Path(source).glob("*.safetensors")):
        options["use_safetensors"] = True  # never fall back on a pickle that lies beside it
    model, missing = _with_missing(form, source, options)
    if missing and getattr(model.config, "legacy", False):
        # Published DeBERTa-v3 checkpoints hold the new head, but their config does not say so.
        second, still_missing = _with_missing(form, source, {**options, "legacy": False})
        if not still_missing:
            model, missing = second, []
    if not pooler:
        missing = [name for name in missing if not name.startswith("pooler.")]
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        advice = ""
        if all(name.startswith("pooler.") for name in missing):
            advice = "; head 'mlp' is a pooler with fresh weights"
        elif form is MASKED_LM and has_choice_head(source, options.get("revision")):
            advice = "; it was fine-tuned to answer questions, so give it probes of setup mc_qa"
        raise PretrainedError(
            f"{source}: {len(missing)} weights of {type(model).__name__} are missing ({shown}), "
            f"and would be random{advice}"
        )
    check_numbers(source, model.named_parameters())
    return model


def _with_missing(
    form: Form, source: str, options: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    # What is not in the checkpoint, such as a pooler that is then dropped, is drawn at random.
    with one_error(source, "weights"), own_random_state(0):
        model, info = form.auto_class.from_pretrained(
            source,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, with their names
            **options,
        )
    if info["mismatched_keys"]:
        name, found, expected = min(info["mismatched_keys"])
        raise PretrainedError(
            f"{source}: the weight {name} is of shape {tuple(found)}, the config asks for "
            f"{tuple(expected)}"
        )
    return model, sorted(info["missing_keys"])


def _settle_pooler(model: Any, form: Form, source: str, *, pooler: bool) -> None:
    if form is not ENCODER:
        return
    if pooler and getattr(model, "pooler", None) is None:
        raise PretrainedError(
            f"{source}: {type(model).__name__} has no pooler; choose head 'mlp' or 'linear'"
        )
    if not pooler and hasattr(model, "pooler"):
        model.pooler = None
