"""What a language model says behind contexts, whoever asked it: us, or another program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelOutputs:
    """One entry a prompt, in the order of the prompts.

    Attributes:
        predictions: The words that the model finds most probable, the best one first.
        probabilities: Of the prompt's target, over the whole vocabulary; None for a target that
            the vocabulary does not have as one word. None in all where they were not recorded.
    """

    predictions: tuple[tuple[str, ...], ...]
    probabilities: tuple[float | None, ...] | None = None

    @property
    def num_predictions(self) -> int:
        """Words in the longest list: beyond it nothing is known of the model."""
        return max(map(len, self.predictions), default=0)
