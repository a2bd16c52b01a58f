"""What an encoder-decoder model reads and writes when it fills a blank.

Shapes: B items, K choices, S distinct sources, P distinct targets, L and T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding.encoded_set import EncodedSet, Ids, distinct, stacked
from probelight.encoding.special_tokens import Template


@dataclass(frozen=True)
class Infilling:
    """How a family of encoder-decoder models was taught to fill a blank.

    The encoder reads the text with a token in place of the blank. The decoder writes `opening`, the
    text before the blank if it `repeats_context`, the answer, and `closing`.

    Attributes:
        blank: What is written into the text where the blank is.
        blank_id: Its token.
        opening: What the decoder is given first: its start token, then T5's sentinel or the special
            tokens that a sentence of BART begins with.
        closing: What it must say behind an answer for the answer to be a whole one: T5's next
            sentinel; nothing of BART, which goes on with the text behind the blank.
        repeats_context: Whether it writes the whole sentence (BART), or the answer alone (T5).
    """

    blank: str
    blank_id: int
    opening: tuple[int, ...]
    closing: tuple[int, ...]
    repeats_context: bool


@dataclass(frozen=True)
class Target:
    """What the decoder is given, and what it is then asked for.

    Attributes:
        source: The text that the encoder reads, as a place among the distinct ones.
        given: Tokens that the decoder is given.
        asked: Tokens whose probabilities are asked for, each behind all before it.
    """

    source: int
    given: tuple[int, ...]
    asked: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class InfillingSet(EncodedSet):
    """Texts with a blank and what may be written there; `num_sequences` counts both.

    Attributes:
        sources: The distinct texts, without special tokens.
        targets: What is asked of the decoder, each distinct one once.
        places: (N, M) the targets of each item, -1 where there is none: M is K, a target a choice,
            or 1, where the next token is asked for.
        candidate_ids: (N, K) vocabulary items, where the next token is asked for.
        choice_mask: (N, K) which choices there are.
        template: Special tokens around a source.
    """

    sources: tuple[Ids, ...]
    targets: tuple[Target, ...]
    places: Ids
    candidate_ids: Ids | None
    choice_mask: NDArray[np.bool_]
    template: Template

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` (S, L) of the encoder, and what the decoder is given.

        That is `decoder_input_ids` (P, T); where `asked_mask` (P, T) is True, `asked_ids` (P, T)
        should come next. `source_index` (P,) is the source of each target, `pair_index` (B, M) the
        target of each choice. Also `choice_mask` and, if there are any, `candidate_ids` (B, K).
        """
        places = self.places[items]
        found, pair_index = distinct(places, places >= 0)
        chosen = [self.targets[i] for i in found]
        sources, source_index = np.unique([t.source for t in chosen], return_inverse=True)
        read = self.padding.apply([self.template.assemble(self.sources[i]) for i in sources])
        written = [np.array(t.given + t.asked, dtype=np.int64) for t in chosen]
        asked_mask = torch.zeros(len(chosen), max(map(len, written)) - 1, dtype=torch.bool)
        for row, target in enumerate(chosen):
            first = len(target.given) - 1
            asked_mask[row, first : first + len(target.asked)] = True
        batch = {
            "input_ids": read["input_ids"],
            "attention_mask": read["attention_mask"],
            "decoder_input_ids": stacked([ids[:-1] for ids in written], self.padding.token_id),
            "asked_ids": stacked([ids[1:] for ids in written], self.padding.token_id),
            "asked_mask": asked_mask,
            "source_index": torch.from_numpy(source_index),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }
        if self.candidate_ids is not None:
            batch["candidate_ids"] = torch.from_numpy(self.candidate_ids[items])
        return batch
