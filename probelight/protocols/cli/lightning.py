"""LightningCLI for fit, validate, test and predict, with the house's checkpoints and loggers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from pytorch_lightning import LightningDataModule, LightningModule
from pytorch_lightning.callbacks import RichProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from rich.console import Console

from probelight.callbacks.aggregate_checkpoint import is_sharded
from probelight.callbacks.last_state import (
    LAST_NAME,
    SCORES,
    AtomicCheckpointIO,
    newest_state,
    read_state,
    scores_of,
    stoppable,
)
from probelight.callbacks.prediction_writer import PredictionWriter
from probelight.callbacks.run_metrics import RunMetrics, StepMetrics
from probelight.io.atomic import remove_leftovers, write_text_atomic
from probelight.io.escaping import json_text
from probelight.io.package import program
from probelight.io.ranges import (
    GradNorm,
    Minutes,
    NumDevices,
    NumEpochs,
    NumSteps,
    PathText,
    Seed,
    Share,
    Within,
    checked,
)
from probelight.models.checkpoint_files import PretrainedError
from probelight.models.networks import model_fingerprint
from probelight.protocols.cli.command import OneLineErrors
from probelight.protocols.cli.given import Known, read_words
from probelight.protocols.engine.fit_record import fit_record
from probelight.protocols.engine.training import (
    quiet_lightning,
    resumed_metrics,
    training_callbacks,
)
from probelight.reports.analyses import fits_table
from probelight.reports.terminal import print_table
from probelight.results.load import load_results


class FitArgumentParser(OneLineErrors, LightningArgumentParser):
    """Lightning's parser with our errors."""


class ProbelightCLI(LightningCLI):
    """Any module on any data module; a `fit` whose folder holds a state goes on from it."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the run's folder."""
        parser.add_argument(
            "--output_dir", default="runs/fit", help="Folder of the run: states, metrics, config."
        )
        parser.add_argument(
            "--checkpoint_every", type=int | None, default=None, help="Steps between two states."
        )
        parser.add_argument(
            "--checkpoint_minutes", type=float, default=2.0, help="Least time between two states."
        )
        parser.add_argument(
            "--checkpoint_share", type=float, default=0.1, help="Share of the time for states."
        )

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse them and check the numbers, before anything is seeded, loaded or written."""
        super().parse_arguments(parser, args)
        given = self.config[self.config.subcommand].as_dict()
        check_options(given, FitArgumentParser.given.place)

    def instantiate_classes(self) -> None:
        """Make one error of a model that cannot be loaded, without jsonargparse's list of types."""
        try:
            super().instantiate_classes()
            return
        except ValueError as error:
            cause = error.__cause__
            if not isinstance(cause, PretrainedError):
                raise
        raise cause  # out here: inside, the two errors would be each other's cause

    def instantiate_trainer(self, **options: Any) -> Any:
        """Add the callbacks, loggers and checkpoint files that every run of ours has."""
        config = self._get(self.config_init, "trainer")
        folder = Path(self._get(self.config_init, "output_dir"))
        remove_leftovers(folder)
        seed = self._get(self.config_init, "seed_everything")
        chosen = config.get("callbacks") or []
        options["callbacks"] = [
            *(chosen if isinstance(chosen, list) else [chosen]),
            *training_callbacks(
                folder / "checkpoints",
                seed if isinstance(seed, int) and not isinstance(seed, bool) else 0,
                self._get(self.config_init, "checkpoint_every"),
                self._get(self.config_init, "checkpoint_minutes"),
                self._get(self.config_init, "checkpoint_share"),
                at_end=True,
            ),
            PredictionWriter(folder / "predictions.jsonl"),
        ]
        if config.get("enable_progress_bar") is not False:
            options["callbacks"].append(RichProgressBar(leave=True))
        if config.get("logger") in (None, True):
            state, problems = newest_state(folder / "checkpoints" / f"{LAST_NAME}.ckpt")
            for problem in problems:  # `before_fit` will not meet them again
                print(problem)
            options["logger"] = [resumed_metrics(folder, state)]
            options["callbacks"].append(StepMetrics(config.get("log_every_n_steps")))
        options["plugins"] = [*(config.get("plugins") or []), AtomicCheckpointIO()]
        options["default_root_dir"] = str(folder)
        return super().instantiate_trainer(**options)

    def after_fit(self) -> None:
        """Leave result.json, which says that the run has ended and what it scored."""
        folder = Path(self._get(self.config_init, "output_dir"))
        scores = scores_of(self.trainer)
        if not self.trainer.is_global_zero:
            return
        # Without scores the state was from behind the last epoch.
        if not scores and (folder / "result.json").exists():
            print(f"complete: {folder / 'result.json'}")
            return
        weights = self.model
        if not scores or is_sharded(self.trainer):  # the model in memory may be a part of it
            path = newest_state(folder / "checkpoints" / f"{LAST_NAME}.ckpt")[0]
            state = read_state(path) if path else {}
            scores = scores or state.get(SCORES, {})
            if is_sharded(self.trainer):
                weights = state.get("state_dict", {})
        logger = self.trainer.logger
        record = fit_record(
            self.config["fit"].as_dict(),
            self.datamodule,
            scores,
            logger.rows if isinstance(logger, RunMetrics) else (),
            self.trainer.global_step,
            model_fingerprint(weights),
            round(time.perf_counter() - self._started, 3),
        )
        write_text_atomic(folder / "result.json", json_text(record.to_json(), indent=1) + "\n")
        if table := fits_table(load_results(folder)):
            print_table(table, Console())

    def before_fit(self) -> None:
        """Go on from the newest readable state."""
        self._started = time.perf_counter()
        folder = Path(self._get(self.config_init, "output_dir"))
        state, problems = newest_state(folder / "checkpoints" / f"{LAST_NAME}.ckpt")
        for problem in problems:
            print(problem)
        fit_config = self.config_init["fit"]
        if state is not None and fit_config.get("ckpt_path") is None:
            print(f"going on from {state}")
            fit_config["ckpt_path"] = str(state)


