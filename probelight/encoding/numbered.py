"""Records posed by any encoder, their candidates as places in a list of words of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding.encoded_set import ChoiceEncoder, EncodedSet, Ids
from probelight.probes.record import Record


@dataclass(frozen=True, kw_only=True)
class NumberedSet(EncodedSet):
    """Texts as another encoder posed them, and which words are their candidates.

    Attributes:
        posed: The texts.
        candidate_ids: (N, K) places in the list of words, 0 where there is no choice.
        choice_mask: (N, K) which choices exist.
    """

    posed: EncodedSet
    candidate_ids: Ids
    choice_mask: NDArray[np.bool_]

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """The inputs of the texts, and `candidate_ids` and `choice_mask` (B, K)."""
        return {
            **self.posed.inputs(items),
            "candidate_ids": torch.from_numpy(self.candidate_ids[items]),
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }


class NumberedEncoder:
    """Poses the stems of records alone: what a text gives does not depend on its candidates.

    Args:
        encoder: Poses the stems; it is given records without choices.
        words: The candidates of all records that will come, as they are without space around.
    """

    def __init__(self, encoder: ChoiceEncoder, words: Sequence[str]) -> None:
        self.encoder = encoder
        self.places = {word: place for place, word in enumerate(words)}

    @property
    def cache_dir(self) -> str | Path | None:
        """Folder in which tokens are kept between runs; None for no cache."""
        return self.encoder.cache_dir

    @cache_dir.setter
    def cache_dir(self, folder: str | Path | None) -> None:
        self.encoder.cache_dir = folder

    def encode(self, records: Sequence[Record]) -> NumberedSet:
        """Tokenises records.

        Raises:
            RecordError: If the tokenizer can't pose a stem.
            KeyError: If a candidate is none of the words.
        """
        posed = self.encoder.encode([replace(one, choices=(), answer=0) for one in records])
        kept = [records[place] for place in posed.kept]
        width = max((len(record.choices) for record in kept), default=0)
        candidates = np.zeros((len(kept), width), dtype=np.int64)
        exists = np.zeros(candidates.shape, dtype=np.bool_)
        for row, record in enumerate(kept):
            own = [self.places[choice.strip()] for choice in record.choices]
            candidates[row, : len(own)], exists[row, : len(own)] = own, True
        return NumberedSet(
            labels=np.array([record.answer for record in kept], dtype=np.int64),
            lengths=posed.lengths,
            num_sequences=posed.num_sequences,
            num_choices=width,
            kept=posed.kept,
            skipped=posed.skipped,
            notices=posed.notices,
            padding=posed.padding,
            posed=posed,
            candidate_ids=candidates,
            choice_mask=exists,
        )
