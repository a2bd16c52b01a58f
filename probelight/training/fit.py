"""One fit that a kill at any moment does not spoil: plan, states, callbacks, loggers, Trainer.

`train.py fit` has LightningCLI's Trainer and the same callbacks.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import Callback, RichProgressBar
from pytorch_lightning.utilities import rank_zero_only
from rich.console import Console
from transformers import PreTrainedModel

from probelight.callbacks import last_state
from probelight.callbacks.aggregate_checkpoint import AggregateCheckpoint
from probelight.callbacks.run_metrics import RunMetrics, StepMetrics
from probelight.callbacks.step_lines import StepLines
from probelight.callbacks.wandb_logger import follow
from probelight.datamodules.choices import ChoiceDataModule
from probelight.encoding.encoded_set import Share
from probelight.io.atomic import mend_folder
from probelight.io.errors import UsageError, is_out_of_device_memory
from probelight.io.package import cache_folder
from probelight.io.progress import has_bars
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.answering import float32_products
from probelight.models.loading import outlines
from probelight.probes.record import Record
from probelight.results.run_folder import METRICS_FILE, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import MemoryNeed
from probelight.runs.settings import TrainerSettings, expected_device
from probelight.training.memory import MemoryCheck, Processes, checkpoint_gradients, memory_need
from probelight.training.settings import Fit
from probelight.training.sharding import by_layer


@dataclass
class FitPlan:
    """How one fit is run: all that it needs but the module and its data."""

    fit: Fit  # epochs, and items in an optimiser step over all processes
    seed: int  # of the order of the items and the dropout of each step
    callbacks: Sequence[Callback] = ()  # added to those that every fit has
    description: str = ""  # shown with the progress
    summary: Callable[[], Mapping[str, float]] = dict  # for W&B's, called after the fit
    replay: Sequence[Record] = ()  # items of another task, of which some are in each step
    replay_share: float = 0.5  # of each step


def fit_choices(
    module: ChoiceModule,
    train: Sequence[Record],
    evaluation: Mapping[str, Sequence[Record]],
    run: RunFolder,
    plan: FitPlan,
    context: RunContext,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fit a module on items with choices; the evaluation sets are scored after each epoch.

    Returns what `fit` returns, and the notices of encoding the training items (cuts, skips).
    """
    data = choice_data(train, evaluation, plan, context.trainer)
    plan = replace(plan, callbacks=[*plan.callbacks, MemoryCheck(plan.fit.epochs, context)])
    return fit(module, data, run, plan, context), data.notices("train")


def choice_data(
    train: Sequence[Record],
    evaluation: Mapping[str, Sequence[Record]],
    plan: FitPlan,
    settings: TrainerSettings,
) -> ChoiceDataModule:
    """Return the batches of a fit."""
    return ChoiceDataModule(
        train=train,
        evaluation=evaluation,
        batch_size=settings.micro_batch(plan.fit.batch_size),
        max_eval_tokens=settings.max_eval_tokens,
        seed=plan.seed,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
        replay=plan.replay,
        replay_share=plan.replay_share,
        accumulate=settings.accumulate,
    )


def planned_memory(
    make: Callable[[], ChoiceModule],
    train: Sequence[Record],
    evaluation: Mapping[str, Sequence[Record]],
    plan: FitPlan,
    settings: TrainerSettings,
) -> MemoryNeed:
    """Return what a fit that is planned will take; the weights of its module are not read."""
    quiet_lightning()
    with outlines():
        module = make()
    if settings.gradient_checkpointing:
        checkpoint_gradients(module)
    device_type = expected_device(settings.accelerator)
    number = settings.devices if settings.devices > 0 else max(1, torch.cuda.device_count())
    data = choice_data(train, evaluation, plan, settings)
    data.encode(module.encoder(), Share(0, number))
    processes = Processes(device_type, number, is_sharded=settings.strategy.startswith("fsdp"))
    return memory_need(module, data, plan.fit.epochs, settings, processes)