def run_cli(arguments: list[str]) -> None:
    """Run `fit`, `validate`, `test` or `predict` with LightningCLI."""
    # The classes that are chosen have options of their own.
    given = read_words(arguments, Known(sections=("model", "data", "trainer")))
    FitArgumentParser.given = given  # and that of the parsers of the subcommands
    quiet_lightning()
    with stoppable():
        ProbelightCLI(
            LightningModule,
            LightningDataModule,
            subclass_mode_model=True,
            subclass_mode_data=True,
            args=given.words,
            save_config_callback=SaveConfigCallback,
            save_config_kwargs={"overwrite": True},
            seed_everything_default=0,
            trainer_defaults={
                "num_sanity_val_steps": 0,
                "use_distributed_sampler": False,
                "enable_model_summary": False,
            },
            parser_class=FitArgumentParser,
            parser_kwargs={
                "prog": program(),
                **{name: {"default_env": False} for name in ("fit", "validate", "test", "predict")},
            },
        )


NumEpochsOrNoLimit = Annotated[int, Within(1, 10_000, also=((-1, "no limit"),))]
NumStepsOrNoLimit = Annotated[int, Within(1, 10_000_000, also=((-1, "no limit"),))]
NumOrShare = Annotated[float, Within(0, 10_000_000)]  # of batches; 1.0 is all of them, 1 is one


@dataclass(frozen=True)
class LightningTrainer:
    """Lightning's Trainer; it looks at some of its numbers late, and at others never."""

    num_nodes: Annotated[int, Within(1, 10_000)]
    devices: NumDevices
    fast_dev_run: Annotated[int, Within(0, 10_000_000)]
    max_epochs: NumEpochsOrNoLimit
    min_epochs: NumEpochs
    max_steps: NumStepsOrNoLimit
    min_steps: NumSteps
    limit_train_batches: NumOrShare
    limit_val_batches: NumOrShare
    limit_test_batches: NumOrShare
    limit_predict_batches: NumOrShare
    overfit_batches: NumOrShare
    val_check_interval: Annotated[float, Within(0, 10_000_000, above=True)]
    check_val_every_n_epoch: NumEpochs
    num_sanity_val_steps: Annotated[int, Within(0, 10_000_000, also=((-1, "all"),))]
    log_every_n_steps: Annotated[int, Within(0, 10_000_000)]
    accumulate_grad_batches: Annotated[int, Within(1, 65_536)]
    gradient_clip_val: GradNorm
    reload_dataloaders_every_n_epochs: Annotated[int, Within(0, 10_000)]


def lightning_options(
    seed_everything: Seed | bool = 0,
    checkpoint_every: NumSteps | None = None,
    checkpoint_minutes: Minutes = 2.0,
    checkpoint_share: Share = 0.1,
    output_dir: PathText = "runs/fit",
    ckpt_path: PathText | None = None,
) -> None:
    """The options of ours as they are checked."""


def check_options(given: Mapping[str, Any], place: Callable[[str], str]) -> None:
    """Hold the options of LightningCLI against what we, its Trainer and the classes declare.

    Args:
        given: The options of a command.
        place: As in `checked`.

    Raises:
        RangeError: At the first value that may not be.
    """

    def within(section: str) -> Callable[[str], str]:
        return lambda key: place(f"{section}.{key}")

    checked(lightning_options, given, place)
    trainer = given.get("trainer") or {}
    numbers = {name: value for name, value in trainer.items() if type(value) in (int, float)}
    checked(LightningTrainer, numbers, within("trainer"))
    for section in ("model", "data"):
        if chosen := given.get(section):
            made = resolve_name(chosen["class_path"])
            checked(made, chosen.get("init_args") or {}, within(section))
