"""Where the candidates stand in the whole vocabulary at the mask (Talmor 2020, section 4.5).

Shapes: B batch, K choices, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lightning_modules.base import Batch, ChoiceModule, mask_choices
from lightning_modules.masked_choice import MaskedChoice

if TYPE_CHECKING:
    from datamodules.encoding.encoded_set import ChoiceEncoder


class CandidateRanks(ChoiceModule):
    """Gives each choice its rank in the vocabulary in place of a score.

    Rank 1 is the model's first guess; words with the same logit share the better rank. Items with
    a candidate of several pieces have no rank and are skipped, whatever the model's own choice.

    Args:
        module: The model asked; it is used, not copied.
    """

    def __init__(self, module: MaskedChoice) -> None:
        super().__init__(learning_rate=0.0)
        self.module = module
        self.eval()

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Ranks (B, K) as floats, -inf where an item has no such choice."""
        known = len(self.module.tokenizer)  # a decoder may have more rows, to fill up
        logits = self.module.vocabulary_logits(batch)[:, :known]  # (B, V)
        own = logits.gather(1, batch["candidate_ids"])  # (B, K)
        # One choice after the other: all at once would be (B, K, V).
        # "Not at most" rather than "above": a logit that is no number is not the first guess.
        ranks = [1 + (~(logits <= own[:, k, None])).sum(dim=1) for k in range(own.shape[1])]
        return mask_choices(torch.stack(ranks, dim=1).float(), batch["choice_mask"])

    def encoder(self) -> ChoiceEncoder:
        from datamodules.encoding.masked import MaskedChoiceEncoder

        return MaskedChoiceEncoder(
            self.module.tokenizer,
            answer_prefix=self.module.answer_prefix,
            multi_token="skip",
            max_length=self.module.max_length,
        )
