"""Causal language models: each token is expected from those before it, and from nothing else.

- What is summed: the log-probabilities of everything from the answer on, the answer and what
  follows the blank, given what stands before. Every choice of an item is followed by the same
  words, and a choice that makes them unlikely is a bad one. The text is tokenised whole and cut at
  the boundary; a token that straddles it belongs to the answer, as does the white space before it.
- Beginning: the tokenizer's own special tokens (BOS) stand before a text where it sets them; those
  that it sets at the end do not. Where it sets none (GPT-2), a text with nothing before the answer
  gets its BOS token, or EOS where there is none, as what its first word is expected from.
- An empty stem, of a sentence that is scored whole, is such a text: every word of it is summed.
- `vocabulary` reads what comes next behind the sentence's part before the blank, or behind the
  stem; what follows the blank is not seen.
- `features` is what the head reads, behind the last norm, at the last token of the whole stem, a
  question or a sentence with its blank written as `___`: so the text behind the blank is seen.
- Of a text that is too long the beginning is cut, never what is scored.

Shapes: B items, K choices, P distinct texts, V entries of a vocabulary, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.batches import Batch
from probelight.models.checkpoints.description import check_pretrained
from probelight.models.checkpoints.fit import longest_text
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import CAUSAL_LM
from probelight.models.checkpoints.loading import load_pretrained
from probelight.models.scorers.base import Posable, Question, Scorer, ScorerSettings
from probelight.models.scorers.decoder_rows import word_rows
from probelight.models.scorers.next_tokens import NextTokens
from probelight.models.scorers.ranks import log_probabilities
from probelight.models.scorers.sums import Normalise, scores_of_choices

if TYPE_CHECKING:
    from probelight.probes.record import Setup

BLANK = "___"


class CausalScorer(Scorer):
    """Scores a choice by log P(choice and what follows | what stands before).

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer, a fast one.
        normalise: What `choice_scores` are: the "sum" over the tokens, or their "mean", which does
            not prefer short answers.
        max_length: Longest text in tokens.
        answer_prefix: What stands before a choice when it is looked up in the vocabulary, see
            `CandidateTable`.

    Raises:
        PretrainedError: If the model has no head over a vocabulary.
    """

    mode = "causal_likelihood"
    normalise: Normalise

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        normalise: Normalise = "sum",
        max_length: int = 256,
        answer_prefix: str = "auto",
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.normalise = normalise
        self.max_length = min(max_length, longest_text(model.config.get_text_config()))
        self.answer_prefix = answer_prefix
        self.reader = NextTokens(model)
        self.eval()

    def choice_scores(self) -> Question:
        return self._likelihoods(self.normalise)

    def log_likelihoods(self) -> Question:
        return self._likelihoods("sum")

    def vocabulary(self) -> Question:
        known = len(self.tokenizer)  # a head may have more rows, to fill up

        def answer(batch: Batch) -> Tensor:
            rows = torch.arange(len(batch["place"]), device=batch["place"].device)
            return log_probabilities(self.reader.logits(batch, rows, batch["place"])[:, :known])

        return Question(self._stems(None), answer)

    def features(self) -> Question:
        def answer(batch: Batch) -> Tensor:
            rows = torch.arange(len(batch["place"]), device=batch["place"].device)
            return self.reader.hidden(batch, rows, batch["place"])

        return Question(self._stems(BLANK), answer)

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        return word_rows(self.model, self.tokenizer, words, self.answer_prefix)

    def _stems(self, blank: str | None) -> Any:
        from probelight.encoding.causal import StemEncoder

        return StemEncoder(self.tokenizer, self.max_length, blank, self.answer_prefix)

    def _likelihoods(self, normalise: Normalise) -> Question:
        from probelight.encoding.causal import ContinuationEncoder

        def answer(batch: Batch) -> Tensor:
            counts = batch["answer_mask"].sum(dim=1)
            found = self.reader.log_probabilities(batch)
            return scores_of_choices(batch, found, counts, normalise)

        encoder = ContinuationEncoder(self.tokenizer, self.max_length)
        return Question(encoder, answer, encoder.num_tokens)


def load(settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
    """What answers probes of a setup; questions by the mean over an answer's tokens.

    Raises:
        PretrainedError: If there is no such model, it is no causal one, or its tokenizer is no fast
            one.
    """
    name, random_weights = settings.name_or_path, settings.random_weights
    model, tokenizer = load_pretrained(CAUSAL_LM, name, settings.revision, random_weights, seed)
    model.requires_grad_(False)
    _refuse_slow(name, tokenizer)
    # The sum would prefer short answers.
    normalise: Normalise = "mean" if setup == "mc_qa" else "sum"
    return CausalScorer(model, tokenizer, normalise, settings.max_length, settings.answer_prefix)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuses models that `load` would refuse, without reading their weights.

    Raises:
        PretrainedError: As `load`.
    """
    name = settings.name_or_path
    _refuse_slow(
        name, check_pretrained(CAUSAL_LM, name, settings.revision, settings.random_weights)
    )
    # Every answer is made of pieces that a tokenizer knows somehow.
    return lambda records: range(len(records))


def _refuse_slow(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    if not tokenizer.is_fast:
        raise PretrainedError(
            f"{name}: {type(tokenizer).__name__} does not say which characters a token stands for; "
            "a causal model is scored with a fast tokenizer (tokenizer.json)"
        )
