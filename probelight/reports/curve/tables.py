"""The points of learning curves as a table, and what pre-training gave."""

from __future__ import annotations

from dataclasses import dataclass

from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import Curve, Difference, Point
from probelight.reports.curve.facts import curves
from probelight.reports.curve.lines import points_text
from probelight.reports.curve.summary import Score, Summary, difference, rivals, summaries
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    column,
    field,
    gap,
    share,
    size,
    text,
    whole,
)
from probelight.reports.kit.runs import runs_of
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import (
    ABSENT,
    INTERVAL,
    between,
    percent,
    points,
    points_between,
    rate,
)
from probelight.results.load import Results


@dataclass(frozen=True)
class Place:
    """A point of a curve; `number` is the curve's place among all."""

    number: int
    curve: Curve
    control: str
    point: Point

    @property
    def num_items(self) -> int | None:
        """Items measured."""
        return self.point.num_items

    @property
    def num_groups(self) -> int | None:
        """Groups that items are drawn in."""
        return self.curve.num_groups

    @property
    def gap(self) -> Difference | None:
        """Standard minus control."""
        if self.control == STANDARD:
            return None
        return self.curve.difference(self.control, self.point.num_train)

    @property
    def stuck(self) -> int | None:
        """Seeds that did not learn what they were trained on."""
        return self.point.stuck(self.curve.chance)


def curve_table(results: Results) -> Table | None:
    """Learning curves: mean over seeds by number of examples, controls, and the difference."""
    found = curves(results)
    places = [
        Place(number, curve, control, point)
        for number, curve in enumerate(found)
        for control, line in curve.points.items()
        for point in line
    ]
    stuck = any(p.stuck is not None for p in places if p.control == STANDARD)
    columns: list[Column[Place]] = [
        text("probe", lambda p: p.curve.probe, "probe split", lambda p: p.curve.where),
        text("model", lambda p: p.curve.model, "model"),
        text("trained", lambda p: p.point.mode, "mode", lambda p: _rate(p.curve)),
        attributes("learning_rate", lambda p: p.curve),
        attributes("control"),
        whole("N", lambda p: p.point.num_train, "num_train"),
        share("chance", lambda p: p.curve.chance, "chance"),
    ]
    if any(curve.scored_chance != curve.chance for curve in found):
        columns.append(share("chance, empty choices too", lambda p: p.curve.scored_chance))
    across: Across[Place] = Across(
        lambda p: p.control,
        lambda p: (p.number, p.point.num_train),
        lambda control: _of_control(control, stuck),
        [STANDARD, *sorted({control for curve in found for control in curve.controls})],
    )
    note = (
        f"{INTERVAL} of the mean over seeds, over groups of items and over seeds (the items alone "
        "where a run did not record which were right). Of "
        "few groups or seeds the intervals are wide. Then the median seed, and the lowest and "
        "highest. The difference is in percentage points on the same items and seeds, with its "
        "interval, or else its lowest and highest seed."
    )
    if stuck:
        note += (
            " At chance: runs whose accuracy on their own training examples is not above chance; "
            "they stay in the mean."
        )
    return Declared(
        "learning_curve",
        "Learning curves",
        note,
        columns,
        across,
        f"model probe mode split learning_rate control num_train {ACCURACY} median seed_min "
        f"seed_max seed_sd num_seeds num_at_chance {SIZE} chance",
        lambda p: runs_of(p.point),
    ).of(places, sorted(places, key=lambda p: (p.number, p.point.num_train)))


