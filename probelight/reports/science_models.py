"""Table 7 of Richardson & Sabharwal 2020, groups 3 and 4: science models, theirs and ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from probelight.reports import table as tables
from probelight.reports.estimates import Estimate, named
from probelight.reports.inoculation.doses import Dose, best_dose, doses
from probelight.reports.inoculation.runs import (
    ON_REPORTED,
    SELECTION,
    Series,
    inoculations,
    series_of,
)
from probelight.reports.published import difference, lies, published, published_probes
from probelight.reports.released import PAPER_DOSE, on_paper_task, on_released, paper_model
from probelight.reports.table import Cell, Column, Table, accuracy, gap, number, text, whole
from probelight.reports.words import NOT_INTERPRETABLE, points
from probelight.results.load import Results
from probelight.results.row import Row

PROBE = "probe_accuracy"
ZERO_SHOT, INOCULATED = "science_zero_shot", "inoculated"
GROUPS = {
    "random": "guessing",
    ZERO_SHOT: "before (k = 0)",
    INOCULATED: "inoculated",
    "human": "people",
}
SPLITS = {name: f"{name}_accuracy {name}_ci_low {name}_ci_high" for name in ("dev", "test")}
CHANGE = "original_task_change change_ci_low change_ci_high"
PEOPLE = "ours_minus_people people_ci_low people_ci_high"
CSV = (
    f"probe group model source dose {' '.join(SPLITS.values())} {CHANGE} cost_interpretable "
    f"ours_minus_paper paper_lies change_minus_paper {PEOPLE}"
)
MINUS_PAPER = "ours − paper, points"


def science_models_table(results: Results) -> Table | None:
    """Make the table of groups 3 and 4 for each probe of the paper that there are results of."""
    ours = science_rows(results)
    probes = list(dict.fromkeys(row["probe"] for row in ours))
    groups = list(GROUPS)
    rows = [*_theirs(probes), *ours]
    rows.sort(key=lambda row: (probes.index(row["probe"]), groups.index(row["group"])))

    def change(row: Any) -> Cell | str:
        shown = gap("", CHANGE).show(row)
        return shown if row.cost_interpretable is not False else NOT_INTERPRETABLE

    return tables.table(
        "science_models",
        "Richardson & Sabharwal 2020, table 7: science models before and after inoculation",
        "Rows marked as the paper's are published numbers, the others ours with their 95% "
        "intervals (means over seeds). Dev is silver and, for hypernymy, hyponymy and "
        "dictionary_qa, test was filtered by people: the two columns cannot be compared. "
        "Inoculated: M*_k at the k with the best average on the selection items; the paper's "
        "after 3,000 examples. Original task: accuracy after minus before, negative = lost. Other "
        "models, other original tasks or other vectors are set side by side, not compared. What "
        "the paper printed is taken as exact, but for people on definitions and synonymy: they "
        "were asked 500 questions, so the difference has an interval, of two independent "
        "proportions (Newcombe 1998)." + _left_out(results),
        [dict.fromkeys([*CSV.split(), "num_seeds", "_paper", "_runs"]) | row for row in rows],
        [
            text("probe", "probe"),
            Column("", lambda row: GROUPS[row.group], "left"),
            text("model", "model", "_paper"),
            whole("k", "dose"),
            *(accuracy(split, names) for split, names in SPLITS.items()),
            Column("original task, points", change),
            number("accuracy", "ours_minus_paper", points, group=MINUS_PAPER),
            text("the paper's lies", "paper_lies", group=MINUS_PAPER),
            number("original task", "change_minus_paper", points, group=MINUS_PAPER),
            gap("ours − people, points", PEOPLE),
        ],
        csv=CSV,
    )


def _theirs(probes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the paper's rows of some probes."""
    rows = _published()
    place = ["group", "model", "name", "probe"]
    for (group, _, name, probe), own in rows[rows.probe.isin(probes)].groupby(place, sort=False):
        row = {"probe": probe, "group": group, "model": name, "source": "paper", "_paper": "paper"}
        dose = PAPER_DOSE if group == INOCULATED else None
        yield {**row, "dose": dose, **dict(zip(own.column, own.value, strict=True))}


@lru_cache(maxsize=1)
def _published() -> pd.DataFrame:
    """Return the numbers of groups 3 and 4, of guessing and of people, with `column` in ours."""
    rows = published().query("paper == 'Richardson & Sabharwal 2020' and table == 7")
    group = rows.group.where(rows.model != "random", "random")
    rows = rows.assign(group=group, column=(rows.split + "_" + rows.metric).str.strip("_"))
    return rows[group.isin(GROUPS)]


def _printed(probe: str, group: str, split: str, checkpoint: str | None = None) -> Any | None:
    """Return the published row of a model, None where there is none; `split` may be empty."""
    rows = _published()
    of_model = rows.hub_id.str.endswith(f"/{checkpoint}" if checkpoint else "")
    is_it = (rows.probe == probe) & (rows.group == group) & (rows.split == split) & of_model
    return next(rows[is_it].itertuples(), None)


