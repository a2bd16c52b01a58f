"""The rows of table 7 of Richardson & Sabharwal 2020, groups 3 and 4: the paper's, and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from probelight.reports.inoculation.doses import Dose, best_dose, doses, starts
from probelight.reports.inoculation.runs import ON_REPORTED, Series, inoculations, series_of
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.published import PublishedProbe, published_probes
from probelight.reports.papers.beside import Beside, Ours, Printed
from probelight.reports.released import on_paper_task, on_released, paper_model
from probelight.results.load import Results
from probelight.results.row import Row

RANDOM, ZERO_SHOT, INOCULATED, HUMAN = "random", "science_zero_shot", "inoculated", "human"
GROUPS = {
    RANDOM: "guessing",
    ZERO_SHOT: "before (k = 0)",
    INOCULATED: "inoculated",
    HUMAN: "people",
}
PAPER_NAMES = {
    "esim_glove": "ESIM, GloVe",
    "esim_elmo": "ESIM, ELMo",
    "bert": "BERT (large, whole-word masking)",
    "roberta": "RoBERTa (large)",
    "human": "estimate",
}
# Only the same checkpoints on the same original task are compared in numbers.
PAPER_MODELS = {"bert-large-uncased-whole-word-masking": "bert", "roberta-large": "roberta"}
PAPER_DOSE = 3000  # group 4 is after 3,000 examples
SPLITS = ("dev", "test")
PEOPLE_ASKED = {"definitions": 500, "synonymy": 500}  # questions (section 3.1.3)


@dataclass(frozen=True)
class Entry:
    """One row: a model before or after inoculation, the paper's or ours.

    Attributes:
        group: A name of `GROUPS`.
        values: Accuracy by split of the probe, dev or test; ours with intervals.
        change: What the original task gained; negative is a cost.
        compared: Ours and the paper's accuracy on the split, where the two can be compared.
        with_people: Ours and what people scored on the same test set.
        paper_change: The paper's change of the original task, where the two can be compared.
        rows: What ours are made of, so that they lead to their runs.
    """

    probe: str
    group: str
    model: str
    ours: bool
    values: Mapping[str, Estimate]
    dose: int | None = None
    change: Estimate | None = None
    interpretable: bool = True
    compared: Beside | None = None
    with_people: Beside | None = None
    paper_change: float | None = None
    rows: tuple[Row, ...] = ()

    @property
    def change_gap(self) -> Estimate | None:
        """What the original task gained here minus what it gained in the paper."""
        if self.change is None or self.paper_change is None or not self.interpretable:
            return None
        return Estimate(self.change.value - self.paper_change)


def left_out(results: Results) -> str:
    """Says which lines on a probe of the paper have no place in its two columns."""
    by_split: dict[str, list[str]] = {}
    lines = doses(inoculations(results))
    for series, rows in starts(results).items():
        if _is_known(series, rows) and series.report_split not in SPLITS:
            name = f"{series.probe} ({_name(series, lines.get(series, []))})"
            by_split.setdefault(series.report_split, []).append(name)
    return "".join(
        f" Left out, because reported on {split or 'a held-out part of train'}, which is neither "
        f"dev nor test: {', '.join(dict.fromkeys(names))}."
        for split, names in by_split.items()
    )


def _is_known(series: Series, rows: Mapping[str, Row]) -> bool:
    known = {published.probe for published in published_probes()}
    return series.probe in known and "probe_accuracy" in rows


def _shown(published: PublishedProbe, probes: Sequence[str]) -> bool:
    group = published.group if published.model != RANDOM else RANDOM
    return published.probe in probes and group in GROUPS


def theirs(probes: Sequence[str]) -> list[Entry]:
    """The paper's rows of some probes, as its table has them."""
    return [_theirs(published) for published in published_probes() if _shown(published, probes)]


def _theirs(published: PublishedProbe) -> Entry:
    change = published.original_task_change
    accuracies = {"dev": published.dev_accuracy, "test": published.test_accuracy}
    return Entry(
        probe=published.probe,
        group=RANDOM if published.model == RANDOM else published.group,
        model=PAPER_NAMES.get(published.model, published.model),
        ours=False,
        values={split: Estimate(v) for split, v in accuracies.items() if v is not None},
        dose=PAPER_DOSE if published.group == INOCULATED else None,
        change=None if change is None else Estimate(change),
    )


