"""Words in a model's whole vocabulary: ranks of choices, best entries, rows of the head.

Shapes: B items, K choices, V entries of a vocabulary, U words, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from probelight.encoding.candidates import INSIDE, CandidateTable
from probelight.io.errors import RecordError
from probelight.models.networks import Batch, mask_choices
from probelight.models.scorer import Question, Scorer
from probelight.probes.record import Record


def candidate_ranks(scorer: Scorer) -> Question:
    """Return the question for the rank (B, K) of each choice (Talmor 2020, section 4.5).

    Ranks are those in the whole vocabulary, from 1, the model's first guess. Words of the same
    log-probability share the better rank; -inf is where an item has no such choice.
    """
    vocabulary = scorer.vocabulary()

    def answer(batch: Batch) -> Tensor:
        log_probs = vocabulary.answer(batch)  # (B, V)
        own_log_probs = log_probs.gather(1, batch["candidate_ids"].to(log_probs.device))  # (B, K)
        # One choice after the other: all at once would be (B, K, V).
        # "Not at most" rather than "above": what is no number is not the first guess.
        ranks = [
            1 + (~(log_probs <= own_log_probs[:, k, None])).sum(dim=1)
            for k in range(own_log_probs.shape[1])
        ]
        all_ranks = torch.stack(ranks, dim=1).float().to(batch["choice_mask"].device)
        return mask_choices(all_ranks, batch["choice_mask"])

    return replace(vocabulary, answer=answer)


GOES_ON = "##"  # before what reads like a word, and is none


def tokenizer_of(question: Question) -> Any:
    """Return the tokenizer whose entries the answer to a question about a vocabulary is over."""
    return cast("Any", question.encoder).tokenizer


def best_entries(scorer: Scorer, k: int, entries_by_record: Sequence[Sequence[int]]) -> Question:
    """Return the question for the k best entries, with log-probabilities, and W others (B, 2k + W).

    `entries_by_record` (N, up to W) are those whose log-probabilities are returned too; where there
    are fewer than W, the others mean nothing. Entries of the same log-probability are in no
    order. Nothing as wide as the vocabulary leaves the device.
    """
    vocabulary = scorer.vocabulary()
    width = max(map(len, entries_by_record), default=0)
    padded_rows = [[*entries, *[0] * (width - len(entries))] for entries in entries_by_record]
    table = torch.tensor(padded_rows, dtype=torch.long).reshape(len(entries_by_record), width)

    def answer(batch: Batch) -> Tensor:
        log_probs = vocabulary.answer(batch)  # (B, V)
        best = log_probs.topk(k, dim=1)
        # An item that pads a batch has place -1, and takes the last record's entries.
        entries = table[batch["item"].cpu()].to(log_probs.device)  # (B, W)
        # Numbers of entries are exact in single precision, in which answers are handed over.
        return torch.cat(
            [best.indices.to(log_probs.dtype), best.values, log_probs.gather(1, entries)], dim=1
        )

    return replace(vocabulary, answer=answer)


def entries_of(question: Question, places: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return the one entry of each word in its place; None where it is split, or not known.

    Places are a stem, with its mask, and a word; the question is about a scorer's vocabulary.
    """
    records = [Record(str(i), stem, (word,), 0) for i, (stem, word) in enumerate(places)]
    encoded = question.encoder.encode(records)
    entry_ids: list[int | None] = [None] * len(places)
    if len(encoded):
        ids = encoded.collate(range(len(encoded)))["candidate_ids"][:, 0].tolist()
        for index, entry in zip(encoded.positions, ids, strict=True):
            entry_ids[index] = entry
    return entry_ids


def known_words(tokenizer: Any, words: Iterable[str]) -> set[str]:
    """Return the words of which a tokenizer knows every piece, inside a sentence."""
    words = set(words)
    table = CandidateTable.of_words(tokenizer, "auto", words)
    return {word for word in words if tokenizer.unk_token_id not in table.pieces(INSIDE, word)}


def read_out(tokenizer: Any, entries: Iterable[int]) -> dict[int, str]:
    """Return how entries read behind a word, as texts without white space in them, never empty.

    What begins a word is shown as the word, whatever marks that in the vocabulary (`Ġfish` and
    `▁fish` are "fish"). What goes on the word before it is behind `##`, as in BERT's vocabulary,
    whatever the tokenizer; signs alone (`,`) do not. Special tokens, parts of characters, control
    characters and white space are shown as the vocabulary writes them.
    """
    word_ids = tokenizer("a", add_special_tokens=False)["input_ids"]
    special = set(tokenizer.all_special_ids)

    def decoded(ids: Sequence[int]) -> str:
        # Without the clean-up, which takes the space before signs away.
        return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))

    word_text = decoded(word_ids)
    texts = {}
    for entry in entries:
        decoded_text = decoded([*word_ids, entry])
        ending = decoded_text.removeprefix(word_text)
        word = ending.strip()
        is_readable = (
            decoded_text.startswith(word_text) and entry not in special and "\ufffd" not in word
        )
        if not (is_readable and word.isprintable() and word.split() == [word]):
            text = str(tokenizer.convert_ids_to_tokens(entry))
            texts[entry] = "".join(f"\\x{ord(c):02x}" if c.isspace() else c for c in text)
        elif ending[0].isspace() or not any(map(str.isalnum, word)):
            texts[entry] = word
        else:
            texts[entry] = GOES_ON + word.removeprefix(GOES_ON)
    return texts


def word_rows(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[str],
    answer_prefix: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Return rows (U, H) and biases (U,) of words, from those of their pieces inside a sentence.

    A word of one piece gets the head's own, one of several pieces their mean; a head without a bias
    gives 0. A word without pieces is a `RecordError`.
    """
    decoder = model.get_output_embeddings()
    table = CandidateTable.of_words(tokenizer, answer_prefix, words)
    weight = decoder.weight.detach()
    bias = torch.zeros(len(weight), device=weight.device)
    # BART adds another bias behind its head.
    for added in (getattr(decoder, "bias", None), getattr(model, "final_logits_bias", None)):
        if added is not None:
            bias = bias + added.detach().reshape(-1)
    rows, biases = [], []
    for word in words:
        pieces = torch.from_numpy(table.pieces(INSIDE, word).astype("int64"))
        if not len(pieces):
            raise RecordError(f"the candidate {word!r} has no tokens")
        pieces = pieces.to(weight.device)
        rows.append(weight[pieces].float().mean(dim=0))
        biases.append(bias[pieces].mean())
    return torch.stack(rows), torch.stack(biases)
