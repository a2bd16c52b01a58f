"""The jobs of a curve: one a (mode, N) of heads, or one a (N, control, seed) of whole networks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from probelight.lightning_modules.modes import HeadMode
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.full import FullPoint, full_points
from probelight.protocols.curve.settings import FULL, PROTOCOL, UNTRAINED
from probelight.protocols.curve.stage import PROTOCOL as FIRST_STAGE
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.jobs.job import Job

RUNNER = "probelight.protocols.curve.runs:run_job"
_DRAWN = "drawn from each seed"


def curve_jobs(curve: Curve) -> list[Job]:
    """The jobs of a curve, the small points first; none where the model cannot answer the probe."""
    if curve.modes == [FULL]:
        settings = curve.settings
        points = full_points(curve.sizes, settings.controls, settings.seeds)
        stages = {control: _stage_job(curve, control) for control in settings.controls}
        learned = {job.key: job for job in stages.values() if job is not None}
        own = [_full_job(curve, point, stages[point.control]) for point in points]
        return [*learned.values(), *own]
    modes = [mode for mode in curve.modes if mode != FULL]
    if modes and kind_of(curve.model).heads:
        trained = [_frozen_job(curve, mode, size) for mode in modes for size in curve.sizes]
        return [_untrained_job(curve), *trained]
    return [_frozen_job(curve, mode, size) for mode in modes for size in (0, *curve.sizes)]


def _untrained_job(curve: Curve) -> Job:
    """N = 0 of both modes, where the heads do not begin with what the model itself says."""
    config = {
        **_common(curve),
        "mode": UNTRAINED,
        "num_train": 0,
        "controls": curve.settings.controls,
        "precision": curve.context.trainer.precision,
    }
    if curve.model.random_weights:
        config |= {"weights": _DRAWN, "seeds": curve.settings.seeds}
    name = f"curve-{curve.data.config.name}-{UNTRAINED}-0-{curve.model.label}"
    return Job(name, config, RUNNER)


def _frozen_job(curve: Curve, mode: HeadMode, size: int) -> Job:
    model, settings = curve.model, curve.settings
    config = {
        **_common(curve),
        "mode": mode,
        "num_train": size,
        "seeds": settings.seeds,
        "controls": settings.controls,
    }
    if kind_of(model).is_pretrained:
        config |= asdict(settings.head_fit(mode))
    else:
        config["fit"] = asdict(curve.fit)
    if model.random_weights:
        config["weights"] = _DRAWN
    name = f"curve-{curve.data.config.name}-{mode}-{size}-{model.label}"
    return Job(name, config, RUNNER)


def _full_job(curve: Curve, point: FullPoint, stage_job: Job | None) -> Job:
    config = {
        **_common(curve),
        **asdict(point),
        "mode": FULL,
        "fit": asdict(curve.fit),
        "precision": curve.context.trainer.precision,
    }
    needs: tuple[str, ...] = ()
    if stage_job is not None:
        needs = (stage_job.key,)
        said = stage_job.config
        config["first_stage"] = {
            "facts": said["data"],
            "control": said["control"],
            "seed": said["seed"],
            "run": stage_job.key,
        }
    name = f"curve-{curve.data.config.name}-{point.name}-{curve.model.label}"
    return Job(name, config, RUNNER, needs)


def _stage_job(curve: Curve, control: str) -> Job | None:
    """What a model learns before the points of a control; one job a model."""
    stage = curve.stage
    if stage is None:
        return None
    name, own = stage.facts.config.name, stage.control_of(control)
    config = {
        "protocol": FIRST_STAGE,
        "model": curve.model.config(),
        "facts": name,
        "control": own,
        "seed": stage.seed,
        "fit": asdict(stage.settings),
        "precision": curve.context.trainer.precision,
        "data": [file.sha256 for file in stage.facts.files],
        "curve": curve.config(),
    }
    return Job(f"first-stage-{name}-{own}-{curve.model.label}", config, RUNNER)


def _common(curve: Curve) -> dict[str, Any]:
    data = curve.data
    return {
        "protocol": PROTOCOL,
        "model": curve.model.config(),
        "probe": data.config.name,
        "setup": data.setup,
        "train": data.train_said,
        "split": data.split,
        "nonsense": dict(data.nonsense),
        "substitutes": dict(data.substitutes) if data.config.key_words else {},
        "arguments": dict(data.config.arguments),
        "group_by": data.config.group_by,
        "data": [file.sha256 for part in data.files for file in part.files],
        # Other models of the command can have left rows out.
        "rows": [len(data.train), len(data.evaluation)],
        "curve": curve.config(),
    }
