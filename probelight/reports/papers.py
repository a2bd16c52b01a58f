"""The tables of three papers, with our numbers of the same models and items next to theirs.

`papers.yaml` lists them all. A number of ours is compared where it is of the very model, by its id
on the Hub or a released recording of it, measured on the released items in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.reports import table as tables
from probelight.reports.estimates import Estimate
from probelight.reports.published import (
    ScoreKey,
    difference,
    lies,
    published,
    published_probes,
)
from probelight.reports.released import (
    hub_model,
    on_paper_task,
    on_released,
    paper_model,
    released_file,
)
from probelight.reports.table import Cell, Column, Table, accuracy, gap, number, share, text, whole
from probelight.reports.words import INTERVAL, count, measure, percent, points, rate, way
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results

if TYPE_CHECKING:
    from probelight.reports.curve.scores import Summary

TALMOR, RICHARDSON, ETTINGER = "Talmor et al. 2020", "Richardson & Sabharwal 2020", "Ettinger 2020"
PAPER_DOSE = 3000  # examples of inoculation in Richardson & Sabharwal 2020
OURS = "ours ci_low ci_high"
DIFFERENCE = "difference difference_ci_low difference_ci_high"
MODES = {"mlp": "MLP ", "linear": "linear ", "full": "whole network ", "": ""}
CURVE_NUMBERS = {
    "zero_shot": "zero-shot, %",
    "ws": "WS, %",
    "max": "MAX, %",
    "langsense_pert": "LangSense pert, points",
    "langsense_nolang": "LangSense nolang, points",
}
COMPLETIONS = {"sensitivity": "prefers the good one", "sensitivity_margin": "by more than 0.01"}
CLUSTER_NUMBERS = {"strict_cluster_accuracy": "strict, %", "delta": "minus accuracy, points"}


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
            from probelight.reports.grids import PAPER_SIZES_MODEL, SIZES, grids

            if table.here == "sizes_grid":
                found = [one.paper_model for one in grids(results) if one.name == SIZES]
                return PAPER_SIZES_MODEL in found
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
    """Make a table of a paper; people see what belongs to what is here.

    That is without what is the paper's alone: of a model that is not here, a number that nobody
    has.
    """
    held = rows[rows.ours.notna()]
    models = {*held[held.paper.notna()].model}
    is_seen = rows.paper.isna() | rows.model.isin(models) | rows.number.isin({*held.number})

    def signed(row: Any) -> Cell:
        """Whole clusters minus single questions is a number below 0."""
        cell = accuracy("", OURS).show(row)
        assert isinstance(cell, Cell)
        return Cell(cell.text.replace("-", "−"), cell.detail)

    return tables.table(
        one.name,
        f"{one.paper}, {one.place}: {one.holds}",
        f"{INTERVAL.replace('accuracy', 'number of ours')}. {one.note} {one.people}".strip(),
        rows,
        [
            text("model", "model", "about"),
            text("number", "number"),
            Column("ours", signed),
            number("paper", "paper", lambda value: percent(value).replace("-", "−")),
            gap("ours − paper, points", DIFFERENCE),
            text("the paper's lies", "paper_lies"),
            share("people %", "people"),
            whole("n", "num_items"),
        ],
        shown=rows[is_seen],
        csv=f"model about number {OURS} paper {DIFFERENCE} paper_lies people num_items",
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
    people = {
        (one.paper, one.probe, one.split): one.value
        for one in rows[rows.model == "human"].itertuples()
    }
    found = {}
    for table in paper_list():
        if not table.note or (table.paper == ETTINGER and not results.of("diagnose")):
            continue
        place = int(table.place.split()[1].strip(","))
        printed = rows[(rows.paper == table.paper) & (rows.table == place)]
        if table.here == "audit":  # the transformers of group 1
            printed = printed[(printed.group == "baseline") & (printed.hub_id != "")]
        printed = printed.assign(number=list(map(_number, printed.itertuples())))
        if table.paper == TALMOR:
            ours = list(_of_curves(results, printed))
        elif table.paper == ETTINGER:
            ours = list(_of_diagnostics(results, printed))
        else:
            ours = list(_of_audits(results) if table.here == "audit" else _of_clusters(results))
        records: list[dict[str, Any]] = []
        for (probe, split), own in printed.groupby(["probe", "split"], sort=False):
            if mine := [one for one in ours if one["number"] in {*own.number}]:
                asked = people.get((table.paper, probe, split))
                scored = people.get((table.paper, probe, "")) if asked is None else asked
                records += [_record(row, scored) for row in _joined(own, mine)]
        if records:
            found[table] = tables.framed(records)
    return found


def _joined(printed: pd.DataFrame, ours: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a paper's numbers with ours of the same models, then ours of other models."""
    checkpoints = printed.hub_id.str.partition("/")[2]
    printed = printed.assign(key=checkpoints.where(checkpoints != "", printed.model))
    models = list(dict.fromkeys(printed.key))
    printed = printed.sort_values("key", key=lambda keys: keys.map(models.index), kind="stable")
    both = printed.merge(pd.DataFrame(ours), how="left", on=["number", "key"])
    known = {*zip(printed.number, printed.key, strict=True)}
    others = [one for one in ours if (one["number"], one["key"]) not in known]
    labels = list(dict.fromkeys(one["label"] for one in others))
    others.sort(key=lambda one: labels.index(one["label"]))
    rows = pd.concat([both, pd.DataFrame(others)], ignore_index=True).astype(object)
    return list(rows.where(rows.notna(), None).to_dict("records"))


