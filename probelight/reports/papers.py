"""The tables of three papers (listed in `papers.yaml`), with our numbers next to theirs.

Ours are compared if they are of the same model, by its id on the Hub or a released recording of it,
measured on the released items in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar

import pandas as pd

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.numbers import INTERVAL, NOT_INTERPRETABLE, Estimate, named
from probelight.reports.published import (
    PAPER_DOSE,
    Place,
    difference,
    hub_model,
    lies,
    on_paper_task,
    paper_model,
    published,
    released_file,
)
from probelight.reports.table import Table, accuracy, gap, share, text, whole
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run

OURS = "ours ci_low ci_high"
DIFFERENCE = "difference difference_ci_low difference_ci_high"
PEOPLE = "ours_minus_people people_ci_low people_ci_high"
CSV = f"model about number {OURS} paper {DIFFERENCE} paper_lies people {PEOPLE} num_items"
PLACE = list(Place._fields)
PROTOCOLS = {"inoculate": "inoculation", "probes audit": "audit"}  # unlike their commands


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure of a paper; `papers.yaml` explains the fields."""

    __pydantic_config__: ClassVar = STRICT

    paper: str
    place: str
    holds: str
    command: str = ""
    groups: tuple[str, ...] = ()
    here: str = ""
    maker: str = ""
    probes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    note: str = ""
    people: str = ""

    @property
    def name(self) -> str:
        """Name of our table with both numbers."""
        author, _, year = self.paper.partition(" ")
        place = self.place.replace(",", "").replace(" ", "_")
        return f"paper_{author.lower()}{year[-4:]}_{place}"


@lru_cache(maxsize=1)
def paper_list() -> tuple[PaperTable, ...]:
    """Return all tables of the papers, in their order."""
    path = Path(__file__).with_name("papers.yaml")
    return tuple(
        typed(PaperTable, {"paper": paper, **fields}, f"{path}: {paper}")
        for paper, of_paper in read_yaml(path).items()
        for fields in of_paper
    )


def listed_table(results: Results) -> Table | None:
    """Make the list of the papers' tables; None if the results hold none of them."""
    found = []
    for table in paper_list():
        rows = compared(results).get(table)
        held, shown = None, table.here if _is_here(table, results) else None
        if rows is not None:
            printed = rows[rows.paper.notna()]
            held, shown = f"{printed.ours.notna().sum()} of {len(printed)}", table.name
        found.append({**vars(table), "held": held, "shown": shown})
    frame = tables.framed(found)
    papers = {*frame[frame.shown.notna()].paper}
    return tables.table(
        "papers",
        "The papers' tables, and which of them these results cover",
        "The tables below show our number next to the printed one if both are for the same model "
        "(by its id on the Hub, or a released recording of it), measured on the released items in "
        "the same way. Any other model has its own rows. Each table is named like its csv file, "
        "which also has the paper's other numbers; the csv file of this list names all tables of "
        "the papers.",
        frame.replace({"command": {"": None}}) if papers else [],
        [
            text("paper", "paper"),
            text("", "place"),
            text("what it shows", "holds"),
            text("numbers covered", "held"),
            text("table here", "shown"),
            text("command", "command", code=True),
        ],
        shown=frame[(frame.command != "") & frame.paper.isin(papers)],
        csv="paper place holds held shown command",
    )


def _is_here(table: PaperTable, results: Results) -> bool:
    """Whether the report has its own table of the same content, measured on the paper's items."""
    is_any = any(
        {row.probe for row in run.rows} & {*table.probes}
        and (not table.splits or any(released_file(run, split) for split in table.splits))
        for run in results.of(PROTOCOLS.get(table.command, table.command.replace("-", "_")))
    )
    if not (is_any and table.maker):
        return is_any
    made = resolve_name(f"probelight.reports.{table.maker}")(results)
    # A column of the paper's numbers may not be empty.
    return made is not None and bool(made.frame.get("paper", pd.Series([""])).notna().any())


