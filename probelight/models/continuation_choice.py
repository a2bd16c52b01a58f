"""The choice among continuations by a causal or encoder-decoder model whose weights are trained.

The logits of an item's choices are their log-likelihoods, as `CausalScorer` and `Seq2SeqScorer`
have them, or those of a head on the last token. All of it has gradients. A causal model reads an
item's stem once, and its choices behind it in one pass (`probelight.encoding.packed`); an
encoder-decoder model encodes it once.

Shapes: B items, K choices, P distinct texts, T tokens, R places that are read, V entries, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from probelight.encoding.causal import ContinuationEncoder
from probelight.encoding.encoded_set import (
    ChoiceEncoder,
    EncodedSet,
    EncoderAround,
    Ids,
    stacked,
)
from probelight.encoding.infilling import InfillingEncoder
from probelight.encoding.packed import ROW_TOKENS, Packing
from probelight.io import ranges
from probelight.io.errors import RecordError, UsageError
from probelight.io.package import CONFIGS
from probelight.models.causal import CausalScorer, PackedReader, refuse_slow
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import (
    LIKELIHOOD,
    CheckpointRef,
    agree,
    head_settings,
    length_of,
    scoring_of,
)
from probelight.models.loading import (
    CAUSAL_LM,
    SEQ2SEQ_LM,
    load_pretrained,
    longest_text,
    read_config,
)
from probelight.models.networks import Batch, mask_choices
from probelight.models.pair_choice import DEFAULT_HEAD, fresh_head, restore_head
from probelight.models.scorer import Question, Reader, Scorer, ScorerSettings, TrainedScorer
from probelight.models.seq2seq import Seq2SeqScorer
from probelight.probes.prompts import Prompts, Templates
from probelight.probes.record import Record, Setup


class ContinuationChoice:
    """A language model that chooses among continuations of a stem, or words in a blank.

    Its settings are those of `CausalChoice`, which trains it; `read` loads the checkpoint. What a
    folder was trained with for another setup is left aside, and a head that it does not have is
    drawn from the seed of `ref`.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded whole, reads both ways, or was saved
            with another head or scoring.
    """

    def __init__(
        self,
        ref: CheckpointRef,
        scoring: ranges.Scoring = "auto",
        setup: Setup | None = None,
        head: str | None = None,
        max_length: int | None = None,
        answer_prefix: str = "auto",
        read: Reader = load_pretrained,
    ) -> None:
        saved = head_settings(ref) or {}
        self.setup: Setup = setup or saved.get("setup") or "mc_qa"
        self.scoring = scoring_of(ref, scoring, self.setup)
        has_head = self.scoring == "last_token"
        # Of a folder that was trained for the setup; its scoring and head hold for no other.
        is_own = bool(saved) and saved.get("setup") == self.setup
        self.is_trained = is_own and not ref.random_weights
        own_head = saved["head"] if has_head and self.is_trained else None
        if head == "pooler" and has_head:
            raise UsageError("model.head pooler is only for encoders; give mlp or linear")
        # The default asks for nothing.
        given_head = None if head == DEFAULT_HEAD else head
        head_kind = agree("head", given_head, own_head, ref) or DEFAULT_HEAD
        self.head_kind = head_kind if has_head else LIKELIHOOD
        self.max_length = length_of(ref, max_length)
        is_causal = CAUSAL_LM.admits(read_config(ref))
        form = CAUSAL_LM if is_causal else SEQ2SEQ_LM
        self.model, self.tokenizer = read(form, ref)
        if is_causal:
            refuse_slow(ref, self.tokenizer)
        self.kind = "causal" if is_causal else "seq2seq"
        self.reader: TrainedPacks | DecoderReader = (
            TrainedPacks(self.model, self.tokenizer, self.max_length, has_head)
            if is_causal
            else DecoderReader(self.model, self.tokenizer, self.max_length, answer_prefix, has_head)
        )
        self.notices = self.reader.notices
        self.model.requires_grad_(True)
        vocabulary: Any = self.model.get_output_embeddings()
        words: Any = self.model.get_input_embeddings()
        if has_head and vocabulary.weight is not words.weight:
            vocabulary.requires_grad_(False)  # takes no part
        config, size = self.model.config.get_text_config(), vocabulary.weight.shape[1]
        self.head = (
            fresh_head(self.head_kind, config, ref.seed, size) if has_head else nn.Sequential()
        )
        self.head_is_saved = own_head is not None
        if self.head_is_saved:
            restore_head(self.head, ref.folder)
        self.head.to(self.model.device, self.model.dtype)

    @property
    def network(self) -> nn.Module:
        """Model and head, under the names that a trained module gives them."""
        return nn.ModuleDict({"model": self.model, "head": self.head})

    def settings(self) -> dict[str, Any]:
        """Return what the folder of a saved model says of it, besides its head."""
        return {
            "kind": self.kind,
            "setup": self.setup,
            "scoring": self.scoring,
            "max_length": self.max_length,
        }

    def encoder(self) -> ChoiceEncoder:
        """Return the encoder of records."""
        letters = self.scoring == "letter"
        return _SizedEncoder(self.reader.encoder(), self.setup if letters else None)

    def __call__(self, batch: Batch) -> Tensor:
        """Return the logits (B, K) of the choices, -inf where there is none."""
        text_index = batch["pair_index"]
        if self.scoring == "last_token":
            logits = self.head(self.reader.last_hidden(batch))[:, 0][text_index]
        else:
            sums, counts = self.reader.log_likelihoods(batch)
            logits = sums[text_index]
            if self.scoring == "mean_token":
                logits = logits / counts[text_index]
            if self.scoring == "mean_char":
                logits = logits / batch["num_chars"]
        return mask_choices(logits.float(), batch["choice_mask"])


def trained_scorer(
    settings: ScorerSettings, setup: Setup, seed: int = 0, read: Reader = load_pretrained
) -> ContinuationScorer:
    """Return the scorer of a model whose choices go by more than log-likelihoods of tokens.

    Raises:
        PretrainedError: If they go by a head that was never trained.
    """
    ref = replace(settings.checkpoint, seed=seed)
    choice = ContinuationChoice(
        ref,
        settings.scoring,
        setup,
        max_length=settings.max_length,
        answer_prefix=settings.answer_prefix,
        read=read,
    )
    if choice.head_kind != LIKELIHOOD and not choice.is_trained:
        raise PretrainedError(
            f"{ref}: model.scoring last_token needs a trained head, which this model does not "
            "have; train one with `train.py original`, or give scoring auto, which needs none"
        )
    mode = "fine_tuned" if choice.is_trained else f"{choice.kind}_{choice.scoring}"
    return ContinuationScorer(choice, mode)


class ContinuationScorer(TrainedScorer):
    """Scores choices as they are trained, and answers all else as the model without that does."""

    def __init__(self, choice: ContinuationChoice, mode: str) -> None:
        super().__init__(choice, mode)
        scorer_class: Any = CausalScorer if choice.kind == "causal" else Seq2SeqScorer
        self.plain: Scorer = scorer_class(choice.model, choice.tokenizer, "sum", choice.max_length)

    def vocabulary(self) -> Question:
        return self.plain.vocabulary()

    def log_likelihoods(self) -> Question:
        return self.plain.log_likelihoods()

    def features(self) -> Question:
        return self.plain.features()

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        return self.plain.word_rows(words)


class TrainedPacks:
    """Reads the choices of each item behind their common beginning, in one pass of a causal model.

    Several items are in a row, and all of it has gradients, so nothing is read before. Where the
    model cannot be told who sees whom, there is a row per choice.

    Attributes:
        notices: Why there is, for the reader of the results.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: Any, max_length: int, reads_end: bool = False
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = min(max_length, longest_text(model.config.get_text_config()))
        self.reader = PackedReader(model, self.max_length)
        self.packing = Packing(packs=self.reader.packs, row_tokens=ROW_TOKENS, reads_end=reads_end)
        slower = "choices were read one by one, not behind their common stem, which is slower"
        why = self.reader.why_not_packed
        self.notices = (f"{slower}: {why}",) if why else ()

    def encoder(self) -> ContinuationEncoder:
        return ContinuationEncoder(self.tokenizer, self.max_length, packing=self.packing)

    def log_likelihoods(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sums (P,) of the log-probabilities of answers' tokens, and how many (P,)."""
        return self.reader.log_probabilities(batch).sum(dim=1), batch["token_mask"].sum(dim=1)

    def last_hidden(self, batch: Batch) -> Tensor:
        """Return what the model's head reads (P, H) at the last token of each text."""
        return self.reader.read(batch)[0][batch["ends"][:, 0]]


class DecoderReader:
    """Reads what an encoder-decoder model writes in a blank; each text is encoded once."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        max_length: int,
        answer_prefix: str,
        reads_end: bool = False,
    ) -> None:
        self.scorer = Seq2SeqScorer(model, tokenizer, "sum", max_length, answer_prefix)
        self.notices = self.scorer.notices
        form = self.scorer.form
        if reads_end and not form.closing:
            # What is asked behind an answer is predicted where all of the answer has been read.
            self.scorer.form = replace(form, closing=(tokenizer.eos_token_id,))

    def encoder(self) -> InfillingEncoder:
        return self.scorer.likelihood_encoder()

    def log_likelihoods(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sums (P,) of the log-probabilities of answers' tokens, and how many (P,)."""
        scores, counts = self.scorer.token_scores(batch)
        placed = torch.zeros(batch["scored_mask"].shape, device=scores.device)
        return placed.index_put(tuple(batch["scored_at"]), scores).sum(dim=1), counts

    def last_hidden(self, batch: Batch) -> Tensor:
        """Return what the model's head reads (P, H) behind the last token of each answer."""
        read = self.scorer.at_answers(batch)[0]
        return read[batch["scored_mask"].sum(dim=1).cumsum(dim=0) - 1]


@dataclass(frozen=True, kw_only=True)
class _SizedSet(EncodedSet):
    """An encoded set whose batches also count the characters of each choice."""

    encoded: EncodedSet
    choices: Sequence[Sequence[str]]  # of each item

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return the set's own inputs, and `num_chars` (B, K), 1 where there is no choice."""
        sizes = [np.array([len(c.strip()) for c in self.choices[i]]) for i in items]
        inputs = self.encoded.inputs(items)
        num_chars = torch.ones(inputs["choice_mask"].shape, dtype=torch.long)
        padded_sizes = stacked(sizes, 1)
        num_chars[:, : padded_sizes.shape[1]] = padded_sizes
        return {**inputs, "num_chars": num_chars}


class _SizedEncoder(EncoderAround):
    """An encoder of records for words, or for letters where the prompts ask for them."""

    def __init__(self, encoder: ChoiceEncoder, letters: Setup | None) -> None:
        super().__init__(encoder)
        inner = cast("Any", encoder)
        self.tokenizer, self.max_length = inner.tokenizer, inner.max_length
        self.prompts = (
            Prompts(Templates.read(CONFIGS / "prompt" / "default.yaml"), letters)
            if letters
            else None
        )

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        for record in records:
            if not all(choice.strip() for choice in record.choices):
                raise RecordError(f"{record.where}: a choice is empty, so it has no likelihood")
        prompted = records
        if self.prompts is not None:
            prompted = [self.prompts.letters(r, tuple(range(len(r.choices)))) for r in records]
        encoded = self.encoder.encode(prompted)
        base = {f.name: getattr(encoded, f.name) for f in fields(EncodedSet)}
        return _SizedSet(
            **base, encoded=encoded, choices=[records[i].choices for i in encoded.positions]
        )
