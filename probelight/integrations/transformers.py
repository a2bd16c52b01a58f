"""Probes in the training loop of transformers' Trainer, and of TRL's trainers.

from probelight.integrations.transformers import ProbeTrainerCallback

watch = ProbeTrainerCallback(["hypernymy_small", "held_out.jsonl"], every=200, keep="best_average")
Trainer(..., callbacks=[watch]).train()
watch.results, watch.changes, watch.best_checkpoint
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from probelight.integrations.callback import WatchedTraining
from probelight.integrations.watch import Entry, Watch


class ProbeTrainerCallback(WatchedTraining, TrainerCallback):
    """Scores probes before, during and after a training.

    It does not change the training: the weights are bit for bit the same as without it. Scores are
    in the trainer's log (`probe/NAME`), in Weights & Biases if a run is open, and in a folder that
    `report` reads.

    Args:
        probes: Names of probes, `name:split`, files of items, items in memory, or return values of
            `probelight.load_probe`; one or several.
        original: The task that the model should not forget; it is scored like the probes.
        every: Score every this many steps, or "epoch".
        output_dir: Folder of the results; by default `probes` in the trainer's own folder.
        tokenizer: The model's tokenizer; by default the trainer's `processing_class`.
        **options: As in `Watch`: `keep`, `keep_most`, `max_items`, `seed`, `text`, `max_tokens`,
            `check`, `margin`, `resume`.

    Raises:
        ProbelightError: If there is no such probe, or one is malformed.
    """

    def __init__(
        self,
        probes: Entry | Sequence[Entry],
        original: Entry | None = None,
        *,
        every: int | Literal["epoch"] = 200,
        output_dir: str | Path | None = None,
        tokenizer: Any = None,
        **options: Any,
    ) -> None:
        options["output_dir"] = "probes" if output_dir is None else output_dir
        super().__init__(every, Watch(probes, original, **options))
        self._tokenizer = tokenizer
        self._has_folder = output_dir is not None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check that the probes fit the model, and score it before the training."""
        if not self._has_folder:
            self.watch.output_dir = Path(str(args.output_dir)) / "probes"
        sharded = [
            name
            for name in ("fsdp", "deepspeed")
            if getattr(args, name, None)
            or os.environ.get(f"ACCELERATE_USE_{name.upper()}") == "true"
        ]
        tokenizer = self._tokenizer or kwargs.get("processing_class")
        self.begin(kwargs["model"], tokenizer, state.global_step, ", ".join(sharded))
        self._look(state, kwargs["model"])

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Score the model every `every` steps, and after the last one."""
        is_last = state.global_step >= state.max_steps or control.should_training_stop
        if is_last or (self.every != "epoch" and state.global_step % self.every == 0):
            self._look(state, kwargs["model"])

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Score the model at the end of an epoch."""
        if self.every == "epoch":
            self._look(state, kwargs["model"])

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Score the trained model, unless the trainer has loaded its best checkpoint instead."""
        if not (args.load_best_model_at_end and state.best_model_checkpoint):
            self._look(state, kwargs["model"])
        self.end()

    def _look(self, state: TrainerState, network: Any) -> None:
        if logged := self.look(network, state.global_step):
            state.log_history.append({**logged, "epoch": state.epoch, "step": state.global_step})
            wandb = sys.modules.get("wandb")  # whoever opened a run has imported it
            if state.is_world_process_zero and wandb is not None and wandb.run is not None:
                wandb.log({**logged, "train/global_step": state.global_step})
