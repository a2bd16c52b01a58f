"""The kinds of models there are and what each can be asked for; imports nothing heavy.

A kind of language model is a module in lightning_modules/scorers and its line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from probelight.io.errors import UsageError
from probelight.io.files import user_path
from probelight.lightning_modules.baselines.word_settings import (
    WORD_SETTINGS,
    is_word_folder,
    word_settings,
)
from probelight.models.checkpoint_files import PretrainedError
from probelight.probes.record import Setup

if TYPE_CHECKING:
    from probelight.protocols.engine.settings import ModelSettings


@dataclass(frozen=True)
class Trained:
    """How a kind is trained for a setup.

    Attributes:
        made_by: The module's class, as "module:Class"; it has `from_folder` and `save_pretrained`.
        reads: The settings of a model that its constructor takes.
        loads: The form of checkpoint that it begins with, as "module:FORM", if it does.
        modes: Heads on its frozen features that a curve traces; none where the whole is trained.
        halves_rate: Whether it takes a `monitor`, whose stand-still halves its rate; others have a
            schedule.
    """

    made_by: str
    reads: tuple[str, ...]
    loads: str | None = None
    modes: tuple[str, ...] = ()
    halves_rate: bool = False


@dataclass(frozen=True)
class ModelKind:
    """What a kind of model is.

    Attributes:
        forms: The forms of checkpoint that it is loaded in, as "module:FORM".
        scorer: Module with its `load` and `check` (`probelight.models.scorer.ModelTypeModule`),
            which answers without training; none of what begins with random weights.
        trained: How it is trained, for each setup that it can be trained for.
        heads: Heads on its scorer's frozen features that a curve traces for MC-MLM probes, of a
            kind that is not trained itself.
        title: What tables call a baseline, before the name of its vectors; none calls it by the
            last part of `name_or_path`.
        has_checkpoint: Whether `name_or_path` is a model's folder or its name on the Hub, with a
            tokenizer, and with a control of random weights.
        fit: Field of `CurveSettings` that says how the whole of it is trained.
        num_weights: To plan memory by, over vectors of 50 numbers, which are not counted; none
            where the checkpoint's files tell.
    """

    forms: tuple[str, ...] = ()
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
        """Heads that a curve of a setup traces; none where the whole is trained; None: no curve."""
        if setup in self.trained:
            return self.trained[setup].modes
        return self.heads if self.heads and setup == "mc_mlm" else None


def _partial_input(name: str, title: str, num_weights: int) -> ModelKind:
    """A baseline that sees a part of the input, trained as ESIM is."""
    made_by = f"probelight.lightning_modules.baselines.partial_input:{name}"
    trained = Trained(made_by, ("vectors", "max_length"), halves_rate=True)
    return ModelKind(title=title, fit="esim", num_weights=num_weights, trained={"mc_qa": trained})


TRANSFORMER = "transformer"
AUTO = "auto"  # no kind: a setting that `auto_kind` resolves
_FORMS = "probelight.models.loading"
_CHECKPOINT = ("name_or_path", "revision", "random_weights", "max_length")

KINDS: dict[str, ModelKind] = {
    TRANSFORMER: ModelKind(
        forms=(f"{_FORMS}:MASKED_LM", f"{_FORMS}:ENCODER"),
        scorer="probelight.models.masked",
        has_checkpoint=True,
        trained={
            "mc_mlm": Trained(
                "probelight.lightning_modules.masked_choice:MaskedChoice",
                (*_CHECKPOINT, "answer_prefix", "multi_token"),
                loads=f"{_FORMS}:MASKED_LM",
                modes=("mlp", "linear"),
            ),
            "mc_qa": Trained(
                "probelight.lightning_modules.sentence_choice:SentenceChoice",
                (*_CHECKPOINT, "head"),
                loads=f"{_FORMS}:ENCODER",
            ),
        },
    ),
    "causal": ModelKind(
        forms=(f"{_FORMS}:CAUSAL_LM",),
        scorer="probelight.models.causal",
        has_checkpoint=True,
        heads=("mlp", "linear"),
    ),
    "mlm_baseline": ModelKind(
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
    "esim": ModelKind(
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
    "seq2seq": ModelKind(
        forms=(f"{_FORMS}:SEQ2SEQ_LM",),
        scorer="probelight.models.seq2seq",
        has_checkpoint=True,
        heads=("mlp", "linear"),
    ),
    "choice_only": _partial_input("ChoiceOnly", "Choice-only", 184_576),
    "choice_to_choice": _partial_input("ChoiceToChoice", "Choice-to-choice", 185_344),
    "question_to_choice": _partial_input("QuestionToChoice", "Question-to-choice", 185_344),
    "vec_similarity": ModelKind(
        title="VecSimilarity", scorer="probelight.lightning_modules.baselines.vec_similarity"
    ),
}

_ASKED: dict[Setup, str] = {
    "mc_mlm": "these are sentences with a mask",
    "mc_qa": "these are questions with answers",
}
_POSED: dict[Setup, str] = {
    "mc_mlm": "fills the mask of a sentence",
    "mc_qa": "reads pairs of question and answer",
}


def kind_of(model: ModelSettings) -> ModelKind:
    """What the kind of a model is."""
    return KINDS[model.kind]


def refuse_untrained(models: Iterable[ModelSettings], command: str) -> None:
    """Refuses models that know nothing, where nothing is trained.

    Raises:
        UsageError: If one of the models is a baseline, which begins with random weights.
    """
    for model in models:
        kind = kind_of(model)
        if kind.is_pretrained:
            continue
        setup = "" if "mc_mlm" in kind.trained else " --setup mc_qa"
        raise UsageError(
            f"{model.label} (model.kind {model.kind}) knows nothing before it is trained, and "
            f"{command} trains nothing; `train.py curve --models {model.kind}{setup} --probes ...` "
            "trains and measures it"
        )


def trained_for(model: ModelSettings, setup: Setup, what: str = "") -> Trained:
    """How a model's kind is trained for a setup.

    Args:
        model: The model.
        setup: The setup.
        what: Why the setup is asked for, for the message.

    Raises:
        UsageError: If its kind cannot be; the message names one that can.
    """
    kind = kind_of(model)
    if setup in kind.trained:
        return kind.trained[setup]
    alone = "is not trained here"
    if kind.heads:
        alone += ", but for heads on its frozen features in `train.py curve`"
    own = " and ".join(_POSED[known] for known in kind.trained) or alone
    others = [n for n, k in KINDS.items() if setup in k.trained]
    # The one that is nearest: a baseline for a baseline.
    near = [name for name in others if KINDS[name].is_baseline == kind.is_baseline]
    # Another kind alone would make no other model of a checkpoint.
    choose = "give a model of kind" if kind.heads else "choose model.kind"
    raise UsageError(
        f"model.kind {model.kind} {own}, and {what or _ASKED[setup]}; {choose} "
        f"{(near or others)[0]}"
    )


def check_questions(model: ModelSettings, checkpoint: str | None, place: str = "") -> None:
    """Refuses an original-task model that is none, or is not of the kind that tables would name.

    Args:
        model: The model's settings.
        checkpoint: Folder of a trained original-task model, if one was given.
        place: What the message begins with: where the settings stand.

    Raises:
        UsageError: If the model fills masks, or the folder holds a model of another kind.
    """
    try:
        trained_for(model, "mc_qa", "an original task is questions with answers")
    except UsageError as error:
        raise UsageError(f"{place}{error}") from None
    if checkpoint is not None and (kind := saved_kind(checkpoint)) != model.kind:
        raise UsageError(
            f"{place}original.checkpoint {checkpoint} holds a model of kind {kind}, and its "
            f"results would be called {model.label}; give model.kind {kind}"
        )


def saved_kind(folder: str | Path) -> str:
    """The kind of the model in a folder: a baseline's is written in it, others are checkpoints.

    Raises:
        PretrainedError: If a baseline's settings are damaged, or of a kind that is not known.
    """
    if not is_word_folder(folder):
        return TRANSFORMER
    kind = word_settings(folder).get("kind")
    if not (isinstance(kind, str) and kind in KINDS):
        path = user_path(folder) / WORD_SETTINGS
        raise PretrainedError(f"{path}: model kind {kind!r} is not known here")
    return kind
