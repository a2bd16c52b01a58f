"""Items of the diagnostics, a type for each form of set, and readers of their files.

An item's `prompts` are in the order of the authors' recorded outputs. Readers raise a `RecordError`
with file and line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

from probelight.io.documents import number_of
from probelight.io.errors import RecordError
from probelight.io.files import read_lines
from probelight.probes.record import MASK

CONSTRAINTS = {"H": "high", "L": "low"}
_ARTICLE = "(a|an)"  # of NEG-136-SIMP, where the target chooses
_VOWEL = re.compile("[aeiou]")
_NEGATED = re.compile(r"\bnot\b")
# Of ROLE-88: whatever it is, which OBJECT the SUBJECT had.
_ROLES = re.compile(
    r"(?P<opening>(?:.* )?which) (?P<object>(?:(?!\bthe ).)+) the (?P<subject>(?:(?!\bthe ).)+) had"
)


@dataclass(frozen=True)
class Prompt:
    """A context, and the target word after it."""

    context: str
    target: str

    def __post_init__(self) -> None:
        if not self.context or not self.target:
            raise ValueError("it needs a context and a word after it")
        if MASK in self.context:
            raise ValueError(f"{MASK} is added after the context and must not be in it")


@dataclass(frozen=True)
class InferenceItem:
    """CPRAG-102: two sentences whose last word takes commonsense and pragmatic inference."""

    first: str
    second: str  # without its last word
    expected: str  # the word that people say
    within: str  # a bad word of the same category
    between: str  # a bad word of a neighbouring category
    constraint: str  # "H" where people agree on the expected word, "L" where they do less

    def __post_init__(self) -> None:
        if self.constraint not in CONSTRAINTS:
            raise ValueError(f"constraint is {self.constraint!r}; it must be H or L")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The expected word, and both bad ones."""
        context = f"{self.first} {self.second}"
        return tuple(Prompt(context, word) for word in (self.expected, self.within, self.between))


@dataclass(frozen=True)
class RoleItem:
    """ROLE-88: one of the two contexts of a pair in which two nouns swap roles."""

    pair: str
    role: str  # "a" where the target fits, "b" where the roles are reversed
    context: str  # all before the verb
    expected: tuple[str, ...]  # the commonest completions by people; several where they tie
    cloze: float  # share of people who gave the best one
    target: str  # the verb whose probabilities are compared

    def __post_init__(self) -> None:
        if self.role not in ("a", "b"):
            raise ValueError(f"item ends in {self.role!r}; it must be a number and -a or -b")
        if not _ROLES.fullmatch(self.context):
            raise ValueError(
                f"context is {self.context!r}; it must end in 'which NOUN the NOUN had', as in "
                "'the owner forgot which customer the waitress had'"
            )
        if not all(self.expected):
            raise ValueError("expected has an empty completion")
        if not 0 <= self.cloze <= 1:
            raise ValueError(f"exp_cloze is {self.cloze}; it must be a number from 0 to 1")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The target."""
        return (Prompt(self.context, self.target),)

    def with_nouns(self, object_noun: str | None, subject_noun: str | None) -> str:
        """Return the context with other nouns after "which" and "the"; None keeps the one there."""
        match = _ROLES.fullmatch(self.context)
        assert match is not None
        object_noun, subject_noun = object_noun or match["object"], subject_noun or match["subject"]
        return f"{match['opening']} {object_noun} the {subject_noun} had"


@dataclass(frozen=True)
class NegationItem:
    """NEG-136: a statement and its negation, and the words that make each of them true."""

    affirmative: str  # the statement without its last word
    negative: str
    true_affirmative: str  # makes the statement true, and the negation false
    true_negative: str
    licensing: Literal["Y", "N"] | None = None  # NEG-136-NAT: is the negation natural to say?

    def __post_init__(self) -> None:
        if self.licensing not in ("Y", "N", None):
            raise ValueError(f"licensing is {self.licensing!r}; it must be Y or N")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """True and affirmative, false and negative, false and affirmative, true and negative."""
        return tuple(
            Prompt(context.replace(_ARTICLE, "an" if _VOWEL.match(word) else "a"), word)
            for word in (self.true_affirmative, self.true_negative)
            for context in (self.affirmative, self.negative)
        )


@dataclass(frozen=True)
class SentencePair:
    """ROLE-1500 and NEG-1500-SIMP: two sentences without their last words."""

    first: Prompt  # of negations the affirmative one
    second: Prompt  # the same with roles reversed, or negated

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The last words of both."""
        return self.first, self.second


