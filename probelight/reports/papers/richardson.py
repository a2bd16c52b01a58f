"""The cluster table of Richardson & Sabharwal 2020, and what of it these results hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from probelight.reports.inoculation.doses import Dose, best_dose, doses
from probelight.reports.inoculation.runs import inoculations
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.published_files import measured_share, read_rows
from probelight.reports.papers.beside import Beside, Ours, Printed, together
from probelight.reports.papers.science_rows import PAPER_DOSE, PAPER_MODELS, PAPER_NAMES
from probelight.reports.released import on_paper_task, on_released, paper_model
from probelight.results.load import Results

_SPLIT = "dev"  # of table 8
_NAMES = {"choice_only": "Choice-only, the best", "esim": PAPER_NAMES["esim_glove"]} | PAPER_NAMES
STRICT, DELTA = "strict, %", "minus accuracy, points"


def cluster_rows(results: Results) -> Sequence[Beside]:
    """Table 8 with the numbers of the results beside it, of the probes that they have."""
    lines = doses(inoculations(results)).values()
    ours = [one for line in lines for one in _ours(best_dose(line))]
    rows = []
    for probe in dict.fromkeys(row["probe"] for row in _published()):
        own = [row for row in _published() if row["probe"] == probe]
        numbers = ((STRICT, "strict_cluster_accuracy"), (DELTA, "delta"))
        printed = [
            Printed(f"{probe}, {name}", _NAMES[row["model"]], row[key])
            for row in own
            for name, key in numbers
        ]
        names = {number.name for number in printed}
        rows += together(printed, [one for one in ours if one.name in names])
    return rows


@lru_cache(maxsize=1)
def _published() -> Sequence[dict[str, Any]]:
    numbers = dict.fromkeys(("strict_cluster_accuracy", "delta"), measured_share)
    return read_rows("richardson2020_clusters.csv", **numbers)


def _ours(dose: Dose) -> Iterator[Ours]:
    """What the runs of a dose measured on all questions of the dev set."""
    series, runs = dose.series, dose.runs
    alike = series.report_split == _SPLIT and all(
        run.whole_split and on_released(run.run, _SPLIT) for run in runs
    )
    strict, single = dose.estimate("strict_cluster_accuracy"), dose.mean("probe_accuracy")
    if not alike or strict is None or single is None:
        return
    same = dose.dose == PAPER_DOSE and all(on_paper_task(run.run) for run in runs)
    models = {paper_model(run.run) for run in runs}
    known = PAPER_MODELS.get(models.pop() or "") if same and len(models) == 1 else None
    model = _NAMES[known] if known else None
    rows = tuple(run.measured["strict_cluster_accuracy"] for run in runs)
    about = f"k = {dose.dose:,}"
    number = rows[0].num_items  # of concepts, the same for every seed
    yield Ours(f"{series.probe}, {STRICT}", series.model, model, strict, number, about, rows)
    gap = Estimate(strict.value - single)
    yield Ours(f"{series.probe}, {DELTA}", series.model, model, gap, None, about, rows)
