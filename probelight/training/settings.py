"""The settings of every training, with the defaults of the papers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from probelight.io import ranges
from probelight.io.settings import Settings
from probelight.models.tuning import FULL_TUNING, Tuning


@dataclass(frozen=True, kw_only=True)
class Fit(Settings):
    """The settings of every training.

    Args:
        learning_rate: Peak learning rate.
        epochs: Number of passes over the training examples.
        batch_size: Examples per optimiser step, over all processes.
        tuning: Which weights to train.
    """

    learning_rate: ranges.LearningRate = 1e-5
    epochs: ranges.NumEpochs = 3
    batch_size: ranges.BatchSize = 16
    tuning: Tuning = FULL_TUNING

    def num_steps(self, num_items: int) -> int:
        """Return the optimiser steps of a training on so many examples."""
        return self.epochs * math.ceil(num_items / self.batch_size)


@dataclass(frozen=True, kw_only=True)
class FitSettings(Fit):
    """How a whole network is fine-tuned on a probe. The defaults are the authors' (Talmor 2020).

    Args:
        epochs: Number of passes over the sample; with `patience` the maximum.
        weight_decay: Weight decay of all weights except biases and norms.
        max_grad_norm: Clip gradients to this norm. By default they are not clipped.
        patience: Stop after this many epochs without better accuracy on the held-out rows, and
            report the best epoch. By default train all epochs and report the last.
        held_out: Share of the train rows to hold out for early stopping, in whole groups. Used only
            with `patience`.
    """

    epochs: ranges.NumEpochs = 4
    weight_decay: ranges.WeightDecay = 0.1
    max_grad_norm: ranges.GradNorm | None = None
    patience: ranges.NumEpochs | None = None
    held_out: ranges.Share = 0.1


# The authors' settings of the MLM-baseline and of ESIM (Talmor et al. 2020).
MLM_FIT = FitSettings(
    learning_rate=4e-4, epochs=75, batch_size=16, weight_decay=0.1, max_grad_norm=10.0, patience=10
)
ESIM_FIT = replace(MLM_FIT, batch_size=32, weight_decay=0.0)