def paper_tables(results: Results) -> list[Table | None]:
    """Make a table for each of the papers' tables that the results have a number of."""
    return [_paper_table(table, rows) for table, rows in compared(results).items()]


def _paper_table(table: PaperTable, rows: pd.DataFrame) -> Table | None:
    """Make the table of one paper's table; rows of models that we did not run are in the csv."""
    held = rows[rows.ours.notna()]
    models = {*held[held.paper.notna()].model}
    is_seen = rows.paper.isna() | rows.model.isin(models) | rows.number.isin({*held.number})
    return tables.table(
        table.name,
        f"{table.paper}, {table.place}: {table.holds}",
        f"{INTERVAL.replace('accuracy', 'of our numbers')}. {table.note} {table.people}".strip(),
        rows,
        [
            text("model", "model", "about"),
            text("number", "number"),
            accuracy("ours", OURS),
            share("paper", "paper"),
            gap("ours − paper, points", "difference"),
            text("the paper's is", "paper_lies"),
            share("people %", "people"),
            gap("ours − people, points", PEOPLE),
            whole("n", "num_items"),
        ],
        shown=rows[is_seen],
        csv=CSV,
    )


def summary(results: Results) -> str:
    """Return how close our numbers of the same models and items are to those of each paper."""
    tables_of = [
        rows.assign(source=table.paper, place=table.place)
        for table, rows in compared(results).items()
    ]
    if not tables_of:
        return ""
    found = pd.concat(tables_of, ignore_index=True).dropna(subset="difference")
    sentences = []
    for paper, rows in found.groupby("source", sort=False):
        lying = rows.paper_lies.dropna()
        inside = (lying == "in our interval").sum()
        intervals = f"{inside} of {len(lying)} intervals include the paper's"
        within = f"; {intervals}" if len(lying) else ""
        covered = "1 number is" if len(rows) == 1 else f"{len(rows):,} numbers are"
        worst = rows.loc[rows.difference.astype(float).abs().idxmax()]
        sentences.append(
            f"{covered} for the same model and items as in {paper}{within}. The largest difference "
            f"is {numbers.points(worst.difference)} points ({worst.place}: {worst.model}, "
            f"{worst.number})."
        )
    return " ".join(sentences)


@lru_cache(maxsize=2)
def compared(results: Results) -> dict[PaperTable, pd.DataFrame]:
    """Return the rows of each paper's table that the results have a number of."""
    ours = tables.framed(_ours(results))
    if ours.empty:
        return {}
    ours["label_order"] = pd.factorize(ours.label)[0]
    printed = published().rename(columns={"value": "printed"})
    asked = printed[printed.model == "human"]
    printed = printed[(printed.number != "") & printed.probe.isin(ours.probe)]
    found = {}
    for table in paper_list():
        place = "table " + printed.table.astype(str)
        is_here = (printed.paper == table.paper) & (place == table.place.partition(",")[0])
        if table.groups:
            is_here &= printed.group.isin(table.groups)
        if not is_here.any():
            continue
        rows = _next_to_each_other(printed[is_here], ours)
        if len(rows):
            of_paper = asked[asked.paper == table.paper].itertuples()
            people = {(row.probe, row.split): row for row in of_paper}
            found[table] = tables.framed(_record(row, people) for row in rows.to_dict("records"))
    return found


