"""What one model is shown of one item, and what it makes of it; `protocols.explain` fills it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probelight.results.row import Row

# Where the space before an answer is, once that is pieces.
Space = Literal["in its first piece", "a piece of its own", "left out by the tokenizer", "none"]


@dataclass(frozen=True)
class Piece:
    """An entry of a model's vocabulary, as that writes it."""

    text: str
    id: int


@dataclass(frozen=True)
class Spelling:
    """Another way to write a candidate, and the pieces that it would be.

    Attributes:
        text: The candidate so spelled.
        note: How it stands, where that differs from its place: with or without a space.
        pieces: One where it is an entry of the vocabulary.
        is_known: Whether no piece stands for whatever the tokenizer does not know.
    """

    text: str
    note: str
    pieces: tuple[Piece, ...]
    is_known: bool = True


@dataclass(frozen=True)
class Candidate:
    """One choice of the item.

    Attributes:
        text: The choice.
        pieces: What is scored of it, or all that is read with it where a trained head scores it.
        space: Where the space before it went; None where it is not told.
        score: What choices are compared by; None where it has none.
        is_best: Whether its score is the best one, or shares that.
        log_likelihood: Sum over `num_tokens` tokens, in nats.
        entry: The one entry of the vocabulary that it is in its place.
        probability: Of that entry.
        rank: Of that entry in the whole vocabulary, 1 is the model's first guess.
        spellings: Other ways to write it.
    """

    text: str
    pieces: tuple[Piece, ...] = ()
    space: Space | None = None
    score: float | None = None
    is_best: bool = False
    log_likelihood: float | None = None
    num_tokens: int | None = None
    entry: Piece | None = None
    probability: float | None = None
    rank: int | None = None
    spellings: tuple[Spelling, ...] = ()


@dataclass(frozen=True)
class Guess:
    """One of the model's best words."""

    word: str
    piece: Piece
    probability: float


@dataclass(frozen=True)
class Explained:
    """One model on one item.

    Attributes:
        row: What tables call the model; its `mode` is how choices get their scores.
        reads: What goes in, with special tokens: name and pieces of each sequence.
        candidates: The choices, in the order of the file.
        best: The model's best words in the place.
        vocabulary_size: Entries that a rank is among; None where there is no vocabulary.
        said: What it could not answer, was cut or left out.
    """

    row: Row
    reads: tuple[tuple[str, tuple[Piece, ...]], ...]
    candidates: tuple[Candidate, ...]
    best: tuple[Guess, ...] = ()
    vocabulary_size: int | None = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """The item that is explained.

    Attributes:
        name: What tables call its set.
        where: Its id and line.
        stem: Its stem, empty where sentences are compared.
        choices: Its choices.
        answer: Index of the right one.
    """

    name: str
    where: str
    stem: str
    choices: tuple[str, ...]
    answer: int
