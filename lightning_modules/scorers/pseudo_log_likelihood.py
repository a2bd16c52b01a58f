"""Pseudo-log-likelihoods (Salazar et al. 2020): any masked LM scores any answer, untrained.

Shapes: B batch, K choices, P distinct texts, L tokens, R masked copies, H hidden, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lightning_modules.base import Batch, ChoiceModule, mask_choices
from lightning_modules.heads.candidate_head import CandidateHead
from lightning_modules.heads.last_layer import EncoderAt
from lightning_modules.pretrained import EMBEDDED, PretrainedError, load_pretrained
from storage.config.ranges import MaxLength, Seed

if TYPE_CHECKING:
    from datamodules.encoding.encoded_set import ChoiceEncoder
    from lightning_modules.masked_choice import MaskedChoice

Normalise = Literal["sum", "mean"]

# Masked copies are run in groups of so many padded tokens: an answer of a hundred tokens would
# otherwise be a hundred texts at once.
_MAX_TOKENS = 16384


class PseudoLogLikelihood(ChoiceModule):
    """Scores a choice by log p(each of its tokens | all the other tokens), one mask at a time.

    For MC-QA without training (stem, space, choice), and for MC-MLM candidates of several pieces
    (the choice in the place of the mask). The tokens of the stem are given, not scored. With
    choices of one piece the order of the choices is that of MC-MLM.

    Args:
        model_name_or_path: "embedded", a folder, or a name on the Hub.
        normalise: "sum" over the tokens of a choice, as in the paper, or their "mean", which does
            not prefer short choices.
        max_length: Longest text in tokens.
        revision: Branch, tag or commit on the Hub.
        random_weights: Fresh weights in the same architecture (SPEC E9).
        seed: Of the fresh weights.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded whole, its head is of no known form, or
            there is no mask token.
    """

    def __init__(
        self,
        model_name_or_path: str = EMBEDDED,
        normalise: Normalise = "sum",
        max_length: MaxLength = 256,
        revision: str | None = None,
        random_weights: bool = False,
        seed: Seed = 0,
    ) -> None:
        super().__init__(learning_rate=0.0)
        self.save_hyperparameters()
        model, tokenizer = load_pretrained(
            "masked_lm", model_name_or_path, revision, random_weights, seed
        )
        self._take(model, tokenizer, CandidateHead(model), normalise, max_length)
        self.requires_grad_(False)

    @classmethod
    def of(cls, module: MaskedChoice, normalise: Normalise = "sum") -> PseudoLogLikelihood:
        """Scores with the very model of a `MaskedChoice`, for the records it cannot pose."""
        scorer = cls.__new__(cls)
        ChoiceModule.__init__(scorer, learning_rate=0.0)
        scorer._take(module.model, module.tokenizer, module.head, normalise, module.max_length)
        return scorer

    def _take(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        head: CandidateHead,
        normalise: Normalise,
        max_length: int,
    ) -> None:
        if normalise not in ("sum", "mean"):
            raise ValueError(f"normalise={normalise!r}: choose sum or mean")
        if tokenizer.mask_token_id is None:
            raise PretrainedError(f"{type(tokenizer).__name__} has no mask token")
        self.model = model
        self.tokenizer = tokenizer
        self.head = head
        self.reader = EncoderAt(head.encoder)
        self.normalise = normalise
        self.max_length = max_length
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        from datamodules.encoding.likelihood import LikelihoodEncoder

        return LikelihoodEncoder(self.tokenizer, max_length=self.max_length)

    def setup(self, stage: str) -> None:
        if stage == "fit":
            raise RuntimeError("PseudoLogLikelihood only scores; train MaskedChoice instead")

    def forward(self, batch: Batch) -> Tensor:
        sums, counts = self.text_scores(batch)
        scores = sums / counts if self.normalise == "mean" else sums
        scores = scores.float().to(batch["choice_mask"].device)
        return mask_choices(scores[batch["pair_index"]], batch["choice_mask"])

    def text_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Sum of the log-probabilities of each text's answer tokens (P,), and their number (P,).

        In double precision on the CPU (not every accelerator has it): the mean of equal numbers is
        then that number, however many there are, and a model that prefers no token ties.
        """
        answer_mask = batch["answer_mask"]
        text, place = answer_mask.nonzero(as_tuple=True)  # (R,), (R,)
        size = max(1, _MAX_TOKENS // answer_mask.shape[1])
        parts = [
            self._token_scores(batch, text[start : start + size], place[start : start + size])
            for start in range(0, len(text), size)
        ]
        counts = answer_mask.sum(dim=1).cpu()
        # Split and summed, not `index_add_`: on a GPU that adds in an order of its own each time.
        found = torch.cat(parts).cpu().double()
        sums = torch.stack([s.sum() for s in torch.split(found, counts.tolist())])
        return sums, counts

    def _token_scores(self, batch: Batch, text: Tensor, place: Tensor) -> Tensor:
        """Log-probability (R,) of the token at `place` of `text` when it alone is masked."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        copies = {name: batch[name][text] for name in names if name in batch}
        rows = torch.arange(len(text), device=text.device)
        gold = copies["input_ids"][rows, place]
        copies["input_ids"][rows, place] = self.tokenizer.mask_token_id
        hidden = self.reader(copies, place).last_hidden_state  # (R, 1, H)
        logits = self.head.full_logits(hidden[:, 0]).float()  # (R, V)
        return logits[rows, gold] - logits.logsumexp(dim=1)