def fit(
    module: pl.LightningModule,
    data: pl.LightningDataModule,
    run: RunFolder,
    plan: FitPlan,
    context: RunContext,
) -> tuple[str, ...]:
    """Train `module` from the newest readable state of the run; return problems of newer ones.

    Raises:
        RuntimeError: If the best model is not there at the end. The next fit starts anew.
        UsageError: If a batch does not fit into the device's memory.
    """
    settings, wandb = context.trainer, context.wandb
    if settings.precision == "16-true":
        raise UsageError(
            "--trainer.precision 16-true: AdamW overflows with float16 weights; give 16-mixed"
        )
    state_path, problems = starting_point(run, plan.callbacks)
    for problem in problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
    metrics = resumed_metrics(run.path, state_path)
    wandb_logger = follow(run, wandb, metrics.rows) if wandb.project else None
    title = plan.description + (f", resuming from {state_path.name}" if state_path else "")
    trainer = make_trainer(
        settings,
        title,
        max_epochs=plan.fit.epochs,
        logger=[metrics, wandb_logger] if wandb_logger else [metrics],
        plugins=[last_state.AtomicCheckpointIO()],
        callbacks=[
            *plan.callbacks,
            StepMetrics(settings.log_every_n_steps),
            *training_callbacks(
                run.checkpoint_dir,
                plan.seed,
                settings.checkpoint_every,
                settings.checkpoint_minutes,
                settings.checkpoint_share,
                at_end=False,  # the model is reported, and its states removed
            ),
        ],
        enable_checkpointing=True,
        default_root_dir=str(run.path),
    )
    if trainer.is_global_zero and trainer.progress_bar_callback:
        print(title, flush=True)
    if settings.gradient_checkpointing:
        checkpoint_gradients(module)
    if settings.compile:
        compile_transformers(module)
    device = trainer.strategy.root_device
    products = float32_products(device, settings.precision, settings.matmul_precision)
    try:
        with last_state.stoppable(), products:
            trainer.fit(module, datamodule=data, ckpt_path=str(state_path) if state_path else None)
    except RuntimeError as error:
        if not is_out_of_device_memory(error):
            raise
        message = smaller_batches(plan.fit.batch_size, settings, trainer.world_size)
        if any(f.name == "validation_step" for f in traceback.extract_tb(error.__traceback__)):
            message = "measuring needs more memory than the device has; lower "
            message += f"--trainer.max_eval_tokens ({settings.max_eval_tokens})"
        raise UsageError(message) from error
    for callback in plan.callbacks:
        if isinstance(callback, AggregateCheckpoint) and (lost := callback.problem()):
            forget_states(run)
            raise RuntimeError(f"{lost}; rerun the same command, which trains again from the start")
    if wandb_logger is not None:
        wandb_logger.summarise({**last_state.scores_of(trainer), **plan.summary()})
    return problems


def smaller_batches(batch_size: int, settings: TrainerSettings, processes: int) -> str:
    """Say what to do where the batches of a training do not fit into the device's memory."""
    accumulate = settings.accumulate
    more = [k for k in range(accumulate + 1, batch_size + 1) if batch_size % (k * processes) == 0]
    advice = (
        f"--trainer.accumulate {more[0]} trains in batches of {batch_size // more[0]} with the "
        "same optimiser steps"
        if more
        else "smaller batches are not possible; use --trainer.precision bf16-mixed, a lower "
        "--model.max_length, or several GPUs with --config configs/trainer/fsdp.yaml"
    )
    size = f"{batch_size // accumulate} (batch_size {batch_size})"
    return f"training in batches of {size} needs more memory than the device has; {advice}"


def training_callbacks(
    checkpoint_dir: Path,
    seed: int,
    every_n_train_steps: int | None,
    minutes: float,
    share: float,
    *,
    at_end: bool,
) -> list[Callback]:
    """Return the callbacks with which a fit resumes exactly: seeds of steps, states, agreed stops.

    States are `every_n_train_steps`, or, if that is None, at least `minutes` apart and take at most
    `share` of the time; `at_end` also keeps one when the training ends.
    """
    return [
        last_state.StepSeed(seed),
        last_state.LastState(str(checkpoint_dir), every_n_train_steps, minutes, share, at_end),
        last_state.AgreedStop(),
    ]


