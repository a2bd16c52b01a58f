"""The cost of the states to resume from in a fine-tuning.

    python -m benchmarks.checkpointing [--probe hypernymy --mirror FOLDER] [--every 50]

One fit with states every so many steps, or by the clock as is the default: the seconds of writing
them, each synced to the disk, as a share of the seconds of all steps.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import pytorch_lightning as pl

from benchmarks.arguments import Arguments
from benchmarks.interleaved import clock
from benchmarks.mc_qa_training import accelerator_of
from benchmarks.results import report
from probelight.callbacks.last_state import AtomicCheckpointIO, LastState
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.package import SMALL_MODEL
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.probes.source import load_probe
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import make_trainer

BATCH_SIZE = 16


class SaveClock(pl.Callback):
    """Times of every call of the trainer's `save_checkpoint`, gathering the state included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def setup(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        """Time the trainer's method."""
        save = trainer.save_checkpoint

        def timed(*arguments: Any, **options: Any) -> None:
            start = clock()
            save(*arguments, **options)
            self.seconds.append(clock() - start)

        trainer.save_checkpoint = timed  # type: ignore[method-assign]


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__)
    parser.add_argument("--model", default=SMALL_MODEL)
    parser.add_argument("--probe", default="hypernymy_small")
    parser.add_argument("--mirror")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int)
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the seconds of a state, and the states' share of the whole fit."""
    records = list(load_probe(chosen.probe, "train", mirror=chosen.mirror).records)
    module = SentenceChoice(chosen.model, head="pooler")
    data = ChoiceDataModule(train=records, evaluation={"probe": records[:1]}, batch_size=BATCH_SIZE)
    saves = SaveClock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(
            TrainerSettings(accelerator=accelerator_of(chosen.device), progress_bar=False),
            max_steps=chosen.steps,
            logger=False,
            plugins=[AtomicCheckpointIO()],
            callbacks=[saves, LastState(folder, chosen.every)],
            limit_val_batches=0,
        )
        start = clock()
        trainer.fit(module, datamodule=data)
        fit_seconds = clock() - start
        size = sum(path.stat().st_size for path in Path(folder).glob("*.ckpt"))
    figures = {
        "steps between two states (0: by the clock)": float(chosen.every or 0),
        "states written": float(len(saves.seconds)),
        "MB of a state": size / 1e6,
        "seconds of a state (median)": median(saves.seconds),
        "seconds of the fit": fit_seconds,
        "states' share of the fit, %": 100 * sum(saves.seconds) / fit_seconds,
    }
    report(f"States to resume from, {chosen.probe}, {chosen.steps} steps", figures, chosen)
    return figures


if __name__ == "__main__":
    main()
