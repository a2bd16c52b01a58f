"""Loading of checkpoints: whole or refused, quiet, and with one clear error when they are not."""

from __future__ import annotations

import copy
import hashlib
import inspect
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from lightning_modules.model_fit import (
    Kind,
    num_positions,
    refuse_foreign_tokenizer,
    refuse_other_kinds,
)
from lightning_modules.model_folder import (
    CONFIG,
    check_config,
    check_numbers,
    check_size,
    check_tokenizer_files,
    check_weights,
    one_error,
)
from lightning_modules.model_folder import PretrainedError as PretrainedError
from storage.folders import user_path

EMBEDDED = "embedded"
EMBEDDED_DIR = Path(__file__).resolve().parents[1] / "assets" / "dictionary-lm"

_AUTO_CLASS: dict[str, Any] = {
    "masked_lm": AutoModelForMaskedLM,
    "encoder": AutoModel,
    "multiple_choice": AutoModelForMultipleChoice,
}

T = TypeVar("T")


def load_pretrained(
    kind: Kind,
    name_or_path: str,
    revision: str | None = None,
    random_weights: bool = False,
    seed: int = 0,
    *,
    pooler: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Loads a model in single precision and eval mode, and its tokenizer.

    Args:
        kind: "masked_lm" for a model with its masked-token head, "encoder" for one without heads,
            "multiple_choice" for one with the head that gives a question's choices their logits.
        name_or_path: "embedded" (the model in this repository), a folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        random_weights: The same architecture with fresh weights (SPEC E9's architecture control).
        seed: Of the fresh weights.
        pooler: Keep an encoder's pooler, and ask that the checkpoint has it. Otherwise the pooler
            is dropped: it would be trained by nothing.

    Returns:
        The model and the tokenizer.

    Raises:
        PretrainedError: If there is no such checkpoint, it cannot be read, its kind is not
            supported, it lacks weights, or the tokenizer does not fit the model.
    """
    source = resolve(name_or_path)
    options = _options(revision)
    with quiet_transformers():
        config = _load_config(kind, source, options)
        tokenizer = _load_tokenizer(source, options)
        _refuse_oversize(kind, config, source, random_weights=random_weights)
        if random_weights:
            model = _fresh_model(kind, config, source, seed)
        else:
            model = _trained_model(kind, source, options, pooler=pooler)
    refuse_foreign_tokenizer(kind, source, model, tokenizer)
    _settle_pooler(model, kind, source, pooler=pooler)
    tokenizer.model_max_length = min(tokenizer.model_max_length, num_positions(model))
    model.train(False)
    return model, tokenizer


def check_pretrained(
    kind: Kind, name_or_path: str, revision: str | None = None, random_weights: bool = False
) -> PreTrainedTokenizerBase:
    """Refuses a checkpoint for what can be told without reading its weights; gives its tokenizer.

    Raises:
        PretrainedError: As `load_pretrained`, but for weights that lack or are damaged.
    """
    source = resolve(name_or_path)
    options = _options(revision)
    with quiet_transformers():
        config = _load_config(kind, source, options)
        tokenizer = _load_tokenizer(source, options)
        _refuse_oversize(kind, config, source, random_weights=random_weights)
        refuse_foreign_tokenizer(kind, source, _outline(kind, config, source), tokenizer)
    return tokenizer


def has_choice_head(name_or_path: str, revision: str | None = None) -> bool:
    """Whether a checkpoint was saved as one of transformers' models for multiple choice.

    Raises:
        PretrainedError: If its config cannot be read, or is of a kind that is not supported.
    """
    source = resolve(name_or_path)
    if Path(source).is_dir() and not (Path(source) / CONFIG).is_file():
        return False
    with quiet_transformers():
        config = _load_config("encoder", source, _options(revision))
    with one_error(source, "configuration"):
        return any(name.endswith("ForMultipleChoice") for name in config.architectures or ())


def load_tokenizer(name_or_path: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Loads the tokenizer of a checkpoint without its weights.

    Raises:
        PretrainedError: If there is none, or it cannot be read.
    """
    with quiet_transformers():
        return _load_tokenizer(resolve(name_or_path), _options(revision))


def resolve(name_or_path: str) -> str:
    """The folder, or the name on the Hub, that `name_or_path` stands for.

    Raises:
        PretrainedError: If it can only be a folder and is not there.
    """
    if name_or_path == EMBEDDED:
        if not EMBEDDED_DIR.is_dir():
            raise PretrainedError(f"the embedded model is missing: no folder {EMBEDDED_DIR}")
        return str(EMBEDDED_DIR)
    with one_error(name_or_path, "folder"):  # such as a path through a folder that is closed
        path = user_path(name_or_path)
        if path.is_dir():
            return str(path)
        is_there = os.path.lexists(path)
    if is_there:
        what = "a file" if path.is_file() else "neither a folder nor a file"
        raise PretrainedError(f"{path} is {what}; give the folder with its config.json and weights")
    if not re.fullmatch(r"[\w][\w.-]*(/[\w][\w.-]*)?", name_or_path):
        raise PretrainedError(f"no folder {name_or_path}, and it is not a name on the Hub either")
    return name_or_path


def model_fingerprint(model: nn.Module) -> str:
    """The sha256 of a model's weights, as hex: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def run_encoder(encoder: nn.Module, batch: Mapping[str, Tensor]) -> Any:
    """Runs an encoder on the inputs of `batch` that it knows.

    Not every encoder takes `token_type_ids`, and some ignore what they do not know in silence.

    Returns:
        The encoder's output; `last_hidden_state` is (B, L, H).
    """
    known = inspect.signature(encoder.forward).parameters
    names = ("input_ids", "attention_mask", "token_type_ids")
    return encoder(**{name: batch[name] for name in names if name in batch and name in known})


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences load reports and progress bars: what matters in them is an error here."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def own_random_state(seed: int) -> Iterator[None]:
    """Seeds torch on the CPU, and leaves the caller's random state as it was.

    What a run draws later must not depend on how its model was made.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _options(revision: str | None) -> dict[str, Any]:
    # Said, because where nothing is said a terminal is asked whether somebody's code may run.
    return {"trust_remote_code": False} | ({} if revision is None else {"revision": revision})


def _load_config(kind: Kind, source: str, options: dict[str, Any]) -> PreTrainedConfig:
    with one_error(source, "configuration"):
        if Path(source).is_dir():
            check_config(Path(source))
        config: PreTrainedConfig = AutoConfig.from_pretrained(source, **options)
    refuse_other_kinds(kind, config, source)
    return config


def _refuse_oversize(
    kind: Kind, config: PreTrainedConfig, source: str, *, random_weights: bool
) -> None:
    if not Path(source).is_dir():
        return  # the Hub's files are not here yet
    num_bytes = None if random_weights else check_weights(Path(source))
    model = _outline(kind, config, source)
    check_size(source, sum(p.numel() for p in model.parameters()), num_bytes)


def _outline(kind: Kind, config: PreTrainedConfig, source: str) -> PreTrainedModel:
    """A model of the right shapes without numbers, which takes no memory."""
    with one_error(source, "configuration"), torch.device("meta"), own_random_state(0):
        model: PreTrainedModel = _AUTO_CLASS[kind].from_config(copy.deepcopy(config))
    return model


def _load_tokenizer(source: str, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    with one_error(source, "tokenizer"):
        if Path(source).is_dir():
            check_tokenizer_files(Path(source))
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, **options)
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise PretrainedError(f"{source}: the tokenizer's vocabulary is empty")
    return tokenizer


def _fresh_model(kind: Kind, config: PreTrainedConfig, source: str, seed: int) -> PreTrainedModel:
    with one_error(source, "configuration"), own_random_state(seed):
        model: PreTrainedModel = _AUTO_CLASS[kind].from_config(config, dtype=torch.float32)
    return model


def _trained_model(
    kind: Kind, source: str, options: dict[str, Any], *, pooler: bool
) -> PreTrainedModel:
    options = dict(options)
    if any(Path(source).glob("*.safetensors")):
        options["use_safetensors"] = True  # never fall back on a pickle that lies beside it
    model, missing = _with_missing(kind, source, options)
    if missing and getattr(model.config, "legacy", False):
        # Published DeBERTa-v3 checkpoints hold the new head, but their config does not say so.
        second, still_missing = _with_missing(kind, source, {**options, "legacy": False})
        if not still_missing:
            model, missing = second, []
    if not pooler:
        missing = [name for name in missing if not name.startswith("pooler.")]
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        advice = ""
        if all(name.startswith("pooler.") for name in missing):
            advice = "; head 'mlp' is a pooler with fresh weights"
        elif kind == "masked_lm" and has_choice_head(source, options.get("revision")):
            advice = "; it was fine-tuned to answer questions, so give it probes of setup mc_qa"
        raise PretrainedError(
            f"{source}: {len(missing)} weights of {type(model).__name__} are missing ({shown}), "
            f"and would be random{advice}"
        )
    check_numbers(source, model.named_parameters())
    return model


def _with_missing(
    kind: Kind, source: str, options: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    # What is not in the checkpoint, such as a pooler that is then dropped, is drawn at random.
    with one_error(source, "weights"), own_random_state(0):
        model, info = _AUTO_CLASS[kind].from_pretrained(
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


def _settle_pooler(model: Any, kind: Kind, source: str, *, pooler: bool) -> None:
    if kind != "encoder":
        return
    if pooler and getattr(model, "pooler", None) is None:
        raise PretrainedError(
            f"{source}: {type(model).__name__} has no pooler; choose head 'mlp' or 'linear'"
        )
    if not pooler and hasattr(model, "pooler"):
        model.pooler = None


def agree(setting: str, given: T | None, saved: T | None, folder: str) -> T | None:
    """What is asked for, or what a model was saved with where nothing is asked for.

    Raises:
        PretrainedError: If both are there and differ.
    """
    if given is not None and saved is not None and given != saved:
        raise PretrainedError(
            f"{folder} was saved with {setting} {saved!r}; {setting}={given!r} does not fit it"
        )
    return saved if given is None else given
