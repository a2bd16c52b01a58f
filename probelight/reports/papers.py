"""The tables of three papers, with our numbers of the same models and items next to theirs.

`papers.yaml` lists them all. A number of ours is compared where it is of the very model, by its id
on the Hub or a released recording of it, measured on the released items in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.reports import table as tables
from probelight.reports.estimates import Estimate, named
from probelight.reports.published import (
    Place,
    difference,
    lies,
    published,
    published_probes,
)
from probelight.reports.released import (
    PAPER_DOSE,
    hub_model,
    on_paper_task,
    on_released,
    paper_model,
    released_file,
)
from probelight.reports.table import Table, accuracy, gap, share, text, whole
from probelight.reports.words import INTERVAL, count, points, rate, way
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results

TALMOR, RICHARDSON, ETTINGER = "Talmor et al. 2020", "Richardson & Sabharwal 2020", "Ettinger 2020"
OURS = "ours ci_low ci_high"
DIFFERENCE = "difference difference_ci_low difference_ci_high"
CSV = f"model about number {OURS} paper {DIFFERENCE} paper_lies people num_items"


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure of a paper; what its fields are is in `papers.yaml`."""

    __pydantic_config__: ClassVar = STRICT

    paper: str
    place: str
    holds: str
    command: str = ""
    here: str = ""
    probes: tuple[str, ...] = ()
    split: str = ""
    note: str = ""
    people: str = ""

    @property
    def number(self) -> int | None:
        """Number of a table."""
        kind, number = self.place.replace(",", "").split()[:2]
        return int(number) if kind == "table" else None

    @property
    def name(self) -> str:
        """Name of our table with the numbers of both."""
        author, _, year = self.paper.partition(" ")
        place = self.place.replace(",", "").replace(" ", "_")
        return f"paper_{author.lower()}{year[-4:]}_{place}"


@lru_cache(maxsize=1)
def paper_list() -> tuple[PaperTable, ...]:
    """Return every table of the papers, in their order."""
    path = Path(__file__).with_name("papers.yaml")
    return tuple(
        typed(PaperTable, {"paper": paper, **one}, f"{path}: {paper}")
        for paper, of_paper in read_yaml(path).items()
        for one in of_paper
    )


def listed_table(results: Results) -> Table | None:
    """Make the list of the papers' tables; None where the results hold none of them."""
    found = []
    for one in paper_list():
        rows = compared(results).get(one)
        printed = None if rows is None else rows[rows.paper.notna()]
        held = None if printed is None else f"{printed.ours.notna().sum()} of {len(printed)}"
        here = one.name if rows is not None else one.here if _is_here(one, results) else ""
        found.append({**vars(one), "held": held, "shown": here or None})
    frame = tables.framed(found)
    papers = {*frame[frame.shown.notna()].paper}
    return tables.table(
        "papers",
        "The papers' tables, and which of them these results hold",
        "In the tables below a number of ours is in the row of the printed one where it is of the "
        "very model (by its id on the Hub, or a released recording of it), measured on the "
        "released items in the same way; any other model has rows of its own. A table has the name "
        "of its csv file, which holds the paper's numbers of what was not measured too, as the "
        "file of this list has the papers' other tables.",
        frame.replace({"command": {"": None}}) if papers else [],
        [
            text("paper", "paper"),
            text("", "place"),
            text("what it shows", "holds"),
            text("numbers with ours", "held"),
            text("table here", "shown"),
            text("command", "command", code=True),
        ],
        shown=frame[(frame.command != "") & frame.paper.isin(papers)],
        csv="paper place holds held shown command",
    )


