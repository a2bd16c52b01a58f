"""What the report knows of systems that were compared: their accuracies, letters, differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from probelight.metrics.comparisons import compact_letters
from probelight.results.details import ComparisonDetails
from probelight.results.load import Results, Run
from probelight.results.row import Row, Subset

PROTOCOL = "compare"
LEVEL = 0.05
_ORDER = ("zero shot", "learning curve", "original task", "before inoculation", "inoculated")


@dataclass(frozen=True, eq=False)
class Place:
    """The items that systems were compared on, and the setting that they share.

    Attributes:
        probe: Name of the set.
        split: Its split.
        facts: What the comparison recorded.
    """

    probe: str
    split: str
    facts: ComparisonDetails

    @property
    def detail(self) -> str:
        """What tells it from others of the same probe."""
        known = self.split, self.facts.answered, self.facts.setting
        return ", ".join(filter(None, known))

    @property
    def text(self) -> str:
        """All of it in a line."""
        return f"{self.probe} ({self.detail})"


@dataclass(frozen=True)
class OneSystem:
    """A system, its accuracy, and the letters of those that it is not told apart from."""

    place: Place
    name: str
    accuracy: Row
    letters: str

    @property
    def num_runs(self) -> int | None:
        """How many runs it has, one a seed."""
        return self.place.facts.num_runs.get(self.name)


@dataclass(frozen=True)
class Difference:
    """Two systems and what they differ by, the first minus the second."""

    place: Place
    first: str
    second: str
    difference: Row
    mcnemar_p: float | None
    p_value: float | None
    adjusted: float | None
    smallest: float | None

    @property
    def are_apart(self) -> bool:
        """Whether it is told from chance, over all comparisons of its table."""
        return self.adjusted is not None and self.adjusted < LEVEL

    @property
    def num_runs(self) -> tuple[int | None, int | None]:
        """How many runs each of the two has."""
        known = self.place.facts.num_runs
        return known.get(self.first), known.get(self.second)


@lru_cache(maxsize=2)
def differences(results: Results) -> tuple[Difference, ...]:
    """Every comparison, in the order of the sets."""
    return tuple(one for run in _runs(results) for one in _differences(run))


@lru_cache(maxsize=2)
def systems(results: Results) -> tuple[OneSystem, ...]:
    """The systems of each set, the best one first."""
    return tuple(one for run in _runs(results) for one in _systems(run))


def _runs(results: Results) -> list[Run]:
    found = [run for run in results.of(PROTOCOL) if run.detail(ComparisonDetails) and run.rows]
    return sorted(found, key=_order)


def _order(run: Run) -> tuple[object, ...]:
    facts = run.detail(ComparisonDetails)
    assert facts is not None
    # A setting begins or ends with a number: of examples.
    digits = "".join(letter for letter in facts.setting if letter.isdigit())
    return (
        _ORDER.index(facts.answered),
        run.probe,
        run.rows[0].split,
        int(digits or 0),
        facts.setting,
        run.key,
    )


def _place(run: Run) -> Place:
    details = run.detail(ComparisonDetails)
    assert details is not None
    return Place(run.probe, run.rows[0].split, details)


def _differences(run: Run) -> list[Difference]:
    by_pair: dict[Subset, dict[str, Row]] = {}
    for row in run.rows:
        if row.subset and row.subset.kind == "versus":
            by_pair.setdefault(row.subset, {})[row.metric] = row
    place = _place(run)

    def value(own: dict[str, Row], metric: str) -> float | None:
        return own[metric].value if metric in own else None

    return [
        Difference(
            place,
            pair["first"],
            pair["second"],
            own["difference"],
            value(own, "mcnemar_p"),
            value(own, "p_value"),
            value(own, "adjusted_p_value"),
            value(own, "smallest_difference"),
        )
        for pair, own in by_pair.items()
        if "difference" in own
    ]


def _systems(run: Run) -> list[OneSystem]:
    rows = {
        row.subset["label"]: row
        for row in run.rows
        if row.subset and row.subset.kind == "model" and row.metric == "accuracy"
    }
    names = sorted(rows, key=lambda name: -rows[name].value)
    places = {name: place for place, name in enumerate(names)}
    apart = {
        (min(pair), max(pair))
        for one in _differences(run)
        if one.are_apart
        for pair in [(places[one.first], places[one.second])]
    }
    letters = compact_letters(len(names), apart)
    place = _place(run)
    return [
        OneSystem(place, name, rows[name], own) for name, own in zip(names, letters, strict=True)
    ]
