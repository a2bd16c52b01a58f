"""What systems differ by, as rows: one run of the command's folder a set of systems compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from probelight.metrics.comparisons import Compared, Runs, compare_runs
from probelight.metrics.intervals import Interval, Term, accuracy_interval, num_groups, sum_interval
from probelight.protocols.compare.blocks import Block
from probelight.protocols.compare.systems import System
from probelight.results.row import Row, Subset

PROTOCOL = "compare"


@dataclass(frozen=True)
class Difference:
    """Two systems of a block, by their names, and what they differ by."""

    first: str
    second: str
    found: Compared


@dataclass(frozen=True)
class Measured:
    """A block with what was measured of it.

    Attributes:
        block: The systems.
        names: The systems by their names.
        accuracies: Of each system.
        differences: Of each two, in their order.
    """

    block: Block
    names: Mapping[str, System]
    accuracies: Mapping[str, Interval]
    differences: tuple[Difference, ...]


def measure(block: Block, names: Mapping[str, System]) -> Measured:
    """Compares the systems of a block, each with each."""
    credit = {name: system.credit(block.items) for name, system in names.items()}
    accuracies = {name: _accuracy(block, runs) for name, runs in credit.items()}
    differences = tuple(
        Difference(
            first,
            second,
            compare_runs(
                credit[first],
                credit[second],
                block.groups,
                same_samples=block.same_samples(names[first], names[second]),
            ),
        )
        for first, second in combinations(names, 2)
    )
    return Measured(block, names, accuracies, differences)


def adjusted(measured: Sequence[Measured]) -> list[list[float]]:
    """The p-values of all comparisons, adjusted together (Benjamini & Hochberg 1995), by block."""
    from scipy.stats import false_discovery_control  # half a second, which --help can do without

    p_values = [one.found.p_value for own in measured for one in own.differences]
    found = iter(false_discovery_control(p_values).tolist())
    return [[next(found) for _ in own.differences] for own in measured]


def rows_of(measured: Measured, adjusted_p: Sequence[float]) -> Iterator[Row]:
    """The rows of a block.

    Args:
        measured: What was measured.
        adjusted_p: Of each difference the adjusted p-value.
    """
    block = measured.block
    groups = None if block.groups is None else num_groups(block.groups)
    items = len(block.items)
    base = Row(
        protocol=PROTOCOL,
        probe=block.asked.probe,
        split=block.asked.split,
        num_items=items,
        num_groups=groups or items,
    )
    for name, interval in measured.accuracies.items():
        system = Subset.of("model", name, label=name)
        yield _row(replace(base, subset=system), "accuracy", interval)
    for one, p_value in zip(measured.differences, adjusted_p, strict=True):
        text = f"{one.first} − {one.second}"
        versus = Subset.of("versus", text, first=one.first, second=one.second)
        row = replace(base, subset=versus)
        yield _row(row, "difference", one.found.interval)
        values = {
            "mcnemar_p": one.found.mcnemar_p,
            "p_value": one.found.p_value,
            "adjusted_p_value": p_value,
            "smallest_difference": one.found.smallest,
        }
        for metric, value in values.items():
            if math.isfinite(value):
                yield replace(row, metric=metric, value=value)


def _accuracy(block: Block, runs: Runs) -> Interval:
    if len(runs) == 1:
        return accuracy_interval(next(iter(runs.values())), block.groups)
    return sum_interval([Term(1.0, runs)], block.groups)


def _row(row: Row, metric: str, interval: Interval) -> Row:
    value, low, high = map(float, np.asarray(interval))
    return replace(row, metric=metric, value=value, ci_low=low, ci_high=high)