def _is_here(table: PaperTable, results: Results) -> bool:
    """Whether the report has, of the paper's items, the table that shows what the paper's does."""
    command = table.command.replace("-", "_")
    protocol = {"inoculate": "inoculation", "probes audit": "audit"}.get(command, command)
    runs = results.of(protocol) if protocol else []
    if not runs:
        return False
    match table.here:
        case "grid" | "sizes_grid":
            from probelight.reports.grids import SIZES, grids

            if table.here == "sizes_grid":
                return any(one.in_table_4 for one in grids(results))
            return any(one.published and one.name != SIZES for one in grids(results))
        case "curve_medals":
            from probelight.reports.curve.medals import medals_table

            if medals_table(results) is None:
                return False
        case "unigrams":
            return any({row.probe for row in run.rows} & {*table.probes} for run in runs)
        case "audit":
            return any(run.kind and run.probe in published_probes() for run in runs)
        case "science_models":
            from probelight.reports.science_models import science_rows

            return bool(science_rows(results))
        case "difficulty" | "inoculation":
            from probelight.reports.inoculation.runs import inoculations

            return any(
                one.series.probe in published_probes()
                and on_released(one.run, one.series.report_split)
                and (table.here == "inoculation" or any(p.kind == "difficulty" for p in one.parts))
                for one in inoculations(results)
            )
    return any(
        {run.probe, *(row.probe for row in run.rows)} <= {*table.probes}
        and on_released(run, table.split)
        for run in runs
    )


def paper_tables(results: Results) -> list[Table | None]:
    """Make a table for each of the papers' that the results hold a number of."""
    found = [_paper_table(one, rows) for one, rows in compared(results).items()]
    if results.of("before") or results.of("inoculation"):
        from probelight.reports.science_models import science_models_table

        found.append(science_models_table(results))
    return found


def _paper_table(one: PaperTable, rows: pd.DataFrame) -> Table | None:
    """Make a table of a paper; people see no number that is the paper's alone."""
    held = rows[rows.ours.notna()]
    models = {*held[held.paper.notna()].model}
    is_seen = rows.paper.isna() | rows.model.isin(models) | rows.number.isin({*held.number})
    return tables.table(
        one.name,
        f"{one.paper}, {one.place}: {one.holds}",
        f"{INTERVAL.replace('accuracy', 'number of ours')}. {one.note} {one.people}".strip(),
        rows,
        [
            text("model", "model", "about"),
            text("number", "number"),
            accuracy("ours", OURS),
            share("paper", "paper"),
            gap("ours − paper, points", "difference"),
            text("the paper's lies", "paper_lies"),
            share("people %", "people"),
            whole("n", "num_items"),
        ],
        shown=rows[is_seen],
        csv=CSV,
    )


def summary(results: Results) -> str:
    """Return how near the results came to each paper, of the same models and items."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, rows in compared(results).items():
        for row in rows[rows.difference.notna()].to_dict("records"):
            found.setdefault(table.paper, []).append({**row, "place": table.place})
    if results.of("before") or results.of("inoculation"):
        from probelight.reports.science_models import science_rows

        for row in science_rows(results):
            if (gap := row.get("ours_minus_paper")) is not None:
                place = f"table 7, {row['probe']}"
                own = {"place": place, "model": row["_name"], "number": row["_split"]}
                found.setdefault(RICHARDSON, []).append({**row, **own, "difference": gap})
    sentences = []
    for paper, rows_of in found.items():
        lying = [row["paper_lies"] for row in rows_of if row["paper_lies"]]
        worst = max(rows_of, key=lambda row: abs(row["difference"]))
        inside = sum(where == "in our interval" for where in lying)
        within = f"; the paper's lie in {inside} of {len(lying)} intervals" if lying else ""
        numbers = "1 number is" if len(rows_of) == 1 else f"{count(len(rows_of))} numbers are"
        sentences.append(
            f"{numbers} of the same model and items as in {paper}{within}. The largest difference "
            f"is {points(worst['difference'])} points ({worst['place']}: {worst['model']}, "
            f"{worst['number']})."
        )
    return " ".join(sentences)


@lru_cache(maxsize=2)
def compared(results: Results) -> dict[PaperTable, pd.DataFrame]:
    """Return the rows of every table that these results hold a number of."""
    rows = published()
    places = rows[list(Place._fields)].itertuples(index=False, name=None)
    rows = rows.assign(place=[Place(*place) for place in places])
    checkpoints = rows.hub_id.str.partition("/")[2]
    rows["key"] = checkpoints.where(checkpoints != "", rows.model)
    asked = rows[rows.model == "human"]
    people = {(row.paper, row.probe, row.split): row.value for row in asked.itertuples()}
    ours = list(_ours(results))
    found = {}
    for table in paper_list() if ours else ():
        is_here = (rows.paper == table.paper) & (rows.table == table.number) & (rows.number != "")
        records: list[dict[str, Any]] = []
        for (probe, split), printed in rows[is_here].groupby(["probe", "split"], sort=False):
            scored = people.get((table.paper, probe, split), people.get((table.paper, probe, "")))
            records += [_record(row, scored) for row in _joined(printed, ours)]
        if records:
            found[table] = tables.framed(records)
    return found


def _joined(printed: pd.DataFrame, ours: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a paper's numbers with ours of the same models, then ours of other models.

    Nothing where there is none of ours, so that no table of the paper's alone is shown.
    """
    numbers = dict(zip(printed.place, printed.number, strict=True))
    mine: dict[tuple[Place, str], list[dict[str, Any]]] = {}
    for one in ours:
        if one["place"] in numbers:
            mine.setdefault((one["place"], one["key"]), []).append(one)
    if not mine:
        return []
    rows = [
        {**theirs, **one}
        for _, of_model in printed.groupby("key", sort=False)
        for theirs in of_model.to_dict("records")
        for one in mine.get((theirs["place"], theirs["key"]), [{}])
    ]
    known = {(row["place"], row["key"]) for row in rows}
    others = [one for place, found in mine.items() if place not in known for one in found]
    labels = [one["label"] for one in ours]
    order = list(numbers)
    others.sort(key=lambda one: (labels.index(one["label"]), order.index(one["place"])))
    return [*rows, *({**one, "number": numbers[one["place"]]} for one in others)]


