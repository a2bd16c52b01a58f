"""The curves of several models and probes, checked as a whole before the first is computed."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.protocols.curve.curve import Asked, Curve
from probelight.protocols.curve.data import check_rows
from probelight.protocols.curve.full import forget_states
from probelight.protocols.curve.jobs import curve_jobs
from probelight.protocols.curve.probe import refuse_unposed
from probelight.protocols.curve.settings import FULL
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.models import check_module, check_scorer
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.run import Part, run_jobs, unfinished
from probelight.results.run_folder import CommandFolder


def trace_curves(
    folder: CommandFolder, probes: Sequence[str], asked: Asked, context: RunContext
) -> None:
    """Adds the curves of several models and probes to a command's folder.

    Every row is put under every control before anything is computed, and every model is asked
    whether it reads the candidates: what does not fit stops the command at once. results.csv is
    rewritten behind each (model, probe).

    Raises:
        UsageError: As `check_rows`.
    """
    check_rows(probes, asked.models, asked.settings, asked.options, context)
    curves = [Curve(asked, probe, model, context) for model in asked.models for probe in probes]
    plans = [curve_jobs(curve) for curve in curves]
    missing = [unfinished(plan, folder) for plan in plans]
    for curve, jobs in zip(curves, missing, strict=True):
        _check(curve, jobs)  # said before hours of training
    for curve, plan, jobs in zip(curves, plans, missing, strict=True):
        _say(curve, jobs, context)
        _forget(plan, folder)
    bars = [f"{curve.data.config.name}, {curve.model.label}" for curve in curves]
    run_jobs([Part(*one) for one in zip(plans, bars, strict=True)], folder, context)


def _check(curve: Curve, missing: Sequence[Job]) -> None:
    """Refuses what a model, if anything is missing of it, could not be trained and asked with.

    Raises:
        UsageError: If the probe's groups cannot be divided as early stopping needs it.
        PretrainedError: If the model cannot be loaded.
        RecordError: If it does not know a candidate.
    """
    if not (missing and kind_of(curve.model).has_checkpoint):
        return
    if curve.modes == [FULL]:
        check_module(curve.model, "mc_qa")
    else:
        parts = [part for c in curve.settings.controls for part in curve.rows.under(c)]
        check_scorer(curve.model, "mc_mlm", parts, refuse_unposed)


def _say(curve: Curve, missing: Sequence[Job], context: RunContext) -> None:
    """Says of which curves nothing is computed."""
    name, label = curve.data.config.name, curve.model.label
    if not curve.modes:
        kind, said = kind_of(curve.model), ""
        if not (kind.trained or kind.heads):
            said = " here: nothing of it is trained, and `train.py zero-shot` scores it"
        elif "mc_qa" in kind.trained:
            said = "; --setup mc_qa poses them as questions"
        context.say(f"{name}: {label} does not answer {curve.data.setup} probes{said}")
    elif not missing:
        context.say(f"{name}: curve of {label} complete")


def _forget(plan: Sequence[Job], folder: CommandFolder) -> None:
    """Removes the training states that a start left which was killed behind a point's result."""
    for job in plan:
        if job.config.get("mode") == FULL and folder.result(job.key) is not None:
            forget_states(folder.run(job.name, job.config))
