"""What inoculation gave and cost, gathered from the rows of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter

from probelight.metrics.aggregate import Checkpoint, best_checkpoint
from probelight.reports.inoculation.series import Series, facts_of, how_chosen, series_of
from probelight.reports.kit.paper_identity import on_paper_task, paper_model
from probelight.reports.zero_shot.facts import against
from probelight.results.hits import Side
from probelight.results.load import Results, Run
from probelight.results.row import Row, Subset

SELECTION = "selection"
BY_DIFFICULTY = ("difficulty_accuracy_before", "difficulty_accuracy")


@dataclass(frozen=True)
class Inoculation:
    """One run at one dose and one setting: M*_k of a sweep, or a run of its own.

    Attributes:
        run: The run that measured it.
        epoch: Epoch of the chosen checkpoint, from 1.
        measured: Rows of the report split by metric, for the whole sets.
        parts: The same for parts of the sets: data sets of the original task, or probe items
            that have no relative among the training items.
        difficulties: Probe accuracy by metric of `BY_DIFFICULTY`, by hops and distractors.
        trajectory: Selection scores by metric and epoch.
        interpretable: False where the original task was at chance before inoculation.
        chosen: Best average on the selection split among the settings of its dose and seed.
        selection: How the selection items were got; "paper" if they are the reported ones.
        report_split: Split of the probe reported on, where the run recorded it.
        whole_split: Whether all items of that split were.
        num_settings: How many settings a sweep chose this one from; 1 for a run of its own.
        setup: See `Series`.
        control: See `Series`.
        paper_model: The paper's name of the checkpoint that the run recorded; None for another.
        paper_task: Whether its original task has the parts of the paper's.
        sides: What each reported item counted; empty where the run did not record it.
    """

    run: Run
    key: str
    model: str
    probe: str
    original_task: str
    dose: int
    extra: str
    learning_rate: float | None
    seed: int | None
    epoch: int | None
    measured: Mapping[str, Row]
    parts: Mapping[Subset, Mapping[str, Row]]
    difficulties: Mapping[str, Mapping[Subset, Row]]
    trajectory: Mapping[str, Mapping[int, float]]
    interpretable: bool
    chosen: bool = True
    selection: str = ""
    report_split: str = ""
    whole_split: bool = False
    num_settings: int = 1
    setup: str = ""
    control: str = ""
    paper_model: str | None = None
    paper_task: bool = False
    sides: Mapping[str, Side] = field(default_factory=dict)

    @property
    def series(self) -> Series:
        """The line of an inoculation plot that it belongs to."""
        names = (self.model, self.probe, self.original_task, self.selection, self.report_split)
        return Series(*names, self.setup, self.control)

    def value(self, metric: str) -> float | None:
        """A number of the report split, None where it was not measured."""
        row = self.measured.get(metric)
        return None if row is None else row.value

    def floor(self, task: str) -> float | None:
        """Chance of "probe" or "original" by the real choices, which a score is held against."""
        return next(filter(None, map(self.value, (f"floor_{task}", f"chance_{task}"))), None)

    def selected_on(self, metric: str) -> float | None:
        """A selection score at the chosen epoch."""
        return None if self.epoch is None else self.trajectory.get(metric, {}).get(self.epoch)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The chosen checkpoint as a candidate of M*_k; None without selection scores."""
        probe, original = map(self.selected_on, ("probe_accuracy", "original_accuracy"))
        if self.epoch is None or probe is None or original is None:
            return None
        return Checkpoint(probe, original, self.learning_rate or 0.0, self.epoch)


def inoculations(results: Results) -> list[Inoculation]:
    """The runs whose items were given as they are, by what they compare, dose, seed and setting."""
    return [cell for cell in with_controls(results) if not cell.control]


@lru_cache(maxsize=2)
def with_controls(results: Results) -> tuple[Inoculation, ...]:
    """All inoculation runs, those under a control too, each behind what it is a control of."""
    found = [cell for run in results.of("inoculation") for cell in _cells(results, run)]
    return tuple(sorted(_with_choice(found), key=_order))