def _record(row: Mapping[str, Any], people: float | None) -> dict[str, Any]:
    """Return a row of a table: a printed number and ours, or one of the two alone."""
    ours, paper, label = (row.get(name) for name in ("estimate", "value", "label"))
    other_name = "" if paper is None or label == row["model"] else label
    record = dict.fromkeys(CSV.split()) | {
        "model": label if paper is None else row["name"],
        "about": ", ".join(filter(None, (other_name, row.get("about")))),
        "number": row["number"],
        "paper": paper,
        "people": people,
        **{name: row.get(name) for name in ("num_items", "num_groups", "num_seeds")},
        "_runs": row.get("runs"),
    }
    if ours:
        record |= named(OURS, ours)
    if ours and paper is not None:
        record |= named(DIFFERENCE, difference(ours, paper, row["n"]))
        record["paper_lies"] = lies(ours, paper)
    return record


def _ours(results: Results) -> Iterator[dict[str, Any]]:
    """Yield our numbers that were measured as the papers' were, from zero-shot runs first."""
    yield from _of_zero_shots(results)
    yield from _of_curves(results) if results.of("curve") else ()
    yield from _of_diagnostics(results) if results.of("diagnose") else ()
    yield from _of_audits(results)
    yield from _of_clusters(results) if results.of("inoculation") else ()


def _number(place: Place, value: Any, label: str, key: str | None, **more: Any) -> dict[str, Any]:
    """Return a number of ours.

    Args:
        place: Which one it is.
        value: A row of the results, or an estimate.
        label: The model, as other tables call it.
        key: The paper's checkpoint or baseline that it is; None for another model.
        **more: `about`, what identifies it among several of one model; `num_items`; and `runs`, the
            keys of the runs that it is made of.
    """
    estimate = value if isinstance(value, Estimate) else Estimate.of(value)
    known = {name: getattr(value, name, None) for name in ("num_items", "num_groups", "num_seeds")}
    own = {"place": place, "label": label, "key": key or "", "estimate": estimate}
    return {**own, "about": "", **known, **more}