@dataclass(frozen=True)
class NegatedPair(SentencePair):
    """A sentence pair of NEG-1500-SIMP: affirmative, then negated."""

    def __post_init__(self) -> None:
        first, second = (bool(_NEGATED.search(prompt.context)) for prompt in self.prompts)
        if first or not second:
            raise ValueError("only the second sentence of a pair must contain 'not'")


Item = InferenceItem | RoleItem | NegationItem | SentencePair


BuiltItem = TypeVar("BuiltItem")
INFERENCE = "context_s1 context_s2 expected within_category between_category constraint"
ROLES = "item context expected exp_cloze target"
NEGATION = "context_aff context_neg target_aff target_neg"


def read_inference(path: Path) -> tuple[Item, ...]:
    """Read CPRAG-102."""
    rows = _rows(path, INFERENCE)
    return tuple(_build_at(where, InferenceItem, *row.values()) for where, row in rows)


def read_roles(path: Path) -> tuple[Item, ...]:
    """Read ROLE-88, in which each context has a counterpart with its target."""
    items = [_build_at(where, _role, row) for where, row in _rows(path, ROLES)]
    roles = {(item.pair, item.role): item for item in items}
    for item in items:
        counterpart = roles.get((item.pair, "b" if item.role == "a" else "a"))
        if counterpart is None or counterpart.target != item.target:
            raise RecordError(
                f"{path}: item {item.pair}-{item.role} has no counterpart with the target "
                f"{item.target!r}; each pair needs one line -a and one -b with the same target"
            )
    if len(roles) != len(items):
        raise RecordError(f"{path}: an item is repeated; each needs one line -a and one line -b")
    return tuple(items)


def read_negation(path: Path, *, natural: bool = False) -> tuple[Item, ...]:
    """Read NEG-136-SIMP, or the natural sentences of NEG-136-NAT, which also has `licensing`."""
    rows = _rows(path, f"{NEGATION} licensing" if natural else NEGATION)
    return tuple(_build_at(where, NegationItem, *row.values()) for where, row in rows)


def read_sentences(path: Path, kind: type[SentencePair] = SentencePair) -> tuple[Item, ...]:
    """Read ROLE-1500, or the negated pairs of NEG-1500-SIMP: a sentence per line."""
    prompts = []
    for number, text in read_lines(path):
        where, sentence = f"{path}:{number}", text.rstrip()
        if not sentence.endswith(","):
            raise RecordError(
                f"{where}: the sentence must end in a comma; its last word is the target"
            )
        context, _, target = sentence[:-1].rstrip().rpartition(" ")
        prompts.append((where, _build_at(where, Prompt, context.strip(), target)))
    if not prompts or len(prompts) % 2:
        raise RecordError(f"{path}: {len(prompts)} lines; pairs of two lines are needed")
    both = list(pairwise(prompts))[::2]
    return tuple(_build_at(where, kind, first, second) for (_, first), (where, second) in both)


def _role(row: Mapping[str, str]) -> RoleItem:
    pair, _, role = row["item"].rpartition("-")
    if math.isnan(cloze := number_of(row["exp_cloze"])):
        raise ValueError(f"exp_cloze is {row['exp_cloze']!r}, not a number")
    expected = tuple(word.strip() for word in row["expected"].split("|"))
    return RoleItem(pair, role, row["context"], expected, cloze, row["target"])


def _rows(path: Path, columns: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield file and line, and the cells by column, of each row of a .tsv file."""
    header: Sequence[str] = ()
    has_items = False
    for number, text in read_lines(path):
        where, cells = f"{path}:{number}", [cell.strip() for cell in text.split("\t")]
        if not header:
            header = cells
            if missing := [name for name in columns.split() if name not in header]:
                raise RecordError(
                    f"{where}: no column {', '.join(missing)}; the first line must name the "
                    "columns, with tabs between them"
                )
        elif text.strip():
            has_items = True
            if len(cells) != len(header):
                raise RecordError(f"{where}: {len(cells)} cells, but the header has {len(header)}")
            row = dict(zip(header, cells, strict=True))
            if empty := [name for name in columns.split() if not row[name]]:
                raise RecordError(f"{where}: {', '.join(empty)} is empty")
            yield where, {name: row[name] for name in columns.split()}
    if not has_items:
        raise RecordError(f"{path}: the file has no items")


def _build_at(where: str, make: Callable[..., BuiltItem], *fields: object) -> BuiltItem:
    """Build an item or a prompt; errors begin with its file and line."""
    try:
        return make(*fields)
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None