def _cells(results: Results, run: Run) -> Iterable[Inoculation]:
    def setting(row: Row) -> tuple[str, int | None, str, float | None, int | None]:
        return (row.probe, row.dose, row.extra, row.learning_rate, row.seed)

    facts = facts_of(run)
    selection, report_split = how_chosen(run)
    for probe, dose, extra, learning_rate, seed in dict.fromkeys(map(setting, run.rows)):
        own = [r for r in run.rows if setting(r) == (probe, dose, extra, learning_rate, seed)]
        reported = [row for row in own if row.split != SELECTION]
        measured = {row.metric: row for row in reported if row.subset is None}
        after = measured.get("probe_accuracy")
        if dose is None or after is None:
            continue  # a run that never came to its report
        yield Inoculation(
            run=run,
            key=run.key,
            model=after.model,
            probe=probe,
            original_task=facts.original_task,
            dose=dose,
            extra=extra or "none",
            learning_rate=learning_rate,
            seed=seed,
            epoch=after.epoch,
            measured=measured,
            parts=_parts(reported),
            difficulties=_difficulties(reported),
            trajectory=trajectory(own),
            interpretable=_interpretable(facts.cost_interpretable, measured),
            selection=selection,
            report_split=report_split,
            whole_split=facts.report_items is None,
            num_settings=max(1, len(facts.candidates)),
            setup=series_of(results, run).setup,
            control=series_of(results, run).control,
            paper_model=paper_model(run),
            paper_task=on_paper_task(run),
            sides=run.sides,
        )


def _parts(rows: Sequence[Row]) -> dict[Subset, dict[str, Row]]:
    found: dict[Subset, dict[str, Row]] = {}
    for row in rows:
        if row.subset and row.subset.kind != "difficulty":
            found.setdefault(row.subset, {})[row.metric] = row
    return found


def _difficulties(rows: Sequence[Row]) -> dict[str, dict[Subset, Row]]:
    found: dict[str, dict[Subset, Row]] = {metric: {} for metric in BY_DIFFICULTY}
    for row in rows:
        if row.metric in found and row.subset and row.subset.kind == "difficulty":
            found[row.metric][row.subset] = row
    return found


def trajectory(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """Selection scores by metric and epoch."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.split == SELECTION and row.epoch is not None and row.subset is None:
            found.setdefault(row.metric, {})[row.epoch] = row.value
    return {metric: dict(sorted(found[metric].items())) for metric in found}


def _interpretable(recorded: bool | None, measured: Mapping[str, Row]) -> bool:
    if recorded is not None:
        return recorded
    before = measured.get("original_accuracy_before")
    chance = measured.get("floor_original") or measured.get("chance_original")
    level = None if chance is None else chance.value
    return before is None or against(before, level) in ("above", "unknown")


def _with_choice(cells: list[Inoculation]) -> list[Inoculation]:
    """Marks the best setting of each dose and seed by its scores on the selection split.

    Cells without selection scores are not compared: they stay chosen.
    """
    choices: dict[tuple[Series, int, int | None], list[tuple[Inoculation, Checkpoint]]] = {}
    for cell in sorted(cells, key=lambda cell: cell.key):
        if (checkpoint := cell.checkpoint) is not None:
            choice = (cell.series, cell.dose, cell.seed)
            choices.setdefault(choice, []).append((cell, checkpoint))
    best = {c: best_checkpoint(own, itemgetter(1))[0] for c, own in choices.items()}
    return [
        replace(cell, chosen=best.get((cell.series, cell.dose, cell.seed), cell) is cell)
        for cell in cells
    ]


def _order(cell: Inoculation) -> tuple[object, ...]:
    series, seed = cell.series, -1 if cell.seed is None else cell.seed
    what = (series.probe, series.original_task, series[:-1], series.control)
    return (*what, cell.dose, seed, cell.extra, cell.learning_rate or 0.0, cell.key)
