"""The registry of model types: what each can be asked for, and where it is made.

A model type is one module in `probelight.models` and its entry in `MODEL_TYPES`. Nothing heavy is
imported here: an entry names its module and its classes, which are imported when first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol, cast

from probelight.io.files import user_path
from probelight.lightning_modules.baselines.word_settings import (
    WORD_SETTINGS,
    is_word_folder,
    word_settings,
)
from probelight.models.checkpoint_files import PretrainedError
from probelight.probes.record import Setup

if TYPE_CHECKING:
    from probelight.lightning_modules.base import ChoiceModule
    from probelight.models.scorer import ModelTypeModule


class TrainableClass(Protocol):
    """The class of a module that is trained."""

    def __call__(self, **options: object) -> ChoiceModule:
        """Make a module that is to be trained."""

    def from_folder(self, folder: str | Path, **options: object) -> ChoiceModule:
        """Load a module that its `save_pretrained` wrote."""


@dataclass(frozen=True)
class Trained:
    """How a model type is trained for a setup.

    Attributes:
        made_by: The module's class, as "module:Class".
        reads: The settings of a model that its constructor takes.
        modes: Heads on its frozen features that a curve traces; none where the whole is trained.
        halves_rate: Whether it takes a `monitor`, whose stand-still halves its rate; others have a
            schedule.
    """

    made_by: str
    reads: tuple[str, ...]
    modes: tuple[str, ...] = ()
    halves_rate: bool = False

    def import_class(self) -> TrainableClass:
        """Import the class."""
        return cast("TrainableClass", resolve_name(self.made_by))


@dataclass(frozen=True)
class ModelType:
    """What a model type is.

    Attributes:
        scorer: The module that loads what answers without training; none of what begins with
            random weights.
        trained: How it is trained, for each setup that it can be trained for.
        heads: Heads on its scorer's frozen features that a curve traces for MC-MLM probes, of a
            type that is not trained itself.
        title: What tables call a baseline, before the name of its vectors; none calls it by the
            last part of `name_or_path`.
        has_checkpoint: Whether `name_or_path` is a model's folder or its name on the Hub, with a
            tokenizer, and with a control of random weights.
        fit: Field of `CurveSettings` that says how the whole of it is trained.
        num_weights: To plan memory by, over vectors of 50 numbers, which are not counted; none
            where the checkpoint's files tell.
    """

    scorer: str | None = None
    trained: Mapping[Setup, Trained] = field(default_factory=dict)
    heads: tuple[str, ...] = ()
    title: str | None = None
    has_checkpoint: bool = False
    fit: str = "full"
    num_weights: int | None = None

    @property
    def is_pretrained(self) -> bool:
        """Whether it knows something before it is trained."""
        return self.scorer is not None

    @property
    def is_baseline(self) -> bool:
        """Whether it is what models must be better than, over word vectors."""
        return self.title is not None

    def modes(self, setup: Setup) -> tuple[str, ...] | None:
        """Return the heads that a curve traces; none where the whole is trained; None: no curve."""
        if setup in self.trained:
            return self.trained[setup].modes
        return self.heads if self.heads and setup == "mc_mlm" else None

    def import_module(self) -> ModelTypeModule:
        """Import the module that loads and checks what answers without training."""
        assert self.scorer is not None
        return cast("ModelTypeModule", import_module(self.scorer))


def _partial_input(name: str, title: str, num_weights: int) -> ModelType:
    """A baseline that sees a part of the input, trained as ESIM is."""
    made_by = f"probelight.lightning_modules.baselines.partial_input:{name}"
    trained = Trained(made_by, ("vectors", "max_length"), halves_rate=True)
    return ModelType(title=title, fit="esim", num_weights=num_weights, trained={"mc_qa": trained})


TRANSFORMER = "transformer"
AUTO = "auto"  # no type: a setting that `with_model_type` resolves
_CHECKPOINT = ("name_or_path", "revision", "random_weights", "max_length")

MODEL_TYPES: dict[str, ModelType] = {
    TRANSFORMER: ModelType(
        scorer="probelight.models.masked",
        has_checkpoint=True,
        trained={
            "mc_mlm": Trained(
                "probelight.lightning_modules.masked_choice:MaskedChoice",
                (*_CHECKPOINT, "answer_prefix", "multi_token"),
                modes=("mlp", "linear"),
            ),
            "mc_qa": Trained(
                "probelight.lightning_modules.sentence_choice:SentenceChoice",
                (*_CHECKPOINT, "head"),
            ),
        },
    ),
    "causal": ModelType(
        scorer="probelight.models.causal",
        has_checkpoint=True,
        heads=("mlp", "linear"),
    ),
    "mlm_baseline": ModelType(
        title="MLM-baseline",
        fit="mlm_baseline",
        trained={
            "mc_mlm": Trained(
                "probelight.lightning_modules.baselines.mlm_baseline:MLMBaseline",
                ("vectors",),
                modes=("mlp",),
                halves_rate=True,
            )
        },
    ),
    "esim": ModelType(
        title="ESIM",
        fit="esim",
        num_weights=3_730_501,
        trained={
            "mc_qa": Trained(
                "probelight.lightning_modules.baselines.esim:ESIM",
                ("vectors", "max_length"),
                halves_rate=True,
            )
        },
    ),
    "seq2seq": ModelType(
        scorer="probelight.models.seq2seq",
        has_checkpoint=True,
        heads=("mlp", "linear"),
    ),
    "choice_only": _partial_input("ChoiceOnly", "Choice-only", 184_576),
    "choice_to_choice": _partial_input("ChoiceToChoice", "Choice-to-choice", 185_344),
    "question_to_choice": _partial_input("QuestionToChoice", "Question-to-choice", 185_344),
    "vec_similarity": ModelType(
        title="VecSimilarity", scorer="probelight.lightning_modules.baselines.vec_similarity"
    ),
}


def saved_model_type(folder: str | Path) -> str:
    """Return the type of the model in a folder: a baseline's is written in it, others are plain.

    Raises:
        PretrainedError: If a baseline's settings are damaged, or of a type that is not known.
    """
    if not is_word_folder(folder):
        return TRANSFORMER
    kind = word_settings(folder).get("kind")
    if not (isinstance(kind, str) and kind in MODEL_TYPES):
        path = user_path(folder) / WORD_SETTINGS
        raise PretrainedError(f"{path}: model kind {kind!r} is not known here")
    return kind
