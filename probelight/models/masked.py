"""Masked language models: candidate words at the mask, answers behind a question.

- Sentences with a mask (MC-MLM): the checkpoint's own head scores candidate words at the mask.
- Questions and minimal pairs: pseudo-log-likelihoods (Salazar et al. 2020), one token masked at a
  time, so that any masked LM scores any answer, untrained.
- Questions to a checkpoint that was fine-tuned to answer them: its own head.
- Of an encoder without a head over words, its output at the mask, for heads that are trained on it.

Shapes: B items, K choices, V entries of a vocabulary, P distinct texts, L tokens, R masked copies,
D distinct ones, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from probelight.encoding.candidates import MultiToken
from probelight.encoding.likelihood import LikelihoodEncoder
from probelight.encoding.masked import MaskedChoiceEncoder
from probelight.models.candidate_head import CandidateHead
from probelight.models.checkpoint_files import DEFAULT_MAX_LENGTH, CheckpointRef
from probelight.models.last_layer import EncoderAt
from probelight.models.loading import ENCODER, MASKED_LM, Form, check_pretrained, load_pretrained
from probelight.models.networks import Batch, mask_choices
from probelight.models.pair_choice import PairChoice, answers_questions
from probelight.models.scorer import (
    LikelihoodScorer,
    Normalise,
    Posable,
    Question,
    Reader,
    Scorer,
    ScorerSettings,
    TrainedScorer,
    all_of,
    over_entries,
)
from probelight.probes.record import Record, Setup

PllForm = Literal["original", "within_word_l2r"]
MASKED_ENCODER = replace(ENCODER, needs=MASKED_LM.needs)  # that is read at the mask
FORMS: dict[Setup, Form] = {"mc_mlm": MASKED_LM, "mc_qa": ENCODER, "minimal_pair": MASKED_LM}

# Masked copies are run in groups of so many padded tokens: an answer of a hundred tokens would
# otherwise be a hundred texts at once.
_MAX_TOKENS = 16384


class MaskedLM:
    """A masked LM that is read at the one mask of each sentence (Talmor et al. 2020, MC-MLM).

    h (H) is the encoder's output at the mask; the checkpoint's own head scores the candidates.

    Its settings are those of `MaskedChoice`, which trains it; `read` loads the checkpoint.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded whole, or its head is of no known form.
    """

    def __init__(
        self,
        ref: CheckpointRef,
        answer_prefix: str = "auto",
        multi_token: MultiToken = "error",
        max_length: int = 256,
        read: Reader = load_pretrained,
    ) -> None:
        self.model, self.tokenizer = read(MASKED_LM, ref)
        self.head = CandidateHead(self.model)
        self.reader = EncoderAt(self.head.encoder)
        self.notices = self.reader.by_length.notices
        self.answer_prefix = answer_prefix
        self.multi_token: MultiToken = multi_token
        self.max_length = max_length

    def encoder(self, multi_token: MultiToken | None = None) -> MaskedChoiceEncoder:
        """Return the encoder of records; `multi_token` overrides the model's own setting."""
        return MaskedChoiceEncoder(
            self.tokenizer, self.answer_prefix, multi_token or self.multi_token, self.max_length
        )

    @property
    def network(self) -> nn.Module:
        """The model, under the name that a trained module gives it."""
        return nn.ModuleDict({"model": self.model})

    def __call__(self, batch: Batch) -> Tensor:
        """Return the logits (B, K) of the candidates, -inf where there is none."""
        return self.choice_logits(self.features(batch), batch)

    def features(self, batch: Batch) -> Tensor:
        """Return the encoder's output h (B, H) at the mask of each item."""
        return self.reader(batch, batch["mask_position"])

    def choice_logits(self, features: Tensor, batch: Batch) -> Tensor:
        """Return the logits (B, K) of the candidates, given h (B, H)."""
        logits = self.head.score(features, batch["candidate_ids"])
        return mask_choices(logits, batch["choice_mask"])


