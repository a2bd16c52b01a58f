"""Encoder-decoder language models: an answer is what the decoder writes in the text's blank.

Two forms of filling blanks are known, by what the models were pre-trained to do:

- T5's (T5, mT5, UMT5, LongT5; Raffel et al. 2020): the encoder reads "a cat is <extra_id_0>
  than a dog." and `</s>`; the decoder is given its start token and `<extra_id_0>`, and is asked for
  the answer's pieces and the closing `<extra_id_1>`, without which an answer would be as likely as
  all that begin with it. They are summed, the closing sentinel among them. A text with its
  sentinel is cut as the tokenizer cuts it: some see a new word in the full stop behind one. ByT5's
  sentinels are the last bytes, which no text has, 258 and 257 (Xue et al. 2022, section 3.1).
- BART's (BART, mBART, PLBART, LED; Lewis et al. 2020): the encoder reads "a cat is<mask> than a
  dog." between its special tokens; the decoder is teacher-forced on the filled sentence: its start
  token (BART: `</s>`), the special tokens that a sentence begins with (BART: `<s>`; mBART has the
  language's code alone), the text before the blank, and the answer. The answer's pieces are summed.
  What is behind the blank is read by the encoder, and not summed.

A question is its stem, a space and the blank; an empty stem is the blank alone, so that all of a
sentence is what the decoder writes. Other families are refused: they were not taught to fill blanks
(Pegasus, Marian), or their numbers depend on the other texts of a batch (Switch).

Shapes: B items, K choices, S distinct sources, P distinct targets, T tokens of a target, R of them
asked for, H hidden, V entries of a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from probelight.encoding.candidates import Blank
from probelight.encoding.infilling import Asks, Infilling, InfillingEncoder
from probelight.models.checkpoint_errors import PretrainedError, one_error
from probelight.models.checkpoint_files import length_of, scoring_of
from probelight.models.like_length import LikeLength
from probelight.models.loading import (
    FILLED_SENTENCE,
    SEQ2SEQ_LM,
    Form,
    check_pretrained,
    load_pretrained,
    longest_text,
    refuse_ambiguous_mask,
)
from probelight.models.networks import Batch, is_gathered_by_layer, read_by_head, run_encoder
from probelight.models.scorer import (
    LikelihoodScorer,
    Normalise,
    Posable,
    Question,
    Reader,
    ScorerSettings,
    all_of,
    over_entries,
)
from probelight.models.vocabulary import word_rows
from probelight.probes.record import MASK, Setup

# Targets are run in groups of so many logits: 64 million are 256 MB.
_MAX_LOGITS = 1 << 26
_SENTINELS = ("<extra_id_0>", "<extra_id_1>")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # as SentencePiece writes it
_WORD = "a"  # any that is no special token
FORMS: dict[Setup, Form] = dict.fromkeys(("mc_mlm", "mc_qa", "minimal_pair"), SEQ2SEQ_LM)


class _Group(NamedTuple):
    """Targets that the decoder reads at once."""

    targets: slice
    width: int  # tokens of the longest one
    scored: slice  # their places in `scored_at`


class Seq2SeqScorer(LikelihoodScorer):
    """An encoder-decoder LM that fills the blank of each text, see the module.

    Each text is encoded once, for all its choices.

    Args:
        model: The model; it is used, not copied.
        tokenizer: Its tokenizer.
        normalise: "sum" over the tokens of a choice, or their "mean".
        max_length: Longest text in tokens, of the encoder and of the decoder.
        answer_prefix: As in `CandidateTable`.

    Raises:
        PretrainedError: If the model and its tokenizer have neither form.
    """

    mode = "infilling_likelihood"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        normalise: Normalise = "sum",
        max_length: int = 256,
        answer_prefix: str = "auto",
    ) -> None:
        self.network = self.model = model.requires_grad_(False).train(False)
        self.head: Any = self.model.get_output_embeddings()
        self.by_length = LikeLength(self.model.get_encoder())
        self.notices = self.by_length.notices
        self.tokenizer = tokenizer
        self.form = infilling_of(model, tokenizer)
        self.normalise = normalise
        self.max_length = min(max_length, longest_text(model.config))
        self.answer_prefix = answer_prefix

    def likelihood_encoder(self) -> InfillingEncoder:
        return self._encoder("choices")

    def vocabulary(self) -> Question:
        return over_entries(self._encoder("entries"), lambda batch: self._next_token(batch)[1])

    def features(self) -> Question:
        """Return the question for what the head reads (B, H) at the answer's first token.

        T5's head reads hidden states that are scaled by the root of their size, where embeddings
        are tied; so are these.
        """
        return Question(self._encoder("place"), lambda batch: self._next_token(batch)[0])

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        return word_rows(self.model, self.tokenizer, words, self.answer_prefix)

    def _encoder(self, asks: Asks) -> InfillingEncoder:
        return InfillingEncoder(
            self.tokenizer, self.form, self.max_length, self.answer_prefix, asks
        )

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        encoded = self._encoded_sources(batch)
        row, column = batch["scored_at"]
        group_scores = []
        for group in self._groups(batch):
            _, logits = self._decoded(batch, encoded, group)
            gold = batch["scored_ids"][row[group.scored], column[group.scored]]
            group_scores.append(logits.gather(1, gold[:, None])[:, 0] - logits.logsumexp(dim=1))
        return torch.cat(group_scores), batch["scored_mask"].sum(dim=1)

    def _groups(self, batch: Batch) -> Iterator[_Group]:
        """Yield targets of like length, without too many logits.

        With gradients the logits of all are kept for the backward pass anyway.
        """
        scored = batch["scored_mask"]
        num_targets, longest = scored.shape
        is_whole = torch.is_grad_enabled() or is_gathered_by_layer(self.model)
        places = scored.numel() if is_whole else _MAX_LOGITS // len(self.head.weight)
        if hasattr(scored, "fake_mode"):  # a simulation: no numbers, and one group is as good
            size = min(num_targets, max(1, places // longest))
            num_scored = batch["scored_at"].shape[1] * size // num_targets
            yield _Group(slice(0, size), longest, slice(0, num_scored))
            return
        ends = [0, *accumulate(scored.sum(dim=1).tolist())]
        for rows, width in self.by_length.groups(batch["decoder_attention_mask"]):
            size = max(1, places // width)
            for start in range(rows[0], rows[-1] + 1, size):
                end = min(start + size, rows[-1] + 1)
                yield _Group(slice(start, end), width, slice(ends[start], ends[end]))

    def _next_token(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what the head reads (B, H) and gives (B, V) at the next token."""
        read, logits = self.at_answers(batch)
        first_targets = batch["pair_index"][:, 0]
        return read[first_targets], logits[first_targets]

    def at_answers(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what the head reads (R, H) and gives (R, V) at all places that are asked for."""
        encoded = self._encoded_sources(batch)
        outputs = [self._decoded(batch, encoded, group) for group in self._groups(batch)]
        read, logits = zip(*outputs, strict=True)
        return torch.cat(read), torch.cat(logits)

    def _encoded_sources(self, batch: Batch) -> Tensor:
        """Return the encoder's output (S, L, H) of the distinct sources."""
        size = batch["input_ids"].shape[1]

        def read(sources: Batch) -> Tensor:
            hidden = run_encoder(self.model.get_encoder(), sources).last_hidden_state
            return F.pad(hidden, (0, 0, 0, size - hidden.shape[1]))

        return self.by_length({n: batch[n] for n in ("input_ids", "attention_mask")}, read)

    def _decoded(self, batch: Batch, encoded: Tensor, group: _Group) -> tuple[Tensor, Tensor]:
        """Return what the head reads (R, H) and gives (R, V) at the places of some targets."""
        source = batch["source_index"][group.targets]
        row, column = batch["scored_at"][:, group.scored]
        row = row - group.targets.start

        def select(hidden: Tensor) -> Tensor:
            # The head of a model on several devices may be on another one than its inputs.
            return hidden[row.to(hidden.device), column.to(hidden.device)]

        with read_by_head(self.head, select) as read:
            logits = self.model(
                encoder_outputs=BaseModelOutput(last_hidden_state=encoded[source]),
                attention_mask=batch["attention_mask"][source],
                decoder_input_ids=batch["decoder_input_ids"][group.targets, : group.width],
                use_cache=False,
            ).logits
        return read[0], logits.float()


def infilling_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Infilling:
    """Return how a model fills blanks, by its family and its tokenizer; weights are not read."""
    source, kind = str(model.config.name_or_path), model.config.model_type
    name = f"{source}: {kind} fills blanks"
    repeats_context = kind in FILLED_SENTENCE
    word: list[int] = tokenizer(_WORD, add_special_tokens=False)["input_ids"]
    closing: tuple[int, ...] = ()
    if repeats_context:
        if tokenizer.mask_token_id is None or not tokenizer.is_fast:
            raise PretrainedError(
                f"{name} by writing the whole sentence, so {type(tokenizer).__name__} must be a "
                "fast tokenizer with a mask token"
            )
        refuse_ambiguous_mask(source, tokenizer)
        blank, blank_id = str(tokenizer.mask_token), tokenizer.mask_token_id
        sentinel_id = blank_id
        label_ids = tokenizer(_WORD)["input_ids"]
    else:
        entries = tokenizer.get_vocab()
        for space, leading_space in (("", ""), (_SPACE, " ")):  # mT5's are words
            blank = f"{leading_space}{_SENTINELS[0]}"
            blank_id, last = (entries.get(f"{space}{sentinel}") for sentinel in _SENTINELS)
            if blank_id is not None and last is not None:
                break
        else:
            missing = " and ".join(_SENTINELS)
            raise PretrainedError(f"{name} with sentinels, but the tokenizer has no {missing}")
        # ByT5's bytes, behind three special tokens: it never saw the <extra_id_0> of its tokenizer.
        is_byt5 = tokenizer.convert_tokens_to_ids([chr(255), chr(254)]) == [258, 257]
        sentinel_id, last = (258, 257) if is_byt5 else (blank_id, last)
        closing = (last,)
        label_ids = [sentinel_id, *word, *closing]
    text = Blank.of(f"{_WORD} {MASK} {_WORD}", blank).text
    if tokenizer(text, add_special_tokens=False)["input_ids"].count(blank_id) != 1:
        raise PretrainedError(
            f"{source}: the tokenizer does not read {blank.strip()}, the blank of {kind}, as one "
            "token in a text; save the tokenizer again with it as a special token"
        )
    # The model's own rule shifts what is to be written, and puts its start token before it.
    shift: Any = model.prepare_decoder_input_ids_from_labels
    with one_error(source, "decoder's start token"):
        decoder_ids = shift(torch.tensor([label_ids]))[0].tolist()
    if word[0] not in decoder_ids:  # the last token is not shifted: with nothing behind it, a word
        raise PretrainedError(
            f"{name} in a sentence that ends in {tokenizer.eos_token or '</s>'}, which its "
            "tokenizer does not put behind a text; copy the tokenizer files of the model that it "
            "was trained from into it, or save the tokenizer with a post-processor that adds it"
        )
    opening = tuple(decoder_ids[: decoder_ids.index(word[0])])
    return Infilling(blank, blank_id, sentinel_id, opening, closing, repeats_context)


def load(
    settings: ScorerSettings, setup: Setup, seed: int = 0, read: Reader = load_pretrained
) -> Seq2SeqScorer:
    """Return the scorer of a setup, which sums over tokens or takes their mean."""
    ref = replace(settings.checkpoint, seed=seed)
    model, tokenizer = read(SEQ2SEQ_LM, ref)
    rule: Normalise = "mean" if scoring_of(ref, settings.scoring, setup) == "mean_token" else "sum"
    length = length_of(ref, settings.max_length)
    return Seq2SeqScorer(model, tokenizer, rule, length, settings.answer_prefix)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuse models that `load` would refuse, without reading their weights."""
    checkpoint = check_pretrained(SEQ2SEQ_LM, settings.checkpoint, settings.dtype)
    infilling_of(checkpoint.outline(), checkpoint.tokenizer)
    return all_of
