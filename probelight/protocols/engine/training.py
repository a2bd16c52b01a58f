"""One fit that a kill at any moment does not spoil: resume, checkpoints, loggers, progress."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import Callback, RichProgressBar
from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities import rank_zero_only
from transformers import PreTrainedModel

from probelight.callbacks.aggregate_checkpoint import AggregateCheckpoint
from probelight.callbacks.agreed_stop import AgreedStop, stoppable
from probelight.callbacks.last_state import (
    LAST_NAME,
    AtomicCheckpointIO,
    LastState,
    newest_state,
    previous_of,
    read_state,
)
from probelight.callbacks.run_metrics import RunMetrics, StepMetrics
from probelight.callbacks.step_seed import StepSeed
from probelight.callbacks.wandb_logger import follow
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.atomic import mend_folder
from probelight.io.download import cache_folder
from probelight.io.errors import UsageError
from probelight.lightning_modules.base import ChoiceModule
from probelight.probes.record import Record
from probelight.protocols.engine.settings import Fit
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.run_folder import RunFolder


@dataclass
class FitPlan:
    """What one fit needs besides the module and its data.

    Attributes:
        how: Epochs to train, and the items in an optimiser step over all processes.
        seed: Seeds the order of the items and the dropout of each step.
        callbacks: Callbacks besides those that every fit has.
        description: Shown before the progress bar.
        summary: Gives, after the fit, what belongs in the summary of the W&B run besides the last
            values of all metrics.
    """

    how: Fit
    seed: int
    callbacks: Sequence[Callback]
    description: str
    summary: Callable[[], Mapping[str, float]] = dict


def fit_choices(
    module: ChoiceModule,
    train: Sequence[Record],
    evaluation: Mapping[str, Sequence[Record]],
    run: RunFolder,
    plan: FitPlan,
    context: RunContext,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`fit` on items with choices; the evaluation sets are scored behind each epoch.

    Returns:
        What `fit` does; and what the encoding of the training items has to say (cuts, skips).
    """
    data = ChoiceDataModule(
        train=train,
        evaluation=evaluation,
        batch_size=context.trainer.micro_batch(plan.how.batch_size),
        max_eval_tokens=context.trainer.max_eval_tokens,
        seed=plan.seed,
        num_workers=context.trainer.num_workers,
        cache_dir=cache_folder(),
    )
    problems = fit(module, data, run, plan, context)
    return problems, data.notices("train")


def fit(
    module: pl.LightningModule,
    data: pl.LightningDataModule,
    run: RunFolder,
    plan: FitPlan,
    context: RunContext,
) -> tuple[str, ...]:
    """Trains `module`, going on from the newest readable state in the run's folder.

    Returns:
        What was wrong with states that could not be gone on from.

    Raises:
        RuntimeError: If the best model is not there at the end. The next fit starts anew.
    """
    settings, wandb = context.trainer, context.wandb
    state_path, problems = starting_point(run, plan.callbacks)
    for problem in problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
    metrics = RunMetrics(run.path / "metrics.csv")
    metrics.resume_from(read_state(state_path)["global_step"] if state_path else 0)
    loggers: list[Logger] = [metrics]
    shown = follow(run, wandb, metrics.rows) if wandb.project else None
    if shown is not None:
        loggers.append(shown)
    trainer = make_trainer(
        settings,
        max_epochs=plan.how.epochs,
        logger=loggers,
        plugins=[AtomicCheckpointIO()],
        callbacks=[
            *plan.callbacks,
            StepSeed(plan.seed),
            StepMetrics(settings.log_every_n_steps),
            LastState(
                str(run.checkpoint_dir),
                settings.checkpoint_every,
                settings.checkpoint_minutes,
                settings.checkpoint_share,
                at_end=False,  # the model is reported, and its states removed
            ),
        ],
        enable_checkpointing=True,
        default_root_dir=str(run.path),
    )
    if trainer.is_global_zero and settings.progress_bar:
        resumed = f", going on from {state_path.name}" if state_path else ""
        print(f"{plan.description}{resumed}", flush=True)
    if settings.compile:
        compile_transformers(module)
    with stoppable():
        trainer.fit(module, datamodule=data, ckpt_path=str(state_path) if state_path else None)
    refuse_lost_models(run, plan.callbacks)
    if shown is not None:
        last = {name: float(value) for name, value in trainer.callback_metrics.items()}
        shown.summarise({**last, **plan.summary()})
    return problems


