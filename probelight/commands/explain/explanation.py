"""One item explained: how each model reads and answers it, side by side where there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probelight.io.escaping import visible
from probelight.probes.record import Record
from probelight.reports.numbers import ABSENT, count
from probelight.results.row import Row

LEAST_WIDTH = 40  # characters that a model's answers take
LABELS = 18  # and those of what was asked
# Where the space before an answer is, once that is pieces.
Space = Literal["in its first token", "a token of its own", "left out by the tokenizer", "none"]


@dataclass(frozen=True)
class Piece:
    """An entry of a model's vocabulary, as that writes it."""

    text: str
    id: int


@dataclass(frozen=True)
class Spelling:
    """Another way to write a candidate, and its pieces."""

    text: str
    note: str  # how it is written, where that differs: after a space, or without one
    pieces: tuple[Piece, ...]  # one where it is an entry of the vocabulary
    is_known: bool = True  # whether no piece stands for what the tokenizer does not know


@dataclass(frozen=True)
class Candidate:
    """One choice of the item."""

    text: str
    pieces: tuple[Piece, ...] = ()  # those scored; a trained head scores all that is read with it
    space: Space | None = None  # where the space before it is; None where that is not known
    score: float | None = None  # by which choices are compared
    is_best: bool = False  # whether its score is the best one, or shares that
    log_likelihood: float | None = None  # the sum over `num_tokens` tokens, in nats
    num_tokens: int | None = None
    entry: Piece | None = None  # the one entry of the vocabulary that it is in its place
    probability: float | None = None  # of that entry
    rank: int | None = None  # of that entry in the whole vocabulary, 1 is the best
    spellings: tuple[Spelling, ...] = ()  # other ways to write it
    label: str = ""  # its letter in a prompt that lists the choices in the order of the file
    label_pieces: tuple[Piece, ...] = ()  # those scored
    label_score: float | None = None  # their log-probability behind the prompt, in nats
    is_best_label: bool = False


@dataclass(frozen=True)
class Guess:
    """One of the model's best words."""

    word: str
    piece: Piece
    probability: float


@dataclass(frozen=True)
class Explanation:
    """One model on one item."""

    row: Row  # what tables call the model; its `mode` is how choices get their scores
    reads: tuple[tuple[str, tuple[Piece, ...]], ...]  # each sequence with its special tokens
    candidates: tuple[Candidate, ...]  # the choices, in the order of the file
    best: tuple[Guess, ...] = ()  # the model's best words in the place
    vocabulary_size: int | None = None  # None where there is no vocabulary
    notes: tuple[str, ...] = ()  # what it could not answer, was cut or left out


def print_explanations(
    name: str, record: Record, models: Sequence[Explanation], console: Console | None = None
) -> None:
    """Print an item of the set `name` as each model reads and answers it."""
    console = console or Console()
    lines = [f"item {record.id}, line {record.position} of {name}"]
    lines += [f"stem: {record.stem}"] if record.stem else []
    lines += [
        f"  {'*' if index == record.answer else ' '} {choice}"
        for index, choice in enumerate(record.choices)
    ]
    lines.append(
        "* marks the right choice; tokens are shown as the vocabulary writes them, with their ids"
    )
    for line in lines:
        console.print(Text(visible(line)), soft_wrap=True)
    side_by_side = console.width >= LABELS + len(models) * LEAST_WIDTH
    for models_in_table in [models] if side_by_side else [[model] for model in models]:
        console.print(_table(record, models_in_table))


def _table(record: Record, models: Sequence[Explanation]) -> Table:
    table = Table(show_lines=False)
    table.add_column("", overflow="fold", min_width=LABELS - 4)
    for model in models:
        table.add_column(Text(visible(model.row.model)), overflow="fold", ratio=1)

    def add(label: str, cells: Sequence[str]) -> None:
        table.add_row(*(Text(visible(text)) for text in (label, *cells)))

    add("kind", [model.row.kind for model in models])
    add("scored by", [model.row.mode.replace("_", " ") for model in models])
    for name in dict.fromkeys(name for model in models for name, _ in model.reads):
        add(name, [_pieces(dict(model.reads).get(name, ())) for model in models])
    if any(model.notes for model in models):
        add("notes", ["\n".join(model.notes) or ABSENT for model in models])
    table.add_section()
    for index, choice in enumerate(record.choices):
        add(f"{'* ' if index == record.answer else ''}{choice}", [""] * len(models))
        answers = [
            _candidate_cells(model.candidates[index], model.vocabulary_size) for model in models
        ]
        for label in answers[0]:
            add(label, [by_label[label] for by_label in answers])
        table.add_section()
    words = [
        [
            f"{guess.word} ({_pieces([guess.piece])}), {_percent(guess.probability)}"
            for guess in guesses
        ]
        for guesses in (model.best for model in models)
    ]
    for rank, cells in enumerate(zip_longest(*words, fillvalue=ABSENT), start=1):
        add(f"best word {rank}", cells)
    return table


def _candidate_cells(candidate: Candidate, vocabulary_size: int | None) -> dict[str, str]:
    """Return what a model makes of a candidate, by labels."""

    def number(value: float) -> str:
        return f"{value:.4f}" if math.isfinite(value) else "not a number"

    score = ABSENT if candidate.score is None else number(candidate.score)
    likelihood = ABSENT
    if candidate.log_likelihood is not None:
        likelihood = f"{number(candidate.log_likelihood)} nats"
        if candidate.num_tokens is not None:
            plural = "" if candidate.num_tokens == 1 else "s"
            likelihood += f", the sum over {count(candidate.num_tokens)} token{plural}"
    letter = ABSENT
    if candidate.label_score is not None:
        letter = f"{_pieces(candidate.label_pieces)}, {number(candidate.label_score)} nats"
        letter += ", the best" if candidate.is_best_label else ""
    entry = ABSENT if vocabulary_size is None else "it is not one token"
    if candidate.entry is not None:
        rank = f"rank {count(candidate.rank)} of {count(vocabulary_size)}"
        entry = f"{_pieces([candidate.entry])}, {_percent(candidate.probability)}, {rank}"
    spellings_by_pieces: dict[tuple[Piece, ...], list[Spelling]] = {}
    for spelling in candidate.spellings:
        spellings_by_pieces.setdefault(spelling.pieces, []).append(spelling)
    spelling_lines = []  # a line for all spellings that are the same pieces
    for pieces, spellings in spellings_by_pieces.items():
        names = ", ".join(f"{spelling.text} {spelling.note}".strip() for spelling in spellings)
        size = "one token" if len(pieces) == 1 else f"{len(pieces)} tokens"
        size = size if spellings[0].is_known else "unknown"
        spelling_lines.append(f"{names}: {size}, {_pieces(pieces)}")
    return {
        "score": f"{score}, the best" if candidate.is_best else score,
        "log-likelihood": likelihood,
        "scored tokens": _pieces(candidate.pieces),
        "leading space": candidate.space or ABSENT,
        "by its letter": f"{candidate.label}: {letter}" if candidate.label else ABSENT,
        "as one token": entry,
        "other spellings": "\n".join(spelling_lines) or ABSENT,
    }


def _pieces(pieces: Sequence[Piece]) -> str:
    return " ".join(f"{piece.text}:{piece.id}" for piece in pieces) or ABSENT


def _percent(share: float | None) -> str:
    return "not a number" if share is None or math.isnan(share) else f"{100 * share:.3g}%"
