"""Pseudo-log-likelihoods (Salazar et al. 2020): any masked LM scores any answer, untrained.

Shapes: B batch, K choices, P distinct texts, L tokens, R masked copies, H hidden, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lightning_modules.base import Batch
from lightning_modules.checkpoints.folder import PretrainedError
from lightning_modules.checkpoints.forms import MASKED_LM
from lightning_modules.checkpoints.loading import load_pretrained
from lightning_modules.heads.candidate_head import CandidateHead
from lightning_modules.heads.last_layer import EncoderAt
from lightning_modules.scorers.base import Question, Scorer
from lightning_modules.scorers.sums import Normalise, scores_of_choices

if TYPE_CHECKING:
    from lightning_modules.masked_choice import MaskedChoice

# Masked copies are run in groups of so many padded tokens: an answer of a hundred tokens would
# otherwise be a hundred texts at once.
_MAX_TOKENS = 16384


class PseudoLogLikelihood(Scorer):
    """Scores a choice by log p(each of its tokens | all the other tokens), one mask at a time.

    For MC-QA without training (stem, space, choice), and for MC-MLM candidates of several pieces
    (the choice in the place of the mask). The tokens of the stem are given, not scored. With
    choices of one piece the order of the choices is that of MC-MLM.

    Args:
        model: A masked LM.
        tokenizer: Its tokenizer.
        normalise: "sum" over the tokens of a choice, as in the paper, or their "mean", which does
            not prefer short choices.
        max_length: Longest text in tokens.
        head: The model's head, where it was taken apart already.

    Raises:
        PretrainedError: If the model's head is of no known form, or there is no mask token.
    """

    mode = "pseudo_log_likelihood"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        normalise: Normalise = "sum",
        max_length: int = 256,
        head: CandidateHead | None = None,
    ) -> None:
        if normalise not in ("sum", "mean"):
            raise ValueError(f"normalise={normalise!r}: choose sum or mean")
        if tokenizer.mask_token_id is None:
            raise PretrainedError(f"{type(tokenizer).__name__} has no mask token")
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.head = head or CandidateHead(model)
        self.reader = EncoderAt(self.head.encoder)
        self.normalise = normalise
        self.max_length = max_length
        self.eval()

    @classmethod
    def load(
        cls, name_or_path: str, normalise: Normalise = "sum", max_length: int = 256, **options: Any
    ) -> PseudoLogLikelihood:
        """Scores with a checkpoint.

        Args:
            name_or_path: "embedded", a folder, or a name on the Hub.
            normalise: As in the class.
            max_length: Longest text in tokens.
            **options: `revision`, `random_weights` and `seed` of `load_pretrained`.

        Raises:
            PretrainedError: If the checkpoint cannot be loaded whole, or as in the class.
        """
        model, tokenizer = load_pretrained(MASKED_LM, name_or_path, **options)
        model.requires_grad_(False)
        return cls(model, tokenizer, normalise, max_length)

    @classmethod
    def of(cls, module: MaskedChoice, normalise: Normalise = "sum") -> PseudoLogLikelihood:
        """Scores with the very model of a `MaskedChoice`, for the records it cannot pose."""
        return cls(module.model, module.tokenizer, normalise, module.max_length, module.head)

    def choice_scores(self) -> Question:
        return self._question(self.normalise)

    def log_likelihoods(self) -> Question:
        return self._question("sum")

    def _question(self, normalise: Normalise) -> Question:
        from datamodules.encoding.likelihood import LikelihoodEncoder

        def answer(batch: Batch) -> Tensor:
            return scores_of_choices(batch, *self.token_scores(batch), normalise)

        encoder = LikelihoodEncoder(self.tokenizer, max_length=self.max_length)
        return Question(encoder, answer, encoder.num_tokens)

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities (R,) of all texts' answer tokens, and how many of each (P,)."""
        answer_mask = batch["answer_mask"]
        text, place = answer_mask.nonzero(as_tuple=True)  # (R,), (R,)
        size = max(1, _MAX_TOKENS // answer_mask.shape[1])
        parts = [
            self._token_scores(batch, text[start : start + size], place[start : start + size])
            for start in range(0, len(text), size)
        ]
        return torch.cat(parts), answer_mask.sum(dim=1)

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
