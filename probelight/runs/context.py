"""What every run of a command runs under, and what its loaders keep from run to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import wraps
from inspect import unwrap
from typing import Any, Concatenate, ParamSpec, TypeVar

from probelight.io.package import as_typed
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.probes.catalog import ProbeConfig
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class RunContext:
    """What every job of a command runs under, in this process and others.

    Args:
        trainer: How Lightning runs.
        wandb: Where the runs appear in Weights & Biases.
        mirror: Folder or address that replaces the addresses of the released files.
        user_probes: Configs of the user's probes that have no file, by name.
        paths: Paths of the user's other files, by the names that jobs use.
        force: Whether to train what does not fit into the memory, by what is known before.
        engine: Where the jobs run; not passed on to other processes.
        quiet: Whether `say` prints nothing; not passed on either.
        values_by_loader: Values that loaders keep for later jobs in the same process (`cached`).
    """

    trainer: TrainerSettings = DEFAULT_TRAINER
    wandb: WandbSettings = DEFAULT_WANDB
    mirror: str | None = None
    user_probes: Mapping[str, ProbeConfig] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    force: bool = False
    engine: EngineSettings = DEFAULT_ENGINE
    quiet: bool = False
    values_by_loader: dict[Callable[..., Any], list[tuple[Any, Any]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def probe(self, name: str) -> str | ProbeConfig:
        """Return what a probe is loaded by: the user's config, or its name in the catalog."""
        return self.user_probes.get(name, name)

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
            "own": {name: config.to_json() for name, config in self.user_probes.items()},
            "paths": dict(self.paths),
            "force": self.force,
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RunContext:
        """Return the context that `to_json` was called on; KeyError or TypeError if damaged."""
        wandb = {**content["wandb"], "tags": tuple(content["wandb"]["tags"])}
        return RunContext(
            TrainerSettings(**content["trainer"]),
            WandbSettings(**wandb),
            content["mirror"],
            {name: ProbeConfig.from_json(config) for name, config in content["own"].items()},
            content["paths"],
            content["force"],
        )


DEFAULT_CONTEXT = RunContext()


def keep(context: RunContext, loader: Callable[..., T], already_loaded: T, *args: object) -> None:
    """Let a `cached` loader return for these arguments what was loaded already."""
    loads = context.values_by_loader.setdefault(unwrap(loader), [])
    loads.append(((context.mirror, args, {}), already_loaded))


def cached(
    most: int | None = 1,
) -> Callable[[Callable[Concatenate[RunContext, P], T]], Callable[Concatenate[RunContext, P], T]]:
    """Keep the last `most` values of a loader (None: all) for later jobs of the same process.

    The loader's first argument is the context, which holds the values: another command begins with
    none. The other arguments and the mirror are compared by equality. The oldest value goes before
    the next is loaded, which may need its memory.
    """

    def decorate(
        loader: Callable[Concatenate[RunContext, P], T],
    ) -> Callable[Concatenate[RunContext, P], T]:
        @wraps(loader)
        def loaded(context: RunContext, /, *args: P.args, **kwargs: P.kwargs) -> T:
            values: list[tuple[Any, T]] = context.values_by_loader.setdefault(loader, [])
            key = context.mirror, args, kwargs
            for known_key, value in values:
                if known_key == key:
                    return value
            if most is not None and len(values) >= most:
                del values[0]
            new_value = loader(context, *args, **kwargs)
            values.append((key, new_value))
            return new_value

        return loaded

    return decorate
