"""What each job of a curve does: heads on a frozen encoder, the whole network, or a first stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import torch

from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.heads.feature_head import FrozenFeatures
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.full import FullPoint, early_stopping, run_point
from probelight.protocols.curve.probe import CurveProbe, Frozen, candidate_words
from probelight.protocols.curve.rows import Measurement, Point, by_seed, finish_run
from probelight.protocols.curve.settings import FULL, PROTOCOL, UNTRAINED
from probelight.protocols.curve.stage import PROTOCOL as FIRST_STAGE
from probelight.protocols.curve.stage import train_facts
from probelight.protocols.curve.untrained import frozen_scorer, score_untrained
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.provenance import check_data
from probelight.results.record import CurveFacts, RunRecord
from probelight.results.run_folder import RunFolder


def run_job(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes one run of a curve, or goes on with it.

    Raises:
        UsageError: If the data is another one than when the run was planned.
    """
    curve = Curve.of(config, context)
    if config["protocol"] == FIRST_STAGE:
        stage = curve.stage
        assert stage is not None
        check_data(config["data"], [stage.facts])
        train_facts(run, curve.model, stage, config["control"], context)
        return
    check_data(config["data"], curve.data.files)
    if config["mode"] == FULL:
        point = FullPoint(**{field.name: config[field.name] for field in fields(FullPoint)})
        stage_run = config.get("first_stage", {}).get("run")
        start = RunFolder.at(run.path.parent / stage_run).best_dir if stage_run else None
        run_point(run, curve, point, start)
    elif config["mode"] == UNTRAINED:
        score_untrained(run, curve)
    else:
        _run_heads(run, curve, config["mode"], config["num_train"])


def _run_heads(run: RunFolder, curve: Curve, mode: Any, size: int) -> None:
    """Trains all seeds and controls of a (mode, N) together and measures them."""
    start = time.perf_counter()
    key = (curve.probe, curve.model, curve.asked)
    # All points of a curve are trained on the same features.
    probe = curve.context.remembered("curve features", key, lambda: _encoded(curve))
    measured = probe.point(mode, size)
    stopping = _stopping(curve, measured) if size else None
    made = RunRecord(
        protocol=PROTOCOL,
        notices=tuple(probe.notices),
        model_sha256=next(iter(probe.fingerprints.values())),
        seconds=round(time.perf_counter() - start, 3),
        curve=CurveFacts(early_stopping=stopping, sha256_by_seed=by_seed(probe.fingerprints)),
    )
    rate = _rate(curve, mode) if size else None
    point = Point(curve.model, mode, size, rate, with_levels=size == 0)
    finish_run(run, curve.rows, point, measured, made)


def _encoded(curve: Curve) -> CurveProbe:
    model, context, settings = curve.model, curve.context, curve.settings
    first = settings.seeds[0]
    draw: Callable[[int], Frozen] = partial(_drawn, model, context.trainer)
    module: Frozen
    if kind_of(model).heads:
        draw = partial(_features, curve, candidate_words(curve.rows, settings))
        module = draw(first)
    else:
        # The next probe of the model is read with the same weights.
        module = context.remembered("frozen module", (model, first), lambda: draw(first))
    redraw = draw if model.random_weights else None
    return CurveProbe(module, curve.rows, settings, context.trainer, model.kind, redraw)


def _features(curve: Curve, words: Sequence[str], seed: int) -> FrozenFeatures:
    """The features of a scorer, its random weights drawn from a seed where it has some."""
    scorer = frozen_scorer(curve, seed).to(device_of(curve.context.trainer))
    return FrozenFeatures(scorer, words)


def _drawn(model: ModelSettings, trainer: TrainerSettings, seed: int) -> ChoiceModule:
    """The module, its random weights drawn from a seed where it has some."""
    return module_for(model, "mc_mlm", mode="mlp", seed=seed).to(device_of(trainer))


def _rate(curve: Curve, mode: Any) -> float:
    if kind_of(curve.model).is_pretrained:
        return curve.settings.head_fit(mode).learning_rate
    return curve.fit.learning_rate


def _stopping(curve: Curve, measured: Sequence[Measurement]) -> str | None:
    if kind_of(curve.model).is_pretrained:
        return None
    return early_stopping(curve.rows, curve.fit, [one.epoch for one in measured])


def device_of(trainer: TrainerSettings) -> torch.device:
    """Where a frozen encoder and its heads run: one GPU if there is one, or the processor."""
    on_gpu = trainer.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available()
    return torch.device("cuda" if on_gpu else "cpu")
