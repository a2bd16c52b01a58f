"""The pieces of an item, read off the very batches that its questions put to a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from probelight.encoding.candidates import INSIDE, Blank, CandidateTable
from probelight.encoding.tokens import tokenise
from probelight.models.batches import Batch
from probelight.models.scorers.base import Question
from probelight.models.scorers.words import GOES_ON, read_out, tokenizer_of
from probelight.probes.record import MASK, Record
from probelight.reports.explain.facts import Piece, Space, Spelling

AUTO_PREFIX = "auto"


def pieces_of(tokenizer: Any, ids: Iterable[int]) -> tuple[Piece, ...]:
    """Entries of a vocabulary, as it writes them."""
    found = list(ids)
    return tuple(map(Piece, map(str, tokenizer.convert_ids_to_tokens(found)), found))


def read_by(question: Question, record: Record) -> tuple[tuple[str, tuple[Piece, ...]], ...]:
    """What goes in, with special tokens: the text, and what the decoder of a model is given.

    Of several texts, a choice each, it is the first.

    Raises:
        RecordError: If the record cannot be posed.
    """
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return ()
    row = int(batch["pair_index"][0, 0]) if "pair_index" in batch else 0
    source = int(batch["source_index"][row]) if "source_index" in batch else row
    text = batch["input_ids"][source][batch["attention_mask"][source].bool()]
    read = [("reads", pieces_of(tokenizer, text.tolist()))]
    if "decoder_input_ids" in batch:
        first = int(batch["asked_mask"][row].long().argmax())
        given = batch["decoder_input_ids"][row][: first + 1]
        read.append(("decoder is given", pieces_of(tokenizer, given.tolist())))
    return tuple(read)


def scored_pieces(question: Question, record: Record) -> list[tuple[Piece, ...]]:
    """The pieces that are scored of each choice; all that is read with it by a trained head.

    Raises:
        RecordError: If the record cannot be posed.
    """
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return []
    places = range(len(record.choices))
    if "candidate_ids" in batch:
        ids = [[int(batch["candidate_ids"][0, place])] for place in places]
    else:
        rows = [int(batch["pair_index"][0, place]) for place in places]
        ids = [_scored(batch, row).tolist() for row in rows]
    return [pieces_of(tokenizer, own) for own in ids]


def space_before(tokenizer: Any, pieces: Sequence[Piece]) -> Space | None:
    """Where the space before an answer is: in its first piece, one of its own, or nowhere."""
    if not pieces:
        return None
    first = pieces[0]
    word = read_out(tokenizer, [first.id])[first.id]
    if word.startswith(GOES_ON):
        return "none"
    if word == first.text:
        alone = not tokenizer.decode([first.id], clean_up_tokenization_spaces=False).strip()
        return "a piece of its own" if alone else "left out by the tokenizer"
    return "in its first piece"


def entry_pieces(
    tokenizer: Any, answer_prefix: str, places: Sequence[tuple[str, str]]
) -> list[tuple[Piece, ...]]:
    """The pieces of words where a sentence's blank is, by the rule that all kinds look them up by.

    Args:
        tokenizer: The tokenizer.
        answer_prefix: As `CandidateTable` has it.
        places: Stem and word; a blank behind a stem without one.
    """
    table = CandidateTable(tokenizer, answer_prefix)
    carriers = [_carrier(stem) for stem, _ in places]
    for carrier, (_, word) in zip(carriers, places, strict=True):
        table.add(carrier, word)
    store, _ = tokenise(tokenizer, list(table.texts))
    found = [table.pieces(c, word, store) for c, (_, word) in zip(carriers, places, strict=True)]
    return [pieces_of(tokenizer, ids.tolist()) for ids in found]


def spellings(tokenizer: Any, answer_prefix: str, stem: str, word: str) -> tuple[Spelling, ...]:
    """A word in other letters, and with or without the space before it."""
    written = dict.fromkeys([word, word[:1].upper() + word[1:], word.lower()])
    places = {"": stem}
    if answer_prefix == AUTO_PREFIX:
        is_behind_space = _carrier(stem) == INSIDE
        note = "without a space" if is_behind_space else "behind a space"
        places[note] = MASK if is_behind_space else f"{INSIDE}{MASK}"
    asked = [(note, place, own) for note, place in places.items() for own in written]
    asked = [one for one in asked if (one[0], one[2]) != ("", word)]
    found = entry_pieces(tokenizer, answer_prefix, [(place, own) for _, place, own in asked])
    unknown = tokenizer.unk_token_id
    return tuple(
        Spelling(own, note, pieces, all(piece.id != unknown for piece in pieces))
        for (note, _, own), pieces in zip(asked, found, strict=True)
    )


def _batch(question: Question, record: Record) -> Batch | None:
    """The one item that a question makes of a record; None where it leaves that out."""
    encoded = question.encoder.encode([replace(record, answer=0)])
    return encoded.collate([0]) if len(encoded) else None


def _scored(batch: Batch, row: int) -> Tensor:
    if "asked_mask" in batch:
        return batch["asked_ids"][row][batch["asked_mask"][row]]
    own = batch["answer_mask"] if "answer_mask" in batch else batch["attention_mask"].bool()
    return batch["input_ids"][row][own[row]]


def _carrier(stem: str) -> str:
    return Blank.of(stem if MASK in stem else f"{stem} {MASK}", MASK).carrier
