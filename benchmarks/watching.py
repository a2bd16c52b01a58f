"""The cost of probes in a training loop of one's own.

    python -m benchmarks.watching [--threads 2] [--every 100] [--items 300]

transformers' Trainer takes some steps of 16 x 128 tokens with a model of 6 layers, masked words as
labels; `ProbeTrainerCallback` scores MC-MLM items before, in the middle and at the end. A look's
share is its seconds over those of `--every` steps and itself, so few steps will do. Questions of
five choices are scored by a multiple-choice head of the same size, each choice a text of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoTokenizer,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.arguments import Arguments
from benchmarks.interleaved import clock
from benchmarks.random_model import write_random_model
from benchmarks.results import report
from probelight.integrations.transformers import ProbeTrainerCallback
from probelight.integrations.watch import Watch

BATCH_SIZE, LENGTH = 16, 128
SENTENCES, QUESTIONS = "taxonomy_small:train", "hypernymy_small:train"


class StepClock(TrainerCallback):
    """Seconds of each step of the trainer, without what callbacks do between steps."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._start = clock()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Stop the clock after the optimiser's step."""
        self.seconds.append(clock() - self._start)


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, quick="a model of one layer, four steps")
    parser.add_argument("--every", type=int, default=100, help="steps between two looks")
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--steps", type=int, default=20, help="steps to measure")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the seconds of a step and of a look, and the look's share."""
    num_steps = 4 if chosen.quick else chosen.steps
    with tempfile.TemporaryDirectory() as folder:
        size = {"num_layers": 1, "hidden_size": 64} if chosen.quick else {}
        write_random_model(f"{folder}/model", **size)
        tokenizer = AutoTokenizer.from_pretrained(f"{folder}/model")
        config = AutoConfig.from_pretrained(f"{folder}/model")
        torch.manual_seed(0)
        ids = torch.randint(5, len(tokenizer), (BATCH_SIZE, LENGTH))
        options: dict[str, Any] = {"max_items": chosen.items}
        watch = ProbeTrainerCallback(
            [SENTENCES], every=max(1, num_steps // 2), output_dir=f"{folder}/sentences", **options
        )
        looks = timed(watch.watch)
        steps = StepClock()
        arguments = TrainingArguments(
            f"{folder}/out",
            max_steps=num_steps,
            per_device_train_batch_size=BATCH_SIZE,
            use_cpu=chosen.device == "cpu",
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        Trainer(
            AutoModelForMaskedLM.from_config(config),
            arguments,
            train_dataset=[{"input_ids": row, "labels": row} for row in ids],  # type: ignore[arg-type]
            processing_class=tokenizer,
            callbacks=[steps, watch],
        ).train()
        head = AutoModelForMultipleChoice.from_config(config).to(chosen.device)
        question_watch = Watch([QUESTIONS], output_dir=Path(folder) / "questions", **options)
        question_looks = timed(question_watch)
        question_watch.begin(head, tokenizer)
        for step in range(3):
            question_watch.look(head, step)
    # The first step and the first look warm up what the others find.
    step, look = median(steps.seconds[1:]), median(looks[1:])
    between = chosen.every * step
    figures = {
        "sentences scored": float(len(watch.watch.sets[0].data.records)),
        "questions of five choices scored": float(len(question_watch.sets[0].data.records)),
        f"seconds of a step of {BATCH_SIZE} x {LENGTH} tokens": step,
        "seconds of a look at the sentences": look,
        "seconds of a look at the questions": median(question_looks[1:]),
        f"sentences' share of the time, a look every {chosen.every} steps, %": share(look, between),
        "questions' share of the time, %": share(median(question_looks[1:]), between),
    }
    report("Probes in a training loop", figures, chosen)
    print(*watch.watch.sets[0].data.notices, sep="\n")
    return figures


def timed(watch: Watch) -> list[float]:
    """Return the seconds of each look from now on, writing what it found included."""
    seconds: list[float] = []
    look: Callable[..., dict[str, float]] = watch.look

    def timed_look(*arguments: Any) -> dict[str, float]:
        start = clock()
        scores = look(*arguments)
        seconds.append(clock() - start)
        return scores

    watch.look = timed_look  # type: ignore[method-assign]
    return seconds


def share(look: float, steps: float) -> float:
    """Return a look's share of the time, in per cent."""
    return 100 * look / (look + steps)


if __name__ == "__main__":
    main()
