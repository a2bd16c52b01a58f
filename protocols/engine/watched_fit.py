"""A module trained on some items, stopped by others: the fit that a probe's own training is."""

from __future__ import annotations

from collections.abc import Sequence

from pytorch_lightning.callbacks import Callback

from callbacks.aggregate_checkpoint import HELD_OUT, AggregateCheckpoint
from callbacks.learning_curve import LearningCurve
from callbacks.patience import Patience
from jobs.context import RunContext
from lightning_modules.base import ChoiceModule
from probes.record import Record
from protocols.engine.models import saved_module
from protocols.engine.settings import FitSettings
from protocols.engine.training import FitPlan, fit_choices
from results.run_folder import RunFolder

HELD_OUT_SET = "held_out"  # so that its accuracy is logged as `HELD_OUT`


def watched_fit(
    module: ChoiceModule,
    train: Sequence[Record],
    held_out: Sequence[Record],
    settings: FitSettings,
    seed: int,
    made_in: tuple[RunFolder, RunContext],
) -> tuple[ChoiceModule, int, tuple[str, ...]]:
    """Trains a module, going on where an interrupted start of the run was.

    Args:
        module: What is trained; `fit_options` are what its constructor is given for this.
        train: The items.
        held_out: Items that stop the training where the settings have `patience`; may be empty
            where they have none.
        settings: How it is trained.
        seed: Seeds order and dropout.
        made_in: The run's folder, and what the run is made under.

    Returns:
        The trained module, the epoch that it is of (with patience the best one on `held_out`), and
        what was wrong with states of an earlier start.
    """
    run, context = made_in
    keep = AggregateCheckpoint(run.best_dir, monitor=HELD_OUT)
    watchers: list[Callback] = []
    if settings.patience is not None:
        watchers = [
            keep,
            Patience(keep, settings.patience),
            LearningCurve(settings.batch_size, len(train)),
        ]
    plan = FitPlan(settings, seed, watchers, f"N = {len(train)}")
    watched = {HELD_OUT_SET: held_out} if held_out else {}
    problems = fit_choices(module, train, watched, run, plan, context)
    if keep.best is None:
        return module, settings.epochs, problems
    return saved_module(run.best_dir), int(keep.best["epoch"]), problems


def fit_options(settings: FitSettings) -> dict[str, float | str | None]:
    """Arguments of a module's constructor that say how it is trained."""
    return {
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        # Baselines halve their rate when the held-out accuracy stands still.
        "monitor": HELD_OUT if settings.patience is not None else None,
    }
