"""Causal language models: each token is predicted from those before it alone.

- What is summed: the log-probabilities of everything from the answer on, the answer and what
  follows the blank, given what is before. Every choice of an item is followed by the same
  words, and a choice that makes them unlikely is a bad one. The text is tokenised whole and cut at
  the boundary; a token that straddles it belongs to the answer, as does the white space before it.
- Beginning: the tokenizer's own special tokens (BOS) before a text are kept, those at its end are
  not. Where it sets none (GPT-2), a text with nothing before the answer begins with its BOS
  token, or EOS where there is none, from which the first word is predicted.
- An empty stem, of a sentence that is scored whole, is such a text: every word of it is summed.
- `vocabulary` is read behind the sentence's part before the blank, or behind the stem; what
  follows the blank is not seen.
- `features` is what the head reads, behind the last norm, at the last token of the whole stem: a
  question, or a sentence with its blank written as `___`, so the text behind the blank is seen.
- A text that is too long loses its beginning, never what is scored.
- In a chat (`probelight.encoding.chat`) a choice is the assistant's answer, with nothing behind it.

Shapes: B items, K choices, P distinct texts, V entries of a vocabulary, H hidden.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from probelight.encoding.causal import ContinuationEncoder, StemEncoder
from probelight.encoding.chat import Chat
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef, length_of, scoring_of
from probelight.models.checks import (
    ODD_MODEL,
    comparable,
    differ_by_rounding,
    refuse_looking_ahead,
    sample_ids,
)
from probelight.models.loading import (
    CAUSAL_LM,
    Form,
    check_pretrained,
    load_pretrained,
    longest_text,
)
from probelight.models.networks import Batch, read_by_head
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
from probelight.probes.prompts import Thinking
from probelight.probes.record import Setup

BLANK = "___"
FORMS: dict[Setup, Form] = dict.fromkeys(("mc_mlm", "mc_qa", "minimal_pair"), CAUSAL_LM)

# Texts are read in parts of so many tokens, and continued in runs of so many, those of like lengths
# together. The logits of a whole batch over a large vocabulary would fill the memory.
_MAX_TOKENS = 8192
_MAX_RUN = 384
_MAX_LOGITS = 1 << 26


class CausalScorer(LikelihoodScorer):
    """Scores a choice by log P(choice and what follows | what is before).

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer, a fast one.
        normalise: `choice_scores` are the "sum" over the tokens, or their "mean", which does not
            prefer short answers.
        max_length: Longest text in tokens.
        answer_prefix: Put before a choice to look it up in the vocabulary, see `CandidateTable`.

    Raises:
        PretrainedError: If the model has no head over a vocabulary, or sees later tokens.
    """

    mode = "causal_likelihood"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        normalise: Normalise = "sum",
        max_length: int = 256,
        answer_prefix: str = "auto",
    ) -> None:
        self.model = model.requires_grad_(False)
        self.network = nn.ModuleDict({"model": model}).eval()
        self.tokenizer = tokenizer
        self.normalise = normalise
        self.max_length = min(max_length, longest_text(model.config.get_text_config()))
        self.answer_prefix = answer_prefix
        self.reader = NextTokens(model)
        self.notices = self.reader.notices

    def in_chat(
        self, system: str = "", begin: str = "", thinking: Thinking = "template"
    ) -> CausalScorer | None:
        if not self.tokenizer.chat_template:
            return None
        chat_scorer = copy(self)
        chat_scorer.chat = Chat(self.tokenizer, system, begin, thinking)
        return chat_scorer

    def likelihood_encoder(self) -> ContinuationEncoder:
        return ContinuationEncoder(self.tokenizer, self.max_length, self.chat)

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.reader.log_probabilities(batch), batch["answer_mask"].sum(dim=1)

    def vocabulary(self) -> Question:
        if self.is_in_chat:
            self._refuse("log-probabilities over a vocabulary in a chat")
        encoder = StemEncoder(self.tokenizer, self.max_length, None, self.answer_prefix)
        return over_entries(encoder, lambda batch: self._behind_stems(batch)[1])

    def features(self) -> Question:
        if self.is_in_chat:
            self._refuse("features in a chat")
        encoder = StemEncoder(self.tokenizer, self.max_length, BLANK, self.answer_prefix)
        return Question(encoder, lambda batch: self._behind_stems(batch)[0])

    def _behind_stems(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what the head reads (B, H) and gives (B, V) at the last token of each stem."""
        rows = torch.arange(len(batch["place"]), device=batch["place"].device)
        return self.reader.at(batch, rows, batch["place"])

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        return word_rows(self.model, self.tokenizer, words, self.answer_prefix)


