"""The items of the diagnostics, one frozen type a kind of set, and what each asks a model.

An item's `prompts` stand in the order of the lists that the authors' programs write and read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from probelight.probes.record import MASK

CONSTRAINTS = {"H": "high", "L": "low"}
_ARTICLE = "(a|an)"  # of NEG-136-SIMP, where the target chooses
_VOWEL = re.compile("[aeiou]")
_NEGATED = re.compile(r"\bnot\b")
# Of ROLE-88: whatever it is, which OBJECT the SUBJECT had.
_ROLES = re.compile(
    r"(?P<before>(?:.* )?which) (?P<object>(?:(?!\bthe ).)+) the (?P<subject>(?:(?!\bthe ).)+) had"
)


@dataclass(frozen=True)
class Prompt:
    """A context, and a word whose probability behind it is asked.

    Attributes:
        context: All that stands before the word.
        target: The word.
    """

    context: str
    target: str

    def __post_init__(self) -> None:
        if not self.context or not self.target:
            raise ValueError("it needs a context and a word behind it")
        if MASK in self.context:
            raise ValueError(f"{MASK} is put behind the context, and must not stand in it")


@dataclass(frozen=True)
class InferenceItem:
    """CPRAG-102: two sentences whose last word takes commonsense and pragmatic inference.

    Attributes:
        first: The first sentence.
        second: The second one without its last word.
        expected: The word that people say.
        within: A bad word of the same category.
        between: A bad word of a neighbouring category.
        constraint: "H" where people agree on the expected word, "L" where they do less.
    """

    first: str
    second: str
    expected: str
    within: str
    between: str
    constraint: str

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
    """ROLE-88: one of the two contexts of a pair in which two nouns change their roles.

    Attributes:
        pair: What both contexts of a pair have in common.
        role: "a" where the target fits, "b" where the roles are reversed.
        context: All before the verb.
        expected: The completions that people gave most often; several where they tie.
        cloze: The share of people who gave the best one.
        target: The verb whose probabilities are compared.
    """

    pair: str
    role: str
    context: str
    expected: tuple[str, ...]
    cloze: float
    target: str

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
        """The context with other nouns for whom something was done to, and who had done it.

        Args:
            object_noun: Stands behind "which"; None leaves the noun there.
            subject_noun: Stands behind "the"; None leaves the noun there.
        """
        found = _ROLES.fullmatch(self.context)
        assert found is not None
        object_noun, subject_noun = object_noun or found["object"], subject_noun or found["subject"]
        return f"{found['before']} {object_noun} the {subject_noun} had"


@dataclass(frozen=True)
class NegationItem:
    """NEG-136: a statement and its negation, and the words that make each of them true.

    Attributes:
        affirmative: The statement without its last word.
        negative: Its negation.
        true_affirmative: The word that makes the statement true, and the negation false.
        true_negative: The word that makes the negation true.
        licensing: NEG-136-NAT: "Y" where the negation is natural to say, "N" where it is less.
    """

    affirmative: str
    negative: str
    true_affirmative: str
    true_negative: str
    licensing: Literal["Y", "N"] | None = None

    def __post_init__(self) -> None:
        if self.licensing not in ("Y", "N", None):
            raise ValueError(f"licensing is {self.licensing!r}; it must be Y or N")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """True and affirmative, false and negative, false and affirmative, true and negative."""
        return tuple(
            Prompt(_with_article(context, word), word)
            for word in (self.true_affirmative, self.true_negative)
            for context in (self.affirmative, self.negative)
        )


@dataclass(frozen=True)
class SentencePair:
    """ROLE-1500 and NEG-1500-SIMP: two sentences without their last words.

    Attributes:
        first: The first sentence; of negations the affirmative one.
        second: The same with roles reversed, or negated.
    """

    first: Prompt
    second: Prompt

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The last words of both."""
        return self.first, self.second


@dataclass(frozen=True)
class NegatedPair(SentencePair):
    """A sentence pair of NEG-1500-SIMP: affirmative, then negated."""

    def __post_init__(self) -> None:
        first, second = (bool(_NEGATED.search(one.context)) for one in self.prompts)
        if first or not second:
            raise ValueError("the first sentence of a pair must be without 'not', the second with")


Item = InferenceItem | RoleItem | NegationItem | SentencePair


def _with_article(context: str, word: str) -> str:
    return context.replace(_ARTICLE, "an" if _VOWEL.match(word) else "a")
