"""The curves of several models and probes, checked as a whole before the first is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.progress import track

from jobs.context import RunContext
from jobs.here import run_here
from jobs.job import Job
from protocols.curve.curve import Asked, Curve
from protocols.curve.full import forget_states
from protocols.curve.jobs import curve_jobs
from protocols.curve.probe import refuse_unposed
from protocols.curve.settings import FULL
from protocols.engine.kinds import kind_of
from protocols.engine.models import check_module, check_scorer
from results.run_folder import CommandFolder, RunFolder
from storage.errors import UsageError


def trace_curves(
    folder: CommandFolder, probes: Sequence[str], asked: Asked, context: RunContext
) -> None:
    """Adds the curves of several models and probes to a command's folder.

    Every row is put under every control before anything is computed, and every model is asked
    whether it reads the candidates: what does not fit stops the command at once. results.csv is
    rewritten behind each (model, probe).
    """
    curves = [
        Curve(asked, probe, model, _quiet(context)) for model in asked.models for probe in probes
    ]
    plans = [curve_jobs(curve) for curve in curves]
    setups = {curve.data.setup for curve in curves}
    if asked.options.first_stage and "mc_qa" not in setups:
        raise UsageError("--first_stage: none of the probes is posed as questions; see --setup")
    for curve, plan in zip(curves, plans, strict=True):
        if curve.modes:
            _check(curve, plan, folder)  # said before hours of training
    for curve, plan in zip(curves, plans, strict=True):
        name, label = curve.data.config.name, curve.model.label
        if not curve.modes:
            print(f"{name}: {label} does not answer {curve.data.setup} probes")
            continue
        _trace(curve, plan, folder, f"{name}, {label}", context.trainer.progress_bar)
        folder.write_results()


def _quiet(context: RunContext) -> RunContext:
    """Without a bar for each of many small fits: one shows the points."""
    return replace(context, trainer=replace(context.trainer, progress_bar=False))


def _check(curve: Curve, plan: Sequence[Job], folder: CommandFolder) -> None:
    """Refuses what a model, if anything is missing of it, could not be trained and asked with.

    Raises:
        UsageError: If the probe's groups cannot be divided as early stopping needs it.
        PretrainedError: If the model cannot be loaded.
        RecordError: If it does not know a candidate.
    """
    rows = curve.rows
    missing = any(run.result() is None for run in _runs(plan, folder))
    if not (missing and kind_of(curve.model).has_checkpoint):
        return
    if curve.modes == [FULL]:
        check_module(curve.model, "mc_qa")
    else:
        parts = [part for c in curve.settings.controls for part in rows.under(c)]
        check_scorer(curve.model, "mc_mlm", parts, refuse_unposed)


def _runs(plan: Sequence[Job], folder: CommandFolder) -> list[RunFolder]:
    return [folder.run(job.name, job.config) for job in plan]


def _trace(
    curve: Curve, plan: Sequence[Job], folder: CommandFolder, description: str, shown: bool
) -> None:
    """Makes the runs of a curve that are not there."""
    if curve.modes == [FULL]:
        # A start that was killed behind a point's result has left its states.
        points = [run for run in _runs(plan, folder) if run.config.get("mode") == FULL]
        for run in points:
            if run.result() is not None:
                forget_states(run)
    made = run_here(
        plan,
        folder,
        curve.context,
        lambda jobs: track(jobs, description, transient=True, disable=not shown),
    )
    if not made:
        print(f"{curve.data.config.name}: curve of {curve.model.label} complete")
