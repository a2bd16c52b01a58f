"""MC-QA points of a curve: the whole network is fine-tuned, one resumable run a point.

A point is one (N, control, seed). Its head is drawn anew from its seed; the last epoch is reported,
unless `patience` stops the training on held-out rows and chooses the epoch.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probelight.lightning_modules.heads.cached_heads import sample_orders
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.controls import STANDARD
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.rows import Measurement, Point, finish_run
from probelight.protocols.curve.settings import FULL, PROTOCOL
from probelight.protocols.engine.direct import Direct, fit_directly
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.settings import FitSettings
from probelight.results.record import CurveFacts, RunRecord
from probelight.results.run_folder import RunFolder


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
    direct = Direct(model, settings, point.seed, start, f"N = {point.size}")
    trained = fit_directly(run, direct, sample, held_out, curve.context)
    module, epoch = trained.module, trained.epoch
    sets = {"sample": sample, "evaluation": evaluation}
    said = predict(TrainedScorer(module), sets, curve.context.trainer)
    stopping = early_stopping(data, settings, [epoch])
    notices = dict.fromkeys([*trained.notices, *said["evaluation"].notices])
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
