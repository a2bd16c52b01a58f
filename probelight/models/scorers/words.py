"""The words that a scorer finds most probable in a place, and how an entry of a vocabulary reads.

Shapes: B items, V entries of a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from probelight.models.batches import Batch
from probelight.models.scorers.base import Question, Scorer
from probelight.probes.record import Record

GOES_ON = "##"  # before what reads like a word, and is none


def tokenizer_of(question: Question) -> Any:
    """The tokenizer whose entries a question about a vocabulary is answered with."""
    return cast("Any", question.encoder).tokenizer


def best_entries(scorer: Scorer, k: int, asked: Sequence[Sequence[int]]) -> Question:
    """(B, 2k + W): the k best entries, their log-probabilities, and those of W entries asked for.

    Entries of the same log-probability stand in no order. Nothing as wide as the vocabulary leaves
    the device.

    Args:
        scorer: Who is asked.
        k: How many entries, at most those that there are.
        asked: (N, up to W) of each record that will be posed, entries whose log-probabilities are
            asked for too; where there are fewer than W, what stands behind them means nothing.

    Raises:
        UsageError: If the scorer's kind has no log-probabilities over a vocabulary.
    """
    vocabulary = scorer.vocabulary()
    width = max(map(len, asked), default=0)
    filled = [[*own, *[0] * (width - len(own))] for own in asked]
    table = torch.tensor(filled, dtype=torch.long).reshape(len(asked), width)

    def answer(batch: Batch) -> Tensor:
        whole = vocabulary.answer(batch)  # (B, V)
        best = whole.topk(k, dim=1)
        # An item that pads a batch has place -1, and takes the last record's entries.
        own = table[batch["item"].cpu()].to(whole.device)  # (B, W)
        # Numbers of entries are exact in single precision, in which answers are handed over.
        return torch.cat([best.indices.to(whole.dtype), best.values, whole.gather(1, own)], dim=1)

    return replace(vocabulary, answer=answer)


def entries_of(question: Question, places: Sequence[tuple[str, str]]) -> list[int | None]:
    """The one entry that a word is in its place; None where it is split, or not known.

    Args:
        question: Of a scorer, about its vocabulary.
        places: Stem, with its mask, and word.

    Raises:
        RecordError: If a stem cannot be posed.
    """
    records = [Record(str(i), stem, (word,), 0) for i, (stem, word) in enumerate(places)]
    encoded = question.encoder.encode(records)
    found: list[int | None] = [None] * len(places)
    if len(encoded):
        ids = encoded.collate(range(len(encoded)))["candidate_ids"][:, 0].tolist()
        for place, entry in zip(encoded.kept, ids, strict=True):
            found[place] = entry
    return found


def read_out(tokenizer: Any, entries: Iterable[int]) -> dict[int, str]:
    """How entries read behind a word, each as a text without white space in it, never empty.

    What begins a word is shown as the word, whatever marks that in the vocabulary (`Ġfish` and
    `▁fish` are "fish"). What goes on the word before it stands behind `##`, as in BERT's
    vocabulary, whatever the tokenizer; signs alone (`,`) do not. Special tokens, parts of
    characters, control characters and white space are shown as the vocabulary writes them.
    """
    found = list(entries)
    return dict(zip(found, _read(tokenizer, found), strict=True))


def _read(tokenizer: Any, entries: Sequence[int]) -> Iterator[str]:
    before = tokenizer("a", add_special_tokens=False)["input_ids"]
    head = _decoded(tokenizer, before)
    special = set(tokenizer.all_special_ids)
    for entry in entries:
        whole = _decoded(tokenizer, [*before, entry])
        added = whole.removeprefix(head)
        word = added.strip()
        known = whole.startswith(head) and entry not in special and "\ufffd" not in word
        if not (known and word.isprintable() and word.split() == [word]):
            yield _in_one(str(tokenizer.convert_ids_to_tokens(entry)))
        elif added[0].isspace() or not any(map(str.isalnum, word)):
            yield word
        else:
            yield GOES_ON + word.removeprefix(GOES_ON)


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    # Without the clean-up, which takes the space before signs away.
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def _in_one(text: str) -> str:
    return "".join(f"\\x{ord(c):02x}" if c.isspace() else c for c in text)
