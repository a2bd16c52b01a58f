"""LightningCLI for fit, validate, test and predict, with the house's checkpoints and loggers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

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
from probelight.callbacks.run_metrics import PredictionWriter, RunMetrics, StepMetrics
from probelight.callbacks.step_lines import StepLines
from probelight.cli.arguments import KnownOptions, read_command_line
from probelight.cli.parsing import OneLineErrors
from probelight.io import ranges
from probelight.io.atomic import remove_leftovers, write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.escaping import json_text
from probelight.io.package import program
from probelight.io.process import check_num_processes, printed_once
from probelight.io.progress import has_bars
from probelight.io.settings import checked
from probelight.io.workload import Workload
from probelight.models.answering import float32_products
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.networks import model_fingerprint
from probelight.reports.analyses import fits_table
from probelight.reports.formats import print_table
from probelight.results.load import FIT, load_results
from probelight.results.record import ModelSource, RunRecord, data_files
from probelight.results.row import Row
from probelight.results.run_folder import Logged, run_key
from probelight.training.fit import quiet_lightning, resumed_metrics, training_callbacks


class FitArgumentParser(OneLineErrors, LightningArgumentParser):
    """Lightning's parser with our errors."""


class ProbelightCLI(LightningCLI):
    """LightningCLI for any module and data module; `fit` goes on from the state in its folder."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Read the arguments and run the subcommand, as LightningCLI does."""
        with ExitStack() as self._contexts:
            super().__init__(*arguments, **options)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add our own options to Lightning's."""
        skipped = {"seed_everything", "ckpt_path"}  # Lightning's, with other defaults
        parser.add_function_arguments(run_options, as_group=False, skip={*skipped})

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse them and check the numbers, before anything is seeded, loaded or written."""
        super().parse_arguments(parser, args)
        options = self.config[self.config.subcommand].as_dict()
        check_options(options, FitArgumentParser.arguments.location)
        state = options.get("ckpt_path")
        if state and Path(state).is_file():  # LightningCLI reads its arguments, and checks nothing
            read_state(Path(state))

    def instantiate_classes(self) -> None:
        """Show one error if a model cannot be loaded, without jsonargparse's list of types."""
        try:
            super().instantiate_classes()
            return
        except ValueError as error:
            cause = error.__cause__
            if not isinstance(cause, PretrainedError):
                raise
        raise cause  # out here: inside, the two errors would be each other's cause

    def instantiate_trainer(self, **options: Any) -> Any:
        """Add the callbacks, loggers and checkpoint files that all our runs have."""
        run = self.config_init[self.config_init.subcommand]
        config, folder, seed = run["trainer"], Path(run["output_dir"]), run["seed_everything"]
        remove_leftovers(folder)
        chosen = config.get("callbacks") or []
        options["callbacks"] = [
            *(chosen if isinstance(chosen, list) else [chosen]),
            *training_callbacks(
                folder / "checkpoints",
                seed if isinstance(seed, int) and not isinstance(seed, bool) else 0,
                run["checkpoint_every"],
                run["checkpoint_minutes"],
                run["checkpoint_share"],
                at_end=True,
            ),
            PredictionWriter(folder / "predictions.jsonl"),
        ]
        if config.get("enable_progress_bar") is not False:
            shows = RichProgressBar(leave=True) if has_bars(Console()) else StepLines("training")
            options["callbacks"].append(shows)
        if config.get("logger") in (None, True):
            state, problems = newest_state(folder / "checkpoints" / f"{LAST_NAME}.ckpt")
            for problem in problems:  # `before_fit` will not meet them again
                print(problem)
            options["logger"] = [resumed_metrics(folder, state)]
            options["callbacks"].append(StepMetrics(config.get("log_every_n_steps")))
        options["plugins"] = [*(config.get("plugins") or []), AtomicCheckpointIO()]
        options["default_root_dir"] = str(folder)
        check_num_processes(-1)
        try:
            trainer = super().instantiate_trainer(**options)
        except (ValueError, ModuleNotFoundError) as error:  # one is about the library of a TPU
            option = f"--trainer.accelerator {config.get('accelerator')}"
            raise UsageError(f"{option}: {' '.join(str(error).split())}") from error
        check_num_processes(trainer.world_size)
        device = trainer.strategy.root_device
        products = float32_products(device, trainer.precision, run["matmul_precision"])
        self._contexts.enter_context(products)
        return trainer

    def after_fit(self) -> None:
        """Write result.json, which marks the run as finished and holds its scores."""
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
        record = self._record(scores, model_fingerprint(weights))
        write_text_atomic(folder / "result.json", json_text(record.to_json(), indent=1) + "\n")
        if table := fits_table(load_results(folder)):
            print_table(table, Console())

    def _record(self, scores: Mapping[str, float], model_sha256: str) -> RunRecord:
        """Return the record of the fit, with the last and the best value of each metric."""
        config, logger = self.config["fit"].as_dict(), self.trainer.logger
        model, data = (config[name]["class_path"].rpartition(".")[2] for name in ("model", "data"))
        options = dict(config["model"].get("init_args") or {})
        sets = dict(config["data"].get("init_args") or {})
        loaded_from = options.get("model_name_or_path") or options.get("vectors") or ""
        files, seed = getattr(self.datamodule, "data", None), config.get("seed_everything")
        hashed = {name: value for name, value in config.items() if name not in _NOT_HASHED}
        base = Row(
            protocol=FIT,
            model=f"{model} {loaded_from}".strip(),
            probe=sets.get("probe") or Path(sets.get("path") or data).name,
            mode=options.get("mode") or "",
            num_train=sets.get("num_train"),
            learning_rate=options.get("learning_rate"),
            seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
            split="val",
        )
        logged = logger.rows if isinstance(logger, RunMetrics) else ()
        return RunRecord(
            protocol=FIT,
            model=base.model,
            probe=base.probe,
            rows=tuple(validation_rows(base, scores, logged)),
            seeds=() if base.seed is None else (base.seed,),
            data=data_files(files.values()) if isinstance(files, dict) else (),
            source=ModelSource(loaded_from=loaded_from),
            model_sha256=model_sha256,
            **self._workload.measured(),
            facts={"scores": dict(scores), "global_step": self.trainer.global_step},
            key=run_key("fit", hashed),
        )

    def before_fit(self) -> None:
        """Go on from the newest readable state."""
        self._workload = Workload()
        folder = Path(self._get(self.config_init, "output_dir"))
        state, problems = newest_state(folder / "checkpoints" / f"{LAST_NAME}.ckpt")
        for problem in problems:
            print(problem)
        fit_config = self.config_init["fit"]
        if state is not None and fit_config.get("ckpt_path") is None:
            print(f"resuming from {state}")
            fit_config["ckpt_path"] = str(state)