class MaskedScorer(Scorer):
    """Scores candidates by the logits of a checkpoint's own head at the one mask of each sentence.

    Logits differ from log-probabilities by one number per item. Candidates of several pieces go by
    the model's `multi_token`.

    Args:
        masked: The model; it is used, not copied.
        pll: Form of the pseudo-log-likelihoods of candidates of several pieces.
    """

    mode = "zero_shot"

    def __init__(self, masked: MaskedLM, pll: PllForm = "original") -> None:
        self.masked = masked
        self.notices = masked.notices
        self.pll = pll
        self.network = masked.network.requires_grad_(False).eval()

    def choice_scores(self) -> Question:
        return Question(self.masked.encoder(), self.masked)

    def vocabulary(self) -> Question:
        masked = self.masked
        return over_entries(
            masked.encoder("skip"), lambda batch: masked.head.full_logits(masked.features(batch))
        )

    def log_likelihoods(self) -> Question:
        return self.by_pieces().log_likelihoods()

    def by_pieces(self, normalise: Normalise = "sum") -> PseudoLogLikelihood:
        """Return the scorer, with the same model, of the records that this one cannot pose."""
        return PseudoLogLikelihood(self.masked, normalise, self.pll)

    def features(self) -> Question:
        return Question(self.masked.encoder(), self.masked.features)


