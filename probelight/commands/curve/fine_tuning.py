"""Points of a curve at which the whole network is fine-tuned, and the first stage before them.

A point is one (N, control, seed). Its head is drawn anew from its seed; the last epoch is reported,
unless `patience` stops the training on held-out rows and chooses the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probelight.callbacks.aggregate_checkpoint import FinalCheckpoint
from probelight.commands.curve.curve import Curve, FirstStage
from probelight.commands.curve.data import CurveData
from probelight.commands.curve.rows import Measurement, next_size, portions, write_point
from probelight.commands.curve.settings import FIRST_STAGE
from probelight.evaluation.scorers import model_row, predict, source_of
from probelight.lightning_modules.heads.head_training import sample_of, sample_orders
from probelight.models.networks import dtype_name, model_fingerprint
from probelight.models.registry import FULL, ModelSettings
from probelight.models.scorer import TrainedScorer
from probelight.probes.record import Record, groups_of
from probelight.results.measured import grouped_row
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import MemoryNeed
from probelight.training.direct import HELD_OUT_SET, Direct, fit_directly, fresh_module
from probelight.training.fit import FitPlan, fit_choices, planned_memory
from probelight.training.modules import module_for, saved_module


def train_facts(
    run: RunFolder, model: ModelSettings, stage: FirstStage, control: str, context: RunContext
) -> RunRecord:
    """Train a model on the facts under a control, and keep it."""
    settings, config = stage.settings, stage.facts.config
    rows = CurveData(
        config, config, "mc_qa", stage.facts.records, (), "train", "all facts", (stage.facts,)
    )
    facts = rows.controlled(control, rows.train, config)
    module = module_for(
        model,
        "mc_qa",
        learning_rate=settings.learning_rate,
        seed=stage.seed,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        tuning=settings.tuning,
    )
    keep = FinalCheckpoint(run.best_dir, always=True)
    plan = FitPlan(settings, stage.seed, [keep], f"{config.name}: facts")
    fit_notices, encoding_notices = fit_choices(module, facts, {}, run, plan, context)
    module = saved_module(run.best_dir, dtype=model.dtype)
    predictions = predict(TrainedScorer(module), {"facts": facts}, context.trainer)["facts"]
    row = replace(
        model_row(model),
        protocol=FIRST_STAGE,
        probe=config.name,
        control=control,
        mode="full",
        num_train=len(predictions.records),
        learning_rate=settings.learning_rate,
        epoch=settings.epochs,
        seed=stage.seed,
        metric="train_accuracy",
    )
    groups = groups_of(predictions.records, config.group_by)
    return RunRecord.of(
        row,
        [grouped_row(predictions.item_scores, groups, row)],
        [stage.facts],
        notices=(*fit_notices, *encoding_notices, *stage.facts.notices),
        counts={"train": len(facts)},
        seeds=(stage.seed,),
        source=source_of(model),
        dtype=dtype_name(module),
        num_rescored=predictions.num_rescored,
        model_sha256=model_fingerprint(module),
    )


def fitted_rows(
    curve: Curve, size: int, control: str, seed: int
) -> tuple[list[Record], Sequence[Record]]:
    """Return the rows that a point is trained on, and those that patience watches."""
    data = curve.rows
    train, _ = data.under(control)
    indices = sample_orders(len(train), size, 1, seed)[0]
    held_out = data.controlled(control, data.held_out, data.train_config)
    return [train[index] for index in indices], held_out


def memory_of(curve: Curve, size: int, control: str, seed: int) -> MemoryNeed:
    """Return what training a point will take of memory."""
    direct = Direct(curve.model, curve.fit, seed, setup=curve.data.setup)
    sample, held_out = fitted_rows(curve, size, control, seed)
    return planned_memory(
        lambda: fresh_module(direct),
        sample,
        {HELD_OUT_SET: held_out} if held_out else {},
        FitPlan(curve.fit, seed),
        curve.context.trainer,
    )


def train_point(
    run: RunFolder,
    curve: Curve,
    size: int,
    control: str,
    seed: int,
    with_levels: bool,
    start: Path | None,
) -> RunRecord:
    """Train and measure one point, resuming where an interrupted start of it was.

    With `with_levels` it is the point that gives chance and the majority's accuracy. `start` is the
    folder of the model that a first stage left; None begins with the pre-trained one.
    """
    model, data, settings = curve.model, curve.rows, curve.fit
    train, evaluation = data.under(control)
    sample, held_out = fitted_rows(curve, size, control, seed)
    next_indices = sample_of(len(train), next_size(data.sizes, size), seed)
    next_sample = [train[index] for index in next_indices]
    direct = Direct(model, settings, seed, start, f"N = {size}", data.setup)
    trained = fit_directly(run, direct, sample, held_out, curve.context)
    sets = {"sample": sample, "evaluation": evaluation}
    if next_sample[size:]:
        sets["added"] = next_sample[size:]
    predicted = predict(TrainedScorer(trained.module), sets, curve.context.trainer)
    predictions = replace(predicted["evaluation"], name=f"{control}-seed{seed}")
    added_scores = predicted["added"].scores if "added" in predicted else ()
    code = portions(data.sizes, size, next_sample, added_scores)
    measured = Measurement(control, seed, trained.epoch, predictions, predicted["sample"], code)
    return write_point(
        run,
        data,
        model,
        [measured],
        mode=FULL,
        size=size,
        dtype=dtype_name(trained.module),
        fingerprints={seed: model_fingerprint(trained.module)},
        fit=settings,
        notices=dict.fromkeys([*trained.notices, *predictions.notices]),
        with_levels=with_levels,
        first_stage=start is not None,
    )
