"""The spec of a run, all that decides its numbers, and the job that makes it in a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from probelight.io.documents import read_json
from probelight.io.ranges import NumThreads
from probelight.io.settings import Settings, settings_from
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder, run_key
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.runs.context import RunContext
    from probelight.runs.memory import MemoryNeed

DRAWN_NAME = "drawn.json"


@dataclass(frozen=True)
class Trial(Settings):
    """How a part of a run's setting is drawn before its first start (`search: tpe`).

    Args:
        space: Range ({"low", "high", "log"}) or values ({"choices"}) of each parameter.
        number: Which trial of its search it is, from 0.
        at_once: How many trials are drawn together.
    """

    space: dict[str, dict[str, Any]]
    number: int
    at_once: int


@dataclass(frozen=True, kw_only=True)
class RunSpec(Settings):
    """All that decides the numbers of one run.

    Each kind of run is a subclass in the module of its runner. Its fields are what the runner goes
    by: a run whose spec is equal is the same run, here, on Ray and when it is resumed.

    Attributes:
        protocol: Kind of run, as results.csv names it.
    """

    protocol: ClassVar[str]

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        raise NotImplementedError

    @cached_property
    def key(self) -> str:
        """Name of the run folder: `<name>-<first 12 hex digits of the sha256 of the config>`."""
        return run_key(self.name, self.to_config())

    @property
    def trial(self) -> Trial | None:
        """How a part of the setting is drawn; None where nothing is."""
        return None

    def check(self, context: RunContext) -> None:
        """Refuse what would fail after hours; called before the first run of a command begins."""

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run in its folder, and return the record, which is then written."""
        raise NotImplementedError

    def fixed(self, trainer: TrainerSettings) -> TrainerSettings:
        """Return the settings of a command with those that the run was planned with."""
        return trainer

    def to_config(self) -> dict[str, Any]:
        """Return plain values for config.yaml and the key, without fields at their defaults."""
        config: dict[str, Any] = {"protocol": self.protocol}
        for name, value in asdict(self).items():
            default = type(self).__dataclass_fields__[name].default
            if default is MISSING or getattr(self, name) != default:
                config[name] = value
        return dict(json.loads(json.dumps(config)))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return the spec that `to_config` was called on; RangeError names a key that is wrong."""
        return settings_from(cls, {key: v for key, v in config.items() if key != "protocol"})


@dataclass(frozen=True, kw_only=True)
class ModelRunSpec(RunSpec):
    """A run in which a model answers or is trained.

    Args:
        precision: Precision of the products, as Lightning names it.
        matmul_precision: How 32-bit matrices are multiplied.
        threads: CPU threads per process, where the plan fixes them.
    """

    precision: str = "32-true"
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    threads: NumThreads | None = None

    def under(self, trainer: TrainerSettings, *, fixes_threads: bool = False) -> Self:
        """Return the spec with the precision of the settings, and the threads where it fixes them.

        Sums over threads round differently, so whoever fixes their number gets the same bits.
        """
        return replace(
            self,
            precision=trainer.precision,
            matmul_precision=trainer.matmul_precision,
            threads=trainer.threads if fixes_threads else None,
        )

    def fixed(self, trainer: TrainerSettings) -> TrainerSettings:
        """Return the settings with the precision and threads of the plan."""
        threads = trainer.threads if self.threads is None else self.threads
        return replace(
            trainer,
            precision=self.precision,
            matmul_precision=self.matmul_precision,
            threads=threads,
        )


@dataclass(frozen=True)
class Job:
    """One run of a plan, with what it waits for and what it will take.

    Args:
        spec: All that decides the run's numbers, and with them its key.
        needs: Keys of the runs that must be finished before this one is started.
        num_steps: Optimiser steps, for the estimate of time.
        weights_bytes: Size of the model's weights, for the estimate of memory and disk.
        saved_bytes: Of what is saved of a trained model, such as an adapter; 0 for all weights.
        follows: Keys of the runs that must have ended before this one, finished or failed for good.
        title: Name of the run in the command's messages; the key if empty.
        bar: Text of one progress bar that this job shares with neighbours of the same text.
        num_texts: Texts that a model without training reads first, for the estimate of time.
        keeps_model: Whether the model is still there when the run is done, for that of disk.
        memory: Measures what its training takes of memory; None where that is not worth the time.
    """

    spec: RunSpec
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
        """Name of the run folder."""
        return self.spec.key


def spec_type(spec: RunSpec) -> str:
    """Return the "module:class" under which other processes find the class of a spec."""
    return f"{type(spec).__module__}:{type(spec).__qualname__}"


def spec_from(type_name: str, config: Mapping[str, Any]) -> RunSpec:
    """Return the spec in a run's config.yaml, of the class that `spec_type` named."""
    kind: type[RunSpec] = resolve_name(type_name)
    return kind.from_config(config)


def drawn_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the config of a run with the setting that was drawn before its first start, if any."""
    path = folder / DRAWN_NAME
    if not path.exists():
        return dict(config)
    drawn = read_json(path)
    return {**config, "setting": {**config["setting"], **drawn}}