class MaskFeatures(Scorer):
    """The output at the mask of an encoder without a head over words, which has no scores."""

    mode = "features"

    def __init__(
        self, ref: CheckpointRef, max_length: int = 256, read: Reader = load_pretrained
    ) -> None:
        network, self.tokenizer = read(MASKED_ENCODER, ref)
        self.network = network.requires_grad_(False).eval()
        self.reader = EncoderAt(network.base_model)
        self.max_length = max_length

    def choice_scores(self) -> Question:
        self._refuse("scores of choices: it has no head over words")

    def features(self) -> Question:
        encoder = MaskedChoiceEncoder(self.tokenizer, max_length=self.max_length)
        return Question(encoder, lambda batch: self.reader(batch, batch["mask_position"]))

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return zeros: it prefers no word to another."""
        weight = next(self.network.parameters())
        zeros = weight.new_zeros(len(words), self.network.config.hidden_size)  # type: ignore[union-attr, arg-type]
        return zeros, zeros[:, 0]


class PseudoLogLikelihood(LikelihoodScorer):
    """Score a choice by log p(each of its tokens | all the other tokens), one mask at a time.

    For MC-QA without training (stem, space, choice), and for MC-MLM candidates of several pieces
    (the choice in the place of the mask). The tokens of the stem are given, not scored. With
    choices of one piece the order of the choices is that of MC-MLM.

    A word of several pieces is easy to guess when all pieces but one are shown. The form
    "within_word_l2r" (Kauf and Ivanova 2023) masks with a piece also the later pieces of its word
    (see `LikelihoodEncoder`). Masked copies that are the same, such as those of all candidates of
    one piece, are run once.

    Args:
        masked: The model; it is used, not copied.
        normalise: "sum" over the tokens of a choice, as in the paper, or their "mean", which does
            not prefer short choices.
        form: "original", or "within_word_l2r".
    """

    def __init__(
        self, masked: MaskedLM, normalise: Normalise = "sum", form: PllForm = "original"
    ) -> None:
        if normalise not in ("sum", "mean"):
            raise ValueError(f"normalise={normalise!r}: choose sum or mean")
        self.network = masked.network.requires_grad_(False).eval()
        self.masked = masked
        self.notices = masked.notices
        self.normalise = normalise
        self.form = form
        is_original = form == "original"
        self.mode = "pseudo_log_likelihood" if is_original else "pseudo_log_likelihood_l2r"

    def likelihood_encoder(self) -> LikelihoodEncoder:
        by_words = self.form == "within_word_l2r"
        return LikelihoodEncoder(self.masked.tokenizer, self.masked.max_length, by_words)

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        answer_mask = batch["answer_mask"]
        text, column = answer_mask.nonzero(as_tuple=True)  # (R,), (R,)
        copies, gold = self._masked_copies(batch, text, column)
        size_of = copies["attention_mask"].sum(dim=1)
        mask_and_size = torch.stack([column, size_of], dim=1)
        rows = torch.cat([copies["input_ids"], mask_and_size], dim=1)
        distinct, copy_of = torch.unique(rows, dim=0, return_inverse=True)
        order = torch.arange(len(rows), device=rows.device)
        first = order.new_full((len(distinct),), len(rows))  # of the copies that are the same
        first = first.scatter_reduce(0, copy_of, order, "amin")
        log_probs = torch.empty(len(text), device=text.device)
        size = max(1, _MAX_TOKENS // answer_mask.shape[1])
        for start in range(0, len(first), size):
            rows = first[start : start + size]
            hidden = self.masked.reader({n: v[rows] for n, v in copies.items()}, column[rows])
            logits = self.masked.head.full_logits(hidden).float()  # (D, V)
            in_group = ((copy_of >= start) & (copy_of < start + size)).nonzero()[:, 0]
            at_row = copy_of[in_group] - start
            log_probs[in_group] = logits[at_row, gold[in_group]] - logits.logsumexp(dim=1)[at_row]
        return log_probs, answer_mask.sum(dim=1)

    def _masked_copies(
        self, batch: Batch, text: Tensor, column: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the inputs (R, L) with `column` of `text` masked, and the token there (R,)."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        copies = {name: batch[name][text] for name in names if name in batch}
        ids = copies["input_ids"]
        gold = ids.gather(1, column[:, None])[:, 0]
        columns = torch.arange(ids.shape[1], device=ids.device)
        until = batch["masked_until"][text, column] if "masked_until" in batch else column + 1
        hidden = (columns >= column[:, None]) & (columns < until[:, None])
        copies["input_ids"] = ids.masked_fill(hidden, self.masked.tokenizer.mask_token_id)
        return copies, gold


def load(
    settings: ScorerSettings, setup: Setup, seed: int = 0, read: Reader = load_pretrained
) -> Scorer:
    """Return the scorer of a setup: at the mask, a fine-tuned head, or pseudo-log-likelihoods.

    MC-QA has no pre-trained head, so a model that was not fine-tuned scores each answer behind its
    question by pseudo-log-likelihood (Salazar et al. 2020), and any model the sentences of minimal
    pairs.
    """
    ref, length = replace(settings.checkpoint, seed=seed), settings.max_length
    if setup == "mc_qa" and answers_questions(ref):
        # As long as it was trained with, unless the user gave another length than the default.
        own_length = None if length == DEFAULT_MAX_LENGTH else length
        return TrainedScorer(PairChoice(ref, None, own_length, read=read))
    masked = MaskedLM(ref, settings.answer_prefix, settings.multi_token, length, read)
    if setup == "mc_mlm":
        return MaskedScorer(masked, settings.pll)
    # Of answers the mean over their tokens: the sum would prefer short ones.
    return PseudoLogLikelihood(masked, "mean" if setup == "mc_qa" else "sum", settings.pll)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuse models that `load` would refuse, without reading their weights."""
    fine_tuned = setup == "mc_qa" and answers_questions(settings.checkpoint)
    form = ENCODER if fine_tuned else MASKED_LM
    checkpoint = check_pretrained(form, settings.checkpoint, settings.dtype)
    tokenizer = checkpoint.tokenizer
    if setup == "mc_mlm":
        prefix, length = settings.answer_prefix, settings.max_length
        return MaskedChoiceEncoder(tokenizer, prefix, settings.multi_token, length).check
    return all_of


def check_stems(settings: ScorerSettings, records: Sequence[Record]) -> None:
    """Refuse an encoder or stems that `MaskFeatures` could not read, without reading weights."""
    tokenizer = check_pretrained(MASKED_ENCODER, settings.checkpoint, settings.dtype).tokenizer
    stems = [replace(record, choices=(), answer=0) for record in records]
    MaskedChoiceEncoder(tokenizer, max_length=settings.max_length).check(stems)
