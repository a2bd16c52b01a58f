"""How runs are executed: on which devices, here or on Ray. It changes no number of a run."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.settings import Settings


@dataclass(frozen=True)
class RaySettings(Settings):
    """What each run, of a sweep or another command, takes from Ray.

    Args:
        address: Ray cluster: "auto" for the one on this machine, or host:port. By default the
            command starts a local Ray and ends it.
        cpus_per_cell: CPUs per run, fractions allowed; by default `trainer.threads` (or 1) times
            `trainer.devices`.
        gpus_per_cell: GPUs per run; a fraction such as 0.5 puts two runs on each GPU. By default
            `trainer.devices` if runs are on GPUs.
        memory_per_cell: GB of memory per run. By default memory is not counted.
        max_retries: How often to try a failed run again. Crashed workers and lost nodes do not
            count.
        stop_seconds: Seconds that runs have to save their state when the command is stopped.
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


@dataclass(frozen=True)
class TrainerSettings(Settings):
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


def expected_device(accelerator: str) -> str:
    """Return "cpu" or "gpu" for `trainer.accelerator`, as far as can be told without torch."""
    auto = "gpu" if shutil.which("nvidia-smi") else "cpu"
    return {"cpu": "cpu", "auto": auto}.get(accelerator, "gpu")
