"""A job: one run, known by the hash of its resolved config, and the settings to execute it with.

Execution changes no number and is no part of the key.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar

from probelight.io import ranges
from probelight.io.documents import read_json
from probelight.io.errors import UsageError
from probelight.io.package import as_typed
from probelight.io.process import is_first_process
from probelight.io.wandb import DEFAULT_WANDB, PENDING, WandbSettings
from probelight.probes.catalog import ProbeConfig
from probelight.protocols.jobs.fencing import AttemptLostError
from probelight.protocols.jobs.memory import MemoryNeed
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder, run_key


@dataclass(frozen=True)
class RaySettings(ranges.Settings):
    """What each job of a sweep, called a cell, takes from Ray.

    Args:
        address: Ray cluster: "auto" for the one on this machine, or host:port. By default the
            command starts a local Ray and ends it.
        cpus_per_cell: CPUs per cell, fractions allowed; by default `trainer.threads` (or 1) times
            `trainer.devices`.
        gpus_per_cell: GPUs per cell; a fraction such as 0.5 puts two cells on each GPU. By default
            `trainer.devices` if cells run on GPUs.
        memory_per_cell: GB of memory per cell. By default memory is not counted.
        max_retries: How often to try a failed cell again. Crashed workers and lost nodes do not
            count.
        stop_seconds: Seconds that cells have to save their state when the command is stopped.
        take_over: Take over the folder from a command on another host that has ended without
            saying so.
    """

    address: str | None = None
    cpus_per_cell: Annotated[float, ranges.Within(0, 4_096, above=True)] | None = None
    gpus_per_cell: Annotated[float, ranges.Within(0, 1_024)] | None = None
    memory_per_cell: Annotated[float, ranges.Within(0, 100_000, above=True)] | None = None
    max_retries: Annotated[int, ranges.Within(0, 1_000)] = 2
    stop_seconds: ranges.Seconds = 120.0
    take_over: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cpus_per_cell", "gpus_per_cell"):
            value = getattr(self, name)
            if value is not None and value > 1 and value != int(value):
                raise UsageError(
                    f"engine.{name} {value}: Ray gives only fractions below 1 or whole numbers; "
                    "give one of these"
                )
        port = re.fullmatch(r"auto|[^\s/]+:(\d+)", self.address or "auto")
        if port is None or int(port[1] or 0) > 65_535:
            raise UsageError(f"engine.address {self.address}: give auto or HOST:PORT")


@dataclass(frozen=True)
class EngineSettings(RaySettings):
    """Where a command's jobs run; the other settings are only for Ray.

    Args:
        kind: "here", one job at a time, or "ray", as many as fit.
    """

    kind: Literal["here", "ray"] = "here"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "ray":
            return
        for item in fields(RaySettings):
            if getattr(self, item.name) != item.default:
                raise UsageError(
                    f"engine.{item.name} is only for Ray; add --engine.kind ray, or leave it out"
                )


DEFAULT_SWEEP_ENGINE = RaySettings()
DEFAULT_ENGINE = EngineSettings()


# Those of Lightning, which takes seconds to import.
ACCELERATORS = ("auto", "cpu", "cuda", "gpu", "mps", "tpu")

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class TrainerSettings(ranges.Settings):
    """How Lightning runs. Evaluation scores do not depend on it beyond float tolerance.

    Neither does training without dropout. With dropout, `devices` and `accumulate` change the
    numbers as a seed does: each process and each accumulated batch draws its own.

    Args:
        accelerator: "cpu", "gpu" (cuda or mps), or "auto" (a GPU if any).
        devices: Number of devices, with one process each; -1 uses all.
        strategy: Lightning's strategy, such as "ddp" for several devices.
        precision: Such as bf16-mixed; below 32 bits, results change.
        matmul_precision: How to multiply 32-bit matrices: "high" (TF32) and "medium" are several
            times faster on GPUs with tensor cores, but change results.
        accumulate: Divide each optimiser step into this many batches, to save memory. The effective
            batch stays `batch_size`, and each item has the same weight.
        max_eval_tokens: Tokens per evaluation batch, including padding.
        checkpoint_every: Steps between checkpoints to resume from. By default they are saved by
            time.
        checkpoint_minutes: Minimum time in minutes between checkpoints that are saved by time.
        checkpoint_share: Maximum share of the time to spend on saving checkpoints by time.
        log_every_n_steps: Steps between log entries with training loss and learning rate. By
            default 10, or 5, 2 or 1 if there would be fewer than 50 entries.
        num_workers: Processes that load data; by default one on a CUDA device, otherwise 0.
        threads: CPU threads per process; by default torch decides.
        compile: Compile the transformer with torch.compile before training.
        gradient_checkpointing: Recompute a transformer's layers in the backward pass instead of
            keeping their results: less memory, about a third more time, the same results.
        progress_bar: Show progress and the time left.
    """

    accelerator: Annotated[str, ranges.OneOf(ACCELERATORS)] = "auto"
    devices: ranges.NumDevices = 1
    strategy: str = "auto"
    precision: str = "32-true"
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    accumulate: ranges.BatchSize = 1
    max_eval_tokens: ranges.NumTokens = 8192
    checkpoint_every: ranges.NumSteps | None = None
    checkpoint_minutes: ranges.Minutes = 2.0
    checkpoint_share: ranges.Share = 0.1
    log_every_n_steps: ranges.NumSteps | None = None
    num_workers: ranges.NumProcesses | None = None
    threads: ranges.NumThreads | None = None
    compile: bool = False
    gradient_checkpointing: bool = False
    progress_bar: bool = True

    def precisions(self) -> dict[str, str]:
        """Return what of it changes numbers, for configs of runs."""
        return {"precision": self.precision, "matmul_precision": self.matmul_precision}

    def micro_batch(self, batch_size: int) -> int:
        """Return the number of items in each of the `accumulate` batches of an optimiser step."""
        if batch_size % self.accumulate:
            raise UsageError(
                f"batch_size {batch_size} is not a multiple of --trainer.accumulate "
                f"{self.accumulate}; give a divisor of {batch_size}"
            )
        return batch_size // self.accumulate


DEFAULT_TRAINER = TrainerSettings()


@dataclass(frozen=True)
class RunContext:
    """What every job of a command runs under, in this process and others.

    Args:
        trainer: How Lightning runs.
        wandb: Where the runs appear in Weights & Biases.
        mirror: Folder or address that replaces the addresses of the released files.
        own: Configs of the user's probes that have no file, by name.
        paths: Paths of the user's other files, by the names that jobs use.
        force: Whether to train what does not fit into the memory, by what is known before.
        engine: Where the jobs run; not passed on to other processes.
        quiet: Whether `say` prints nothing; not passed on either.
        kept: Values that loaders keep for later jobs in the same process (`kept`).
    """

    trainer: TrainerSettings = DEFAULT_TRAINER
    wandb: WandbSettings = DEFAULT_WANDB
    mirror: str | None = None
    own: Mapping[str, ProbeConfig] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    force: bool = False
    engine: EngineSettings = DEFAULT_ENGINE
    quiet: bool = False
    kept: dict[Callable[..., Any], list[tuple[Any, Any]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def probe(self, name: str) -> str | ProbeConfig:
        """Return what a probe is loaded by: the user's config, or its name in the catalog."""
        return self.own.get(name, name)

    def say(self, line: str) -> None:
        """Print a line for the user, unless the command is quiet."""
        if not self.quiet:
            print(as_typed(line))

    def to_json(self) -> dict[str, Any]:
        """Return the plain values that other processes need to run a job."""
        return {
            "trainer": asdict(self.trainer),
            "wandb": asdict(self.wandb),
            "mirror": self.mirror,
            "own": {name: config.to_json() for name, config in self.own.items()},
            "paths": dict(self.paths),
            "force": self.force,
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> RunContext:
        """Return the context that `to_json` was called on; KeyError or TypeError if damaged."""
        wandb = {**found["wandb"], "tags": tuple(found["wandb"]["tags"])}
        return RunContext(
            TrainerSettings(**found["trainer"]),
            WandbSettings(**wandb),
            found["mirror"],
            {name: ProbeConfig.from_json(config) for name, config in found["own"].items()},
            found["paths"],
            found["force"],
        )


DEFAULT_CONTEXT = RunContext()


def kept(
    most: int | None = 1,
) -> Callable[[Callable[Concatenate[RunContext, P], T]], Callable[Concatenate[RunContext, P], T]]:
    """Keep the last `most` values of a loader (None: all) for later jobs of the same process.

    The loader's first argument is the context, which holds the values: another command begins with
    none. The other arguments and the mirror are compared by equality. The oldest value goes before
    the next is loaded, which may need its memory.
    """

    def decorate(
        load: Callable[Concatenate[RunContext, P], T],
    ) -> Callable[Concatenate[RunContext, P], T]:
        @wraps(load)
        def loaded(context: RunContext, /, *args: P.args, **kwargs: P.kwargs) -> T:
            values, key = context.kept.setdefault(load, []), (context.mirror, args, kwargs)
            for known, value in values:
                if known == key:
                    found: T = value
                    return found
            if most is not None and len(values) >= most:
                del values[0]
            made = load(context, *args, **kwargs)
            values.append((key, made))
            return made

        return loaded

    return decorate


# Makes the run of a config and returns its record, which is then written as result.json.
Runner = Callable[[RunFolder, Mapping[str, Any], RunContext], RunRecord]


@dataclass(frozen=True)
class Job:
    """One run of a plan, called a cell in sweeps. Only `name` and `config` make its key.

    Args:
        name: Readable beginning of the key.
        config: The resolved config, plain values only; it decides the numbers. `threads` fixes the
            threads of the job's process. `search` has the ranges or values of parameters that are
            drawn before the job is started; the draw is added to the config under `setting`.
        runner: The function that makes the run, at the top of a module, or its "module:function".
        needs: Keys of the jobs that must be finished before this one is started.
        num_steps: Optimiser steps, for the estimate of time.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        saved_bytes: Of what is saved of a trained model, such as an adapter; 0 for all weights.
        follows: Keys of the jobs that must have ended before this one, finished or failed for good.
        title: Name of the job in the command's messages; the key if empty.
        bar: Text of one progress bar that this job shares with neighbours of the same text.
        num_texts: Texts that a model without training reads first, for the estimate of time.
        keeps_model: Whether the model is still there when the job is done, for that of disk.
        memory: Measures what its training takes of memory; None where that is not worth the time.
    """

    name: str
    config: Mapping[str, Any]
    runner: Runner | str
    needs: tuple[str, ...] = ()
    num_steps: int = 0
    weights_bytes: int = 0
    follows: tuple[str, ...] = ()
    title: str = ""
    bar: str = ""
    num_texts: int = 0
    keeps_model: bool = True
    saved_bytes: int = 0
    memory: Callable[[], MemoryNeed] | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Name of the run folder: `<name>-<first 12 hex digits of the config's sha256>`."""
        return run_key(self.name, self.config)

    @property
    def runner_name(self) -> str:
        """The "module:function" under which other processes find the runner."""
        if isinstance(self.runner, str):
            return self.runner
        return f"{self.runner.__module__}:{self.runner.__qualname__}"


DRAWN_NAME = "drawn.json"


def drawn_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the config of a job with the setting that was drawn before its first start, if any."""
    path = folder / DRAWN_NAME
    if not path.exists():
        return dict(config)
    drawn = read_json(path)
    return {**config, "setting": {**config.get("setting", {}), **drawn}}


def load_runner(name: str) -> Runner:
    """Return the function that "module:function" names."""
    runner: Runner = resolve_name(name)
    return runner


def make_run(
    runner: Runner | str, run: RunFolder, config: Mapping[str, Any], context: RunContext
) -> None:
    """Make the run of a job, and write its record with the seconds that it took.

    The config's precision and threads override the context's. With W&B on, a failed run appears
    there too, and one that had begun there ends.
    """
    wandb = context.wandb
    if wandb.project and (run.path / "wandb").is_dir():
        _follow(run, wandb)
    start = time.perf_counter()
    try:
        function = load_runner(runner) if isinstance(runner, str) else runner
        names = ("precision", "matmul_precision", "threads")
        fixed = {name: config[name] for name in names if config.get(name) is not None}
        context = replace(context, trainer=replace(context.trainer, **fixed))
        record = function(run, config, context)
        if not is_first_process() and run.result_path.exists():  # it is written once
            run.tell(record)
        else:
            run.finish(replace(record, seconds=round(time.perf_counter() - start, 3)))
    except AttemptLostError:
        raise  # the run in W&B is that of the attempt in charge
    except BaseException as end:
        if wandb.project and isinstance(end, Exception) and not run.listeners:
            _follow(run, wandb)
        run.tell(end)
        raise


def result_of_first(run: RunFolder) -> RunRecord:
    """Wait for the result of a run that the first process of several makes alone."""
    parent = os.getppid()
    while (record := run.result()) is None:
        if os.getppid() != parent:  # what started both of them is gone
            raise RuntimeError(f"{run.path}: the process that was computing this run has ended")
        time.sleep(0.2)
    return record


def record_pending(runs_dir: Path, wandb: WandbSettings) -> None:
    """Record in W&B the finished runs under `runs_dir` that it does not have, or not all of.

    Their process was killed between `result.json` and the end of the run in W&B, or W&B failed or
    took too long. Unfinished runs go on and record themselves.
    """
    if not wandb.project or wandb.disabled or not is_first_process():
        return
    for path in sorted(runs_dir.glob(f"*/{PENDING}")):
        folder = path.parent.parent
        try:
            run = RunFolder.at(folder)
            if (record := run.result()) is None:
                continue
            run.config = drawn_config(run.config, folder)
            summary = read_json(path)["summary"]
            print(f"{folder.name}: sending the rest of this run to Weights & Biases")
            _follow(run, wandb, summary)
            run.tell(record)
        except (OSError, ValueError, LookupError, TypeError) as error:
            warnings.warn(
                f"the run of {folder} could not be sent to Weights & Biases: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def _follow(run: RunFolder, wandb: WandbSettings, summary: Mapping[str, Any] | None = None) -> None:
    # Only now: it imports Lightning.
    from probelight.callbacks.wandb_logger import follow

    guard = follow(run, wandb)
    if summary is not None:
        guard.summarise(summary)