@lru_cache(maxsize=2)
def science_rows(results: Results) -> list[dict[str, Any]]:
    """Return before and after of each line that reports on the dev or test split of the paper."""
    lines = doses(inoculations(results))
    runs = [*results.of("before"), *results.of("inoculation")]
    found = []
    for series, start in _starts(results).items():
        split = series.report_split
        own = [run for run in runs if series_of(results, run) == series]
        if split in SPLITS and all(on_released(run, split) for run in own):
            line = lines.get(series, [])
            before = _compared(series, ZERO_SHOT, Estimate.of(start), line)
            run = start.run_dir.rpartition("/")[2]
            found.append({**before, "cost_interpretable": True, "_runs": run})
            found += [_inoculated(best_dose(line))] if line else []
    return found


def _starts(results: Results) -> dict[Series, Row]:
    """Return what each line on a probe of the paper scored before any inoculation (k = 0).

    A sweep measures it once for all doses, in a run `before`; a run of its own by itself.
    """
    found: dict[Series, Row] = {}
    for run in results.of("before"):
        for row in run.rows:
            if (row.metric, row.subset) == (PROBE, None) and row.split != SELECTION:
                found.setdefault(series_of(results, run), row)
    for cell in inoculations(results):
        if before := cell.measured.get(f"{PROBE}_before"):
            found.setdefault(cell.series, before)
    probes = published_probes()
    return {s: row for s, row in sorted(found.items()) if s.probe in probes and not s.control}


def _inoculated(dose: Dose) -> dict[str, Any]:
    """Return the row of a dose, with what the original task gained."""
    value = dose.estimate(PROBE)
    assert value is not None  # each run that came to its report has it
    row = _compared(dose.series, INOCULATED, value, [dose])
    runs = tuple(cell.run.key for cell in dose.runs)
    row |= {"dose": dose.dose, "cost_interpretable": dose.interpretable, "_runs": runs}
    row["num_seeds"] = len(runs)
    if cost := dose.estimate("inoculation_cost"):
        row |= named(CHANGE, cost.negative)
        theirs = _printed(dose.series.probe, INOCULATED, "", row.get("_model", "none of them"))
        if theirs and dose.interpretable:
            row["change_minus_paper"] = -cost.value - theirs.value
    return row


def _compared(series: Series, group: str, value: Estimate, line: Sequence[Dose]) -> dict[str, Any]:
    """Return a row of ours, compared where the runs of its line recorded that they are alike."""
    split, cells = series.report_split, [cell for dose in line for cell in dose.runs]
    row: dict[str, Any] = {"probe": series.probe, "group": group}
    row |= {"model": _name(series, line), "source": "ours", **named(SPLITS[split], value)}
    if not (cells and all(cell.whole_split for cell in cells)):
        return row
    if people := _printed(series.probe, "human", split):
        row |= named(PEOPLE, difference(value, people.value, people.n))
    models = {paper_model(cell.run) for cell in cells}
    is_dose = group == ZERO_SHOT or line[0].dose == PAPER_DOSE
    model = models.pop() if len(models) == 1 and _on_task(line) and is_dose else None
    if model and (theirs := _printed(series.probe, group, split, model)):
        row["ours_minus_paper"] = difference(value, theirs.value).value
        row |= {"paper_lies": lies(value, theirs.value), "_model": model}
        row |= {"_name": theirs.name, "_split": split}
    return row


def _left_out(results: Results) -> str:
    """Return which lines on a probe of the paper have no place in its two columns."""
    by_split: dict[str, list[str]] = {}
    lines = doses(inoculations(results))
    for series in _starts(results):
        if series.report_split not in SPLITS:
            name = f"{series.probe} ({_name(series, lines.get(series, []))})"
            by_split.setdefault(series.report_split, []).append(name)
    return "".join(
        f" Left out, because reported on {split or 'a held-out part of train'}, which is neither "
        f"dev nor test: {', '.join(dict.fromkeys(names))}."
        for split, names in by_split.items()
    )


def _name(series: Series, line: Sequence[Dose]) -> str:
    """Return the model, and the original task where it is not the paper's."""
    task = "" if _on_task(line) else series.original_task
    about = f", originally {task}" if task else ""
    chosen = ", chosen on the reported items" if series.selection == ON_REPORTED else ""
    setup = f", setup {series.setup}" if series.setup else ""
    return f"{series.model}{about}{chosen}{setup}"


def _on_task(line: Sequence[Dose]) -> bool:
    """Whether the original task of every run has the paper's parts."""
    cells = [cell for dose in line for cell in dose.runs]
    return bool(cells) and all(on_paper_task(cell.run) for cell in cells)
