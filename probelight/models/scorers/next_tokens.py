"""Log-probabilities of tokens by a causal language model; what texts share is computed once.

Shapes: P texts, L tokens, R scored tokens, N places, H hidden, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from probelight.models.batches import Batch
from probelight.models.checkpoints.folder import PretrainedError

# Texts are read in parts of so many tokens, and continued in runs of so many, those of like lengths
# together. The logits of a whole batch over a large vocabulary would fill the memory.
_MAX_TOKENS = 8192
_MAX_RUN = 384
_MAX_LOGITS = 1 << 26


class NextTokens:
    """Asks a causal language model what it expects, at some places only.

    The model runs as it is, up to its head: what the head is given is cut down to the places that
    are asked for, so that whatever the model makes of logits (scales, caps) is its own.

    A beginning that several texts share is run once, and its keys and values are handed to each of
    them, without padding in between: the model then numbers the places itself, and a window that
    slides over them is as it is over the whole text. Models that keep something else of a text
    (state-space models), or whose answers to a small text change, read each text whole.

    Args:
        model: The model; it is used, not copied.

    Raises:
        PretrainedError: If it has no head over a vocabulary.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if not isinstance(head, nn.Module):
            raise PretrainedError(f"{type(model).__name__} has no head over a vocabulary")
        self.model: Any = model
        self.head = head
        self.num_entries: int = self.model.config.get_text_config().vocab_size
        self._shares: bool | None = None  # not known before the first use

    def logits(
        self,
        batch: Mapping[str, Tensor],
        row: Tensor,
        place: Tensor,
        cache: DynamicCache | None = None,
    ) -> Tensor:
        """Logits (N, V) of what follows `place` (N,) in `row` (N,).

        Args:
            batch: `input_ids` and `attention_mask` (B, L); the mask also covers what is in `cache`.
            row: Sequences of the batch.
            place: Places in them.
            cache: Keys and values of what stands before the batch; its own are added.
        """
        with self._only(row, place):
            found: Tensor = self._run(batch, cache).logits
        return found[0].float()

    def hidden(self, batch: Mapping[str, Tensor], row: Tensor, place: Tensor) -> Tensor:
        """What the head is given (N, H) at these places, behind the last norm."""
        with self._only(row, place) as seen:
            self._run(batch)
        return seen[0][0]

    def log_probabilities(self, batch: Batch) -> Tensor:
        """Log-probabilities (R,) on the CPU of the tokens in `answer_mask`, text by text.

        Args:
            batch: `input_ids`, `attention_mask` and `answer_mask` (P, L), which holds no first
                token; `shared` and `owner` (P,) as in `ContinuationSet`.
        """
        text, place = batch["answer_mask"].nonzero(as_tuple=True)
        if not self.shares:
            whole = batch["attention_mask"].sum(dim=1) - 1
            batch = {**batch, "shared": whole, "owner": torch.arange(len(whole)).to(whole)}
        found = torch.empty(len(text))
        for rows in self._parts(batch):
            own = torch.isin(text, rows).nonzero()[:, 0]
            part = self._part(batch, rows, torch.searchsorted(rows, text[own]), place[own])
            found[own.cpu()] = part.cpu()
        return found

    @property
    def shares(self) -> bool:
        """Whether texts are continued from their common beginning."""
        if self._shares is None:
            self._shares = self._keeps_keys() and self._verify()
        return self._shares

    def _part(self, batch: Batch, rows: Tensor, text: Tensor, place: Tensor) -> Tensor:
        """Log-probabilities (R,) of tokens of some texts, their beginnings first.

        Args:
            batch: The whole batch.
            rows: (T,) places of the texts in it, ascending.
            text: (R,) places of the tokens' texts in `rows`.
            place: (R,) of the tokens in their texts.
        """
        ids, shared = batch["input_ids"][rows], batch["shared"][rows]
        gold, at, size = ids[text, place], place - 1, int(shared.max())
        owners, beginning = _distinct(batch["owner"][rows])
        early = at < shared[text]
        late = (~early).nonzero()[:, 0]
        cache = DynamicCache() if len(late) else None
        # Several texts ask for what follows at one place of their common beginning.
        asked, inverse = _distinct(beginning[text[early]] * size + at[early])
        common = {name: batch[name][owners, :size] for name in ("input_ids", "attention_mask")}
        scores = self.logits(common, asked // size, asked % size, cache).log_softmax(dim=1)
        found = scores.new_empty(len(text))
        found[early] = scores[inverse, gold[early]]
        if cache is None:
            return found
        lengths = batch["attention_mask"][rows].sum(dim=1)
        for run in self._runs(_distinct(text[late])[0], shared, lengths):
            own = late[torch.isin(text[late], run)]
            begin, end = int(shared[run].min()), int(at[own].max()) + 1
            rest = {
                "input_ids": ids[run, begin:end],
                "attention_mask": batch["attention_mask"][rows[run], :end],
            }
            row = torch.searchsorted(run, text[own])
            past = _beginnings(cache, beginning[run], begin)
            scores = self.logits(rest, row, at[own] - begin, past).log_softmax(dim=1)
            found[own] = scores[torch.arange(len(own)), gold[own]]
        return found

    def _parts(self, batch: Batch) -> Iterator[Tensor]:
        """The texts in parts that share about equally much, no part too large."""
        shared, owner = batch["shared"].tolist(), batch["owner"].tolist()
        places = torch.arange(batch["answer_mask"].shape[1] - 1, device=batch["shared"].device)
        early = batch["answer_mask"][:, 1:] & (places < batch["shared"][:, None])
        order = sorted(range(len(shared)), key=lambda i: (shared[i], owner[i]))
        lengths, sizes = batch["attention_mask"].sum(dim=1).tolist(), early.sum(dim=1).tolist()
        longest = max(lengths, default=1)
        part: list[int] = []
        num_logits = 0
        for i in order:
            num_logits += sizes[i] * self.num_entries
            if part and (longest * (len(part) + 1) > _MAX_TOKENS or num_logits > _MAX_LOGITS):
                yield torch.tensor(sorted(part), device=batch["shared"].device)
                part, num_logits = [], sizes[i] * self.num_entries
            part.append(i)
        if part:
            yield torch.tensor(sorted(part), device=batch["shared"].device)

    def _runs(self, texts: Tensor, shared: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        """Texts to be continued, in runs of about equal lengths, no run too large.

        A run goes on from the shortest beginning of its texts: a place has one number in all.
        """
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

    def _run(self, batch: Mapping[str, Tensor], cache: DynamicCache | None = None) -> Any:
        kept = {} if cache is None else {"past_key_values": cache}
        return self.model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            use_cache=cache is not None,
            **kept,
        )

    @contextmanager
    def _only(self, row: Tensor, place: Tensor) -> Iterator[list[Tensor]]:
        """Gives the head these places alone, as (1, N, H), and shows what it is given."""
        seen: list[Tensor] = []

        def cut(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            seen.append(given[0][row, place][None])
            return (seen[0], *given[1:])

        hook = self.head.register_forward_pre_hook(cut)
        try:
            yield seen
        finally:
            hook.remove()

    def _keeps_keys(self) -> bool:
        """Whether all that the model keeps of a text are keys and values of each of its tokens."""
        if "past_key_values" not in inspect.signature(self.model.forward).parameters:
            return False
        layers = DynamicCache(config=self.model.config).layers
        known = {DynamicLayer, DynamicSlidingWindowLayer}
        return not self.model._is_stateful and {type(layer) for layer in layers} <= known

    @torch.no_grad()
    def _verify(self) -> bool:
        """Compares with whole texts on two short ones that begin alike."""
        words = range(min(self.num_entries, 64))[-5:]
        ids = torch.tensor([[*words], [*words[:3], *words[:2]]], device=self.model.device)
        scored = torch.ones_like(ids, dtype=torch.bool).index_fill_(1, ids.new_zeros(1), False)
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "answer_mask": scored}
        batch |= {"shared": ids.new_tensor([3, 3]), "owner": ids.new_tensor([0, 0])}
        with torch.autocast(ids.device.type, enabled=False):
            self._shares = False
            whole = self.log_probabilities(batch)
            self._shares = True
            try:
                found = self.log_probabilities(batch)
            except (RuntimeError, TypeError, AttributeError, ValueError, IndexError):
                return False  # it only looked as if it kept keys and values
        return torch.allclose(whole, found, rtol=1e-5, atol=1e-5)


def _distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct values, ascending, and the place of each value among them."""
    found, places = torch.unique(values, return_inverse=True)
    return found, places


def _beginnings(cache: DynamicCache, rows: Tensor, size: int) -> DynamicCache:
    """The first `size` tokens of some of the sequences in a cache."""
    found = DynamicCache()
    layers: Any = cache.layers
    for place, layer in enumerate(layers):
        if layer.is_initialized:  # some layers read those of another one
            keys, values = (kept[:, :, :size][rows] for kept in (layer.keys, layer.values))
            found.update(keys, values, place)
    return found
