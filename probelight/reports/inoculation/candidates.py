"""Every checkpoint that M*_k was chosen from, with its scores on the selection items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from probelight.metrics.aggregate import aggregate, pareto_front
from probelight.reports.inoculation.columns import what
from probelight.reports.inoculation.runs import Series, series_of, trajectory, with_controls
from probelight.reports.kit.columns import attributes, fields, number, share, text, whole
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import rate
from probelight.results.load import Results, Run


class Choice(NamedTuple):
    """What one M*_k is chosen for: the checkpoints compared share it."""

    series: Series
    dose: int
    seed: int


@dataclass(frozen=True)
class Candidate:
    """One checkpoint: a setting after an epoch.

    Attributes:
        probe: Probe accuracy on the selection items.
        original: Original-task accuracy on the selection items.
        on_front: No other checkpoint of its choice beats it on both.
        chosen: It is M*_k.
    """

    choice: Choice
    extra: str
    learning_rate: float
    epoch: int
    probe: float
    original: float
    on_front: bool = False
    chosen: bool = False

    @property
    def average(self) -> float:
        """What decides."""
        return aggregate(self.probe, self.original)


def candidates(results: Results) -> dict[Choice, list[Candidate]]:
    """The checkpoints of each choice, with the Pareto front and M*_k marked."""
    found: dict[tuple[Choice, str, float, int], Candidate] = {}
    # What a sweep chose repeats the scores of its setting.
    for run in [*results.of("inoculation_cell"), *results.of("inoculation")]:
        for one in _of_run(run, series_of(results, run)):
            found.setdefault((one.choice, one.extra, one.learning_rate, one.epoch), one)
    chosen = {
        (Choice(one.series, one.dose, one.seed or 0), one.extra, one.learning_rate, one.epoch)
        for one in with_controls(results)
        if one.chosen
    }
    marked = (replace(found[key], chosen=key in chosen) for key in sorted(found))
    by_choice = groupby(marked, attrgetter("choice"))
    return {choice: _with_front(list(own)) for choice, own in by_choice}


def several_settings(own: Sequence[Candidate]) -> bool:
    """Whether there was more to choose from than the epochs of one setting."""
    return len({(one.extra, one.learning_rate) for one in own}) > 1


def pareto_table(results: Results) -> Table | None:
    """The front of each choice between settings; the csv file has all checkpoints."""
    found = {c: own for c, own in candidates(results).items() if several_settings(own)}
    columns: list[Column[Candidate]] = [
        what(lambda one: one.choice.series),
        fields(lambda one: one.choice.series._asdict()),
        whole("k", lambda one: one.choice.dose, "dose"),
        number("seed", lambda one: one.choice.seed, str, "seed"),
        text(
            "setting",
            lambda one: f"rate {rate(one.learning_rate)}",
            small=lambda one: f"extra {one.extra}",
        ),
        attributes("extra learning_rate"),
        whole("epoch", lambda one: one.epoch, "epoch"),
        share("probe %", lambda one: one.probe, "probe_accuracy"),
        share("original task %", lambda one: one.original, "original_accuracy"),
        share("average %", lambda one: one.average, "aggregate"),
        text("", lambda one: "M*" if one.chosen else ""),
        attributes("on_front chosen"),
        whole("checkpoints", lambda one: len(found[one.choice])),
    ]
    every = [one for own in found.values() for one in own]
    front = [
        one
        for own in found.values()
        for one in sorted(own, key=lambda one: (one.original, one.probe))
        if one.on_front
    ]
    return Declared(
        "pareto",
        "The Pareto front",
        "The checkpoints that no other one of the same k and seed beats on both tasks, on the "
        "selection items, by rising score on the original task. M*_k has the best average of the "
        "two; the last column says how many checkpoints (settings and epochs) there were. The csv "
        "file holds all of them.",
        columns,
    ).of(every, front)


def _of_run(run: Run, series: Series) -> Iterable[Candidate]:
    settings = dict.fromkeys(
        (r.dose, r.seed, r.extra, r.learning_rate)
        for r in run.rows
        if r.dose is not None and r.learning_rate is not None
    )
    for setting in settings:
        dose, seed, extra, learning_rate = setting
        assert dose is not None
        assert learning_rate is not None
        scores = trajectory(
            [r for r in run.rows if (r.dose, r.seed, r.extra, r.learning_rate) == setting]
        )
        on_original = scores.get("original_accuracy", {})
        for epoch, on_probe in scores.get("probe_accuracy", {}).items():
            if epoch > 0 and epoch in on_original:  # 0 is the model before inoculation
                choice = Choice(series, dose, seed or 0)
                yield Candidate(
                    choice, extra or "none", learning_rate, epoch, on_probe, on_original[epoch]
                )


def _with_front(own: list[Candidate]) -> list[Candidate]:
    front = set(pareto_front([(one.original, one.probe) for one in own]))
    return [replace(one, on_front=place in front) for place, one in enumerate(own)]
