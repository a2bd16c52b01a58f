"""The factory of models: what answers as it is, what is trained, what a folder holds.

The module of a model type is imported when it is first needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from probelight.encoding.vector_source import located, vectors_kind, vectors_label
from probelight.io.errors import RecordError, UsageError
from probelight.io.ranges import WeightsDtype
from probelight.models.checkpoint_files import (
    base_of,
    check_config,
    check_tokenizer_files,
    check_weights,
    model_folder,
    resolve,
    scoring_of,
    tokenizer_files,
    trained_dtype,
)
from probelight.models.tuning import FULL_TUNING, Tuning
from probelight.probes.record import Record, Setup
from probelight.protocols.engine.settings import (
    AUTO,
    MODEL_TYPES,
    ModelSettings,
    ModelType,
    Trained,
    saved_model_type,
)
from probelight.protocols.jobs.job import DEFAULT_TRAINER, RunContext, TrainerSettings, kept
from probelight.results.record import ModelSource, check_model

if TYPE_CHECKING:
    from probelight.lightning_modules.base import ChoiceModule
    from probelight.models.kept_model import KeptModel
    from probelight.models.scorer import ModelTypeModule, Reader, Scorer


_ITEMS: dict[Setup, str] = {
    "mc_mlm": "the items are sentences with a mask",
    "mc_qa": "the items are questions with answers",
}
_READS: dict[Setup, str] = {
    "mc_mlm": "fills masks in sentences",
    "mc_qa": "reads pairs of question and answer",
}


def model_type_of(model: ModelSettings) -> ModelType:
    """Return the type of a model."""
    return MODEL_TYPES[model.kind]


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Return the bytes of a local model's weights as they are trained; 0 where it is not known."""
    if (known := model_type_of(model).num_weights) is not None:
        return 4 * known
    base, _, adapters = base_of(model.checkpoint, model.revision)
    num_weights = 0
    for path in [p for f in (model_folder(base), *adapters) for p in f.glob("*.safetensors")]:
        with path.open("rb") as file:  # its 8 first bytes say how long the header is
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        shapes = (entry["shape"] for entry in header.values() if "shape" in entry)
        num_weights += sum(math.prod(shape) for shape in shapes)
    return (2 if model.dtype in ("bfloat16", "float16") else 4) * num_weights


def module_of(model_type: ModelType) -> ModelTypeModule:
    """Import the module that loads and checks what answers without training."""
    assert model_type.scorer is not None
    return cast("ModelTypeModule", import_module(model_type.scorer))


def refuse_untrained(models: Iterable[ModelSettings], command: str) -> None:
    """Raise UsageError for a baseline that begins with random weights where nothing is trained."""
    for model in models:
        model_type = model_type_of(model)
        if model_type.is_pretrained:
            continue
        setup = "" if "mc_mlm" in model_type.trained else " --setup mc_qa"
        raise UsageError(
            f"{model.label} (model.kind {model.kind}) knows nothing before training, and {command} "
            "does not train; train and measure it with `train.py curve --models "
            f"{model.kind}{setup} --probes ...`"
        )


def trained_for(model: ModelSettings, setup: Setup, what: str = "") -> Trained:
    """Return how a model's type is trained for a setup, or refuse it and name a type that can be.

    `what` says in the message why the setup is asked for.
    """
    model_type = model_type_of(model)
    refuse_placed(model)
    if setup in model_type.trained:
        trained_dtype(model.dtype)
        return model_type.trained[setup]
    reads = " and ".join(_READS[known] for known in model_type.trained) or "cannot be trained"
    others = [name for name, other in MODEL_TYPES.items() if setup in other.trained]
    # A baseline for a baseline, if there is one.
    others.sort(key=lambda name: MODEL_TYPES[name].is_baseline != model_type.is_baseline)
    raise UsageError(
        f"model.kind {model.kind} {reads}, but {what or _ITEMS[setup]}; give model.kind {others[0]}"
    )


def refuse_placed(model: ModelSettings) -> None:
    """Raise UsageError for a model that is spread over devices where something is trained."""
    if model.device_map is not None:
        raise UsageError(
            f"model.device_map {model.device_map} is only for models that are not trained, but "
            "this command trains; leave it out"
        )


