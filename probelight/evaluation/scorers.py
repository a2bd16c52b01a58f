"""What answers without being trained: how it is loaded, and asked by one process or several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from probelight.encoding.word_vectors import vectors_label
from probelight.io.errors import RecordError, UsageError
from probelight.io.package import cache_folder
from probelight.io.process import STOP
from probelight.models import gguf
from probelight.models.checkpoint_files import scoring_of
from probelight.models.registry import AUTO, ModelSettings, module_of
from probelight.probes.record import Record, Setup
from probelight.results.measured import Predictions
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Role, Row
from probelight.runs.context import RunContext, cached
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings

if TYPE_CHECKING:
    import torch

    from probelight.models.answering import ItemScores
    from probelight.models.kept_model import KeptModel
    from probelight.models.scorer import Posable, Question, Reader, Scorer

Sets = Mapping[str, Sequence[Record]]


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
    from probelight.training.modules import check_unchanged  # not above: --help is quick

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
    scorer.kept_model, scorer.label = shared_model, model.label
    return scorer


def reader_for(model: ModelSettings, trainer: TrainerSettings) -> Reader:
    """Return what loads a model that is scored, for the device that it is scored on."""
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
    from probelight.io.progress import progress_of  # not above: --help is quick

    base_model = replace(model, adapter=None, name=None)
    with progress_of(enabled=context.trainer.progress_bar) as bar:
        bar.add_task(f"loading {model.label}", total=None, visible=False)
        return scorer_for(model, setup, seed, kept_model(context, base_model, seed))


@cached(most=1)
def posable(context: RunContext, model: ModelSettings, setup: Setup) -> Posable:
    """Return what refuses records that a model cannot be asked; its tokenizer is read once."""
    refuse_untrained([model], "zero-shot scoring")
    checked: Posable = module_of(model.type).check(model, setup)
    return checked


def check_records(
    context: RunContext,
    model: ModelSettings,
    setup: Setup,
    sets: Iterable[Sequence[Record]] = (),
    refuse: Callable[[Sequence[Record], Sequence[int]], None] | None = None,
) -> None:
    """Refuse a model that cannot answer some records, before hours are spent on others.

    Only its tokenizer and config are read, in a fraction of a second. `refuse` is called with the
    records of each set and the indices of those that can be posed.
    """
    positions = posable(context, model, setup)
    try:
        for records in sets:
            indices = positions(records)
            if refuse is not None:
                refuse(records, indices)
    except RecordError as error:
        raise RecordError(f"{model.label}: {error}") from None


def answered_by(record: RunRecord, model: ModelSettings, scorer: Scorer) -> RunRecord:
    """Return the record of a run with where its model comes from, and its weights."""
    tokenizer = getattr(scorer.choice_scores().encoder, "tokenizer", None)
    source = replace(source_of(model), tokenizer_sha256=vocabulary_sha256(tokenizer))
    notices = record.notices
    if source.quantisation:
        notices += (f"{model.label}: weights dequantised from {source.quantisation}",)
    return replace(
        record,
        source=source,
        dtype=scorer.dtype,
        model_sha256=scorer.fingerprint(),
        notices=notices,
    )


@lru_cache(maxsize=2)
def vocabulary_sha256(tokenizer: Any) -> str:
    """Return the checksum of a tokenizer's vocabulary; empty without one."""
    if not hasattr(tokenizer, "get_vocab"):
        return ""
    return sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def source_of(model: ModelSettings) -> ModelSource:
    """Return where a model comes from, for its result.json."""
    ref, model_type = model.checkpoint, model.type
    has_vectors = model_type.is_baseline
    file = None if has_vectors or ref.in_memory else gguf.file_of(ref.name)
    described = gguf.described(file) if file else None
    is_plain = not (ref.random_weights or ref.adapter or ref.in_memory or ref.folder.exists())
    return ModelSource(
        loaded_from=model.vectors if has_vectors else str(ref),
        hub_id=ref.name if model_type.has_checkpoint and is_plain else None,
        revision=model.revision,
        vectors=vectors_label(model.vectors) if has_vectors else "",
        control_of=replace(model, random_weights=False).label if model.random_weights else "",
        quantisation=described.quantisation if described else "",
        file_sha256=described.sha256 if described else "",
    )


def model_row(model: ModelSettings) -> Row:
    """Return the columns of results.csv that say which model was measured.

    With random weights it is a control.
    """
    role: Role = "control" if model.random_weights else "model"
    if model.type.is_baseline:
        role = "baseline"
    return Row(model=model.label, role=role, kind=model.kind)


