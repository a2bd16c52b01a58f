"""What can be told of a checkpoint without reading its weights, and what is refused by it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from probelight.models.checkpoints.fit import refuse_foreign_tokenizer, refuse_other_families
from probelight.models.checkpoints.folder import (
    CONFIG,
    PretrainedError,
    check_config,
    check_size,
    check_tokenizer_files,
    check_weights,
    one_error,
)
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM, Form
from probelight.models.checkpoints.source import hub_options, quiet_transformers, resolve
from probelight.models.checkpoints.weights import own_random_state


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose weights were not read.

    Attributes:
        form: What of it is meant.
        source: Its folder, or its name on the Hub.
        options: What `from_pretrained` is given for it.
        config: Its settings.
        tokenizer: Its tokenizer.
    """

    form: Form
    source: str
    options: dict[str, Any]
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerBase

    def outline(self) -> PreTrainedModel:
        """A model of the right shapes without numbers, which takes no memory."""
        with one_error(self.source, "configuration"), torch.device("meta"), own_random_state(0):
            model: PreTrainedModel = self.form.auto_class.from_config(copy.deepcopy(self.config))
        return model


def describe(
    form: Form, name_or_path: str, revision: str | None, random_weights: bool
) -> Checkpoint:
    """Reads a checkpoint's settings and tokenizer.

    Raises:
        PretrainedError: If there is no such checkpoint, it cannot be read, its kind is not
            supported, or its settings are of a model that its files, or this machine, cannot hold.
    """
    source, options = resolve(name_or_path), hub_options(revision)
    with quiet_transformers():
        config = _load_config(form, source, options)
        if not random_weights:
            _refuse_bare_encoder(form, source, config)
        found = Checkpoint(form, source, options, config, _load_tokenizer(source, options))
        if Path(source).is_dir():  # the Hub's files are not here yet
            num_bytes = None if random_weights else check_weights(Path(source))
            num_weights = sum(p.numel() for p in found.outline().parameters())
            check_size(source, num_weights, num_bytes)
    return found


def _refuse_bare_encoder(form: Form, source: str, config: PreTrainedConfig) -> None:
    """Refuses a folder of sentence-transformers, which keeps the encoder, where its head is meant.

    Raises:
        PretrainedError: If it is one.
    """
    names = config.architectures or ()
    is_bare = bool(names) and all(name.endswith("Model") for name in names)
    if form is MASKED_LM and is_bare and (Path(source) / "modules.json").is_file():
        raise PretrainedError(
            f"{source}: a folder of sentence-transformers, which keeps the encoder alone "
            f"({', '.join(names)}) and not the head that says which words come; give the model "
            "that it was made from"
        )


def check_pretrained(
    form: Form, name_or_path: str, revision: str | None = None, random_weights: bool = False
) -> PreTrainedTokenizerBase:
    """Refuses a checkpoint for what can be told without reading its weights; gives its tokenizer.

    Raises:
        PretrainedError: As `load_pretrained`, but for weights that lack or are damaged.
    """
    return checked(form, name_or_path, revision, random_weights).tokenizer


def checked(
    form: Form, name_or_path: str, revision: str | None, random_weights: bool
) -> Checkpoint:
    """A checkpoint that is not refused by what can be told without reading its weights.

    Raises:
        PretrainedError: As `check_pretrained`.
    """
    found = describe(form, name_or_path, revision, random_weights)
    with quiet_transformers():
        refuse_foreign_tokenizer(form, found.source, found.outline(), found.tokenizer)
    return found


def has_choice_head(name_or_path: str, revision: str | None = None) -> bool:
    """Whether a checkpoint was saved as one of transformers' models for multiple choice.

    Raises:
        PretrainedError: If its config cannot be read, or is of a kind that is not supported.
    """
    source = resolve(name_or_path)
    if Path(source).is_dir() and not (Path(source) / CONFIG).is_file():
        return False
    with quiet_transformers():
        config = _load_config(ENCODER, source, hub_options(revision))
    with one_error(source, "configuration"):
        return any(name.endswith("ForMultipleChoice") for name in config.architectures or ())


def load_tokenizer(name_or_path: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Loads the tokenizer of a checkpoint without its weights.

    Raises:
        PretrainedError: If there is none, or it cannot be read.
    """
    with quiet_transformers():
        return _load_tokenizer(resolve(name_or_path), hub_options(revision))


def read_config(name_or_path: str, revision: str | None = None) -> PreTrainedConfig:
    """Reads a checkpoint's settings, whatever its kind.

    Raises:
        PretrainedError: If there are none, they cannot be read, or transformers knows no such kind.
    """
    with quiet_transformers():
        return _read_config(resolve(name_or_path), hub_options(revision))


def _load_config(form: Form, source: str, options: dict[str, Any]) -> PreTrainedConfig:
    config = _read_config(source, options)
    refuse_other_families(form, config, source)
    return config


def _read_config(source: str, options: dict[str, Any]) -> PreTrainedConfig:
    is_folder, revision = Path(source).is_dir(), options.get("revision")
    if is_folder and revision:
        raise PretrainedError(
            f"folder {source}: it is not on the Hub, so it has no revision {revision!r}; leave the "
            "revision out"
        )
    # The config is read first of all, so it is here that a revision turns out to be missing.
    with one_error(f"{source}@{revision}" if revision else source, "configuration"):
        if is_folder:
            check_config(Path(source))
        config: PreTrainedConfig = AutoConfig.from_pretrained(source, **options)
    return config


def _load_tokenizer(source: str, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    with one_error(source, "tokenizer"):
        if Path(source).is_dir():
            check_tokenizer_files(Path(source))
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, **options)
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise PretrainedError(f"{source}: the tokenizer's vocabulary is empty")
    return tokenizer
