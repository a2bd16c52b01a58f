"""Learning curves: accuracy against the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import MODES, Curve, Point
from probelight.reports.estimates import chance_levels
from probelight.reports.released import on_released, paper_model
from probelight.results.details import CurveDetails
from probelight.results.hits import joined
from probelight.results.load import Results, Run
from probelight.results.row import Row

NO_LANGUAGE = "no_language"
PERTURBED = "perturbed_language"
TRAIN_ACCURACY = "train_accuracy"
_Where = tuple[str, str, str, str, str, bool]  # probe, model, mode, split, train rows, first stage
_Found = tuple[Row, Run]


@lru_cache(maxsize=2)
def curves(results: Results) -> tuple[Curve, ...]:
    """All learning curves, by probe, model and mode.

    A folder can hold several commands: runs with other train rows, or with a first stage, are other
    curves.
    """
    by_place: dict[_Where, list[_Found]] = {}
    for run in results.of("curve"):
        origin = origin_of(run)
        for row in filter(_is_point, run.rows):
            place = (row.probe, row.model, row.mode, row.split, *origin)
            by_place.setdefault(place, []).append((row, run))
    by_place = _with_untrained(by_place)
    chances = chance_levels(results)
    found = []
    for place, own in sorted(by_place.items(), key=lambda item: item[0]):
        probe, model, mode, split, train, first_stage = place
        # The point without training has no learning rate: it belongs to the curve of each.
        known = {row.learning_rate for row, _ in own if row.learning_rate is not None}
        rates: list[float | None] = [*sorted(known)] or [None]
        for rate in rates:
            line = [row for row, _ in own if row.learning_rate in (rate, None)]
            parts = list(
                {run.path: run for row, run in own if row.learning_rate in (rate, None)}.values()
            )
            found.append(
                Curve(
                    model=model,
                    probe=probe,
                    mode=mode,
                    split=split,
                    learning_rate=rate,
                    chance=chances.get(probe),
                    points=_by_control(line),
                    hits=joined([run.hits for run in parts if run.hits is not None]),
                    majority=_majority(parts),
                    train=train,
                    whole=all(map(_is_whole, parts)),
                    released=all(on_released(run, split) for run in parts),
                    first_stage=first_stage,
                    paper_model=_paper_model(parts),
                    scored_chance=_scored_chance(parts, probe, chances.get(probe)),
                    role=line[0].role,
                    control_of=parts[0].source.control_of,
                )
            )
    return _told_apart(found)


def _scored_chance(parts: Sequence[Run], probe: str, floor: float | None) -> float | None:
    rows = (row for run in parts for row in run.rows)
    levels = (r.value for r in rows if (r.metric, r.probe, r.subset) == ("chance", probe, None))
    return next(levels, floor)


def _with_untrained(found: Mapping[_Where, list[_Found]]) -> dict[_Where, list[_Found]]:
    """The same, with what a scorer said without training as N = 0 of each curve of its model.

    Models whose heads do not begin with what they themselves say have such a point, in the
    scorer's own mode; where nothing was trained it stays alone.
    """
    whole = dict(found)
    for place, own in found.items():
        probe, model, mode, *origin = place
        trained = [p for p in found if p[2] in MODES and p == (probe, model, p[2], *origin)]
        if mode not in MODES and trained:
            del whole[place]
            whole |= {other: [*own, *whole[other]] for other in trained}
    return whole


def origin_of(run: Run) -> tuple[str, bool]:
    """How the train rows of a run were got, and whether other questions were trained on first."""
    facts = run.detail(CurveDetails) or CurveDetails()
    return facts.train, facts.first_stage


def _paper_model(runs: Sequence[Run]) -> str | None:
    names = {paper_model(run) for run in runs}
    return names.pop() if len(names) == 1 else None


def _told_apart(found: Sequence[Curve]) -> tuple[Curve, ...]:
    names = [(c.probe, c.model, c.mode, c.split, c.learning_rate) for c in found]
    repeats = Counter(names)
    return tuple(
        replace(curve, told_apart=_origin_text(curve)) if repeats[name] > 1 else curve
        for curve, name in zip(found, names, strict=True)
    )


def _origin_text(curve: Curve) -> str:
    stage = "after a first stage" if curve.first_stage else ""
    return ", ".join(filter(None, (curve.train, stage)))


def _is_point(row: Row) -> bool:
    """Whether a row is a point of a curve, or the training accuracy that goes with one."""
    measured = row.metric == "accuracy" and row.split != "train"
    return (
        (measured or row.metric == TRAIN_ACCURACY)
        and row.num_train is not None
        and not (row.subset or row.perturbation)
    )


def _is_whole(run: Run) -> bool:
    """Whether the measured rows are all of one of the files; so it is where a run does not say."""
    sizes = [file.num_items for file in run.data]
    return not sizes or run.counts.get("evaluation") in (None, *sizes)


def _majority(runs: Sequence[Run]) -> float | None:
    rows = (row for run in runs for row in run.rows)
    return next((row.value for row in rows if row.metric == "majority_accuracy"), None)


def _by_control(rows: list[Row]) -> dict[str, list[Point]]:
    controls = sorted({row.control or STANDARD for row in rows}, key=lambda c: (c != STANDARD, c))
    return {c: _points([row for row in rows if (row.control or STANDARD) == c]) for c in controls}


def _points(rows: list[Row]) -> list[Point]:
    by_size: dict[int, tuple[dict[int | None, Row], dict[int | None, Row]]] = {}
    for row in sorted(rows, key=lambda r: (r.num_train or 0, -1 if r.seed is None else r.seed)):
        measured, trained = by_size.setdefault(row.num_train or 0, ({}, {}))
        (trained if row.metric == TRAIN_ACCURACY else measured).setdefault(row.seed, row)
    return [Point(size, *both) for size, both in by_size.items() if both[0]]