class NextTokens:
    """Reads the next token's probabilities from a causal language model, at some places only.

    A beginning that several texts share is run once, and its keys and values are handed to each of
    them, without padding in between: the model then numbers the places itself, and a sliding window
    is as it is over the whole text. Models that keep something else of a text (state-space models),
    or whose answers to a small text change, read each text whole. The model is not copied.

    Attributes:
        shares: Whether texts are continued from their common beginning.
        notices: Why they are not, for the reader of the results.

    Raises:
        PretrainedError: If the model has no head over a vocabulary, or sees later tokens.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if not isinstance(head, nn.Module):
            raise PretrainedError(f"{type(model).__name__} has no head over a vocabulary")
        self.model: Any = model
        self.head = head
        self.num_entries: int = self.model.config.get_text_config().vocab_size
        refuse_looking_ahead(model)
        why = ""
        if not self._keeps_keys():
            why = f"{type(model).__name__} keeps more of a text than keys and values"
        elif not self._verify():
            why = f"{type(model).__name__} does not go on from keys and values as it reads a text"
        self.shares = not why
        slower = "common beginnings of texts were read again for each text, which is slower"
        self.notices = () if self.shares else (f"{slower}: {why}",)

    def at(
        self,
        batch: Mapping[str, Tensor],
        row: Tensor,
        column: Tensor,
        cache: DynamicCache | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return what the head reads (N, H) and gives (N, V) at `column` (N,) in `row` (N,).

        The logits are those of the next token. The batch's keys and values are added to a `cache`
        of what is before it, which its `attention_mask` covers too.
        """
        cache_inputs = {} if cache is None else {"past_key_values": cache}

        def select(hidden: Tensor) -> Tensor:
            # The head of a model on several devices may be on another one than its inputs.
            return hidden[row.to(hidden.device), column.to(hidden.device)][None]

        with read_by_head(self.head, select) as read:
            logits = self.model(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                use_cache=cache is not None,
                **cache_inputs,
            ).logits
        return read[0][0], logits[0].float()

    def log_probabilities(self, batch: Batch) -> Tensor:
        """Return log-probabilities (R,), on the CPU, of the tokens in `answer_mask`, text by text.

        The batch is that of a `ContinuationSet`, (P, L); the mask holds no first token.
        """
        if not self.shares:
            all_but_last = batch["attention_mask"].sum(dim=1) - 1
            batch = {
                **batch,
                "shared": all_but_last,
                "owner": torch.arange(len(all_but_last)).to(all_but_last),
            }
        text, _ = batch["answer_mask"].nonzero(as_tuple=True)
        log_probs = torch.empty(len(text))
        for group in self._groups(batch):
            log_probs[torch.isin(text, group).cpu()] = self._group_log_probs(batch, group).cpu()
        return log_probs

    def _keeps_keys(self) -> bool:
        """Return whether the model's cache holds only keys and values of each token."""
        if "past_key_values" not in inspect.signature(self.model.forward).parameters:
            return False
        layers = DynamicCache(config=self.model.config).layers
        key_value_layers = {DynamicLayer, DynamicSlidingWindowLayer}
        return not self.model._is_stateful and {type(layer) for layer in layers} <= key_value_layers

    def _group_log_probs(self, batch: Batch, rows: Tensor) -> Tensor:
        """Return the log-probabilities of some texts, `rows` (T,) of the batch, ascending.

        Their beginnings are run first, from which the `early` ones of their tokens are predicted.
        """
        ids, mask = batch["input_ids"][rows], batch["attention_mask"][rows]
        shared = batch["shared"][rows]
        text, column = batch["answer_mask"][rows].nonzero(as_tuple=True)
        gold, context = ids[text, column], column - 1  # a token is predicted one place before it
        early = context < shared[text]
        cache = None if bool(early.all()) else DynamicCache()
        owners, beginning = torch.unique(batch["owner"][rows], return_inverse=True)
        size = int(shared.max())
        common = {name: batch[name][owners, :size] for name in ("input_ids", "attention_mask")}
        # Several texts ask for what follows at one place of their common beginning.
        stem_queries = torch.stack([beginning[text[early]], context[early]])
        (at_row, at_column), query_of = torch.unique(stem_queries, dim=1, return_inverse=True)
        _, logits = self.at(common, at_row, at_column, cache)
        scores = logits.log_softmax(dim=1)
        log_probs = scores.new_empty(len(text))
        log_probs[early] = scores[query_of, gold[early]]
        if cache is None:
            return log_probs
        for run in self._runs(torch.unique(text[~early]), shared, mask.sum(dim=1)):
            late = ~early & torch.isin(text, run)
            begin, end = int(shared[run].min()), int(context[late].max()) + 1
            tails = {"input_ids": ids[run, begin:end], "attention_mask": mask[run, :end]}
            past = _beginnings(cache, beginning[run], begin)
            at_row = torch.searchsorted(run, text[late])
            _, logits = self.at(tails, at_row, context[late] - begin, past)
            log_probs[late] = logits.log_softmax(dim=1).gather(1, gold[late, None])[:, 0]
        return log_probs

    def _groups(self, batch: Batch) -> Iterator[Tensor]:
        """Yield groups of texts that share about equally many tokens, none too large."""
        shared, owner = batch["shared"].tolist(), batch["owner"].tolist()
        columns = torch.arange(batch["answer_mask"].shape[1] - 1, device=batch["shared"].device)
        early = batch["answer_mask"][:, 1:] & (columns < batch["shared"][:, None])
        order = sorted(range(len(shared)), key=lambda i: (shared[i], owner[i]))
        lengths, sizes = batch["attention_mask"].sum(dim=1).tolist(), early.sum(dim=1).tolist()
        longest = max(lengths, default=1)
        group: list[int] = []
        num_logits = 0
        for i in order:
            num_logits += sizes[i] * self.num_entries
            if group and (longest * (len(group) + 1) > _MAX_TOKENS or num_logits > _MAX_LOGITS):
                yield torch.tensor(sorted(group), device=batch["shared"].device)
                group, num_logits = [], sizes[i] * self.num_entries
            group.append(i)
        if group:
            yield torch.tensor(sorted(group), device=batch["shared"].device)

    def _runs(self, texts: Tensor, shared: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        """Yield runs of texts of about equal lengths; each run begins at its shortest beginning."""
        most = min(_MAX_RUN, _MAX_LOGITS // self.num_entries)
        begins, ends = shared.tolist(), lengths.tolist()
        run: list[int] = []
        begin = 0
        for i in sorted(texts.tolist(), key=lambda i: ends[i]):
            begin = min(begin, begins[i]) if run else begins[i]
            if run and (ends[i] - begin) * (len(run) + 1) > most:
                yield torch.tensor(sorted(run), device=texts.device)
                run, begin = [], begins[i]
            run.append(i)
        if run:
            yield torch.tensor(sorted(run), device=texts.device)

    def _verify(self) -> bool:
        """Check on two short texts that begin alike that sharing changes no log-probability."""
        words = sample_ids(self.model.config.get_text_config(), 5)
        ids = torch.tensor([[*words], [*words[:3], *words[:2]]], device=self.model.device)
        scored = torch.ones_like(ids, dtype=torch.bool).index_fill_(1, ids.new_zeros(1), False)
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "answer_mask": scored}
        batch |= {"shared": ids.new_tensor([3, 3]), "owner": ids.new_tensor([0, 0])}
        text, column = scored.nonzero(as_tuple=True)
        with comparable(self.model) as tolerance:
            _, logits = self.at(batch, text, column - 1)
            try:
                actual = self._group_log_probs(batch, ids.new_tensor([0, 1]))
            except ODD_MODEL:
                return False  # it only looked as if it kept keys and values
        expected = logits.log_softmax(dim=1).gather(1, ids[text, column][:, None])[:, 0]
        return differ_by_rounding(expected, actual, tolerance, logits)


def _beginnings(cache: DynamicCache, rows: Tensor, size: int) -> DynamicCache:
    """Return the first `size` tokens of some of the sequences in a cache."""
    beginnings = DynamicCache()
    layers: Any = cache.layers
    for layer_index, layer in enumerate(layers):
        if layer.is_initialized:  # some layers read those of another one
            # Of a model on several devices, each layer's are on its own.
            layer_rows = rows.to(layer.keys.device)
            keys, values = (
                stored[:, :, :size][layer_rows] for stored in (layer.keys, layer.values)
            )
            beginnings.update(keys, values, layer_index)
    return beginnings


def load(
    settings: ScorerSettings, setup: Setup, seed: int = 0, read: Reader = load_pretrained
) -> CausalScorer:
    """Return the scorer of a setup, which sums over tokens or takes their mean."""
    ref = replace(settings.checkpoint, seed=seed)
    model, tokenizer = read(CAUSAL_LM, ref)
    refuse_slow(ref, tokenizer)
    rule: Normalise = "mean" if scoring_of(ref, settings.scoring, setup) == "mean_token" else "sum"
    length = length_of(ref, settings.max_length)
    return CausalScorer(model, tokenizer, rule, length, settings.answer_prefix)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuse models that `load` would refuse, without reading their weights."""
    checkpoint = check_pretrained(CAUSAL_LM, settings.checkpoint, settings.dtype)
    refuse_slow(settings.checkpoint, checkpoint.tokenizer)
    return all_of


def refuse_slow(ref: CheckpointRef, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise PretrainedError for a tokenizer that does not say where a token is in its text."""
    if not tokenizer.is_fast:
        raise PretrainedError(
            f"{ref}: {type(tokenizer).__name__} does not report which characters a token covers; "
            "a causal model needs a fast tokenizer (tokenizer.json)"
        )