def _on_released(results: Results, series: Series) -> bool:
    """Whether all runs of a line reported on the file that the paper released."""
    runs = (*results.of("before"), *results.of("inoculation"))
    own = [run for run in runs if series_of(results, run) == series]
    return all(on_released(run, series.report_split) for run in own)


@lru_cache(maxsize=2)
def ours(results: Results) -> tuple[Entry, ...]:
    """Before and after of each line that reports on the dev or test split of a paper's probe."""
    lines = doses(inoculations(results))
    entries = []
    for series, rows in starts(results).items():
        placed = _is_known(series, rows) and series.report_split in SPLITS
        if not (placed and _on_released(results, series)):
            continue
        row = rows["probe_accuracy"]
        values = {series.report_split: Estimate(row.value, row.ci_low, row.ci_high)}
        line = lines.get(series, [])
        entries.append(replace(_entry(series, ZERO_SHOT, values, line), rows=(row,)))
        if series in lines:
            entries.append(_inoculated(best_dose(lines[series])))
    return tuple(entries)


def _inoculated(dose: Dose) -> Entry:
    series = dose.series
    value, cost = dose.estimate("probe_accuracy"), dose.estimate("inoculation_cost")
    values = {} if value is None else {series.report_split: value}
    entry = _entry(series, INOCULATED, values, [dose])
    return replace(
        entry,
        compared=entry.compared if dose.dose == PAPER_DOSE else None,
        paper_change=entry.paper_change if dose.dose == PAPER_DOSE else None,
        dose=dose.dose,
        change=None if cost is None else cost.negative,
        interpretable=dose.interpretable,
        rows=tuple(row for run in dose.runs for row in run.measured.values()),
    )


def _entry(series: Series, group: str, values: Mapping[str, Estimate], line: list[Dose]) -> Entry:
    """A row of ours, beside the paper's where the runs of its line recorded that they are alike."""
    name, split = _name(series, line), series.report_split
    entry = Entry(series.probe, group, name, True, values)
    runs = [run for dose in line for run in dose.runs]
    if not (runs and values and all(run.whole_split for run in runs)):
        return entry
    number = Ours(split, name, None, values[split])
    if (people := _printed(HUMAN, HUMAN, series.probe, split)) is not None:
        asked = Printed(split, HUMAN, people[0], PEOPLE_ASKED.get(series.probe))
        entry = replace(entry, with_people=Beside(split, asked, number))
    models = {paper_model(run.run) for run in runs}
    model = PAPER_MODELS.get(models.pop() or "") if len(models) == 1 else None
    found = _printed(group, model, series.probe, split) if model else None
    if found is None or not all(on_paper_task(run.run) for run in runs):
        return entry
    compared = Beside(split, Printed(split, model or "", found[0]), number)
    return replace(entry, compared=compared, paper_change=found[1])


def _printed(group: str, model: str, probe: str, split: str) -> tuple[float, float | None] | None:
    """The paper's accuracy on a split and its change of the original task."""
    for row in published_probes():
        value = {"dev": row.dev_accuracy, "test": row.test_accuracy}.get(split)
        if (row.group, row.model, row.probe) == (group, model, probe) and value is not None:
            return value, row.original_task_change
    return None


def _on_paper_task(line: list[Dose]) -> bool:
    """Whether the original task of every run has the paper's parts."""
    runs = [run for dose in line for run in dose.runs]
    return bool(runs) and all(on_paper_task(run.run) for run in runs)


def _name(series: Series, line: list[Dose]) -> str:
    """The model, and the original task where it is not the paper's."""
    task = series.original_task
    about = "" if _on_paper_task(line) or not task else f", originally {task}"
    chosen = ", chosen on the reported items" if series.selection == ON_REPORTED else ""
    setup = f", setup {series.setup}" if series.setup else ""
    return f"{series.model}{about}{chosen}{setup}"
