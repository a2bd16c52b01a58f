"""What one model makes of one item: every question of the scorer seam is put to it.

What a kind refuses, or cannot pose, is said in its own words; nothing else stands in for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from probelight.io.errors import RecordError, UsageError
from probelight.models.scorers.base import Question, Scorer
from probelight.models.scorers.ranks import candidate_ranks
from probelight.models.scorers.words import best_entries, entries_of, read_out, tokenizer_of
from probelight.probes.record import Record, Setup
from probelight.protocols.engine.evaluation import ask, ask_about
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.explain.shown import (
    pieces_of,
    read_by,
    scored_pieces,
    space_before,
    spellings,
)
from probelight.protocols.jobs.context import TrainerSettings
from probelight.reports.explain.facts import Candidate, Explained, Guess

T = TypeVar("T")
TOP = 10
ITEM = "the item"


@dataclass
class _Asked:
    """A scorer, the record, and what it could not say of it."""

    scorer: Scorer
    record: Record
    trainer: TrainerSettings
    said: list[str] = field(default_factory=list)

    def tried(self, answer: Callable[[], T]) -> T | None:
        """An answer, or None where this kind refuses it, which is then said."""
        try:
            return answer()
        except (UsageError, RecordError) as error:
            self.note(str(error))
            return None

    def note(self, *lines: str) -> None:
        """Says each line once."""
        self.said += [line for line in lines if line not in self.said]

    def numbers(self, question: Question, records: Sequence[Record]) -> dict[str, list[float]]:
        """By id the numbers of those records that the question poses."""
        found = ask(self.scorer, question, {ITEM: records}, self.trainer)[ITEM]
        self.note(*found.notices)
        pairs = zip(found.records, found.scores, strict=True)
        return {record.id: list(scores) for record, scores in pairs}


def explained(
    model: ModelSettings, setup: Setup, record: Record, trainer: TrainerSettings
) -> Explained:
    """What a model is shown of a record, and what it makes of it.

    Raises:
        UsageError: If its kind does not answer the setup.
        PretrainedError: If there is no such model.
    """
    scorer = scorer_for(model, setup)
    asked = _Asked(scorer, record, trainer)
    row = replace(model.row, mode=scorer.mode)
    vocabulary = asked.tried(scorer.vocabulary)
    candidates = _scored(asked)
    if vocabulary is None:
        reads = asked.tried(lambda: read_by(scorer.choice_scores(), record))
        return Explained(row, reads or (), tuple(candidates), said=tuple(asked.said))
    candidates = _with_spellings(candidates, vocabulary, model, record)
    best: tuple[Guess, ...] = ()
    bare = replace(record, choices=(), answer=0)
    if reads := asked.tried(lambda: read_by(vocabulary, bare)):
        candidates, best = _in_vocabulary(asked, vocabulary, bare, candidates)
    size = len(tokenizer_of(vocabulary))
    return Explained(row, reads or (), tuple(candidates), best, size, tuple(asked.said))


def _scored(asked: _Asked) -> list[Candidate]:
    """The choices with their scores, their log-likelihoods and the pieces that these are of."""
    scorer, record = asked.scorer, asked.record
    scores = asked.tried(lambda: asked.numbers(scorer.choice_scores(), [record])) or {}
    likelihoods = asked.tried(scorer.log_likelihoods)
    question = likelihoods or scorer.choice_scores()
    pieces = asked.tried(lambda: scored_pieces(question, record)) or []
    sums: list[float] = []
    counts: list[int] = []
    if likelihoods and pieces:
        sums = asked.numbers(likelihoods, [record])[record.id]
        counts = likelihoods.num_tokens([record])[0] if likelihoods.num_tokens else []
    # Before a whole sentence is none, and a trained head reads more than the answer.
    has_space = bool(likelihoods and pieces and record.stem)
    own = scores.get(record.id, [])
    best = max(own, default=math.nan) if not any(map(math.isnan, own)) else math.nan
    return [
        Candidate(
            choice,
            pieces=pieces[place] if pieces else (),
            space=space_before(tokenizer_of(question), pieces[place]) if has_space else None,
            score=own[place] if own else None,
            is_best=bool(own) and own[place] == best,
            log_likelihood=sums[place] if sums else None,
            num_tokens=counts[place] if counts else None,
        )
        for place, choice in enumerate(record.choices)
    ]


def _with_spellings(
    candidates: Sequence[Candidate], vocabulary: Question, model: ModelSettings, record: Record
) -> list[Candidate]:
    """The choices that are words, with the ways in which they could be written."""
    tokenizer = tokenizer_of(vocabulary)
    return [
        replace(
            one, spellings=spellings(tokenizer, model.answer_prefix, record.stem, one.text.strip())
        )
        if len(one.text.split()) == 1
        else one
        for one in candidates
    ]


def _in_vocabulary(
    asked: _Asked, vocabulary: Question, bare: Record, candidates: Sequence[Candidate]
) -> tuple[list[Candidate], tuple[Guess, ...]]:
    """The choices as entries of the vocabulary, and the model's best words.

    Args:
        asked: The scorer.
        vocabulary: Its question about the vocabulary.
        bare: The record without choices.
        candidates: The choices; each is looked up alone, so that one of several pieces, or two that
            are one entry, keep nothing from being said of the others.
    """
    tokenizer = tokenizer_of(vocabulary)
    entries = entries_of(vocabulary, [(bare.stem, one.text) for one in candidates])
    posed = {str(place): entry for place, entry in enumerate(entries) if entry is not None}
    records = [replace(bare, id=key, choices=(candidates[int(key)].text,)) for key in posed]
    ranks = asked.numbers(candidate_ranks(asked.scorer), records) if records else {}
    depth = min(TOP, len(tokenizer))
    question = best_entries(asked.scorer, depth, [[*posed.values()]])
    rows, notices = ask_about(asked.scorer, question, [bare], asked.trainer)
    asked.note(*notices)
    numbers = rows[0]
    known = dict(zip(posed, map(_probability, numbers[2 * depth :]), strict=True))
    found = list(candidates)
    for key, entry in posed.items():
        [piece], rank = pieces_of(tokenizer, [entry]), int(ranks[key][0])
        place = int(key)
        found[place] = replace(found[place], entry=piece, probability=known[key], rank=rank)
    return found, _guesses(tokenizer, [int(e) for e in numbers[:depth]], numbers[depth : 2 * depth])


def _guesses(
    tokenizer: Any, entries: Sequence[int], logarithms: Sequence[float]
) -> tuple[Guess, ...]:
    words, pieces = read_out(tokenizer, entries), pieces_of(tokenizer, entries)
    return tuple(
        Guess(words[piece.id], piece, _probability(logarithm))
        for piece, logarithm in zip(pieces, logarithms, strict=True)
    )


def _probability(logarithm: float) -> float:
    return min(math.exp(logarithm), 1.0)
