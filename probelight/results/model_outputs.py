"""What a language model says behind contexts, whoever asked it: us, or another program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelOutputs:
    """One entry a prompt, in the order of the prompts.

    Attributes:
        predictions: The words that the model finds most probable, the best one first.
        depth: How many it was asked for: beyond that nothing is known of it. A list may be shorter,
            where not every piece of a vocabulary makes a word.
        probabilities: Of the prompt's target, over the whole vocabulary; None for a target that
            the vocabulary does not have as one word. None in all where they were not recorded.
        split: Words of the set that the vocabulary does not have as one, where that is known: none
            of them is among the predictions, and it says nothing of the model.
    """

    predictions: tuple[tuple[str, ...], ...]
    depth: int
    probabilities: tuple[float | None, ...] | None = None
    split: frozenset[str] = frozenset()