def _of_control(control: str, stuck: bool) -> list[Column[Place]]:
    """The standard curve says more of its seeds, a control how far it is from that."""
    group = control.replace("_", " ")
    accuracies: Column[Place] = accuracy(
        "accuracy %", lambda p: p.curve.estimate(p.control, p.point.num_train), ACCURACY, group
    )
    at_chance: Column[Place] = column(
        Heading("at chance", group=group),
        lambda p: p,
        lambda p: Cell(ABSENT if p.stuck is None else f"{p.stuck} of {len(p.point.trained)}"),
        "num_at_chance",
        lambda p: (p.stuck,),
    )
    seeds: list[Column[Place]] = [
        column(
            Heading("median", group=group),
            lambda p: p.point,
            lambda point: Cell(percent(point.median) if len(point.values) > 1 else ABSENT),
            "median",
            lambda point: (point.median,),
        ),
        column(
            Heading("over seeds", group=group),
            lambda p: (min(p.point.values), max(p.point.values), len(p.point.values) > 1),
            lambda ends: Cell(between(*ends[:2]) if ends[2] else ABSENT),
            "seed_min seed_max",
            lambda ends: ends,
        ),
        field("seed_sd", lambda p: p.point.spread),
        whole("seeds", lambda p: len(p.point.values), "num_seeds", group),
        at_chance if stuck else at_chance.hidden,
        size("n", lambda p: p, SIZE, group),
    ]
    from_standard: Column[Place] = column(
        Heading("standard − control", group=group),
        lambda p: p.gap,
        _gap_cell,
        "standard_minus_control difference_low difference_high difference_min difference_max",
        lambda gap: (gap.mean, *gap.interval, gap.low, gap.high) if gap else (None,) * 5,
    )
    if control == STANDARD:
        return [accuracies, *seeds, from_standard.hidden]
    return [accuracies, *(one.hidden for one in seeds), from_standard]


def _rate(curve: Curve) -> str:
    return f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""


def _gap_cell(gap: Difference | None) -> Cell:
    """With its interval, or else its lowest and highest seed."""
    if gap is None:
        return Cell(ABSENT)
    if gap.interval[0] is not None:
        return Cell(points(gap.mean), points_between(*gap.interval))
    seeds = points_between(gap.low, gap.high) if gap.num_seeds > 1 else "one seed"
    return Cell(points(gap.mean), seeds)


@dataclass(frozen=True)
class Rivals:
    """A model beside what it has to be better than."""

    one: Summary
    other: Summary

    @property
    def sizes(self) -> list[int]:
        """The points with a weight that both have."""
        return [size for size in self.one.sizes if size in self.other.sizes]


def curve_against_table(results: Results) -> Table | None:
    """Each model against its architecture with random weights and against the baselines."""
    found = summaries(results)
    columns: list[Column[Rivals]] = [
        text("probe", lambda p: p.one.curve.probe, "probe split", lambda p: p.one.curve.where),
        field("mode", lambda p: p.one.curve.mode),
        text("model", lambda p: p.one.curve.model, "model", lambda p: p.one.curve.mode),
        text("against", lambda p: p.other.curve.model, "against"),
        text("points", lambda p: points_text(p.sizes)),
        field("points", lambda p: " ".join(map(str, p.sizes))),
        *_compared("zero_shot", "zero-shot"),
        *_compared("weighted_sum", "WS"),
        *_compared("maximum", "MAX"),
    ]
    return Declared(
        "curve_against",
        "What pre-training gave",
        "Each model beside the same architecture with random weights, trained the same way, and "
        "beside the baselines over word vectors. Differences are in percentage points over the "
        "points that both have, with 95% intervals that pair items and seeds: one that holds 0 "
        "shows nothing that pre-training gave. Other vectors, other baselines: their names are in "
        "brackets.",
        columns,
    ).of([Rivals(s, other) for s in found if s.role == "model" for other in rivals(s, found)])


def _compared(score: Score, group: str) -> list[Column[Rivals]]:
    """A score of both, where it is over the same points, and the difference."""

    def alike(pair: Rivals) -> bool:
        return score == "zero_shot" or pair.one.sizes == pair.other.sizes

    return [
        accuracy("model %", lambda p: getattr(p.one, score) if alike(p) else None, "", group),
        accuracy("other %", lambda p: getattr(p.other, score) if alike(p) else None, "", group),
        gap(
            "difference",
            lambda p: difference(score, p.one, p.other),
            f"{score}_difference {score}_low {score}_high",
            group,
        ),
    ]