def starting_point(
    run: RunFolder, callbacks: Sequence[Callback]
) -> tuple[Path | None, tuple[str, ...]]:
    """The state that a fit goes on from, None to start anew, and what was wrong with others.

    A state whose best model is lost is of no use: the model could not be reported.
    """
    rank_zero_only(mend_folder)(run.checkpoint_dir)
    path, problems = newest_state(run.checkpoint_dir / f"{LAST_NAME}.ckpt")
    states = {} if path is None else read_state(path).get("callbacks", {})
    for keep in kept_models(callbacks):
        history = states.get(keep.state_key, {}).get("history", [])
        if lost := keep.problem(history):
            forget_states(run)
            path, problems = None, (*problems, f"{lost}. The run starts anew")
    return path, problems


def refuse_lost_models(run: RunFolder, callbacks: Sequence[Callback]) -> None:
    """Raises RuntimeError if a best model is not in its folder; the next start trains anew."""
    for keep in kept_models(callbacks):
        if lost := keep.problem():
            forget_states(run)
            raise RuntimeError(f"{lost}. The next start trains anew")


def kept_models(callbacks: Sequence[Callback]) -> list[AggregateCheckpoint]:
    """The callbacks that keep a best model."""
    return [callback for callback in callbacks if isinstance(callback, AggregateCheckpoint)]


def forget_states(run: RunFolder) -> None:
    """Removes what a fit would go on from."""
    last = run.checkpoint_dir / f"{LAST_NAME}.ckpt"
    # In this order another process of the run never takes the older one for the newest.
    for path in (previous_of(last), last):
        path.unlink(missing_ok=True)


def compile_transformers(module: pl.LightningModule) -> None:
    """Compiles the transformers inside a module; names and values of its weights stay."""
    for part in module.modules():
        if isinstance(part, PreTrainedModel):
            # Batches differ in length: without dynamic shapes each would be compiled anew.
            part.compile(dynamic=True)


def make_trainer(settings: TrainerSettings, **options: Any) -> pl.Trainer:
    """A Lightning Trainer with the house's defaults.

    Raises:
        UsageError: If this machine or Lightning has no such device, strategy or precision.
    """
    callbacks = [*options.pop("callbacks", []), AgreedStop()]
    if settings.progress_bar:
        callbacks.append(RichProgressBar(leave=False))
    quiet_lightning()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    try:
        return pl.Trainer(
            accelerator=settings.accelerator,
            devices=settings.devices,
            strategy=settings.strategy,
            precision=settings.precision,  # type: ignore[arg-type]
            accumulate_grad_batches=settings.accumulate,
            # Our own sampler knows the processes and pads uneven shards with weight 0.
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            enable_model_summary=False,
            enable_progress_bar=settings.progress_bar,
            callbacks=callbacks,
            **options,
        )
    except (MisconfigurationException, ValueError) as error:
        names = ("accelerator", "devices", "strategy", "precision")
        given = " ".join(f"--trainer.{name} {getattr(settings, name)}" for name in names)
        raise UsageError(f"{given}: {' '.join(str(error).split())}") from error


def quiet_lightning() -> None:
    """Silences hints of Lightning that do not concern a user of the protocols."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in (
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*does not have many workers.*",
        ".*checkpoint directory.*exists and is not empty.*",
        ".*Checkpoint directory.*exists and is not empty.*",
        ".*logging interval.*",
        ".*Total length of `\\w+` across ranks is zero.*",  # a fit without evaluation sets
        ".*The dirpath has changed.*",
        ".*lr_scheduler.step.*",
        ".*LightningCLI's args parameter.*",
        ".*callbacks used to create the checkpoint need to be provided.*",
    ):
        warnings.filterwarnings("ignore", message=message)