def single_device(settings: TrainerSettings) -> torch.device | None:
    """Return the device on which this process answers alone; None where Lightning is needed.

    Lightning is for several processes, for other strategies and precisions, and to refuse what this
    machine does not have.
    """
    import torch

    from probelight.models.answering import PRECISIONS

    is_plain = settings.devices == 1 and settings.strategy == "auto"
    if not is_plain or settings.precision not in PRECISIONS:
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None
    if settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available():
        return torch.device("cuda", 0)
    if settings.accelerator in {"auto", "gpu", "mps"} and torch.backends.mps.is_available():
        return torch.device("mps", 0) if PRECISIONS[settings.precision] is None else None
    return torch.device("cpu") if settings.accelerator in {"auto", "cpu"} else None


def is_on_gpu(settings: TrainerSettings) -> bool:
    """Return whether a GPU answers, in this process or in several."""
    import torch

    if (device := single_device(settings)) is not None:
        return device.type != "cpu"
    return settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available()


def predict(scorer: Scorer, sets: Sets, settings: TrainerSettings) -> dict[str, Predictions]:
    """Score every record of every set; the same for any batch size and number of processes."""
    return ask(scorer, scorer.choice_scores(), sets, settings)


def ask(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    *,
    originals: Sets | None = None,
    device: torch.device | None = None,
) -> dict[str, Predictions]:
    """Score every record of every set by a question that gives one number per choice.

    Records that the question cannot take get the log-likelihoods of their choices instead, if they
    are to be scored by their pieces.

    Args:
        scorer: The model.
        question: One of its own.
        sets: The records that it reads, by the name of their set.
        settings: How it is run.
        originals: The records that the predictions are of, where those of `sets` are prompts.
        device: Where the model is and answers, alone; by default what the settings say.
    """
    from probelight.models.answering import with_pieces

    def answers(question: Question, sets: Sets, exactly: bool) -> dict[str, ItemScores]:
        trainer = replace(settings, precision="32-true") if exactly else settings
        return _answers(scorer, question, sets, trainer, device=device)

    scores_by_set = with_pieces(scorer, question, sets, answers)
    records_by_set = originals or sets
    return {
        name: Predictions.of(
            name, records_by_set[name], scored.scores, scored.notices, scored.num_rescored
        )
        for name, scored in scores_by_set.items()
    }


def ask_about(
    scorer: Scorer, question: Question, records: Sequence[Record], settings: TrainerSettings
) -> tuple[dict[int, list[float]], tuple[str, ...]]:
    """Return a question's numbers for each record, by its index, and the notices.

    Unlike those of `ask` they need not be one per choice.
    """
    contexts = {"contexts": records}
    item_scores = _answers(scorer, question, contexts, settings, per_choice=False)["contexts"]
    return item_scores.scores, (*item_scores.notices, *scorer.notices)


def _answers(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    *,
    per_choice: bool = True,
    device: torch.device | None = None,
) -> dict[str, ItemScores]:
    import torch

    from probelight.models.answering import answer, float32_products
    from probelight.models.networks import is_spread

    if settings.strategy.startswith("fsdp"):
        # Without an optimiser the model fits on a device. FSDP would leave a part of it behind.
        settings = replace(settings, strategy="auto")
    is_there = device is not None or scorer.kept_model is not None
    device = device or single_device(settings)
    if device is None:
        return _answers_of_processes(scorer, question, sets, settings, per_choice)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if scorer.kept_model is not None and not is_spread(scorer.network):  # for the next job
        scorer.network.to(device)
    precisions = settings.precision, settings.matmul_precision
    with STOP.during_command(), float32_products(device, *precisions):
        return answer(
            scorer,
            sets,
            question,
            per_choice=per_choice,
            device=None if is_there else device,
            precision=settings.precision,
            max_tokens=settings.max_eval_tokens,
            num_workers=settings.num_workers,
            cache_dir=cache_folder(),
            progress=settings.progress_bar,
        )


def _answers_of_processes(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    per_choice: bool,
) -> dict[str, ItemScores]:
    """Answer by Lightning's predict loop; every process gets the scores of all."""
    from probelight.callbacks.last_state import stoppable
    from probelight.datamodules.choices import ChoiceDataModule
    from probelight.lightning_modules.scoring import ScorerModule
    from probelight.models.answering import ItemScores, float32_products, gather_scores
    from probelight.training.fit import make_trainer

    data = ChoiceDataModule(
        train=None,
        evaluation=dict(sets),
        max_eval_tokens=settings.max_eval_tokens,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
    )
    trainer = make_trainer(settings, logger=False, enable_checkpointing=False)
    module = ScorerModule(scorer, question, per_choice)
    precisions = settings.precision, settings.matmul_precision
    with stoppable(), float32_products(trainer.strategy.root_device, *precisions):
        trainer.predict(module, datamodule=data)
    scores_by_set = {}
    for index, name in enumerate(sets):
        scores = gather_scores(module.answers[index].by_item())
        encoded = data.evaluation_sets[name]
        scores_by_set[name] = ItemScores(scores, encoded.notices, tuple(encoded.needs_pll))
    return scores_by_set
