"""An explained item as text: models side by side where there is room, else below each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probelight.io.escaping import visible
from probelight.reports.explain.facts import Candidate, Explained, Item, Piece, Spelling
from probelight.reports.kit.text import ABSENT, count

_LEAST = 40  # columns that a model's answers take
_LABELS = 18  # and those of what was asked
Line = tuple[str, list[str]]  # what is said, and by each model what


def print_explained(
    item: Item, models: Sequence[Explained], console: Console | None = None
) -> None:
    """Prints what each model is shown of an item, and what it makes of it."""
    console = console or Console()
    for line in _of_item(item):
        console.print(Text(visible(line)), soft_wrap=True)
    side_by_side = console.width >= _LABELS + len(models) * _LEAST
    for shown in [models] if side_by_side else [[one] for one in models]:
        console.print(_table(item, shown))


def _of_item(item: Item) -> Iterator[str]:
    yield f"{item.where} of {item.name}"
    if item.stem:
        yield f"stem: {item.stem}"
    for place, choice in enumerate(item.choices):
        yield f"  {'*' if place == item.answer else ' '} {choice}"
    yield "* is the right one; a piece of a text is shown as the vocabulary writes it, with its id"


def _table(item: Item, models: Sequence[Explained]) -> Table:
    table = Table(show_lines=False)
    table.add_column("", overflow="fold", min_width=_LABELS - 4)
    for one in models:
        table.add_column(Text(visible(one.row.model)), overflow="fold", ratio=1)
    for lines in (_of_models(models), *_of_candidates(item, models), _of_vocabulary(models)):
        for label, cells in lines:
            table.add_row(*(Text(visible(text)) for text in (label, *cells)))
        table.add_section()
    return table


def _of_models(models: Sequence[Explained]) -> list[Line]:
    lines: list[Line] = [
        ("kind", [one.row.kind for one in models]),
        ("scored by", [one.row.mode.replace("_", " ") for one in models]),
    ]
    names = dict.fromkeys(name for one in models for name, _ in one.reads)
    read = [dict(one.reads) for one in models]
    lines += [(name, [_pieces(own.get(name, ())) for own in read]) for name in names]
    if any(one.said for one in models):
        lines.append(("notes", ["\n".join(one.said) or ABSENT for one in models]))
    return lines


def _of_candidates(item: Item, models: Sequence[Explained]) -> Iterator[list[Line]]:
    for place, choice in enumerate(item.choices):
        own = [one.candidates[place] for one in models]
        sizes = [one.vocabulary_size for one in models]
        right = "* " if place == item.answer else ""
        yield [
            (f"{right}{choice}", [""] * len(models)),
            ("score", [_score(one) for one in own]),
            ("log-likelihood", [_likelihood(one) for one in own]),
            ("scored pieces", [_pieces(one.pieces) for one in own]),
            ("leading space", [one.space or ABSENT for one in own]),
            ("as one entry", [_entry(*pair) for pair in zip(own, sizes, strict=True)]),
            ("spelled", [_spelled(one.spellings) for one in own]),
        ]


def _of_vocabulary(models: Sequence[Explained]) -> list[Line]:
    most = max(len(one.best) for one in models)
    return [
        (
            f"best word {rank}",
            [_guess(one, rank) if rank <= len(one.best) else ABSENT for one in models],
        )
        for rank in range(1, most + 1)
    ]


def _pieces(pieces: Sequence[Piece]) -> str:
    return " ".join(f"{piece.text}:{piece.id}" for piece in pieces) or ABSENT


def _score(one: Candidate) -> str:
    if one.score is None:
        return ABSENT
    return f"{_number(one.score)}{', the best' if one.is_best else ''}"


def _likelihood(one: Candidate) -> str:
    if one.log_likelihood is None:
        return ABSENT
    tokens = "" if one.num_tokens is None else f", the sum over {count(one.num_tokens)} token"
    return (
        f"{_number(one.log_likelihood)} nats{tokens}{'s' if tokens and one.num_tokens != 1 else ''}"
    )


def _entry(one: Candidate, size: int | None) -> str:
    if one.entry is None:
        return ABSENT if size is None else "it is none"
    rank = f", rank {count(one.rank)} of {count(size)}"
    return f"{_pieces([one.entry])}, {_percent(one.probability)}{rank}"


def _spelled(spellings: Sequence[Spelling]) -> str:
    """A line for all spellings that are the same pieces."""
    alike: dict[tuple[Piece, ...], list[Spelling]] = {}
    for one in spellings:
        alike.setdefault(one.pieces, []).append(one)
    lines = []
    for pieces, own in alike.items():
        names = ", ".join(f"{one.text} {one.note}".strip() for one in own)
        number = "one piece" if len(pieces) == 1 else f"{len(pieces)} pieces"
        lines.append(f"{names}: {number if own[0].is_known else 'not known'}, {_pieces(pieces)}")
    return "\n".join(lines) or ABSENT


def _guess(one: Explained, rank: int) -> str:
    guess = one.best[rank - 1]
    return f"{guess.word} ({_pieces([guess.piece])}), {_percent(guess.probability)}"


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "not a number"


def _percent(share: float | None) -> str:
    if share is None or math.isnan(share):
        return "not a number"
    return f"{100 * share:.3g}%"