def check_questions(model: ModelSettings, checkpoint: str | None) -> None:
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


def scorer_for(
    model: ModelSettings,
    setup: Setup,
    seed: int = 0,
    known: KeptModel | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
) -> Scorer:
    """Return the scorer of a model that answers probes of a setup without being trained here.

    Weights are those in `known`, or are read in the precision for the device of `trainer`.
    """
    refuse_untrained([model], "zero-shot scoring")
    _check_unchanged(model.checkpoint, model.revision)
    shared: dict[str, Any] = {}
    if model_type_of(model).has_checkpoint:
        shared["read"] = known.read if known else reader_for(model, trainer)
    model = as_loaded(model)
    scorer: Scorer
    own_scores = ("sum", "mean_token")  # that scorers of continuations have themselves
    scoring = scoring_of(model.checkpoint, model.scoring, setup)
    if model_type_of(model).heads and scoring not in own_scores:
        from probelight.models.continuation_choice import trained_scorer

        scorer = trained_scorer(model, setup, seed, **shared)
    else:
        scorer = module_of(model_type_of(model)).load(model, setup, seed, **shared)
    scorer.kept = known
    return scorer


def _check_unchanged(name: str, revision: str | None = None) -> None:
    """Refuse a model that a finished run kept, and has changed since, or one below an adapter."""
    base, _, adapters = base_of(name, revision)
    for path in (Path(base), *adapters):
        check_model(path)


def as_loaded(model: ModelSettings) -> ModelSettings:
    """Return the settings of a model with an adapter as those of one checkpoint with both."""
    if model.adapter is None:
        return model
    return replace(model, name=model.label, name_or_path=model.checkpoint, adapter=None)


def reader_for(model: ModelSettings, trainer: TrainerSettings) -> Reader:
    """Return what loads a model that is scored, for the device that it is scored on."""
    from probelight.models.loading import load_pretrained
    from probelight.models.precision import FLOAT32
    from probelight.protocols.engine.devices import is_on_gpu, single_device

    if model.device_map is not None and single_device(trainer) is None:
        raise UsageError(
            f"model.device_map {model.device_map} spreads a model over the devices of a single "
            "process; leave out --trainer.devices and --trainer.strategy"
        )
    dtype = FLOAT32 if model.dtype == AUTO and not is_on_gpu(trainer) else model.dtype
    device, places = single_device(trainer), model.device_map
    return partial(load_pretrained, dtype=dtype, device=device, device_map=places, is_scored=True)


@kept(most=1)
def kept_model(context: RunContext, model: ModelSettings, seed: int) -> KeptModel:
    """Return what the jobs of a model share that come one after the other."""
    from probelight.models.kept_model import KeptModel

    return KeptModel(reader_for(model, context.trainer))


@kept(most=1)
def loaded_scorer(context: RunContext, model: ModelSettings, setup: Setup, seed: int = 0) -> Scorer:
    """Return a model's scorer, loaded once for jobs that come one after the other.

    Models that are one but for their adapters are read once too.
    """
    below = replace(model, adapter=None, name=None)
    return scorer_for(model, setup, seed, kept_model(context, below, seed))


def check_scorer(
    model: ModelSettings,
    setup: Setup,
    sets: Iterable[Sequence[Record]],
    refuse: Callable[[Sequence[Record], Sequence[int]], None] | None = None,
) -> None:
    """Refuse a model that cannot answer some records, before hours are spent on others.

    Only its tokenizer and config are read, in a fraction of a second. `refuse` is called with the
    records of each set and the indices of those that can be posed.
    """
    refuse_untrained([model], "zero-shot scoring")
    posable = module_of(model_type_of(model)).check(as_loaded(model), setup)
    for records in sets:
        try:
            kept = posable(records)
            if refuse is not None:
                refuse(records, kept)
        except RecordError as error:
            raise RecordError(f"{model.label}: {error}") from None


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
    if model.random_weights and not model_type_of(model).has_checkpoint:
        raise UsageError(
            f"random_weights is a control for models with a checkpoint; kind {model.kind} has none "
            "and always begins with fresh weights, so leave it out"
        )
    if tuning is not None:
        options |= _tuned(model.kind, tuning)
    model = as_loaded(model)
    settings = {name: getattr(model, name) for name in trained.reads}
    if trained.setup is not None:
        settings["setup"] = trained.setup
    if "name_or_path" in settings:
        settings["model_name_or_path"] = settings.pop("name_or_path")
    if not trained.halves_rate:
        options.pop("monitor", None)
    module: ChoiceModule = resolve_name(trained.made_by)(**settings, **options)
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
    files = tokenizer_files(model_folder(base_of(model.checkpoint, model.revision)[0]))
    return trained + sum(path.stat().st_size for path in files)


