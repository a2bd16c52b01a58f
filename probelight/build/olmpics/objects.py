"""Objects comparison: which of two objects is larger (Talmor et al. 2020, section 4.1, table 4)?"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from probelight.build.builder import Builder, Source
from probelight.build.drafts import Draft, Probe, finish, split_groups
from probelight.build.olmpics.frame import OlmpicsSettings, at_most, in_order, masked, with_articles
from probelight.build.prediction_grids import SIZES, Wording, grid_of
from probelight.io.errors import RecordError
from probelight.io.files import read_lines
from probelight.io.ranges import Within

OBJECTS_PATH = Path(__file__).with_name("objects.csv")
_COLUMNS = ("object", "metres", "kind", "source")
_KINDS = ("animal", "object")


@dataclass(frozen=True)
class Sized:
    """A thing and its longest dimension.

    Attributes:
        name: What it is called, after "a".
        metres: Its typical size.
        kind: Animals are asked about in train, other objects in the other splits.
        source: Where the size can be looked up.
    """

    name: str
    metres: float
    kind: str
    source: str


@dataclass(frozen=True)
class ObjectsSettings(OlmpicsSettings):
    """Settings of objects_comparison.

    Args:
        objects_path: A CSV file with the columns object, metres, kind (animal or object), source.
        min_ratio: One object of a pair is so many times the other's size at least.
        wording: As the sentence is released, or as the paper has it.
    """

    objects_path: str = str(OBJECTS_PATH)
    min_ratio: Annotated[float, Within(1, 1_000, above=True)] = 3.0
    wording: Wording = "released"


def build_objects(settings: ObjectsSettings) -> Probe:
    """Which of two objects is larger?

    Every pair comes in both orders, so both answers are equally frequent, also for each pair.

    Raises:
        RecordError: If the file of objects is malformed.
        UsageError: If no item is left for a split.
    """
    rng = random.Random(f"objects_comparison:{settings.seed}")
    objects = read_objects(Path(settings.objects_path))
    splits = dict[str, list[Draft]]()
    for kind, sizes in zip(_KINDS, (settings.train, settings.evaluation), strict=True):
        own = [one for one in objects if one.kind == kind]
        drafts = _drafts(own, settings.min_ratio, settings.wording)
        splits |= split_groups(drafts, at_most(sizes, len(drafts)), rng)
    return finish("objects_comparison", in_order(splits), rng)


def read_objects(path: Path) -> list[Sized]:
    """Reads a file of objects, the smallest first.

    Raises:
        RecordError: If a line has not four cells, a size is no number above 0, a kind is unknown,
            a name is there twice, or a kind has fewer than two objects; it names the line.
    """
    found = dict[str, Sized]()
    lines = read_lines(path)
    _, header = next(lines, (1, ""))
    if tuple(header.split(",")) != _COLUMNS:
        raise RecordError(f"{path}:1: the header is not {','.join(_COLUMNS)}")
    for number, text in lines:
        cells = [cell.strip() for cell in next(csv.reader([text]), [])]
        if problem := _problem(cells, found):
            raise RecordError(f"{path}:{number}: {problem}")
        name, metres, kind, source = cells
        found[name] = Sized(name, float(metres), kind, source)
    for kind in _KINDS:
        if sum(one.kind == kind for one in found.values()) < 2:
            raise RecordError(f"{path}: fewer than two lines of kind {kind}")
    return sorted(found.values(), key=lambda one: (one.metres, one.name))


def _problem(cells: Sequence[str], found: Mapping[str, Sized]) -> str:
    if len(cells) != len(_COLUMNS) or not all(cells):
        return f"{len([cell for cell in cells if cell])} cells; give {', '.join(_COLUMNS)}"
    name, metres, kind, _ = cells
    if name in found:
        return f"{name!r} is there twice"
    if kind not in _KINDS:
        return f"the kind {kind!r}; give {' or '.join(_KINDS)}"
    try:
        is_size = 0 < float(metres) < math.inf
    except ValueError:
        is_size = False
    return "" if is_size else f"the size {metres!r}; give a number of metres above 0"


def _drafts(objects: Sequence[Sized], min_ratio: float, wording: Wording) -> list[Draft]:
    metres = {one.name: one.metres for one in objects}
    drafts = []
    for record in grid_of(SIZES, list(metres), wording).records:
        small, large = sorted(metres[name] for name in record.meta["arguments"])
        if large >= min_ratio * small:
            stem = with_articles(record.stem)
            pair = frozenset(record.meta["arguments"])
            drafts.append(Draft(stem, record.gold, record.wrong, pair, record.meta))
    return drafts


_ABOUT = """\
Built as Talmor et al. (2020, section 4.1) describe it, in the released wording ("an" where it is
said), over a list of our own: `objects.csv`, which names for each typical size (the longest
dimension, rounded) where it can be looked up. Animals are for train, other objects for dev and
test. In place of the paper's buckets of size, one object of a pair is at least three times
(`min_ratio`) the other's size, so that no answer hangs on a rounded size. Each pair is asked in
both orders, which lie in one split."""

OBJECTS_COMPARISON = Builder(
    "objects_comparison",
    "Which of two objects is larger?",
    ObjectsSettings,
    build_objects,
    sources={"objects_path": Source("Sizes of objects", "1", "Apache-2.0")},
    about=_ABOUT,
    config=masked(
        2,
        group_by="arguments",
        candidates=["smaller", "larger"],
        arguments=r"The size of an? (.+?) is usually much \[MASK\] than the size of an? (.+?) ?\.",
        key_words=["size", "than"],
        nonsense={"smaller": "ya", "larger": "blah"},
    ),
)
