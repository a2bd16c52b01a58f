"""What is trained, and by which settings: modules of a model type, or of a saved folder."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.encoding.word_vectors import located, vectors_kind
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.models.checkpoint_files import (
    CheckpointRef,
    base_of,
    check_folder,
    scoring_of,
    tokenizer_files,
    trained_dtype,
)
from probelight.models.chosen_models import with_model_type
from probelight.models.registry import (
    AUTO,
    MODEL_TYPES,
    ModelSettings,
    Trained,
    module_of,
    saved_model_type,
    weights_bytes,
)
from probelight.models.tuning import FULL_TUNING, Tuning
from probelight.probes.record import Setup
from probelight.results.record import check_model

if TYPE_CHECKING:
    from probelight.lightning_modules.base import ChoiceModule

_ITEMS: dict[Setup, str] = {
    "mc_mlm": "the items are sentences with a mask",
    "mc_qa": "the items are questions with answers",
}
_READS: dict[Setup, str] = {
    "mc_mlm": "fills masks in sentences",
    "mc_qa": "reads pairs of question and answer",
}


def trained_for(model: ModelSettings, setup: Setup, reason: str = "") -> Trained:
    """Return how a model's type is trained for a setup, or refuse it and name a type that can be.

    `reason` says in the message why the setup is asked for.
    """
    model_type = model.type
    refuse_placed(model)
    if setup in model_type.trained:
        trained_dtype(model.dtype)
        return model_type.trained[setup]
    reads = " and ".join(_READS[name] for name in model_type.trained) or "cannot be trained"
    kinds = [name for name, candidate in MODEL_TYPES.items() if setup in candidate.trained]
    # A baseline for a baseline, if there is one.
    kind = min(kinds, key=lambda name: MODEL_TYPES[name].is_baseline != model_type.is_baseline)
    raise UsageError(
        f"model.kind {model.kind} {reads}, but {reason or _ITEMS[setup]}; give model.kind {kind}"
    )


def refuse_placed(model: ModelSettings) -> None:
    """Raise UsageError for a model that is spread over devices where something is trained."""
    if model.device_map is not None:
        raise UsageError(
            f"model.device_map {model.device_map} is only for models that are not trained, but "
            "this command trains; leave it out"
        )


def check_questions(model: ModelSettings, checkpoint: CheckpointRef | None) -> None:
    """Refuse a model that no original task can have, or a `checkpoint` folder of another type."""
    trained_for(model, "mc_qa", "an original task has questions with answers")
    if checkpoint is not None and model.random_weights:
        raise UsageError(
            f"original.checkpoint {checkpoint} has trained weights; leave model.random_weights out"
        )
    if checkpoint is not None and (kind := saved_model_type(checkpoint)) != model.kind:
        named = " and the model.name_or_path that it was trained from"
        raise UsageError(
            f"original.checkpoint {checkpoint} has a model of kind {kind}, but its "
            f"results would be called {model.label}; give model.kind {kind}"
            f"{named if MODEL_TYPES[kind].heads else ''}"
        )


def check_unchanged(ref: CheckpointRef) -> None:
    """Refuse a model that a finished run kept, and has changed since, or one below an adapter."""
    base, adapters = base_of(ref)
    for path in (Path(base.name), *adapters):
        check_model(path)


def _class_of(trained: Trained) -> Any:
    """Import the class of the module that is trained."""
    return resolve_name(f"probelight.lightning_modules.{trained.made_by}")


def module_for(
    model: ModelSettings, setup: Setup, *, tuning: Tuning | None = None, **options: Any
) -> ChoiceModule:
    """Return the module that is trained to answer probes of a setup.

    `tuning` says which of its weights; `options` are arguments of its constructor, such as `mode`,
    `learning_rate` and `seed`.
    `monitor`, the metric that halves the rate when it stops rising, is dropped for types with a
    schedule.
    """
    trained = trained_for(model, setup)
    if model.random_weights and not model.type.has_checkpoint:
        raise UsageError(
            f"random_weights is a control for models with a checkpoint; kind {model.kind} has none "
            "and always begins with fresh weights, so leave it out"
        )
    if tuning is not None:
        options |= _tuned(model.kind, tuning)
    settings = {name: getattr(model, name) for name in trained.reads}
    if trained.setup is not None:
        settings["setup"] = trained.setup
    if "name_or_path" in settings:
        del settings["name_or_path"]
        settings["model_name_or_path"] = str(replace(model.checkpoint, revision=None))
    if not trained.halves_rate:
        options.pop("monitor", None)
    module: ChoiceModule = _class_of(trained)(**settings, **options)
    return module


def _tuned(kind: str, tuning: Tuning) -> dict[str, Any]:
    """Return the argument of a module that is trained so; refuse an adapter of a baseline."""
    if MODEL_TYPES[kind].has_checkpoint:
        return {"tuning": tuning}
    if tuning != FULL_TUNING:
        raise UsageError(
            f"tuning {tuning.method} is only for models with a checkpoint, and kind {kind} has "
            "none; leave it out"
        )
    return {}


def check_tuning(model: ModelSettings, setup: Setup, *tunings: Tuning) -> None:
    """Refuse adapters that a model cannot have, before hours are spent, without its weights."""
    for tuning in tunings:
        if tuning != FULL_TUNING:
            saved_bytes(model, setup, tuning)


@cache
def saved_bytes(model: ModelSettings, setup: Setup, tuning: Tuning) -> int:
    """Return the bytes of what is saved of a trained model: all weights, or adapter and tokenizer.

    A local model's weights are not read; one that is not local has 0, as in `weights_bytes`.
    """
    if tuning == FULL_TUNING:
        return weights_bytes(model)
    from probelight.models.loading import outlines

    with outlines():
        module = module_for(model, setup, tuning=tuning)
    trained = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
    files = tokenizer_files(base_of(model.checkpoint)[0].folder)
    return trained + sum(path.stat().st_size for path in files)


def check_module(model: ModelSettings, setup: Setup) -> None:
    """Refuse a model that cannot be trained for a setup, without reading its weights."""
    trained_for(model, setup)
    if model.type.heads:
        scoring_of(model.checkpoint, model.scoring, setup)  # that they agree
    if model.type.has_checkpoint:
        from probelight.models.loading import check_pretrained

        form = module_of(model.type).FORMS[setup]
        check_pretrained(form, model.checkpoint, trained_dtype(model.dtype))


def check_files(model: ModelSettings) -> None:
    """Refuse a model for questions that is not there; of a folder nothing heavy is imported."""
    if not model.type.has_checkpoint:
        path = located(model.vectors)[0]
        if not vectors_kind(model.vectors)[0] and not path.is_file():
            raise UsageError(f"model.vectors {path}: there is no such file")
        return
    if not check_folder(model.checkpoint):
        check_module(model, "mc_qa")
    elif model.type.heads:
        scoring_of(model.checkpoint, model.scoring, "mc_qa")  # that they agree


def saved_module(
    folder: str | Path,
    *,
    monitor: str | None = None,
    dtype: ranges.WeightsDtype = AUTO,
    tuning: Tuning | None = None,
    seed: int = 0,
    **overrides: Any,
) -> ChoiceModule:
    """Return the module that a folder holds, whichever type wrote it; transformers' own among them.

    `monitor` is the metric that halves a baseline's rate when it stops rising; `dtype` is that of a
    model with a checkpoint, as where it is trained; `tuning` says which of its weights are trained,
    and `seed` is that of a new adapter.
    """
    ref = CheckpointRef.parse(folder)
    check_unchanged(ref)
    kind = saved_model_type(ref)
    model_type = MODEL_TYPES[kind]
    if tuning is not None:
        overrides |= _tuned(kind, tuning)
        overrides |= {} if tuning == FULL_TUNING else {"seed": seed}
    trained = model_type.trained.get("mc_qa") or model_type.trained["mc_mlm"]
    if model_type.has_checkpoint:
        overrides["dtype"] = dtype
    if trained.halves_rate:
        overrides["monitor"] = monitor
    module: ChoiceModule = _class_of(trained).from_folder(folder, **overrides)
    return module


def continuation_options(model: ModelSettings) -> dict[str, Any]:
    """Return what a causal or encoder-decoder model in a folder is told, besides what it holds."""
    if not model.type.heads:
        return {}
    names = ("scoring", "head", "max_length", "answer_prefix")
    return {name: getattr(model, name) for name in names}


def question_model(model: ModelSettings, checkpoint: CheckpointRef | None) -> ModelSettings:
    """Check an original task's model by `check_questions` and return it with its model type."""
    if model.kind == AUTO:
        model = with_model_type(model)
    check_questions(model, checkpoint)
    model = with_model_type(model)
    if checkpoint is None:
        check_files(model)
    elif model.type.has_checkpoint:  # a baseline's are checked by the jobs
        check_files(replace(model, name_or_path=str(checkpoint), revision=None, adapter=None))
    return model