def _record(row: Mapping[str, Any], people: float | None) -> dict[str, Any]:
    """Return a row of a table: a printed number and ours, or one of the two alone."""
    ours, paper = row["estimate"], row["value"]
    gap = None if ours is None or paper is None else difference(ours, paper, row["n"])
    same_name = paper is None or row["label"] == row["model"]
    return {
        "model": row["label"] if paper is None else row["name"],
        "about": ", ".join(filter(None, ("" if same_name else row["label"], row["about"]))),
        "number": row["number"],
        "ours": ours and ours.value,
        "ci_low": ours and ours.ci_low,
        "ci_high": ours and ours.ci_high,
        "paper": paper,
        "difference": gap and gap.value,
        "difference_ci_low": gap and gap.ci_low,
        "difference_ci_high": gap and gap.ci_high,
        "paper_lies": gap and lies(ours, paper),
        "people": people,
        "num_items": row["num_items"],
        "num_groups": row["num_groups"],
        "_runs": row["runs"],
    }


def _number(row: Any) -> str:
    """Return what people call a published number, with its unit."""
    if row.paper == TALMOR:
        return MODES[row.mode] + CURVE_NUMBERS[row.metric]
    if row.paper == RICHARDSON:
        return f"{row.probe}, {CLUSTER_NUMBERS.get(row.metric, f'{row.split}, %')}"
    from probelight.reports.diagnostics import PERTURBATIONS, SPREAD

    metric = row.metric.removesuffix(SPREAD)
    is_spread = metric != row.metric
    at_k = f"k = {metric.partition('@')[2]}" if metric.startswith("accuracy") else ""
    what = at_k or COMPLETIONS.get(metric) or measure(metric)
    condition = PERTURBATIONS.get(row.perturbation, "")
    unit = "sd over shuffles, points" if is_spread else "%"
    return ", ".join(filter(None, (row.part, condition, what, unit)))


def _ours(number: str, label: str, key: str | None, value: Any, **more: Any) -> dict[str, Any]:
    """Return a number of ours.

    Args:
        number: Which one it is.
        label: The model, as other tables call it.
        key: The paper's checkpoint or baseline that it is; None for another model.
        value: A row of the results, or an estimate.
        **more: `about`, what it is besides of several of one model; `num_items`; `num_groups`; and
            `runs`, the keys of the runs that it is made of.
    """
    estimate = value if isinstance(value, Estimate) else Estimate.of(value)
    known = {name: getattr(value, name, None) for name in ("num_items", "num_groups")}
    every = {"about": "", **known, "estimate": estimate, **more}
    return {"number": number, "label": label, "key": key or "", **every}