def _next_to_each_other(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the printed numbers of each measured split with ours, then ours of other models."""
    labels = printed.drop_duplicates(PLACE)[[*PLACE, "number"]]
    labels = labels.assign(probe_order=pd.factorize(labels.probe)[0], place_order=labels.index)
    checkpoints = printed.hub_id.str.replace(".*/", "", regex=True)
    printed = printed.assign(key=checkpoints.where(checkpoints != "", printed.model))
    printed["order"] = pd.factorize(printed.key)[0]
    rows = printed.drop(columns="number").merge(ours, how="outer", on=[*PLACE, "key"])
    rows["order"] = rows.order.fillna(len(printed) + rows.label_order)
    rows = rows.merge(labels, on=PLACE)
    rows = rows[rows.groupby(["probe", "split"]).label.transform("count") > 0]
    rows = rows.sort_values(["probe_order", "order", "place_order"], kind="stable")
    return rows.astype(object).where(rows.notna(), None)


def _record(row: Mapping[str, Any], asked: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Return a row of a table: the paper's number, ours, or both, and that of people asked."""
    # Some papers do not say on which split people were asked.
    people: Any = asked.get((row["probe"], row["split"])) or asked.get((row["probe"], ""))
    ours, paper, label = row["estimate"], row["printed"], row["label"]
    other_name = "" if paper is None or label == row["model"] else label
    is_compared = ours is not None and paper is not None
    is_asked = people is not None and row["number"].endswith("%")
    return {
        "model": label if paper is None else row["name"],
        "about": ", ".join(filter(None, (other_name, row["about"]))),
        "number": row["number"],
        **named(OURS, ours),
        "paper": paper,
        **named(DIFFERENCE, difference(ours, paper, row["n"]) if is_compared else None),
        "paper_lies": lies(ours, paper) if is_compared else None,
        "people": people.printed if is_asked else None,
        **named(PEOPLE, difference(ours, people.printed, people.n) if ours and is_asked else None),
        **{name: row[name] for name in ("num_items", "num_groups", "num_seeds")},
        "_runs": row["runs"],
    }


def _ours(results: Results) -> Iterator[dict[str, Any]]:
    """Yield our numbers that were measured as in the papers."""
    for run, row in _whole_zero_shots(results):
        yield _start(row, row.mode, row, row.model, paper_model(run), runs=(run.key,))
    yield from _of_curves(results) if results.of("curve") else ()
    yield from _of_diagnostics(results) if results.of("diagnose") else ()
    yield from _of_audits(results)
    yield from _of_inoculations(results) if results.of("inoculation") else ()


def _number(
    place: Place, value: Any, label: str, key: str | None, *about: str, **more: Any
) -> dict[str, Any]:
    """Return a number of ours from a row of the results or an estimate.

    `key` is the paper's checkpoint or baseline, None for another model; `about` tells numbers of a
    model apart; `more` has `runs`, their keys, and sizes that replace those of the row.
    """
    sizes = {name: getattr(value, name, None) for name in ("num_items", "num_groups", "num_seeds")}
    number = {"label": label, "key": key or "", "estimate": Estimate.of(value)}
    return {**place._asdict(), **number, "about": ", ".join(filter(None, about)), **sizes, **more}


def _whole_zero_shots(results: Results) -> Iterator[tuple[Run, Any]]:
    """Yield accuracies on all items of a released file, with their runs."""
    for row in zero_shots(results).rename(columns={"accuracy": "value"}).itertuples():
        run = results.by_path[row.path]
        file = released_file(run, row.split) if run.role != "control" else None
        if file is not None and run.counts.get("scored") in (None, file.num_items):
            yield run, row


def _start(
    of: Any, mode: str, value: Any, label: str, key: str | None, **more: Any
) -> dict[str, Any]:
    """Return an accuracy without training; the papers' models were scored at the mask."""
    place, by = Place(of.probe, "zero_shot", of.split), numbers.way(mode)
    key, about = (None, f"by {by}") if by else (key, "")
    return _number(place, value, label, key, about, **more)


def _of_curves(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the scores of curves, and zero-shot accuracies that no zero-shot run has."""
    from probelight.reports.curve.comparisons import is_alike, standard_curves
    from probelight.reports.curve.curves import MODES

    with_start = {(row.probe, row.name) for _, row in _whole_zero_shots(results)}
    for curve in standard_curves(results):
        model = curve.model, curve.paper_model
        learned = f"rate {numbers.rate(curve.learning_rate)}" if curve.learning_rate else ""
        more: dict[str, Any] = {
            "runs": tuple(run.key for run in curve.runs),
            "num_items": next(iter(curve.line().values())).num_items,
        }
        for score, estimate in curve.scores.items():
            if curve.role == "control" or not is_alike(curve, score):
                continue
            if score.name != "zero_shot":
                place = Place(curve.probe, score.name, curve.split, score.mode)
                about = (learned, curve.variant)
                yield _number(place, estimate, *model, *about, num_seeds=curve.num_seeds, **more)
            elif (curve.probe, curve.model) not in with_start:
                with_start.add((curve.probe, curve.model))
                mode = curve.line()[0].mode
                yield _start(curve, "" if mode in MODES else mode, estimate, *model, **more)


def _of_diagnostics(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the numbers of the released sets."""
    from probelight.reports.diagnostics import labelled_runs

    for run, label in labelled_runs(results):
        for row in run.rows if released_file(run) else ():
            part = {"part": row.subset_text, "perturbation": row.perturbation}
            place = Place(row.probe, row.metric, **part)
            yield _number(place, row, label, paper_model(run), runs=(run.key,))


def _of_audits(results: Results) -> Iterator[dict[str, Any]]:
    """Yield scores of choice-only transformers on all items of a released file.

    The paper does not say which vectors its other baselines have, so none is compared.
    """
    for run in results.of("audit"):
        for row in run.rows:
            whole = (row.metric, row.control, row.subset) == ("accuracy", CHOICE_ONLY, None)
            key = hub_model(run)
            file = released_file(run, row.split) if whole and key else None
            if file is not None and row.num_items == file.num_items:
                about = "" if row.seed is None else f"seed {row.seed}"
                place = Place(run.probe, "accuracy", row.split)
                yield _number(place, row, run.model, key, about, runs=(run.key,))


def _of_inoculations(results: Results) -> Iterator[dict[str, Any]]:
    """Yield scores on a whole released split, before each inoculation and after its best dose."""
    from probelight.reports.inoculation.runs import best_dose, doses, inoculations

    for series, line in doses(inoculations(results)).items():
        split, best = series.report_split, best_dose(line)
        cells = [cell for dose in line for cell in dose.runs]
        if not all(cell.whole_split and released_file(cell.run, split) for cell in cells):
            continue
        models = {paper_model(cell.run) for cell in cells}
        on_task = all(on_paper_task(cell.run) for cell in cells)
        key = models.pop() if len(models) == 1 and on_task else None
        about = ("" if on_task else f"original task {series.original_task}", series.remarks)
        if before := cells[0].report_rows.get("probe_accuracy_before"):
            place = Place(series.probe, before.metric, split)
            yield _number(place, before, series.model, key, *about, runs=(cells[0].run.key,))
        accuracy, strict, cost = map(
            best.estimate, ("probe_accuracy", "strict_cluster_accuracy", "inoculation_cost")
        )
        after = {
            "probe_accuracy": accuracy,
            "strict_cluster_accuracy": strict,
            "delta": accuracy and strict and Estimate(strict.value - accuracy.value),
            "original_task_change": cost and cost.negative,
        }
        for metric, value in after.items():
            of_original = metric == "original_task_change"
            is_readable = best.interpretable or not of_original
            # Every seed measured as many items.
            measured = best.runs[0].report_rows.get("inoculation_cost" if of_original else metric)
            if value:
                yield _number(
                    Place(series.probe, metric, "" if of_original else split),
                    value,
                    series.model,
                    key if best.dose == PAPER_DOSE and is_readable else None,
                    f"k = {best.dose:,}",
                    *about,
                    "" if is_readable else NOT_INTERPRETABLE,
                    num_items=measured.num_items if measured else None,
                    num_seeds=len(best.runs),
                    runs=tuple(cell.run.key for cell in best.runs),
                )
