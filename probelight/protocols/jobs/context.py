"""How a plan's jobs are executed; none of it changes a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar

from probelight.io.errors import UsageError
from probelight.io.package import as_typed
from probelight.io.ranges import (
    BatchSize,
    Minutes,
    NumDevices,
    NumProcesses,
    NumSteps,
    NumThreads,
    NumTokens,
    Seconds,
    Settings,
    Share,
    Within,
)
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.probes.catalog import ProbeConfig


@dataclass(frozen=True)
class RaySettings(Settings):
    """What a sweep's cells are given of Ray.

    Args:
        address: A Ray cluster: "auto" for the one of this machine, or host:port; without one, a
            local Ray starts by itself and ends with the command.
        cpus_per_cell: CPUs that a cell takes of its node, fractions allowed; as many as
            `trainer.threads` times `trainer.devices` when left out, or 1.
        gpus_per_cell: GPUs that a cell takes, fractions of one allowed: 0.5 puts two cells on each;
            `trainer.devices` when left out and the cells are to run on GPUs.
        memory_per_cell: GB of memory that a cell takes of its node; not counted when left out.
        max_retries: How often a cell that failed is tried again before it has failed for good.
            Crashed workers and lost nodes do not count.
        stop_seconds: Seconds that cells have to save their state once they are to stop.
        take_over: Take the folder from a driver that is lost on another host.
    """

    address: str | None = None
    cpus_per_cell: Annotated[float, Within(0, 4_096, above=True)] | None = None
    gpus_per_cell: Annotated[float, Within(0, 1_024)] | None = None
    memory_per_cell: Annotated[float, Within(0, 100_000, above=True)] | None = None
    max_retries: Annotated[int, Within(0, 1_000)] = 2
    stop_seconds: Seconds = 120.0
    take_over: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cpus_per_cell", "gpus_per_cell"):
            value = getattr(self, name)
            if value is not None and value > 1 and value != int(value):
                raise UsageError(
                    f"engine.{name} {value} is more than one and no whole number, which Ray does "
                    "not give; choose a fraction below 1, or a whole number"
                )


@dataclass(frozen=True)
class EngineSettings(RaySettings):
    """Where a command's jobs run.

    Args:
        kind: "here", one after the other in this process, or "ray", as many at once as fit.
        address: As of a sweep.
        cpus_per_cell: As of a sweep.
        gpus_per_cell: As of a sweep.
        memory_per_cell: As of a sweep.
        max_retries: As of a sweep.
        stop_seconds: As of a sweep.
        take_over: As of a sweep.
    """

    kind: Literal["here", "ray"] = "here"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "ray":
            return
        given = [one.name for one in fields(RaySettings) if getattr(self, one.name) != one.default]
        if given:
            raise UsageError(
                f"engine.{given[0]} is for Ray alone; add --engine.kind ray, or leave it out"
            )


DEFAULT_SWEEP_ENGINE = RaySettings()
DEFAULT_ENGINE = EngineSettings()


T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class TrainerSettings(Settings):
    """How Lightning runs; evaluation scores are the same beyond float tolerance for any of it.

    So is training without dropout. With it `devices` and `accumulate` change the numbers as a seed
    does: each process draws its own, and for each accumulated batch anew.

    Args:
        accelerator: Lightning's accelerator.
        devices: Devices, one process each; -1 takes all there are.
        strategy: Lightning's strategy, "ddp" for several devices.
        precision: Lightning's precision; less than 32 bits does change the numbers.
        accumulate: Batches per optimiser step; the effective batch stays `batch_size`, and each
            of its items weighs the same.
        max_eval_tokens: Padded tokens in an evaluation batch.
        checkpoint_every: Steps between two states to resume from; none goes by the clock.
        checkpoint_minutes: Minutes between two states at least, by the clock.
        checkpoint_share: Share of the time that writing states takes at most, by the clock.
        log_every_n_steps: Steps between two that are logged, with training loss and learning rate;
            none takes 10, and 5, 2 or 1 where that would leave fewer than 50 points.
        num_workers: Loader processes.
        threads: CPU threads of each process; none leaves it to torch.
        compile: Compile the transformer with torch.compile before training it.
        progress_bar: Show progress and the time left.
    """

    accelerator: str = "auto"
    devices: NumDevices = 1
    strategy: str = "auto"
    precision: str = "32-true"
    accumulate: BatchSize = 1
    max_eval_tokens: NumTokens = 8192
    checkpoint_every: NumSteps | None = None
    checkpoint_minutes: Minutes = 2.0
    checkpoint_share: Share = 0.1
    log_every_n_steps: NumSteps | None = None
    num_workers: NumProcesses = 0
    threads: NumThreads | None = None
    compile: bool = False
    progress_bar: bool = True

    def micro_batch(self, batch_size: int) -> int:
        """Items in one of the `accumulate` batches of an optimiser step.

        Raises:
            UsageError: If they do not divide the batch.
        """
        if batch_size % self.accumulate:
            raise UsageError(
                f"batch_size {batch_size} is not a multiple of --trainer.accumulate "
                f"{self.accumulate}; choose one that is, so that the effective batch stays the same"
            )
        return batch_size // self.accumulate


DEFAULT_TRAINER = TrainerSettings()


@dataclass(frozen=True)
class RunContext:
    """What every job of a command is given, and a worker's cells too.

    Args:
        trainer: How Lightning runs.
        wandb: Weights & Biases.
        mirror: Stands for the addresses of the released files.
        own: Configs of probes of one's own by the names that they go by, for which there is no
            file of a config.
        paths: Where the other files are that a command was given, by what its jobs call them.
        engine: Where the jobs of a command run; no business of the jobs.
        quiet: Whether the command itself says what is done; no business of the jobs.
        kept: What loaders keep for the jobs that come next in the same process (`kept`).
    """

    trainer: TrainerSettings = DEFAULT_TRAINER
    wandb: WandbSettings = DEFAULT_WANDB
    mirror: str | None = None
    own: Mapping[str, ProbeConfig] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    engine: EngineSettings = DEFAULT_ENGINE
    quiet: bool = False
    kept: dict[Callable[..., Any], list[tuple[Any, Any]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def probe(self, name: str) -> str | ProbeConfig:
        """What a probe of this name is loaded by."""
        return self.own.get(name, name)

    def say(self, line: str) -> None:
        """Tells whoever gave the command."""
        if not self.quiet:
            print(as_typed(line))

    def fixed_by(self, config: Mapping[str, Any]) -> RunContext:
        """The context with what a job's key was made with, whatever its executor is told."""
        fixed = {name: config[name] for name in ("precision", "threads") if name in config}
        return replace(self, trainer=replace(self.trainer, **fixed))

    def to_json(self) -> dict[str, Any]:
        """What other processes are told, in plain values: what a job is given."""
        return {
            "trainer": asdict(self.trainer),
            "wandb": asdict(self.wandb),
            "mirror": self.mirror,
            "own": {name: config.to_json() for name, config in self.own.items()},
            "paths": dict(self.paths),
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> RunContext:
        """What `to_json` said.

        Raises:
            KeyError: If a part is missing.
            TypeError: If one has other fields.
        """
        wandb = {**found["wandb"], "tags": tuple(found["wandb"]["tags"])}
        return RunContext(
            TrainerSettings(**found["trainer"]),
            WandbSettings(**wandb),
            found["mirror"],
            {name: ProbeConfig.from_json(config) for name, config in found["own"].items()},
            found["paths"],
        )


DEFAULT_CONTEXT = RunContext()


def kept(
    most: int | None = 1,
) -> Callable[[Callable[Concatenate[RunContext, P], T]], Callable[Concatenate[RunContext, P], T]]:
    """Keep what a loader returns for the jobs of a command that come next in the same process.

    The loader's first argument is the context, which holds what is kept: another command begins
    with nothing. The other arguments are compared by equality, and so is the mirror.

    Args:
        most: How many values are kept; the oldest goes before the next is loaded, which may need
            its room. None keeps all.
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
            values.append((key, load(context, *args, **kwargs)))
            made: T = values[-1][1]
            return made

        return loaded

    return decorate
