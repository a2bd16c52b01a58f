"""The registry of model types: what each can be asked for, and how it is trained.

A model type is one module in `probelight.models` and its entry in `MODEL_TYPES`, which names the
module and its classes, so that nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from probelight.models.checkpoint_files import (
    CONFIG,
    HEAD_SETTINGS,
    WORD_SETTINGS,
    CheckpointRef,
    PretrainedError,
    base_of,
    check_config,
    head_settings,
    is_word_folder,
    type_of_class,
    word_settings,
)
from probelight.probes.record import Setup

if TYPE_CHECKING:
    from probelight.models.scorer import ModelTypeModule


@dataclass(frozen=True)
class Trained:
    """How a model type is trained for a setup."""

    made_by: str  # its class, as "module:Class" below lightning_modules
    reads: tuple[str, ...]  # the model settings that its constructor takes
    modes: tuple[str, ...] = ()  # heads that a curve traces; none: the whole network is trained
    setup: Setup | None = None  # given to a constructor that takes it
    halves_rate: bool = False  # when `monitor` stops rising; others have a schedule


@dataclass(frozen=True)
class ModelType:
    """What a model type can be asked for, and how it is trained.

    Attributes:
        scorer: The module that loads what answers without training; None where the model begins
            with random weights.
        trained: How it is trained, for each setup that it can be trained for.
        heads: Heads on its scorer's frozen features that a curve traces for MC-MLM probes, with
            or without its whole network.
        title: What tables call a baseline, before the name of its vectors; None calls it by the
            last part of `name_or_path`.
        has_checkpoint: Whether `name_or_path` is a model's folder or Hub name, with a tokenizer and
            a control of random weights.
        fit: Field of `CurveSettings` that says how the whole of it is trained.
        num_weights: For planning memory, with vectors of 50 numbers, which are not counted; None
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
        """Whether it is a baseline over word vectors, which models must be better than."""
        return self.title is not None

    def modes(self, setup: Setup) -> tuple[str, ...] | None:
        """Return the heads that a curve traces; () where the whole is trained; None: no curve."""
        if self.heads and setup == "mc_mlm":
            return (*self.heads, FULL)
        return self.trained[setup].modes if setup in self.trained else None


def _partial_input(name: str, title: str, num_weights: int) -> ModelType:
    """Return a baseline that sees a part of the input and is trained like ESIM."""
    made_by = f"baselines.partial_input:{name}"
    trained = Trained(made_by, ("vectors", "max_length"), halves_rate=True)
    return ModelType(title=title, fit="esim", num_weights=num_weights, trained={"mc_qa": trained})


TRANSFORMER = "transformer"
AUTO: Final = "auto"  # no type: a setting that `with_model_type` resolves
FULL: Final = "full"  # the mode of a curve in which the whole network is fine-tuned
_CHECKPOINT = ("name_or_path", "revision", "random_weights", "max_length", "dtype")


def _continuations(scorer: str) -> ModelType:
    """Return a type of language models that choose among continuations, trained as they score."""
    made_by = "causal_choice:CausalChoice"
    reads = (*_CHECKPOINT, "answer_prefix", "scoring", "head")
    setups: tuple[Setup, ...] = ("mc_qa", "mc_mlm")
    trained = {setup: Trained(made_by, reads, setup=setup) for setup in setups}
    return ModelType(scorer=scorer, trained=trained, heads=("mlp", "linear"), has_checkpoint=True)


MODEL_TYPES: dict[str, ModelType] = {
    TRANSFORMER: ModelType(
        scorer="probelight.models.masked",
        has_checkpoint=True,
        trained={
            "mc_mlm": Trained(
                "masked_choice:MaskedChoice",
                (*_CHECKPOINT, "answer_prefix", "multi_token"),
                modes=("mlp", "linear"),
            ),
            "mc_qa": Trained(
                "sentence_choice:SentenceChoice",
                (*_CHECKPOINT, "head"),
            ),
        },
    ),
    "causal": _continuations("probelight.models.causal"),
    "mlm_baseline": ModelType(
        title="MLM-baseline",
        fit="mlm_baseline",
        trained={
            "mc_mlm": Trained(
                "baselines.mlm_baseline:MLMBaseline",
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
                "baselines.esim:ESIM",
                ("vectors", "max_length"),
                halves_rate=True,
            )
        },
    ),
    "seq2seq": _continuations("probelight.models.seq2seq"),
    "choice_only": _partial_input("ChoiceOnly", "Choice-only", 184_576),
    "choice_to_choice": _partial_input("ChoiceToChoice", "Choice-to-choice", 185_344),
    "question_to_choice": _partial_input("QuestionToChoice", "Question-to-choice", 185_344),
    "vec_similarity": ModelType(title="VecSimilarity", scorer="probelight.models.vec_similarity"),
}


def saved_model_type(ref: CheckpointRef) -> str:
    """Return the type of the model in a folder: a baseline's is written in it, others are plain."""
    if is_word_folder(ref.folder):
        kind, path = word_settings(ref.folder).get("kind"), ref.folder / WORD_SETTINGS
    elif (saved := head_settings(ref)) is not None:
        kind, path = saved.get("kind", TRANSFORMER), ref.folder / HEAD_SETTINGS
    elif (path := base_of(ref)[0].folder / CONFIG).is_file():
        # A language model needs no head to choose among continuations.
        classes = check_config(path.parent).get("architectures") or [""]
        if (kind := type_of_class(str(classes[0]))) in (None, "seq2seq"):
            from probelight.models.loading import CAUSAL_LM, SEQ2SEQ_LM, read_config

            config = read_config(ref)  # seconds, as transformers must know
            forms = {"causal": CAUSAL_LM, "seq2seq": SEQ2SEQ_LM}
            kind = next((kind for kind, form in forms.items() if form.admits(config)), TRANSFORMER)
    else:
        return TRANSFORMER
    if not (isinstance(kind, str) and kind in MODEL_TYPES):
        raise PretrainedError(f"{path}: there is no model kind {kind!r}")
    return kind


def module_of(model_type: ModelType) -> ModelTypeModule:
    """Import the module that loads and checks what answers without training."""
    assert model_type.scorer is not None
    return cast("ModelTypeModule", import_module(model_type.scorer))
