"""The common part of modules over word vectors: their optimiser, and folders without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.encoding.word_vectors import EMBEDDED, WordVectors
from probelight.io import ranges
from probelight.io.atomic import whole_folder
from probelight.lightning_modules.base import ChoiceModule, halving
from probelight.models.checkpoint_errors import PretrainedError, check_size, one_error
from probelight.models.checkpoint_files import (
    WORD_FORMAT,
    WORD_SETTINGS,
    agree,
    model_folder,
    word_settings,
)
from probelight.models.networks import check_numbers
from probelight.models.token_vectors import FrozenOrigin
from probelight.models.vector_sources import token_vectors

WORD_WEIGHTS = "model.safetensors"


class WordModule(ChoiceModule):
    """Base class of baselines over word vectors, trained as in Talmor et al. 2020.

    Args:
        table: The vectors.
        learning_rate: Learning rate of Adam; the authors' baselines have 4e-4.
        weight_decay: Weight decay of Adam, as a penalty on the square of every weight.
        max_grad_norm: Clip gradients to this norm; None does not clip.
        monitor: Metric to watch (higher is better): the learning rate is halved if it does not
            improve. None keeps the rate constant.
    """

    kind: ClassVar[str]  # in the settings of a saved folder
    saved: ClassVar[tuple[str, ...]]  # arguments of the constructor that the folder keeps

    def __init__(
        self,
        table: WordVectors | FrozenOrigin[Any],
        learning_rate: ranges.LearningRate = 4e-4,
        weight_decay: ranges.WeightDecay = 0.0,
        max_grad_norm: ranges.GradNorm | None = 10.0,
        monitor: str | None = None,
    ) -> None:
        super().__init__(learning_rate, weight_decay, 0.0, max_grad_norm)
        self.save_hyperparameters(ignore="table")  # with the arguments of the subclass
        self.monitor = monitor
        self.vectors = table
        # (32,) the SHA-256 of the vectors' file, so that models over other vectors differ in state.
        digest = bytes.fromhex(table.sha256 or "00" * 32)
        self.register_buffer("vectors_origin", torch.tensor(list(digest), dtype=torch.uint8))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(
            [parameter for parameter in self.parameters() if parameter.requires_grad],
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=self._can_fuse(),
        )
        if self.monitor is None:
            return {"optimizer": optimizer}
        scheduler = {"scheduler": halving(optimizer), "interval": "epoch", "monitor": self.monitor}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write weights, words and settings, completely or not at all.

        Loading the folder needs no file of vectors. After a sharded fit, pass the module's weights
        as `state_dict`, since its parameters are only a shard.
        """
        all_weights = self.state_dict() if state_dict is None else state_dict
        settings = {
            "format": WORD_FORMAT,
            "kind": self.kind,
            "vectors": self.vectors.source,
            "vectors_sha256": self.vectors.sha256,
            "dimension": self.vectors.dimension,
            **{name: self.hparams[name] for name in self.saved},
        }
        with whole_folder(Path(folder)) as fresh:
            weights = {name: value.contiguous() for name, value in all_weights.items()}
            save_file(weights, fresh / WORD_WEIGHTS, metadata={"format": "pt"})
            text = json.dumps(settings, indent=2) + "\n"
            (fresh / WORD_SETTINGS).write_text(text, encoding="utf-8")

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> Self:
        """Load the module that `save_pretrained` wrote into a folder, with its weights and words.

        Further arguments are those of the constructor, such as `learning_rate`.

        Raises:
            PretrainedError: If the folder is not such a folder, or is damaged.
        """
        settings = word_settings(folder)
        if (saved_kind := settings.pop("kind", None)) != cls.kind:
            raise PretrainedError(f"{folder} has a saved {saved_kind}, not {cls.kind}")
        path = model_folder(folder) / WORD_WEIGHTS
        with one_error(folder, "weights"):
            weights = load_file(path)
        with one_error(folder, "settings"):
            with torch.device("meta"):  # without memory
                described = cls(**settings)
            size = sum(parameter.numel() for parameter in described.parameters())
            check_size(folder, size, path.stat().st_size)
            module = cls(**{**settings, **overrides})
        with one_error(folder, "weights"):
            module.load_state_dict(weights)
        check_numbers(folder, ((name, weights[name]) for name, _ in module.named_parameters()))
        return module


class PairModule(WordModule):
    """Base class of each `WordModule` with a logit for every pair of question and answer.

    Args:
        vectors: "embedded", or a file in GloVe's text format; see `WordVectors`. Words without a
            vector, and the mask, get a seeded vector of the same scale.
        train_vectors: Whether to train the vectors too.
        hidden_size: Size of each direction of a BiLSTM.
        dropout: Dropout on the vectors.
        max_length: Maximum number of words of a question or an answer.
        num_choices: Pad every question to this many choices with empty ones, scored like any other
            (Richardson 2020). None does not pad. The number is saved with the model, and used
            wherever the model is scored.
        seed: Seed of the fresh weights.
        dimension: Numbers per word vector. None reads it from the file; with it, the file may be
            missing.
        vectors_sha256: Checksum of the file; a file with another one counts as missing.
        options: The other arguments of `WordModule`.

    Raises:
        WordVectorsError: If the file of vectors cannot be used.
    """

    saved = ("train_vectors", "hidden_size", "dropout", "max_length", "num_choices", "seed")

    def __init__(
        self,
        vectors: str = EMBEDDED,
        train_vectors: bool = False,
        hidden_size: ranges.Width = 128,
        dropout: ranges.ShareOrNone = 0.5,
        max_length: ranges.MaxLength = 256,
        num_choices: ranges.NumChoices | None = None,
        seed: ranges.Seed = 0,
        dimension: ranges.Width | None = None,
        vectors_sha256: str | None = None,
        **options: Any,
    ) -> None:
        words = token_vectors(vectors, dimension, vectors_sha256, seed, trainable=train_vectors)
        super().__init__(words.origin, **options)
        self.max_length, self.num_choices = max_length, num_choices
        self.hidden_size, self.dropout, self.seed = hidden_size, dropout, seed
        self.words = words

    def encoder(self) -> ChoiceEncoder:
        return self.words.encoder(self.max_length, self.num_choices)

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        self.hparams["num_choices"] = self.num_choices  # which may have been set since
        super().save_pretrained(folder, state_dict)

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> Self:
        """Load the module of a folder, as for every `WordModule`.

        Raises:
            PretrainedError: As there, or if it was saved with another number of choices.
        """
        saved = word_settings(folder).get("num_choices")
        num_choices = agree("num_choices", overrides.get("num_choices"), saved, str(folder))
        return super().from_folder(folder, **{**overrides, "num_choices": num_choices})


def fresh_linear(input_size: int, output_size: int, bias: bool = True) -> nn.Linear:
    """Return a layer with Xavier's initial weights, and a bias of 0 if it has one."""
    layer = nn.Linear(input_size, output_size, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
