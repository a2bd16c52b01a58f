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
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from probelight.encoding.causal import ContinuationEncoder, StemEncoder
from probelight.encoding.chat import Chat
from probelight.encoding.packed import (
    MIN_PREFIX,
    PADDING,
    ROW_TOKENS,
    Packing,
    packed,
    visible,
)
from probelight.io.workload import count_read
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef, length_of, scoring_of
from probelight.models.checks import (
    ODD_MODEL,
    comparable,
    predict_alike,
    refuse_looking_ahead,
    sample_ids,
)
from probelight.models.like_length import call_cost, groups_of_like_length
from probelight.models.loading import (
    CAUSAL_LM,
    Form,
    check_pretrained,
    load_pretrained,
    longest_text,
)
from probelight.models.networks import Batch, is_gathered_by_layer, read_by_head
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

# Logits over a large vocabulary would fill the memory: 64 million are 256 MB.
_MAX_LOGITS = 1 << 26
# How many tokens back a model looks, under the names that configs have for it.
_WINDOWS = ("sliding_window", "attention_window", "attention_chunk_size")
# Families whose own masks go by places in the sequence, whatever mask they are given.
_OWN_MASKS = ("gpt_neo",)


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
        self.reader = PackedReader(model, self.max_length)
        is_slower = not (self.reader.packs or self.reader.keeps_keys)
        slower = "common beginnings of texts were read again for each text, which is slower"
        self.notices = (f"{slower}: {self.reader.why_not_packed}",) * is_slower

    def in_chat(
        self, system: str = "", begin: str = "", thinking: Thinking = "template"
    ) -> CausalScorer | None:
        if not self.tokenizer.chat_template:
            return None
        chat_scorer = copy(self)
        chat_scorer.chat = Chat(self.tokenizer, system, begin, thinking)
        return chat_scorer

    def likelihood_encoder(self) -> ContinuationEncoder:
        packing = Packing(
            packs=self.reader.packs,
            reads_prefixes=self.reader.keeps_keys,
            min_prefix=MIN_PREFIX if self.reader.packs else 1,
            row_tokens=ROW_TOKENS,
        )
        return ContinuationEncoder(self.tokenizer, self.max_length, self.chat, packing)

    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        mask = batch["token_mask"]
        return self.reader.log_probabilities(batch)[mask], mask.sum(dim=1)

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
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        count_read(inputs["input_ids"].numel(), inputs["attention_mask"].sum())
        return self.reader.at(inputs, rows, batch["place"])

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        return word_rows(self.model, self.tokenizer, words, self.answer_prefix)


