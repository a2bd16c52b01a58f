"""One small training with W&B and no key, killed at a place: `python -m ... FOLDER [PLACE]`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from probelight.callbacks.wandb_logger import WandbGuard
from probelight.io.wandb import WandbSettings
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_jobs
from probelight.runs.settings import TrainerSettings
from tests.runs import tiny_training

# Places where something is written: what is called there, and whether it is done before the kill.
PLACES: dict[str, tuple[Any, str, bool]] = {
    "before W&B is told anything": (WandbGuard, "_start", False),
    "behind the first lines": (WandbGuard, "_start", True),
    "behind the summary of the fit": (WandbGuard, "summarise", True),
    "behind result.json": (RunFolder, "tell", False),
    "before the run ends in W&B": (WandbGuard, "_finish", False),
    "behind the file of W&B": (Path, "unlink", False),
}


def kill_at(point: str) -> None:
    """Makes this process kill itself there."""
    owner, name, is_done = PLACES[point]
    method = getattr(owner, name)

    def killed(self: Any, *arguments: Any, **options: Any) -> Any:
        if owner is Path and self.name != "pending.json":
            return method(self, *arguments, **options)
        if is_done:
            method(self, *arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)


def main(folder: Path, point: str = "") -> None:
    if point:
        kill_at(point)
    trainer = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False, checkpoint_every=1)
    context = RunContext(trainer, WandbSettings(project="p"))
    [job] = tiny_training.cells(1, seconds=0.0)
    run_jobs([job], CommandFolder(folder, {"command": "tiny"}), context)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