def resumed_metrics(folder: Path, state: Path | None) -> RunMetrics:
    """Return the logger of metrics.csv, with the lines from before a state."""
    metrics = RunMetrics(folder / METRICS_FILE)
    metrics.resume_from(last_state.read_state(state)["global_step"] if state else 0)
    return metrics


def starting_point(
    run: RunFolder, callbacks: Sequence[Callback]
) -> tuple[Path | None, tuple[str, ...]]:
    """Return the state that a fit resumes from, None to start anew, and problems of other states.

    A state is of no use if its best model is lost: the model could not be reported.
    """
    rank_zero_only(mend_folder)(run.checkpoint_dir)
    path, problems = last_state.newest_state(run.checkpoint_dir / f"{last_state.LAST_NAME}.ckpt")
    states = {} if path is None else last_state.read_state(path).get("callbacks", {})
    for callback in callbacks:
        if not isinstance(callback, AggregateCheckpoint):
            continue
        history = states.get(callback.state_key, {}).get("history", [])
        if lost := callback.problem(history):
            forget_states(run)
            path, problems = None, (*problems, f"{lost}. Training starts again from the beginning")
    return path, problems


def forget_states(run: RunFolder) -> None:
    """Remove the states that a fit would resume from."""
    last = run.checkpoint_dir / f"{last_state.LAST_NAME}.ckpt"
    # In this order another process of the run never takes the older one for the newest.
    for path in (last_state.previous_of(last), last):
        path.unlink(missing_ok=True)


def compile_transformers(module: pl.LightningModule) -> None:
    """Compile the transformers inside a module; names and values of its weights stay."""
    for submodule in module.modules():
        if isinstance(submodule, PreTrainedModel):
            # Batches differ in length: without dynamic shapes each would be compiled anew.
            submodule.compile(dynamic=True)


class EpochBar(RichProgressBar):
    """A progress bar that counts epochs from 1, as Lightning's own does not."""

    def _get_train_description(self, current_epoch: int) -> str:
        text = f"Epoch {current_epoch + 1}/{self.trainer.max_epochs}"
        return text.ljust(len(self.validation_description))


def make_trainer(settings: TrainerSettings, title: str = "", **options: Any) -> pl.Trainer:
    """Return a Lightning Trainer with the house's defaults; `title` is shown with its progress.

    Raises:
        UsageError: If this machine or Lightning has no such device, strategy or precision.
    """
    callbacks = list(options.pop("callbacks", []))
    if not any(isinstance(callback, last_state.AgreedStop) for callback in callbacks):
        callbacks.append(last_state.AgreedStop())
    has_bar = settings.progress_bar and has_bars(Console())
    if has_bar:
        callbacks.append(EpochBar(leave=False))
    elif settings.progress_bar:
        callbacks.append(StepLines(title))
    quiet_lightning()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    try:
        return pl.Trainer(
            accelerator=settings.accelerator,
            devices=settings.devices,
            strategy=by_layer() if settings.strategy == "fsdp" else settings.strategy,
            precision=settings.precision,  # type: ignore[arg-type]
            accumulate_grad_batches=settings.accumulate,
            # Our own sampler knows the processes and pads uneven shards with weight 0.
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            enable_model_summary=False,
            enable_progress_bar=has_bar,
            callbacks=callbacks,
            **options,
        )
    # A ModuleNotFoundError is about the library of a TPU.
    except (MisconfigurationException, ValueError, ModuleNotFoundError) as error:
        names = ("accelerator", "devices", "strategy", "precision")
        given_options = " ".join(f"--trainer.{name} {getattr(settings, name)}" for name in names)
        raise UsageError(f"{given_options}: {' '.join(str(error).split())}") from error


def quiet_lightning() -> None:
    """Silence hints of Lightning that do not concern a user of the commands."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in (
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*does not have many workers.*",
        ".*checkpoint directory.*exists and is not empty.*",
        ".*logging interval.*",
        ".*Total length of `\\w+` across ranks is zero.*",  # a fit without evaluation sets
        ".*The dirpath has changed.*",
        ".*lr_scheduler.step.*",
        ".*LightningCLI's args parameter.*",
        ".*callbacks used to create the checkpoint need to be provided.*",
    ):
        warnings.filterwarnings("ignore", message=message)