class PackedReader:
    """Reads the next token's probabilities from a causal language model, where they are asked for.

    What texts have in common is read once. Packed into one row, every segment sees what it goes on
    from by a mask; what many rows begin with is read before them, and its keys and values are
    handed to each row. A model that cannot be told who sees whom, or that looks back only so far,
    has a row per text, behind the keys and values of an item's common beginning. One that keeps
    something else of a text (state-space models) reads each text whole. Both are found out on a few
    tokens. The model is not copied.

    Args:
        model: A causal language model.
        max_length: Longest text in tokens.

    Attributes:
        packs: Whether several texts are packed into one row.
        keeps_keys: Whether rows go on from keys and values of what is before them.
        why_not_packed: Why a row holds one text alone; empty where it may hold several.

    Raises:
        PretrainedError: If the model has no head over a vocabulary, or sees later tokens.
    """

    def __init__(self, model: PreTrainedModel, max_length: int) -> None:
        head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if not isinstance(head, nn.Module):
            raise PretrainedError(f"{type(model).__name__} has no head over a vocabulary")
        self.model: Any = model
        self.head = head
        config: Any = model.config.get_text_config()
        self.num_entries = int(config.vocab_size)
        looks_back = [getattr(config, name, None) or max_length for name in _WINDOWS]
        self.why_not_packed, has_keys = "", self._has_keys()
        packing = Packing(reads_prefixes=has_keys, row_tokens=ROW_TOKENS)
        if (window := min(looks_back)) < max_length:
            self.why_not_packed = f"it looks back {window} tokens, and max_length is {max_length}"
        elif config.model_type in _OWN_MASKS:
            self.why_not_packed = f"{config.model_type} sees by places, whatever mask it is given"
        elif self._is_exact(packing):
            self.packs, self.keeps_keys = True, has_keys
            return
        refuse_looking_ahead(model)  # what packs exactly does not, see `_is_exact`
        if not self.why_not_packed and not self._is_exact(replace(packing, reads_prefixes=False)):
            name = type(model).__name__
            self.why_not_packed = f"{name} does not predict packed choices as alone"
        self.packs = not self.why_not_packed
        # Packed behind a prefix it is not exact; a row per text may be.
        self.keeps_keys = (
            has_keys and not self.packs and self._is_exact(replace(packing, packs=False))
        )

    def at(self, inputs: Mapping[str, Any], row: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the head reads (N, H) and gives (N, V) at `column` (N,) in `row` (N,).

        The logits are those of the next token.
        """

        def select(hidden: Tensor) -> Tensor:
            # The head of a model on several devices may be on another one than its inputs.
            return hidden[row.to(hidden.device), column.to(hidden.device)][None]

        with read_by_head(self.head, select) as read:
            logits = self.model(**{"use_cache": False, **inputs}).logits
        return read[0][0], logits[0].float()

    def log_probabilities(self, batch: Batch) -> Tensor:
        """Return log-probabilities (P, T) of the answers' tokens in a `PackedSet`'s batch.

        They are 0 where `token_mask` is False.
        """
        reads, mask = batch["reads"], batch["token_mask"]
        log_probs = torch.zeros(reads.shape, device=reads.device)
        for first, _, logits in self._read_groups(batch):
            at = reads - first
            is_read = mask & (at >= 0) & (at < len(logits))
            at = at.clamp(0, len(logits) - 1)
            scores = logits[at, batch["gold"]] - logits.logsumexp(dim=1)[at]
            log_probs = torch.where(is_read, scores, log_probs)
        return log_probs

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what the head reads (R, H) and gives (R, V) at all places."""
        _, hidden, logits = zip(*self._read_groups(batch), strict=True)
        return torch.cat(hidden), torch.cat(logits)

    def _read_groups(self, batch: Batch) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield a first place, and what the head reads (R, H) and gives (R, V) from it on.

        Rows of like length behind the same prefix are read at once, without too many logits; with
        gradients the logits of all are kept for the backward pass anyway.
        """
        row, segments = batch["read_row"], batch["segments"]
        num_rows, width = segments.shape
        is_whole = torch.is_grad_enabled() or is_gathered_by_layer(self.model)
        most = len(row) if is_whole else max(1, _MAX_LOGITS // self.num_entries)
        if hasattr(row, "fake_mode"):  # a simulation: no numbers, and one part is as good as all
            rows = slice(0, max(1, num_rows * most // max(most, len(row))))
            yield 0, *self._read(batch, rows, width, slice(0, min(most, len(row))), None)
            return
        counts, sizes = torch.bincount(row, minlength=num_rows), (segments != PADDING).sum(dim=1)
        counts, prefixes, sizes = torch.stack([counts, batch["row_prefix"], sizes]).tolist()
        ends, end = [0, *accumulate(counts)], 0
        call_tokens = call_cost(self.model, segments.device.type)
        for prefix, members in groupby(prefixes):
            begin, end = end, end + len([*members])
            cache = self._prefix_cache(batch, prefix)
            for numbers, width in groups_of_like_length(sizes[begin:end], call_tokens):
                first, last = begin + numbers[0], begin + numbers[-1] + 1
                count_read(width * len(numbers), sum(sizes[first:last]))
                while first < last:
                    stop = bisect_right(ends, ends[first] + most, first + 1, last + 1) - 1
                    stop = max(stop, first + 1)
                    places = slice(ends[first], ends[stop])
                    yield places.start, *self._read(batch, slice(first, stop), width, places, cache)
                    first = stop

    def _prefix_cache(self, batch: Batch, prefix: int) -> DynamicCache | None:
        """Return the keys and values of what stands before some rows."""
        if prefix < 0:
            return None
        cache, nowhere = DynamicCache(), batch["read_row"][:0]
        ids = batch["prefix_ids"][prefix : prefix + 1, : int(batch["prefix_sizes"][prefix])]
        count_read(ids.numel(), ids.numel())
        self.at({"input_ids": ids, "past_key_values": cache, "use_cache": True}, nowhere, nowhere)
        return cache

    def _read(
        self, batch: Batch, rows: slice, width: int, places: slice, prefix: DynamicCache | None
    ) -> tuple[Tensor, Tensor]:
        """Return what the head reads (R, H) and gives (R, V) at places of rows behind a prefix."""
        segments, size = batch["segments"][rows, :width], 0
        inputs: dict[str, Any] = {"input_ids": batch["input_ids"][rows, :width]}
        if prefix is not None:
            size = prefix.get_seq_length()
            inputs |= {"past_key_values": _repeated(prefix, len(segments)), "use_cache": True}
        if self.packs:
            inputs["attention_mask"] = visible(segments, self.model.dtype, size)
            inputs["position_ids"] = batch["position_ids"][rows, :width]
        else:
            exists = (segments != PADDING).long()
            inputs["attention_mask"] = nn.functional.pad(exists, (size, 0), value=1)
        row, column = batch["read_row"][places] - rows.start, batch["read_place"][places]
        return self.at(inputs, row, column)

    def _has_keys(self) -> bool:
        """Return whether the model's cache holds only keys and values of each token."""
        if "past_key_values" not in inspect.signature(self.model.forward).parameters:
            return False
        layers = DynamicCache(config=self.model.config).layers
        key_value_layers = {DynamicLayer, DynamicSlidingWindowLayer}
        return not self.model._is_stateful and {type(layer) for layer in layers} <= key_value_layers

    def _is_exact(self, packing: Packing) -> bool:
        """Check that a few short texts that begin alike score the same so laid out and alone."""
        if packing.packs and "position_ids" not in inspect.signature(self.model.forward).parameters:
            return False
        if self.model.device.type == "meta":
            return True  # nothing can be compared, and the numbers do not matter
        ids = np.array(sample_ids(self.model.config.get_text_config(), 7))
        texts = [ids[:5], ids[[0, 1, 2, 5, 6]], ids[[0, 1, 4, 5]]]
        inputs = packed(texts, [len(text) - 1 for text in texts], [[0, 1], [2]], packing)
        batch = {name: tensor.to(self.model.device) for name, tensor in inputs.items()}
        with comparable(self.model) as tolerance:
            # Alone, a token follows each text; a model that looks ahead then predicts otherwise.
            ids_alone = torch.tensor(np.stack([np.resize(text[:-1], 5) for text in texts]))
            last = torch.tensor([len(text) - 2 for text in texts])
            inputs_alone = {"input_ids": ids_alone.to(self.model.device)}
            _, alone = self.at(inputs_alone, torch.arange(len(texts)), last)
            self.packs = packing.packs
            try:
                _, logits = self.read(batch)
            except ODD_MODEL:
                return False  # it only looked as if it could
        return predict_alike(alone, logits[batch["reads"][:, 0]], tolerance)


def _repeated(cache: DynamicCache, num_rows: int) -> DynamicCache:
    """Return the keys and values of one sequence for so many rows; the cache stays as it is."""
    repeated = DynamicCache()
    layers: Any = cache.layers
    for layer_index, layer in enumerate(layers):
        if layer.is_initialized:  # some layers read those of another one
            # Of a model on several devices, each layer's are on its own.
            keys, values = (
                stored.expand(num_rows, -1, -1, -1) for stored in (layer.keys, layer.values)
            )
            repeated.update(keys, values, layer_index)
    return repeated


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
