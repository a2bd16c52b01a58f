"""Which part of a set a number was measured on: one small type a kind of part.

results.csv holds a part's `text`, for people; result.json holds it whole, so that nobody takes a
text apart again. A row of the whole set has none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Subset(ABC):
    """A part of the items that a run measured, or one of the things it counted on them.

    Attributes:
        kind: What tells the parts apart in result.json.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def text(self) -> str:
        """How results.csv calls it."""

    def to_json(self) -> dict[str, Any]:
        """Its kind and what it is made of."""
        return {"kind": self.kind, **asdict(self)}

    @staticmethod
    def from_json(value: object) -> Subset:
        """The part that `to_json` wrote.

        Raises:
            ValueError: If it is none.
        """
        if isinstance(value, dict) and (kind := _KINDS.get(str(value.get("kind")))):
            facts = {name: own for name, own in value.items() if name != "kind"}
            with suppress(TypeError):  # a key that it does not have
                if all(_CHECKS[p.type](facts.get(p.name, p.default)) for p in fields(kind)):
                    words = {n: tuple(v) for n, v in facts.items() if isinstance(v, list)}
                    return kind(**facts | words)
        raise ValueError(f"is {value!r}, which names no part of a set")

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: object, handler: object) -> CoreSchema:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(Subset.from_json)


@dataclass(frozen=True)
class Template(Subset):
    """The items that were made from one template."""

    kind = "template"
    name: str

    @property
    def text(self) -> str:
        """The template behind `template=`."""
        return f"template={self.name}"


@dataclass(frozen=True)
class ChoiceSet(Subset):
    """The items that choose among the same words, sorted."""

    kind = "choices"
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words behind `pair=`, which is how many there mostly are."""
        return f"pair={'/'.join(self.words)}"


@dataclass(frozen=True)
class Untouched(Subset):
    """The items that have no relative in the train files."""

    kind = "untouched"

    @property
    def text(self) -> str:
        """What they have in common."""
        return "group not in train"


@dataclass(frozen=True)
class Clusters(Subset):
    """The clusters of one size: so many questions about one concept."""

    kind = "clusters"
    size: int

    @property
    def text(self) -> str:
        """The size."""
        return f"clusters of {self.size}"


@dataclass(frozen=True)
class Difficulty(Subset):
    """A cell of the heat maps of Richardson & Sabharwal 2020, figure 3.

    Attributes:
        hops: Edges between the concept and the right answer; 0 where it asks for the concept.
        distractor_type: "random", "sister", "hypernym" or "hyponym" ("sense" in DictionaryQA), or
            whatever a data file says.
        distractor_hops: Edges between the concept and its wrong answers; 0 for random ones.
    """

    kind = "difficulty"
    hops: int
    distractor_type: str
    distractor_hops: int

    @property
    def text(self) -> str:
        """Hops and distractors."""
        return f"hops={self.hops} distractors={self.distractor_type}:{self.distractor_hops}"

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Difficulty | None:
        """The difficulty that an item's facts name; None where they name none."""
        hops, kind = meta.get("hops"), meta.get("distractor_type")
        if hops is None or not kind:
            return None
        return cls(int(hops), str(kind), int(meta.get("distractor_hops") or 0))


@dataclass(frozen=True)
class Paradigm(Subset):
    """The minimal pairs that contrast the same thing; BLiMP's files call it UID."""

    kind = "paradigm"
    name: str

    @property
    def text(self) -> str:
        """The paradigm behind `UID=`."""
        return f"UID={self.name}"


@dataclass(frozen=True)
class SourceSet(Subset):
    """The items of one set of an original task that has several."""

    kind = "source_set"
    name: str

    @property
    def text(self) -> str:
        """The set's name."""
        return self.name


@dataclass(frozen=True)
class Answered(Subset):
    """The items on which an answer was predicted, of which a row gives the share."""

    kind = "answered"
    answer: str

    @property
    def text(self) -> str:
        """The answer."""
        return self.answer


@dataclass(frozen=True)
class GridWording(Subset):
    """A grid in one of its wordings."""

    kind = "wording"
    name: str

    @property
    def text(self) -> str:
        """The wording behind `wording=`."""
        return f"wording={self.name}"


@dataclass(frozen=True)
class NearerDistractor(Subset):
    """The items that have a distractor nearer than the right answer, or those that have none."""

    kind = "nearer_distractor"
    exists: bool

    @property
    def text(self) -> str:
        """Whether they have one."""
        return "with a nearer distractor" if self.exists else "without"


@dataclass(frozen=True)
class OneModel(Subset):
    """What is of one of the two models that a row compares."""

    kind = "model"
    label: str

    @property
    def text(self) -> str:
        """The model's name in tables."""
        return self.label


@dataclass(frozen=True)
class Versus(Subset):
    """What two systems differ by: the first minus the second."""

    kind = "versus"
    first: str
    second: str

    @property
    def text(self) -> str:
        """Their names in tables."""
        return f"{self.first} − {self.second}"


@dataclass(frozen=True)
class Constraint(Subset):
    """The diagnostic items whose context leaves people little choice, or more of it.

    Attributes:
        level: "high" or "low".
    """

    kind = "constraint"
    level: str

    @property
    def text(self) -> str:
        """The level."""
        return f"{self.level} constraint"


@dataclass(frozen=True)
class ClozeBin(Subset):
    """The diagnostic items of a quarter by what share of people gave the best completion.

    Attributes:
        upper: The largest share of the quarter.
    """

    kind = "cloze"
    upper: float

    @property
    def text(self) -> str:
        """The largest share, as Ettinger (2020) has it in table 8."""
        return f"cloze <={self.upper:.2f}".replace("=0", "=")


@dataclass(frozen=True)
class Statements(Subset):
    """The statements of a diagnostic about negation that have something in common.

    Attributes:
        polarity: "affirmative", "negative", or empty for both.
        naturalness: "natural", "less natural", or empty for both.
    """

    kind = "statements"
    polarity: str
    naturalness: str = ""

    @property
    def text(self) -> str:
        """What they have in common."""
        return f"{self.polarity} {self.naturalness}".strip()


@dataclass(frozen=True)
class Article(Subset):
    """The contexts of a diagnostic that end in an article.

    Attributes:
        word: "a" or "an".
    """

    kind = "article"
    word: str

    @property
    def text(self) -> str:
        """Where the word stands."""
        return f"behind {self.word}"


@dataclass(frozen=True)
class AnswerPart(Subset):
    """The items of which some choices have a word, or are an answer, and others not.

    Attributes:
        of: "word" or "answer".
        part: Which.
    """

    kind = "answer_part"
    of: str
    part: str

    @property
    def text(self) -> str:
        """What they have."""
        return f"{self.of}={self.part}"


_CHECKS: dict[Any, Callable[[Any], bool]] = {  # by the type that a part's field is declared with
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int,
    "float": lambda value: type(value) in (int, float) and math.isfinite(value),
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": lambda value: (
        isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    ),
}
_KINDS: dict[str, type[Subset]] = {
    part.kind: part
    for part in (
        Template, ChoiceSet, Untouched, Clusters, Difficulty, SourceSet, Answered, GridWording,
        NearerDistractor, OneModel, Constraint, ClozeBin, Statements, Article, Paradigm,
        AnswerPart, Versus,
    )
}  # fmt: skip
