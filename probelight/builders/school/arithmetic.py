"""Arithmetic, made: sums, comparisons of numbers, and the number before or after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from probelight.builders.builder import BuildSettings, Draft, Probe, finish
from probelight.builders.school.fours import comparison_items, deal, items_of_four, school_builder
from probelight.probes.splits import SPLITS

_NUM_FOURS = {"sum": 48, "comparison": 76, "order": 76}  # a sum is asked for in both orders


def build_arithmetic(settings: BuildSettings) -> Probe:
    """Build the probe: sums, comparison and order of numbers."""
    rng = Random(f"arithmetic:{settings.seed}")
    splits: dict[str, list[Draft]] = {split: [] for split in SPLITS}
    makers = {"sum": _sums(rng), "comparison": _comparisons(rng), "order": _orders(rng)}
    for kind, fours in makers.items():
        units, stems = list[list[Draft]](), set[str]()
        while len(units) < _NUM_FOURS[kind]:
            unit = next(fours)
            if stems.isdisjoint(draft.stem for draft in unit):
                units.append(unit)
                stems |= {draft.stem for draft in unit}
        for split, drafts in deal(units).items():
            splits[split] += drafts
    return finish("arithmetic", splits, rng)


def _sums(rng: Random) -> Iterator[list[Draft]]:
    """Ask for a number, for one with another last digit, another first one, and both swapped."""
    while True:
        tens, ones = rng.randint(1, 9), rng.randint(1, 9)
        near, far = ones + rng.choice((-1, 1)), tens + rng.choice((-1, 1))
        totals = [10 * tens + ones, 10 * tens + near, 10 * far + ones, 10 * ones + tens]
        is_near = 0 < abs(tens - ones) < 4 and near in range(10) and far in range(1, 10)
        if is_near and len({*totals}) == 4:
            least = [rng.randint(2, total // 2 - 1) for total in totals]
            sums = [(a, total - a, total) for a, total in zip(least, totals, strict=True)]
            yield [
                *items_of_four(
                    ((_sum(a, b), str(total), f"{a} + {b}") for a, b, total in sums), "sum"
                ),
                *items_of_four(
                    ((_sum(b, a), str(total), f"{a} + {b}") for a, b, total in sums), "sum"
                ),
            ]


def _sum(first: int, second: int) -> str:
    return f"The sum of {first} and {second} is"


def _comparisons(rng: Random) -> Iterator[list[Draft]]:
    """Ask for four numbers of one hundred by others that are between them.

    What is between two of them has another ten than either, so that digits do not tell.
    """
    while True:
        hundred, tens = rng.randint(1, 9) * 10, sorted(rng.sample(range(10), 4))
        if any(high - low < 2 for low, high in pairwise(tens)):
            continue
        numbers = [10 * (hundred + ten) + rng.randint(1, 9) for ten in tens]
        between = [
            rng.randint(10 * (hundred + low + 1), 10 * (hundred + high) - 1)
            for low, high in pairwise(tens)
        ]
        words = ("A number", "larger", "smaller")
        yield comparison_items(words, [*map(str, numbers)], [*map(str, between)], "comparison")


def _orders(rng: Random) -> Iterator[list[Draft]]:
    """Ask for four numbers in a row by their neighbours; half of the rows pass a round number."""
    while True:
        start = rng.randint(11, 98) * 10 + rng.choice((7, 8, 9, *range(1, 7, 2)))
        stems = (
            f"The number that comes right after {start - 1} is",
            f"The number that comes right after {start} is",
            f"The number that comes right before {start + 3} is",
            f"The number that comes right before {start + 4} is",
        )
        numbers = [str(start + n) for n in range(4)]
        yield items_of_four(zip(stems, numbers, [" ".join(numbers)] * 4, strict=True), "order")


ARITHMETIC = school_builder(
    build_arithmetic,
    """\
Sums below a hundred, in both orders, which are one group; which of four numbers of one hundred is
larger than another, smaller, or between two; and the number right before or after another. The
choices of a sum are a number, one with another last digit, one with another first digit, and one
with both swapped. Each of four choices is asked for once: the choices alone tell nothing.""",
)
