"""Sentences over all pairs of values, for grids of predictions (Talmor et al. 2020).

Figures 2A and 3: ages and birth years, each in the age sentence and in the birth-year sentence.
Table 4: objects from small to large. The diagonal, which has no right answer, has no sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from probelight.probes.record import MASK, Record, validate

Value = int | str
Wording = Literal["paper", "released"]

AGES = range(15, 106)  # "the expected range" of section 1
BIRTH_YEARS = range(1920, 2001)
OBJECTS = ("nail", "pen", "laptop", "table", "house", "airplane", "city", "sun")

# "A" before every value, as in the paper and in the released files.
AGE_SENTENCES: dict[Wording, str] = {
    "paper": f"A {{}} year old person is {MASK} than me in age, If I am a {{}} year old person.",
    "released": f"A {{}} year old person age is {MASK} than a {{}} year old person .",
}
BIRTH_SENTENCE = f"A person born in {{}} is {MASK} than me in age, If i was born in {{}}."
SIZE_SENTENCES: dict[Wording, str] = {
    "paper": f"The size of a {{}} is usually much {MASK} than the size of a {{}}.",
    "released": f"The size of a {{}} is usually much {MASK} than the size of a {{}} .",
}
_BY_AGE, _BY_YEAR = ("AGE-1", "AGE-2"), ("YEAR-1", "YEAR-2")
SIZES = "sizes"
# Title, whether it is the age sentence (whose first word is right where the values rise), axes.
_PANELS = {
    "A": ("ages in the age sentence", True, _BY_AGE),
    "B": ("birth years in the birth-year sentence", False, _BY_YEAR),
    "C": ("birth years in the age sentence", True, _BY_YEAR),
    "D": ("ages in the birth-year sentence", False, _BY_AGE),
}


@dataclass(frozen=True)
class PredictionGrid:
    """All ordered pairs of values in one sentence."""

    name: str  # "A" to "D" as in figure 3, "sizes" for table 4
    probe: str  # the probe that it is a variant of
    title: str  # which values are in which sentence
    wording: Wording
    axes: tuple[str, str]  # first and second value of the sentence (rows, columns)
    candidates: tuple[str, str]
    values: tuple[Value, ...]  # of rows and columns alike
    records: tuple[Record, ...]  # row by row, without the diagonal; `meta["arguments"]`: values


def age_grids(
    ages: Sequence[int] = AGES, years: Sequence[int] = BIRTH_YEARS, wording: Wording = "paper"
) -> tuple[PredictionGrid, ...]:
    """Return the four panels of figure 3, for `ages` (A, D) and birth `years` (B, C).

    The right answer follows the sentence, even where it is odd: in panel C a "1980 year old person"
    is older than a "1960 year old person"; in panel D somebody "born in 20" is older than somebody
    "born in 30". `wording` is that of the age sentence; the birth-year sentence was never released.
    """
    return tuple(
        grid_of(name, ages if axes == _BY_AGE else years, wording)
        for name, (_, _, axes) in _PANELS.items()
    )


def grid_of(name: str, values: Sequence[Value], wording: Wording) -> PredictionGrid:
    """Return panel "A" to "D" of figure 3 (see `age_grids`) or the matrix of table 4, `SIZES`.

    `values` are ages or years, or objects from the smallest to the largest. The two wordings of
    sizes differ in the space before the full stop. A ValueError says that values are too few.
    """
    if len(values) < 2 or len(set(values)) < len(values):
        raise ValueError(f"grid {name}: give at least two values, each only once")
    # `rising`: the first candidate (younger, smaller) is right where the first value is the lower.
    if name == SIZES:
        probe, title, axes = "objects_comparison", "sizes of objects", ("OBJ-1", "OBJ-2")
        candidates, sentence, rising = ("smaller", "larger"), SIZE_SENTENCES[wording], True
    else:
        title, rising, axes = _PANELS[name]
        probe, candidates = "age_comparison", ("younger", "older")
        sentence = AGE_SENTENCES[wording] if rising else BIRTH_SENTENCE
    records = []
    for (i, first), (j, second) in permutations(enumerate(values), 2):
        record = Record(
            id=f"{name}-{first}-{second}",
            stem=sentence.format(first, second),
            choices=candidates,
            answer=0 if (i < j) == rising else 1,
            meta={"arguments": [first, second]},
        )
        records.append(validate(record, "mc_mlm"))
    return PredictionGrid(
        name, probe, title, wording, axes, candidates, tuple(values), tuple(records)
    )
