"""What answers without being trained here, loaded from the settings of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from probelight.encoding.word_vectors import vectors_label
from probelight.io.errors import RecordError, UsageError
from probelight.models.checkpoint_files import scoring_of
from probelight.models.registry import AUTO, ModelSettings, module_of
from probelight.probes.record import Record, Setup
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Role, Row
from probelight.runs.context import RunContext, cached
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings
from probelight.training.modules import check_unchanged

if TYPE_CHECKING:
    from probelight.models.kept_model import KeptModel
    from probelight.models.scorer import Posable, Reader, Scorer


def refuse_untrained(models: Iterable[ModelSettings], command: str) -> None:
    """Raise UsageError for a baseline that begins with random weights where nothing is trained."""
    for model in models:
        model_type = model.type
        if model_type.is_pretrained:
            continue
        setup = "" if "mc_mlm" in model_type.trained else " --setup mc_qa"
        raise UsageError(
            f"{model.label} (model.kind {model.kind}) knows nothing before training, and {command} "
            "does not train; train and measure it with `train.py curve --models "
            f"{model.kind}{setup} --probes ...`"
        )


def scorer_for(
    model: ModelSettings,
    setup: Setup,
    seed: int = 0,
    shared_model: KeptModel | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
) -> Scorer:
    """Return the scorer of a model that answers probes of a setup without being trained here.

    Weights are those in `shared_model`, or are read in the precision for the device of `trainer`.
    """
    refuse_untrained([model], "zero-shot scoring")
    check_unchanged(model.checkpoint)
    options: dict[str, Any] = {}
    if model.type.has_checkpoint:
        options["read"] = shared_model.read if shared_model else reader_for(model, trainer)
    scorer: Scorer
    own_scores = ("sum", "mean_token")  # that scorers of continuations have themselves
    scoring = scoring_of(model.checkpoint, model.scoring, setup)
    if model.type.heads and scoring not in own_scores:
        from probelight.models.continuation_choice import trained_scorer

        scorer = trained_scorer(model, setup, seed, **options)
    else:
        scorer = module_of(model.type).load(model, setup, seed, **options)
    scorer.kept_model = shared_model
    return scorer


def reader_for(model: ModelSettings, trainer: TrainerSettings) -> Reader:
    """Return what loads a model that is scored, for the device that it is scored on."""
    from probelight.evaluation.devices import is_on_gpu, single_device
    from probelight.models.loading import load_pretrained
    from probelight.models.networks import FLOAT32

    if model.device_map is not None and single_device(trainer) is None:
        raise UsageError(
            f"model.device_map {model.device_map} spreads a model over the devices of a single "
            "process; leave out --trainer.devices and --trainer.strategy"
        )
    dtype = FLOAT32 if model.dtype == AUTO and not is_on_gpu(trainer) else model.dtype
    device, device_map = single_device(trainer), model.device_map
    return partial(
        load_pretrained, dtype=dtype, device=device, device_map=device_map, is_scored=True
    )


@cached(most=1)
def kept_model(context: RunContext, model: ModelSettings, seed: int) -> KeptModel:
    """Return what the jobs of a model share that come one after the other."""
    from probelight.models.kept_model import KeptModel

    return KeptModel(reader_for(model, context.trainer))


@cached(most=1)
def loaded_scorer(context: RunContext, model: ModelSettings, setup: Setup, seed: int = 0) -> Scorer:
    """Return a model's scorer, loaded once for jobs that come one after the other.

    Models that are one but for their adapters are read once too.
    """
    base_model = replace(model, adapter=None, name=None)
    return scorer_for(model, setup, seed, kept_model(context, base_model, seed))


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
    posable = module_of(model.type).check(model, setup)
    for records in sets:
        try:
            positions = posable(records)
            if refuse is not None:
                refuse(records, positions)
        except RecordError as error:
            raise RecordError(f"{model.label}: {error}") from None


@cached(most=1)
def posable(context: RunContext, model: ModelSettings, setup: Setup) -> Posable:
    """Return what refuses records that a model cannot be asked; its tokenizer is read once."""
    refuse_untrained([model], "zero-shot scoring")
    checked: Posable = module_of(model.type).check(model, setup)
    return checked


def check_records(
    context: RunContext, model: ModelSettings, setup: Setup, records: Sequence[Record]
) -> None:
    """Refuse a model that cannot answer some records; only its tokenizer and config are read."""
    try:
        posable(context, model, setup)(records)
    except RecordError as error:
        raise RecordError(f"{model.label}: {error}") from None


def answered_by(record: RunRecord, model: ModelSettings, scorer: Scorer) -> RunRecord:
    """Return the record of a run with where its model comes from, and its weights."""
    source, sha256 = source_of(model), scorer.fingerprint()
    return replace(record, source=source, dtype=scorer.dtype, model_sha256=sha256)


def source_of(model: ModelSettings) -> ModelSource:
    """Return where a model comes from, for its result.json."""
    ref, model_type = model.checkpoint, model.type
    has_vectors = model_type.is_baseline
    is_plain = not (ref.random_weights or ref.adapter or ref.in_memory or ref.folder.exists())
    return ModelSource(
        loaded_from=model.vectors if has_vectors else str(ref),
        hub_id=ref.name if model_type.has_checkpoint and is_plain else None,
        revision=model.revision,
        vectors=vectors_label(model.vectors) if has_vectors else "",
        control_of=replace(model, random_weights=False).label if model.random_weights else "",
    )


def model_row(model: ModelSettings) -> Row:
    """Return the columns of results.csv that say which model was measured.

    With random weights it is a control.
    """
    role: Role = "control" if model.random_weights else "model"
    if model.type.is_baseline:
        role = "baseline"
    return Row(model=model.label, role=role, kind=model.kind)
