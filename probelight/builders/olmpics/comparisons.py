"""Comparisons of two ages, birth years or objects, and of three ages.

Talmor et al. 2020, sections 4.1 and 4.5, table 4. Training and evaluation values do not overlap, so
a value's own answer cannot be memorised.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from probelight.builders.builder import Builder, Draft, Probe, Source, finish, split_groups
from probelight.builders.olmpics.frame import (
    OlmpicsSettings,
    article,
    at_most,
    in_order,
    masked,
    with_articles,
)
from probelight.builders.prediction_grids import SIZES, PredictionGrid, Wording, grid_of
from probelight.io.documents import number_of
from probelight.io.errors import RecordError
from probelight.io.files import read_table
from probelight.io.ranges import Within
from probelight.probes.record import MASK

TRAIN_AGES, EVALUATION_AGES = range(43, 121), range(15, 39)
TRAIN_YEARS, EVALUATION_YEARS = range(1920, 1977), range(1977, 2001)
ORDINALS = ("first", "second", "third")
OBJECTS_PATH = Path(__file__).with_name("objects.csv")
_COLUMNS = ("object", "metres", "kind", "source")
_KINDS = ("animal", "object")


@dataclass(frozen=True)
class AgeSettings(OlmpicsSettings):
    """Settings of age_comparison.

    Args:
        num_train: Largest number of train items; ages allow 6,006, birth years 3,192.
        num_dev: Largest number of dev items; dev and test share 552.
        perturbation: Panel of figure 3: A ages, B birth years in the birth-year sentence, C birth
            years in the age sentence, D ages in the birth-year sentence.
        wording: Wording of the age sentence: as released, or as in the paper.
    """

    perturbation: Literal["A", "B", "C", "D"] = "A"
    wording: Wording = "released"


@dataclass(frozen=True)
class MultihopSettings(OlmpicsSettings):
    """Settings of multihop_composition.

    Args:
        num_train: Largest number of train items; there are 76,076 triples of ages.
        num_dev: Largest number of dev items; dev and test share 2,024.
    """


@dataclass(frozen=True)
class ObjectsSettings(OlmpicsSettings):
    """Settings of objects_comparison.

    Args:
        objects_path: A CSV file with the columns object, metres, kind (animal or object), source.
        min_ratio: The larger object of a pair is at least this many times the other's size.
        wording: Wording of the sentence: as released, or as in the paper.
    """

    objects_path: str = str(OBJECTS_PATH)
    min_ratio: Annotated[float, Within(1, 1_000, above=True)] = 3.0
    wording: Wording = "released"


def build_ages(settings: AgeSettings) -> Probe:
    """Build the probe: which of two ages, or of two people by their birth years, is older?"""
    by_year = settings.perturbation in "BC"
    values = (TRAIN_YEARS, EVALUATION_YEARS) if by_year else (TRAIN_AGES, EVALUATION_AGES)
    grids = [grid_of(settings.perturbation, numbers, settings.wording) for numbers in values]
    return _compared("age_comparison", settings, grids)


def build_objects(settings: ObjectsSettings) -> Probe:
    """Build the probe: which of two objects is larger?"""
    objects = read_objects(Path(settings.objects_path))
    grids = [grid_of(SIZES, list(objects[kind]), settings.wording) for kind in _KINDS]
    metres = {name: size for sizes in objects.values() for name, size in sizes.items()}

    def differ(first: str, second: str) -> bool:
        small, large = sorted((metres[first], metres[second]))
        return large >= settings.min_ratio * small

    return _compared("objects_comparison", settings, grids, differ)


def _compared(
    name: str,
    settings: OlmpicsSettings,
    grids: Sequence[PredictionGrid],
    is_asked: Callable[..., bool] = lambda first, second: True,
) -> Probe:
    """Make a probe from a grid for train and one for the other splits.

    Every pair comes in both orders, in one split, so both answers are equally frequent.
    """
    rng = random.Random(f"{name}:{settings.seed}")
    splits = dict[str, list[Draft]]()
    for sizes, grid in zip((settings.train, settings.evaluation), grids, strict=True):
        drafts = []
        for record in grid.records:
            pair, stem = record.meta["arguments"], with_articles(record.stem)
            if is_asked(*pair):
                drafts.append(Draft(stem, record.gold, record.wrong, frozenset(pair), record.meta))
        splits |= split_groups(drafts, at_most(sizes, len(drafts)), rng)
    return finish(name, in_order(splits), rng)


def read_objects(path: Path) -> dict[str, dict[str, float]]:
    """Read a file of objects: the size in metres by kind and name, the smallest first.

    A RecordError names the malformed line, the repeated name, or a kind with fewer than two
    objects.
    """
    objects: dict[str, dict[str, float]] = {kind: {} for kind in _KINDS}
    table = read_table(path)
    if tuple(table.columns) != _COLUMNS:
        raise RecordError(f"{path}:1: the header must be {','.join(_COLUMNS)}")
    for where, (name, size, kind, source) in zip(table.index, table.to_numpy(), strict=True):
        if not (name and size and kind and source):
            raise RecordError(f"{where}: a cell is empty; write {', '.join(_COLUMNS)}")
        if any(name in sizes for sizes in objects.values()):
            raise RecordError(f"{where}: {name!r} is repeated; keep one of them")
        if kind not in objects:
            raise RecordError(f"{where}: the kind is {kind!r}; write {' or '.join(_KINDS)}")
        metres = number_of(size)
        if not metres > 0:
            raise RecordError(f"{where}: the size is {size!r}; write a number of metres above 0")
        objects[kind][name] = metres
    for kind, sizes in objects.items():
        if len(sizes) < 2:
            raise RecordError(f"{path}: fewer than two lines of the kind {kind}; add some")
        objects[kind] = dict(sorted(sizes.items(), key=lambda item: (item[1], item[0])))
    return objects


def build_multihop(settings: MultihopSettings) -> Probe:
    """Build the probe: which of three ages is the oldest?

    "When comparing a 23 year old, a 38 year old and a 31 year old, the [MASK] is oldest": each
    unordered triple of ages is used once; the three answers are equally frequent.
    """
    rng = random.Random(f"multihop_composition:{settings.seed}")
    evaluation = dict(sorted(settings.evaluation.items()))
    splits: dict[str, list[Draft]] = {}
    for ages, sizes in ((TRAIN_AGES, settings.train), (EVALUATION_AGES, evaluation)):
        triples = list(itertools.combinations(ages, 3))
        sizes = at_most(sizes, len(triples))
        drafts = []
        for number, triple in enumerate(rng.sample(triples, sum(sizes.values()))):
            oldest, *younger = sorted(triple, reverse=True)
            order = rng.sample(younger, 2)
            order.insert(number % 3, oldest)
            a, b, c = (f"{article(str(age))} {age} year old" for age in order)
            gold = ORDINALS[number % 3]
            wrong = tuple(word for word in ORDINALS if word != gold)
            stem = f"When comparing {a}, {b} and {c}, the {MASK} is oldest"
            drafts.append(Draft(stem, gold, wrong, triple, {"arguments": order}))
        # The answers take turns in the list, so each part of it is as balanced as the whole.
        remaining = iter(drafts)
        splits |= {name: list(itertools.islice(remaining, size)) for name, size in sizes.items()}
    return finish("multihop_composition", splits, rng)


_AGE_PATTERNS = {
    "age": (
        r"An? (\d+) year old person (?:age )?is \[MASK\] than "
        r"(?:an? (\d+) year old person|me in age, If I am an? (\d+) year old person) ?\."
    ),
    "birth_year": (r"A person born in (\d+) is \[MASK\] than me in age, If i was born in (\d+)\."),
}
_ABOUT_AGES = """\
Built as Talmor et al. (2020, section 4.1 and figure 3) describe, in the released wording (with "an"
where English needs it). Ages are 43 to 120 in train and 15 to 38 in the other splits. Birth years
are 1920 to 1976 and 1977 to 2000; this division is our own, as the paper trains on ages only. The
sentence decides which answer is right, even if ages are in the sentence for birth years or the
other way round. Both orders of a pair are asked, in the same split. If the values allow fewer
sentences than requested, all of them are used."""
_ABOUT_MULTIHOP = """\
Built as Talmor et al. (2020, section 4.5) describe, in the released wording (with "an" where
English needs it). Ages are 43 to 120 in train and 15 to 38 in the other splits. No three ages are
asked twice. The three ages always differ, unlike those of some released items, which have two right
answers."""

AGE_COMPARISON = Builder(
    "age_comparison",
    "Which of two ages is older?",
    AgeSettings,
    build_ages,
    about=_ABOUT_AGES,
    config=masked(
        2,
        group_by="arguments",
        candidates=["younger", "older"],
        arguments=_AGE_PATTERNS,
        key_words=["age", "than"],
        nonsense={"younger": "ya", "older": "blah"},
    ),
)
MULTIHOP_COMPOSITION = Builder(
    "multihop_composition",
    "Which of three ages is the oldest?",
    MultihopSettings,
    build_multihop,
    about=_ABOUT_MULTIHOP,
    config=masked(
        3,
        group_by="arguments",
        candidates=list(ORDINALS),
        arguments=(
            r"When comparing an? (\d+) year old, an? (\d+) year old and an? (\d+) year old, "
            r"the \[MASK\] is oldest"
        ),
        key_words=["comparing", "oldest"],
        nonsense={"first": "blah", "second": "ya", "third": "foo"},
    ),
)

_ABOUT_OBJECTS = """\
Built as Talmor et al. (2020, section 4.1) describe, in the released wording (with "an" where
English needs it), from a list of our own: `objects.csv`, which gives a reference for each typical
size (the longest dimension, rounded). Animals are in train, other objects in dev and test. Instead
of the paper's buckets of sizes, one object of a pair is at least three times (`min_ratio`) as large
as the other, so that no answer depends on rounding. Both orders of a pair are asked, in the same
split."""

OBJECTS_COMPARISON = Builder(
    "objects_comparison",
    "Which of two objects is larger?",
    ObjectsSettings,
    build_objects,
    sources={"objects_path": Source("Sizes of objects", "1", "Apache-2.0")},
    about=_ABOUT_OBJECTS,
    config=masked(
        2,
        group_by="arguments",
        candidates=["smaller", "larger"],
        arguments=r"The size of an? (.+?) is usually much \[MASK\] than the size of an? (.+?) ?\.",
        key_words=["size", "than"],
        nonsense={"smaller": "ya", "larger": "blah"},
    ),
)