def run_cli(arguments: list[str]) -> None:
    """Run `fit`, `validate`, `test` or `predict` with LightningCLI."""
    # The classes that are chosen have options of their own.
    command_line = read_command_line(arguments, KnownOptions(sections=("model", "data", "trainer")))
    FitArgumentParser.arguments = command_line  # of the parsers of the subcommands too
    quiet_lightning()
    with stoppable(), printed_once():
        ProbelightCLI(
            LightningModule,
            LightningDataModule,
            subclass_mode_model=True,
            subclass_mode_data=True,
            args=command_line.words,
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


# Of batches; 1.0 is all of them, 1 is one.
NumOrShare = Annotated[float, ranges.Within(0, 10_000_000)]


@dataclass(frozen=True)
class LightningTrainer:
    """Ranges of Lightning's Trainer, which checks some of its numbers late and others never."""

    num_nodes: Annotated[int, ranges.Within(1, 10_000)]
    devices: ranges.NumDevices
    fast_dev_run: Annotated[int, ranges.Within(0, 10_000_000)]
    max_epochs: Annotated[int, ranges.Within(1, 10_000, also=((-1, "no limit"),))]
    min_epochs: ranges.NumEpochs
    max_steps: Annotated[int, ranges.Within(1, 10_000_000, also=((-1, "no limit"),))]
    min_steps: ranges.NumSteps
    limit_train_batches: NumOrShare
    limit_val_batches: NumOrShare
    limit_test_batches: NumOrShare
    limit_predict_batches: NumOrShare
    overfit_batches: NumOrShare
    val_check_interval: Annotated[float, ranges.Within(0, 10_000_000, above=True)]
    check_val_every_n_epoch: ranges.NumEpochs
    num_sanity_val_steps: Annotated[int, ranges.Within(0, 10_000_000, also=((-1, "all"),))]
    log_every_n_steps: Annotated[int, ranges.Within(0, 10_000_000)]
    accumulate_grad_batches: Annotated[int, ranges.Within(1, 65_536)]
    gradient_clip_val: ranges.GradNorm
    reload_dataloaders_every_n_epochs: Annotated[int, ranges.Within(0, 10_000)]


def run_options(
    seed_everything: ranges.Seed | bool = 0,
    output_dir: ranges.PathText = "runs/fit",
    checkpoint_every: ranges.NumSteps | None = None,
    checkpoint_minutes: ranges.Minutes = 2.0,
    checkpoint_share: ranges.Share = 0.1,
    ckpt_path: ranges.PathText | None = None,
    matmul_precision: Literal["highest", "high", "medium"] = "highest",
) -> None:
    """Declare our own options, and the ranges of LightningCLI's.

    Args:
        seed_everything: Seed of the run.
        output_dir: Folder for checkpoints, metrics and config.
        checkpoint_every: Steps between checkpoints. By default they are saved by time.
        checkpoint_minutes: Minimum time in minutes between checkpoints that are saved by time.
        checkpoint_share: Maximum share of the time to spend on saving checkpoints by time.
        ckpt_path: Checkpoint to start from.
        matmul_precision: How to multiply 32-bit matrices; "high" is TF32.
    """


def check_options(options: Mapping[str, Any], location: Callable[[str], str]) -> None:
    """Check LightningCLI's options by the ranges of ours, its Trainer's and the chosen classes'."""

    def within(section: str) -> Callable[[str], str]:
        return lambda key: location(f"{section}.{key}")

    checked(run_options, options, location)
    trainer = options.get("trainer") or {}
    numbers = {name: value for name, value in trainer.items() if type(value) in (int, float)}
    checked(LightningTrainer, numbers, within("trainer"))
    for section in ("model", "data"):
        if chosen := options.get(section):
            chosen_class = resolve_name(chosen["class_path"])
            checked(chosen_class, chosen.get("init_args") or {}, within(section))


# Where the run lies and how it is watched; the same fit elsewhere is the same run.
_NOT_HASHED = {"config", "output_dir", "ckpt_path"}
_BEST = {"accuracy": max, "aggregate": max, "loss": min}  # by how a metric's name ends


def validation_rows(
    base: Row, scores: Mapping[str, float], logged: Iterable[Logged]
) -> Iterator[Row]:
    """Yield the last value of each validation metric, and the best one where better is defined.

    `logged` has all values of the fit, with epochs from 0; none where another logger was chosen.
    """
    history: dict[str, list[tuple[int | None, float]]] = {}
    for _, epoch, metric, value in logged:
        history.setdefault(metric, []).append((int(epoch) + 1 if epoch else None, value))
    for metric, value in scores.items():
        if not metric.startswith("val/") or not math.isfinite(value):
            continue
        row = replace(base, metric=metric.removeprefix("val/"))
        values = [(epoch, old) for epoch, old in history.get(metric, ()) if math.isfinite(old)]
        yield replace(row, extra="last", value=value, epoch=values[-1][0] if values else None)
        best = next((choose for ending, choose in _BEST.items() if metric.endswith(ending)), None)
        if values and best is not None:
            best_epoch, best_value = best(values, key=itemgetter(1))
            yield replace(row, extra="best", value=best_value, epoch=best_epoch)