def _of_curves(results: Results, printed: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield our numbers of a table of learning curves, from zero-shot runs first."""
    numbers = {ScoreKey(one.metric, one.mode): one.number for one in printed.itertuples()}
    probe, split = printed.probe.iloc[0], printed.split.iloc[0]
    start = ScoreKey("zero_shot")
    with_start = set()  # models whose zero-shot accuracy is there already
    entries = zero_shots(results).rename(columns={"accuracy": "value"})
    for entry in entries[(entries.probe == probe) & (entries.split == split)].itertuples():
        run = results.by_path[entry.path]
        file = released_file(run, split)
        every = file is not None and run.counts.get("scored") in (None, file.num_items)
        if start in numbers and every and run.role != "control":
            with_start.add(run.model)
            # Scored otherwise than at the mask it is not what the paper measured.
            by = way(entry.mode)
            key, about = (None, f"by {by}") if by else (paper_model(run), "")
            yield _ours(numbers[start], entry.model, key, entry, about=about, runs=(run.key,))
    if not results.of("curve"):
        return
    from probelight.reports.curve.scores import summaries

    for summary in summaries(results):
        curve = summary.curve
        if curve.probe != probe or summary.role == "control":
            continue
        for score, name in numbers.items():
            has_start = score == start and curve.model in with_start
            if score in summary.scores and summary.alike(score) and not has_start:
                with_start |= {curve.model} if score == start else set()
                yield _of_curve(name, summary, score)


def _of_curve(number: str, summary: Summary, score: ScoreKey) -> dict[str, Any]:
    """Return a number of a curve, with the runs of the points that it is made of."""
    from probelight.reports.curve.scores import LANGUAGE

    curve = summary.curve
    untrained = curve.at(STANDARD, 0) if score.name == "zero_shot" else None
    by, about = "", ""
    if untrained is None:
        known = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
        about = ", ".join(filter(None, (known, curve.variant)))
    elif untrained.mode != curve.mode and way(untrained.mode):
        by = about = f"by {way(untrained.mode)}"
    controls = [STANDARD, *([LANGUAGE[score.name]] if score.name in LANGUAGE else [])]
    runs = {
        row.run_dir.rpartition("/")[2]
        for control in controls
        for point in curve.points[control]
        if (point.num_train == 0) == (score.name == "zero_shot")
        for row in point.by_seed.values()
    }
    return _ours(
        number,
        curve.model,
        None if by else curve.paper_model,
        summary.scores[score],
        about=about,
        num_items=curve.points[STANDARD][0].num_items,
        runs=tuple(runs),
    )


def _of_diagnostics(results: Results, printed: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield our numbers of a table of diagnostics."""
    from probelight.reports.diagnostics import labelled_runs

    for run, label in labelled_runs(results):
        if run.probe != printed.probe.iloc[0] or not on_released(run):
            continue
        rows = {(row.metric, row.subset_text, row.perturbation): row for row in run.rows}
        for one in printed.drop_duplicates("number").itertuples():
            if row := rows.get((one.metric, one.part, one.perturbation)):
                yield _ours(one.number, label, paper_model(run), row, runs=(run.key,))


def _of_audits(results: Results) -> Iterator[dict[str, Any]]:
    """Yield what transformers scored from the choices alone, on all items of a released file.

    Other baselines go by vectors that the paper does not name well enough to have the same, so
    they are in the audit's table, without a difference.
    """
    for run in results.of("audit"):
        for row in run.rows:
            whole = (row.metric, row.control, row.subset) == ("accuracy", CHOICE_ONLY, None)
            file = released_file(run, row.split) if whole and hub_model(run) else None
            if file is not None and row.num_items == file.num_items:
                about = "" if row.seed is None else f"seed {row.seed}"
                number = f"{run.probe}, {row.split}, %"
                yield _ours(number, run.model, hub_model(run), row, about=about, runs=(run.key,))


def _of_clusters(results: Results) -> Iterator[dict[str, Any]]:
    """Yield what the best dose of each inoculation measured on all questions of a dev set."""
    if not results.of("inoculation"):
        return
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
        of_first = cells[0].measured["strict_cluster_accuracy"]
        runs = tuple(cell.run.key for cell in cells)
        more = {"about": f"k = {dose.dose:,}", "runs": runs}
        strict_name, gap_name = (f"{series.probe}, {name}" for name in CLUSTER_NUMBERS.values())
        num_concepts = of_first.num_items  # the same for every seed
        yield _ours(strict_name, series.model, key, strict, num_items=num_concepts, **more)
        yield _ours(gap_name, series.model, key, Estimate(strict.value - single), **more)
