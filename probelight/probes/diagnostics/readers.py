"""Reads the released files of the diagnostics; what is malformed is named with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from probelight.io.errors import RecordError
from probelight.io.files import read_lines
from probelight.probes.diagnostics.items import (
    InferenceItem,
    Item,
    NegatedPair,
    NegationItem,
    Prompt,
    RoleItem,
    SentencePair,
)

Made = TypeVar("Made")
INFERENCE = "context_s1 context_s2 expected within_category between_category constraint"
ROLES = "item context expected exp_cloze target"
NEGATION = "context_aff context_neg target_aff target_neg"


def read_inference(path: Path) -> tuple[Item, ...]:
    """CPRAG-102.

    Raises:
        RecordError: If the file is malformed.
    """
    rows = _rows(path, INFERENCE)
    return tuple(_made(place, InferenceItem, *row.values()) for place, row in rows)


def read_roles(path: Path) -> tuple[Item, ...]:
    """ROLE-88.

    Raises:
        RecordError: If the file is malformed, or a context has no counterpart with its target.
    """
    items = [_made(place, _role, row) for place, row in _rows(path, ROLES)]
    roles = {(item.pair, item.role): item for item in items}
    for item in items:
        other = roles.get((item.pair, "b" if item.role == "a" else "a"))
        if other is None or other.target != item.target:
            raise RecordError(
                f"{path}: item {item.pair}-{item.role} has no counterpart with the target "
                f"{item.target!r}; each pair needs one line -a and one -b with the same target"
            )
    if len(roles) != len(items):
        raise RecordError(f"{path}: an item stands there twice; each has one line -a and one -b")
    return tuple(items)


def read_negation(path: Path) -> tuple[Item, ...]:
    """NEG-136-SIMP.

    Raises:
        RecordError: If the file is malformed.
    """
    rows = _rows(path, NEGATION)
    return tuple(_made(place, NegationItem, *row.values()) for place, row in rows)


def read_natural_negation(path: Path) -> tuple[Item, ...]:
    """NEG-136-NAT, which also has `licensing`.

    Raises:
        RecordError: If the file is malformed.
    """
    rows = _rows(path, f"{NEGATION} licensing")
    return tuple(_made(place, NegationItem, *row.values()) for place, row in rows)


def read_sentences(path: Path) -> tuple[Item, ...]:
    """ROLE-1500: a sentence a line, two lines a pair.

    Raises:
        RecordError: If the file is malformed.
    """
    return _pairs(path, SentencePair)


def read_negated_sentences(path: Path) -> tuple[Item, ...]:
    """NEG-1500-SIMP-TEMP and -GEN: a sentence a line, each affirmative one before its negation.

    Raises:
        RecordError: If the file is malformed.
    """
    return _pairs(path, NegatedPair)


def _pairs(path: Path, kind: Callable[[Prompt, Prompt], SentencePair]) -> tuple[Item, ...]:
    prompts = [
        (f"{path}:{number}", _made(f"{path}:{number}", _sentence, text))
        for number, text in read_lines(path)
    ]
    if not prompts or len(prompts) % 2:
        raise RecordError(f"{path}: {len(prompts)} lines, where pairs of two lines are needed")
    both = list(pairwise(prompts))[::2]
    return tuple(_made(there, kind, one, two) for (_, one), (there, two) in both)


def _sentence(text: str) -> Prompt:
    sentence = text.rstrip()
    if not sentence.endswith(","):
        raise ValueError("a sentence that ends in a comma is needed, its last word the target")
    context, _, target = sentence[:-1].rstrip().rpartition(" ")
    return Prompt(context.strip(), target)


def _role(row: Mapping[str, str]) -> RoleItem:
    pair, _, role = row["item"].rpartition("-")
    try:
        cloze = float(row["exp_cloze"])
    except ValueError:
        raise ValueError(f"exp_cloze is {row['exp_cloze']!r}, not a number") from None
    expected = tuple(word.strip() for word in row["expected"].split("|"))
    return RoleItem(pair, role, row["context"], expected, cloze, row["target"])


def _rows(path: Path, columns: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Place and cells by column of each row of a tsv file; none of the columns may be empty."""
    header: Sequence[str] = ()
    found = False
    for number, text in read_lines(path):
        place, cells = f"{path}:{number}", [cell.strip() for cell in text.split("\t")]
        if not header:
            header = cells
            if missing := [name for name in columns.split() if name not in header]:
                raise RecordError(
                    f"{place}: no column {', '.join(missing)}; a first line with the names of the "
                    "columns is needed, with tabs between them"
                )
        elif text.strip():
            found = True
            if len(cells) != len(header):
                raise RecordError(
                    f"{place}: {len(cells)} cells, where the header has {len(header)}"
                )
            row = dict(zip(header, cells, strict=True))
            if empty := [name for name in columns.split() if not row[name]]:
                raise RecordError(f"{place}: {', '.join(empty)} is empty")
            yield place, {name: row[name] for name in columns.split()}
    if not found:
        raise RecordError(f"{path}: no item is there")


def _made(place: str, make: Callable[..., Made], *parts: object) -> Made:
    try:
        return make(*parts)
    except ValueError as error:
        raise RecordError(f"{place}: {error}") from None