def _of_zero_shots(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the accuracies on all items of a released dev file."""
    for row in zero_shots(results).rename(columns={"accuracy": "value"}).itertuples():
        run = results.by_path[row.path]
        file = released_file(run, row.split) if run.role != "control" else None
        if file is not None and run.counts.get("scored") in (None, file.num_items):
            by = way(row.mode)  # scored otherwise than at the mask it is not what was measured
            key, about = (None, f"by {by}") if by else (paper_model(run), "")
            place = Place(row.probe, "zero_shot", row.split)
            more = {"about": about, "runs": (run.key,), "name_here": run.model}
            yield _number(place, row, row.model, key, **more)


def _of_curves(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the scores of curves; no zero-shot accuracy that a run of its own has."""
    from probelight.reports.curve.curves import LANGUAGE
    from probelight.reports.curve.scores import is_alike, standard_curves

    with_start = {(one["place"].probe, one["name_here"]) for one in _of_zero_shots(results)}
    for curve in standard_curves(results):
        for score, estimate in curve.scores.items() if curve.role != "control" else ():
            is_start = score.name == "zero_shot"
            has_start = is_start and (curve.probe, curve.model) in with_start
            if has_start or not is_alike(curve, score):
                continue
            with_start |= {(curve.probe, curve.model)} if is_start else set()
            untrained = curve.line().get(0) if is_start else None
            about, by = "", ""
            if untrained is None:
                known = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
                about = ", ".join(filter(None, (known, curve.variant)))
            elif untrained.mode != curve.mode and way(untrained.mode):
                by = about = f"by {way(untrained.mode)}"
            runs = {
                key
                for control in filter(None, (STANDARD, LANGUAGE.get(score.name)))
                for num_train, point in curve.line(control).items()
                if (num_train == 0) == is_start
                for key in point.run_keys
            }
            sizes = {"num_items": next(iter(curve.line().values())).num_items}
            sizes["num_seeds"] = None if is_start else curve.num_seeds
            place = Place(curve.probe, score.name, curve.split, score.mode)
            key = None if by else curve.paper_model
            yield _number(place, estimate, curve.model, key, about=about, runs=tuple(runs), **sizes)


def _of_diagnostics(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the numbers of the released sets."""
    from probelight.reports.diagnostics import labelled_runs

    for run, label in labelled_runs(results):
        for row in run.rows if on_released(run) else ():
            part = {"part": row.subset_text, "perturbation": row.perturbation}
            place = Place(row.probe, row.metric, **part)
            yield _number(place, row, label, paper_model(run), runs=(run.key,))


def _of_audits(results: Results) -> Iterator[dict[str, Any]]:
    """Yield what transformers scored from the choices alone, on all items of a released file.

    Other baselines go by vectors that the paper does not name well enough to have the same, so
    they are in the audit's table, without a difference.
    """
    for run in results.of("audit"):
        for row in run.rows:
            whole = (row.metric, row.control, row.subset) == ("accuracy", CHOICE_ONLY, None)
            key = hub_model(run)
            file = released_file(run, row.split) if whole and key else None
            if file is not None and row.num_items == file.num_items:
                about = "" if row.seed is None else f"seed {row.seed}"
                place = Place(run.probe, "accuracy", row.split)
                yield _number(place, row, run.model, key, about=about, runs=(run.key,))


def _of_clusters(results: Results) -> Iterator[dict[str, Any]]:
    """Yield what the best dose of each inoculation measured on all questions of a dev set."""
    from probelight.reports.inoculation.doses import best_dose, doses
    from probelight.reports.inoculation.runs import inoculations

    for line in doses(inoculations(results)).values():
        dose = best_dose(line)
        series, cells = dose.series, dose.runs
        whole = all(cell.whole_split and on_released(cell.run, "dev") for cell in cells)
        strict, single = dose.estimate("strict_cluster_accuracy"), dose.mean("probe_accuracy")
        if series.report_split != "dev" or not whole or strict is None or single is None:
            continue
        models = {paper_model(cell.run) for cell in cells}
        alike = dose.dose == PAPER_DOSE and all(on_paper_task(cell.run) for cell in cells)
        key = models.pop() if alike and len(models) == 1 else None
        num_concepts = cells[0].measured["strict_cluster_accuracy"].num_items  # as of every seed
        runs = tuple(cell.run.key for cell in cells)
        more = {"about": f"k = {dose.dose:,}", "runs": runs, "num_seeds": len(runs)}
        for metric, value, num_items in (
            ("strict_cluster_accuracy", strict, num_concepts),
            ("delta", Estimate(strict.value - single), None),
        ):
            place = Place(series.probe, metric, "dev")
            yield _number(place, value, series.model, key, num_items=num_items, **more)
