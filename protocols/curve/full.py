"""MC-QA points of a curve: the whole network is fine-tuned, one resumable run a point.

A point is one (N, control, seed). Its head is drawn anew from its seed; the last epoch is reported,
unless `patience` stops the training on held-out rows and chooses the epoch.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytorch_lightning.callbacks import Callback

from callbacks.aggregate_checkpoint import HELD_OUT, AggregateCheckpoint
from callbacks.learning_curve import LearningCurve
from callbacks.patience import Patience
from lightning_modules.base import ChoiceModule
from lightning_modules.checkpoints.weights import model_fingerprint
from lightning_modules.heads.cached_heads import sample_orders
from lightning_modules.scorers.trained import TrainedScorer
from probes.controls import STANDARD
from probes.record import Record
from protocols.curve.curve import Curve
from protocols.curve.data import CurveData
from protocols.curve.rows import Measurement, Point, finish_run
from protocols.curve.settings import FULL, PROTOCOL
from protocols.engine.evaluation import predict
from protocols.engine.models import module_for, saved_module
from protocols.engine.settings import FitSettings, ModelSettings
from protocols.engine.training import FitPlan, fit_choices
from results.record import CurveFacts, RunRecord
from results.run_folder import RunFolder

HELD_OUT_SET = "held_out"  # so that its accuracy is logged as `HELD_OUT`


@dataclass(frozen=True)
class FullPoint:
    """One point of an MC-QA curve.

    Attributes:
        size: N.
        control: Version of the probe trained on and measured with.
        seed: Seeds sample, order, dropout and head.
        with_levels: Whether this is the point that gives chance and the majority's accuracy.
    """

    size: int
    control: str
    seed: int
    with_levels: bool

    @property
    def name(self) -> str:
        """Its part of the run's name."""
        return f"{FULL}-{self.size}-{self.control}-{self.seed}"


def full_points(
    sizes: Sequence[int], controls: Sequence[str], seeds: Sequence[int]
) -> list[FullPoint]:
    """All points of a curve, the small ones first."""
    found = [(size, control, seed) for size in sizes for control in controls for seed in seeds]
    first = next((point for point in found if point[1] == STANDARD), None)
    return [FullPoint(*point, with_levels=point == first) for point in found]


def run_point(run: RunFolder, curve: Curve, point: FullPoint, start: Path | None) -> None:
    """Trains and measures one point, going on where an interrupted start of it was.

    Args:
        run: The point's folder; its training states are removed when it is finished.
        curve: Its curve.
        point: The point.
        start: Folder of the model that a first stage left; None begins with the pre-trained one.
    """
    began = time.perf_counter()
    model, data, settings, control = curve.model, curve.rows, curve.fit, point.control
    train, evaluation = data.under(control)
    chosen = sample_orders(len(train), point.size, 1, point.seed)[0]
    sample = [train[place] for place in chosen]
    held_out = data.controlled(control, data.held_out, data.train_config)
    module = fresh_module(model, settings, point.seed, start)
    rows = {"sample": sample, HELD_OUT_SET: held_out}
    module, epoch, problems = _trained(run, module, rows, curve, point)
    sets = {"sample": sample, "evaluation": evaluation}
    said = predict(TrainedScorer(module), sets, curve.context.trainer)
    stopping = early_stopping(data, settings, [epoch])
    notices = dict.fromkeys([*problems, *said["sample"].notices, *said["evaluation"].notices])
    name = f"{control}-seed{point.seed}"
    one = Measurement(
        control, point.seed, epoch, replace(said["evaluation"], name=name), said["sample"]
    )
    made = RunRecord(
        protocol=PROTOCOL,
        notices=tuple(notices),
        model_sha256=model_fingerprint(module),
        seconds=round(time.perf_counter() - began, 3),
        curve=CurveFacts(early_stopping=stopping, first_stage="first_stage" in run.config),
    )
    where = Point(model, FULL, point.size, settings.learning_rate, point.with_levels)
    finish_run(run, data, where, [one], made)
    forget_states(run)


def forget_states(run: RunFolder) -> None:
    """Removes the training states of a finished run: a large model's are gigabytes a point."""
    shutil.rmtree(run.checkpoint_dir, ignore_errors=True)


def fresh_module(
    model: ModelSettings, settings: FitSettings, seed: int, start: Path | None
) -> ChoiceModule:
    """The module that a point's training begins with.

    Args:
        model: The pre-trained model.
        settings: How it is trained.
        seed: Of the fresh head; what a first stage left has a trained one.
        start: Folder of the model that a first stage left, if there was one.
    """
    options: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        # ESIM halves its rate when the held-out accuracy stands still.
        "monitor": HELD_OUT if settings.patience is not None else None,
    }
    if start is not None:
        return saved_module(start, **options)
    return module_for(model, "mc_qa", seed=seed, **options)


def _trained(
    run: RunFolder,
    module: ChoiceModule,
    rows: Mapping[str, Sequence[Record]],
    curve: Curve,
    point: FullPoint,
) -> tuple[ChoiceModule, int, tuple[str, ...]]:
    """The trained module, the epoch that it is of, and what was wrong with states."""
    settings, sample, held_out = curve.fit, rows["sample"], rows[HELD_OUT_SET]
    keep = AggregateCheckpoint(run.best_dir, monitor=HELD_OUT)
    watchers: list[Callback] = []
    if settings.patience is not None:
        watchers = [
            keep,
            Patience(keep, settings.patience),
            LearningCurve(settings.batch_size, len(sample)),
        ]
    plan = FitPlan(settings, point.seed, watchers, f"N = {point.size}")
    watched = {HELD_OUT_SET: held_out} if held_out else {}
    problems = fit_choices(module, sample, watched, run, plan, curve.context)
    if keep.best is None:
        return module, settings.epochs, problems
    return saved_module(run.best_dir), int(keep.best["epoch"]), problems


def early_stopping(data: CurveData, settings: FitSettings, epochs: Sequence[int]) -> str | None:
    """What stopped the training of some runs, whose reported epochs are given; None for nothing."""
    if settings.patience is None or not epochs:
        return None
    first, last = min(epochs), max(epochs)
    which = f"epoch {first}" if first == last else f"an epoch from {first} to {last}"
    return (
        f"patience {settings.patience} on {len(data.held_out)} held-out train rows, whole groups "
        f"that are in no sample; {which} of at most {settings.epochs} is reported"
    )