def check_module(model: ModelSettings, setup: Setup) -> None:
    """Refuse a model that cannot be trained for a setup, without reading its weights."""
    trained_for(model, setup)
    if model_type_of(model).heads:
        scoring_of(model.checkpoint, model.scoring, setup)  # that they agree
    if model_type_of(model).has_checkpoint:
        from probelight.models.loading import check_pretrained

        form = module_of(model_type_of(model)).FORMS[setup]
        dtype = trained_dtype(model.dtype)
        check_pretrained(form, model.checkpoint, model.revision, model.random_weights, dtype)


def check_files(model: ModelSettings) -> None:
    """Refuse a model for questions that is not there; of a folder nothing heavy is imported."""
    if not model_type_of(model).has_checkpoint:
        path = located(model.vectors)[0]
        if not vectors_kind(model.vectors)[0] and not path.is_file():
            raise UsageError(f"model.vectors {path}: there is no such file")
        return
    base, _, adapters = base_of(model.checkpoint, model.revision)
    folder = Path(resolve(base))
    if not folder.is_dir():
        check_module(model, "mc_qa")
        return
    check_config(folder)
    if not any(map(tokenizer_files, adapters)):
        check_tokenizer_files(folder)
    if model_type_of(model).heads:
        scoring_of(model.checkpoint, model.scoring, "mc_qa")  # that they agree
    if not model.random_weights:
        check_weights(folder)


def saved_module(
    folder: str | Path,
    *,
    monitor: str | None = None,
    dtype: WeightsDtype = AUTO,
    tuning: Tuning | None = None,
    seed: int = 0,
    **overrides: Any,
) -> ChoiceModule:
    """Return the module that a folder holds, whichever type wrote it; transformers' own among them.

    `monitor` is the metric that halves a baseline's rate when it stops rising; `dtype` is that of a
    model with a checkpoint, as where it is trained; `tuning` says which of its weights are trained,
    and `seed` is that of a new adapter.
    """
    _check_unchanged(str(folder))
    kind = saved_model_type(folder)
    model_type = MODEL_TYPES[kind]
    if tuning is not None:
        overrides |= _tuned(kind, tuning)
        overrides |= {} if tuning == FULL_TUNING else {"seed": seed}
    trained = model_type.trained.get("mc_qa") or model_type.trained["mc_mlm"]
    if model_type.has_checkpoint:
        overrides["dtype"] = dtype
    if trained.halves_rate:
        overrides["monitor"] = monitor
    module: ChoiceModule = resolve_name(trained.made_by).from_folder(folder, **overrides)
    return module


def continuation_options(model: ModelSettings) -> dict[str, Any]:
    """Return what a causal or encoder-decoder model in a folder is told, besides what it holds."""
    if not model_type_of(model).heads:
        return {}
    names = ("scoring", "head", "max_length", "answer_prefix")
    return {name: getattr(model, name) for name in names}


def source_of(model: ModelSettings) -> ModelSource:
    """Return where a model comes from, for its result.json."""
    name, model_type = model.name_or_path, model_type_of(model)
    has_vectors = model_type.is_baseline
    at = f"@{model.revision}" if model.revision else ""
    is_local = model_folder(name).exists()
    on_hub = model_type.has_checkpoint and not (model.random_weights or is_local or model.adapter)
    with_adapter = f"+{model.adapter}" if model.adapter else ""
    return ModelSource(
        loaded_from=model.vectors if has_vectors else f"{name}{at}{with_adapter}",
        hub_id=name if on_hub else None,
        revision=model.revision,
        vectors=vectors_label(model.vectors) if has_vectors else "",
        control_of=replace(model, random_weights=False).label if model.random_weights else "",
    )
