"""Pseudo-log-likelihoods (Salazar et al. 2020): any masked LM scores any answer, untrained.

Shapes: B batch, K choices, P distinct texts, L tokens, R masked copies, D distinct ones, H hidden,
V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.batches import Batch
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import MASKED_LM
from probelight.models.checkpoints.loading import load_pretrained
from probelight.models.heads.candidate_head import CandidateHead
from probelight.models.heads.last_layer import EncoderAt
from probelight.models.scorers.base import Question, Scorer
from probelight.models.scorers.sums import Normalise, scores_of_choices

if TYPE_CHECKING:
    from probelight.lightning_modules.masked_choice import MaskedChoice

PllForm = Literal["original", "within_word_l2r"]
_MODES = {
    "original": "pseudo_log_likelihood",
    "within_word_l2r": "pseudo_log_likelihood_l2r",
}

# Masked copies are run in groups of so many padded tokens: an answer of a hundred tokens would
# otherwise be a hundred texts at once.
_MAX_TOKENS = 16384


class PseudoLogLikelihood(Scorer):
    """Scores a choice by log p(each of its tokens | all the other tokens), one mask at a time.

    For MC-QA without training (stem, space, choice), and for MC-MLM candidates of several pieces
    (the choice in the place of the mask). The tokens of the stem are given, not scored. With
    choices of one piece the order of the choices is that of MC-MLM.

    A word of several pieces is easy to say when all but one are there to see. The form
    "within_word_l2r" (Kauf and Ivanova 2023) masks with a piece also the later pieces of its word;
    what words are is said by `WordwiseEncoder`. Masked copies that are the same, such as those of
    all candidates of one piece, are run once.

    Args:
        model: A masked LM.
        tokenizer: Its tokenizer.
        normalise: "sum" over the tokens of a choice, as in the paper, or their "mean", which does
            not prefer short choices.
        max_length: Longest text in tokens.
        head: The model's head, where it was taken apart already.
        form: "original", or "within_word_l2r".

    Raises:
        PretrainedError: If the model's head is of no known form, or there is no mask token.
    """

    normalise: Normalise

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        normalise: Normalise = "sum",
        max_length: int = 256,
        head: CandidateHead | None = None,
        form: PllForm = "original",
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
        self.form = form
        self.mode = _MODES[form]
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
            **options: `form` as in the class; `revision`, `random_weights` and `seed` of
                `load_pretrained`.

        Raises:
            PretrainedError: If the checkpoint cannot be loaded whole, or as in the class.
        """
        form = options.pop("form", "original")
        model, tokenizer = load_pretrained(MASKED_LM, name_or_path, **options)
        model.requires_grad_(False)
        return cls(model, tokenizer, normalise, max_length, form=form)

    @classmethod
    def of(
        cls, module: MaskedChoice, normalise: Normalise = "sum", form: PllForm = "original"
    ) -> PseudoLogLikelihood:
        """Scores with the very model of a `MaskedChoice`, for the records it cannot pose."""
        return cls(module.model, module.tokenizer, normalise, module.max_length, module.head, form)

    def choice_scores(self) -> Question:
        return self._question(self.normalise)

    def log_likelihoods(self) -> Question:
        return self._question("sum")

    def _question(self, normalise: Normalise) -> Question:
        from probelight.encoding.likelihood import LikelihoodEncoder, WordwiseEncoder

        def answer(batch: Batch) -> Tensor:
            return scores_of_choices(batch, *self.token_scores(batch), normalise)

        makes = WordwiseEncoder if self.form == "within_word_l2r" else LikelihoodEncoder
        encoder = makes(self.tokenizer, self.max_length)
        return Question(encoder, answer, encoder.num_tokens)

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities (R,) of all texts' answer tokens, and how many of each (P,)."""
        answer_mask = batch["answer_mask"]
        text, place = answer_mask.nonzero(as_tuple=True)  # (R,), (R,)
        copies, gold = self._masked_copies(batch, text, place)
        size_of = copies["attention_mask"].sum(dim=1)
        asked = torch.stack([place, size_of], dim=1)
        first, copy_of = _distinct_rows(torch.cat([copies["input_ids"], asked], dim=1))
        found = torch.empty(len(text), device=text.device)
        size = max(1, _MAX_TOKENS // answer_mask.shape[1])
        for start in range(0, len(first), size):
            rows = first[start : start + size]
            hidden = self.reader({n: v[rows] for n, v in copies.items()}, place[rows])
            logits = self.head.full_logits(hidden.last_hidden_state[:, 0]).float()  # (D, V)
            own = ((copy_of >= start) & (copy_of < start + size)).nonzero()[:, 0]
            at = copy_of[own] - start
            found[own] = logits[at, gold[own]] - logits.logsumexp(dim=1)[at]
        return found, answer_mask.sum(dim=1)

    def _masked_copies(
        self, batch: Batch, text: Tensor, place: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The inputs (R, L) with `place` of `text` masked, and the token there (R,)."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        copies = {name: batch[name][text] for name in names if name in batch}
        ids = copies["input_ids"]
        gold = ids.gather(1, place[:, None])[:, 0]
        places = torch.arange(ids.shape[1], device=ids.device)
        until = batch["masked_until"][text, place] if "masked_until" in batch else place + 1
        hidden = (places >= place[:, None]) & (places < until[:, None])
        copies["input_ids"] = ids.masked_fill(hidden, self.tokenizer.mask_token_id)
        return copies, gold


def _distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(D,) the first of each kind of row of (R, ...), and (R,) which of those each row is."""
    kinds: tuple[Tensor, Tensor] = torch.unique(rows, dim=0, return_inverse=True)
    found, kind_of = kinds
    order = torch.arange(len(rows), device=rows.device)
    first = order.new_full((len(found),), len(rows))
    return first.scatter_reduce(0, kind_of, order, "amin"), kind_of
