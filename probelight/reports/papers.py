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

from probelight.io.documents import read_yaml
from probelight.io.settings import STRICT, typed
from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.numbers import INTERVAL, NOT_INTERPRETABLE, Estimate, named
from probelight.reports.published import (
    PAPER_DOSE,
    NumberKey,
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
from probelight.results.load import Run, RunSet

OURS = "ours ci_low ci_high"
DIFFERENCE = "difference difference_ci_low difference_ci_high"
PEOPLE = "ours_minus_people people_ci_low people_ci_high"
CSV = f"model about number {OURS} paper {DIFFERENCE} paper_lies people {PEOPLE} num_items"
KEY = list(NumberKey._fields)
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
    our_table: str = ""
    maker: str = ""
    probes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    note: str = ""
    people: str = ""

    @property
    def name(self) -> str:
        """Name of our table with both numbers."""
        author, _, year = self.paper.partition(" ")
        slug = self.place.replace(",", "").replace(" ", "_")
        return f"paper_{author.lower()}{year[-4:]}_{slug}"


@lru_cache(maxsize=1)
def paper_list() -> tuple[PaperTable, ...]:
    """Return all tables of the papers, in their order."""
    path = Path(__file__).with_name("papers.yaml")
    return tuple(
        typed(PaperTable, {"paper": paper, **fields}, f"{path}: {paper}")
        for paper, entries in read_yaml(path).items()
        for fields in entries
    )


def listed_table(results: RunSet) -> Table | None:
    """Make the list of the papers' tables; None if the results hold none of them."""
    records = []
    for table in paper_list():
        rows = paper_table_rows(results).get(table)
        coverage, table_name = None, table.our_table if _has_our_table(table, results) else None
        if rows is not None:
            printed_rows = rows[rows.paper.notna()]
            coverage = f"{printed_rows.ours.notna().sum()} of {len(printed_rows)}"
            table_name = table.name
        records.append({**vars(table), "held": coverage, "shown": table_name})
    frame = tables.framed(records)
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
        visible=frame[(frame.command != "") & frame.paper.isin(papers)],
        csv="paper place holds held shown command",
    )


def _has_our_table(table: PaperTable, results: RunSet) -> bool:
    """Return whether the report has a table of its own with the same content."""
    has_runs = any(
        {row.probe for row in run.rows} & {*table.probes}
        and (not table.splits or any(released_file(run, split) for split in table.splits))
        for run in results.of(PROTOCOLS.get(table.command, table.command.replace("-", "_")))
    )
    if not (has_runs and table.maker):
        return has_runs
    ours = resolve_name(f"probelight.reports.{table.maker}")(results)
    # A column of the paper's numbers may not be empty.
    return ours is not None and bool(ours.frame.get("paper", pd.Series([""])).notna().any())


def paper_tables(results: RunSet) -> list[Table | None]:
    """Make a table for each of the papers' tables that the results have a number of."""
    columns = [
        text("model", "model", "about"),
        text("number", "number"),
        accuracy("ours", OURS),
        share("paper", "paper"),
        gap("ours − paper, points", "difference"),
        text("the paper's is", "paper_lies"),
        share("people %", "people"),
        gap("ours − people, points", PEOPLE),
        whole("n", "num_items"),
    ]
    interval = INTERVAL.replace("accuracy", "of our numbers")
    paper_tables = []
    for table, rows in paper_table_rows(results).items():
        title = f"{table.paper}, {table.place}: {table.holds}"
        note = f"{interval}. {table.note} {table.people}".strip()
        # Rows of models that we did not run are in the csv.
        held = rows[rows.ours.notna()]
        models = {*held[held.paper.notna()].model}
        is_seen = rows.paper.isna() | rows.model.isin(models) | rows.number.isin({*held.number})
        seen = rows[is_seen]
        paper_tables.append(
            tables.table(table.name, title, note, rows, columns, visible=seen, csv=CSV)
        )
    return paper_tables


def papers_summary(results: RunSet) -> str:
    """Return how close our numbers of the same models and items are to those of each paper."""
    frames = [
        rows.assign(source=table.paper, place=table.place)
        for table, rows in paper_table_rows(results).items()
    ]
    if not frames:
        return ""
    number_rows = pd.concat(frames, ignore_index=True).dropna(subset="difference")
    sentences = []
    for paper, rows in number_rows.groupby("source", sort=False):
        positions = rows.paper_lies.dropna()
        num_inside = (positions == "in our interval").sum()
        intervals = f"{num_inside} of {len(positions)} intervals include the paper's"
        within = f"; {intervals}" if len(positions) else ""
        covered = "1 number is" if len(rows) == 1 else f"{len(rows):,} numbers are"
        worst = rows.loc[rows.difference.astype(float).abs().idxmax()]
        sentences.append(
            f"{covered} for the same model and items as in {paper}{within}. The largest difference "
            f"is {numbers.points(worst.difference)} points ({worst.place}: {worst.model}, "
            f"{worst.number})."
        )
    return " ".join(sentences)


@lru_cache(maxsize=2)
def paper_table_rows(results: RunSet) -> dict[PaperTable, pd.DataFrame]:
    """Return the rows of each paper's table that the results have a number of."""
    ours = tables.framed(_our_numbers(results))
    if ours.empty:
        return {}
    ours["label_order"] = pd.factorize(ours.label)[0]
    printed = published().rename(columns={"value": "printed"})
    human_rows = printed[printed.model == "human"]
    printed = printed[(printed.number != "") & printed.probe.isin(ours.probe)]
    by_table = {}
    for table in paper_list():
        places = "table " + printed.table.astype(str)
        is_in_table = (printed.paper == table.paper) & (places == table.place.partition(",")[0])
        if table.groups:
            is_in_table &= printed.group.isin(table.groups)
        if not is_in_table.any():
            continue
        rows = _next_to_each_other(printed[is_in_table], ours)
        if len(rows):
            rows_of_people = human_rows[human_rows.paper == table.paper].itertuples()
            people = {(row.probe, row.split): row for row in rows_of_people}
            by_table[table] = tables.framed(_record(row, people) for row in rows.to_dict("records"))
    return by_table


def _next_to_each_other(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the printed numbers of each measured split with ours, then ours of other models."""
    labels = printed.drop_duplicates(KEY)[[*KEY, "number"]]
    labels = labels.assign(probe_order=pd.factorize(labels.probe)[0], place_order=labels.index)
    checkpoints = printed.hub_id.str.replace(".*/", "", regex=True)
    printed = printed.assign(key=checkpoints.where(checkpoints != "", printed.model))
    printed["order"] = pd.factorize(printed.key)[0]
    rows = printed.drop(columns="number").merge(ours, how="outer", on=[*KEY, "key"])
    rows["order"] = rows.order.fillna(len(printed) + rows.label_order)
    rows = rows.merge(labels, on=KEY)
    rows = rows[rows.groupby(["probe", "split"]).label.transform("count") > 0]
    rows = rows.sort_values(["probe_order", "order", "place_order"], kind="stable")
    return rows.astype(object).where(rows.notna(), None)


def _record(row: Mapping[str, Any], people: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Return a row of a table: the paper's number, ours, or both, and that of people asked."""
    # Some papers do not say on which split people were asked.
    human: Any = people.get((row["probe"], row["split"])) or people.get((row["probe"], ""))
    ours, paper, label = row["estimate"], row["printed"], row["label"]
    other_name = "" if paper is None or label == row["model"] else label
    is_compared = ours is not None and paper is not None
    has_human = human is not None and row["number"].endswith("%")
    return {
        "model": label if paper is None else row["name"],
        "about": ", ".join(filter(None, (other_name, row["about"]))),
        "number": row["number"],
        **named(OURS, ours),
        "paper": paper,
        **named(DIFFERENCE, difference(ours, paper, row["n"]) if is_compared else None),
        "paper_lies": lies(ours, paper) if is_compared else None,
        "people": human.printed if has_human else None,
        **named(PEOPLE, difference(ours, human.printed, human.n) if ours and has_human else None),
        **{name: row[name] for name in ("num_items", "num_groups", "num_seeds")},
        "_runs": row["runs"],
    }


def _our_numbers(results: RunSet) -> Iterator[dict[str, Any]]:
    """Yield our numbers that were measured like the papers'."""
    for run, row in _whole_zero_shots(results):
        yield _zero_shot_number(row, row.mode, row, row.model, paper_model(run), runs=(run.key,))
    yield from _curve_numbers(results) if results.of("curve") else ()
    yield from _diagnostic_numbers(results) if results.of("diagnose") else ()
    yield from _audit_numbers(results)
    yield from _inoculation_numbers(results) if results.of("inoculation") else ()


def _our_number(
    key: NumberKey, row: Any, label: str, checkpoint: str | None, *about: str, **more: Any
) -> dict[str, Any]:
    """Return a number of ours from a row of the results or an estimate.

    `key` is the paper's checkpoint or baseline, None for another model; `about` tells numbers of a
    model apart; `more` has `runs`, their keys, and sizes that replace those of the row.
    """
    sizes = {name: getattr(row, name, None) for name in ("num_items", "num_groups", "num_seeds")}
    identity = {"label": label, "key": checkpoint or "", "estimate": Estimate.of(row)}
    return {**key._asdict(), **identity, "about": ", ".join(filter(None, about)), **sizes, **more}


def _whole_zero_shots(results: RunSet) -> Iterator[tuple[Run, Any]]:
    """Yield accuracies on all items of a released file, with their runs."""
    for row in zero_shots(results).rename(columns={"accuracy": "value"}).itertuples():
        run = results.by_path[row.path]
        file = released_file(run, row.split) if run.role != "control" else None
        if file is not None and run.counts.get("scored") in (None, file.num_items):
            yield run, row


def _zero_shot_number(
    source: Any, mode: str, row: Any, label: str, checkpoint: str | None, **more: Any
) -> dict[str, Any]:
    """Return an accuracy without training; the papers' models were scored at the mask."""
    key, rule = NumberKey(source.probe, "zero_shot", source.split), numbers.scored_by(mode)
    checkpoint, about = (None, f"by {rule}") if rule else (checkpoint, "")
    return _our_number(key, row, label, checkpoint, about, **more)


def _curve_numbers(results: RunSet) -> Iterator[dict[str, Any]]:
    """Yield the scores of curves, and zero-shot accuracies that no zero-shot run has."""
    from probelight.reports.curve.comparisons import is_alike, standard_curves
    from probelight.reports.curve.curves import MODES

    with_start = {(row.probe, row.name) for _, row in _whole_zero_shots(results)}
    for curve in standard_curves(results):
        names = curve.model, curve.paper_model
        rate_phrase = f"rate {numbers.rate(curve.learning_rate)}" if curve.learning_rate else ""
        more: dict[str, Any] = {
            "runs": tuple(run.key for run in curve.runs),
            "num_items": next(iter(curve.line().values())).num_items,
        }
        for score, estimate in curve.scores.items():
            if curve.role == "control" or not is_alike(curve, score):
                continue
            if score.name != "zero_shot":
                key = NumberKey(curve.probe, score.name, curve.split, score.mode)
                about = (rate_phrase, curve.variant)
                yield _our_number(key, estimate, *names, *about, num_seeds=curve.num_seeds, **more)
            elif (curve.probe, curve.model) not in with_start:
                with_start.add((curve.probe, curve.model))
                mode = curve.line()[0].mode
                yield _zero_shot_number(
                    curve, "" if mode in MODES else mode, estimate, *names, **more
                )


def _diagnostic_numbers(results: RunSet) -> Iterator[dict[str, Any]]:
    """Yield the numbers on the released diagnostic sets."""
    from probelight.reports.diagnostics import labelled_runs

    for run, label in labelled_runs(results):
        for row in run.rows if released_file(run) else ():
            subset_columns = {"part": row.subset_text, "perturbation": row.perturbation}
            key = NumberKey(row.probe, row.metric, **subset_columns)
            yield _our_number(key, row, label, paper_model(run), runs=(run.key,))


def _audit_numbers(results: RunSet) -> Iterator[dict[str, Any]]:
    """Yield scores of choice-only transformers on all items of a released file.

    The paper does not say which vectors its other baselines have, so none is compared.
    """
    for run in results.of("audit"):
        for row in run.rows:
            is_whole = (row.metric, row.control, row.subset) == ("accuracy", CHOICE_ONLY, None)
            checkpoint = hub_model(run)
            file = released_file(run, row.split) if is_whole and checkpoint else None
            if file is not None and row.num_items == file.num_items:
                about = "" if row.seed is None else f"seed {row.seed}"
                key = NumberKey(run.probe, "accuracy", row.split)
                yield _our_number(key, row, run.model, checkpoint, about, runs=(run.key,))


def _inoculation_numbers(results: RunSet) -> Iterator[dict[str, Any]]:
    """Yield scores on a whole released split, before each inoculation and after its best dose."""
    from probelight.reports.inoculation.runs import best_dose, dose_lines

    for series, line in dose_lines(results, controls=False).items():
        split, best = series.report_split, best_dose(line)
        cells = [cell for dose in line for cell in dose.runs]
        if not all(cell.whole_split and released_file(cell.run, split) for cell in cells):
            continue
        models = {paper_model(cell.run) for cell in cells}
        on_task = all(on_paper_task(cell.run) for cell in cells)
        checkpoint = models.pop() if len(models) == 1 and on_task else None
        about = ("" if on_task else f"original task {series.original_task}", series.remarks)
        if row_before := cells[0].report_rows.get("probe_accuracy_before"):
            key = NumberKey(series.probe, row_before.metric, split)
            yield _our_number(
                key, row_before, series.model, checkpoint, *about, runs=(cells[0].run.key,)
            )
        accuracy, strict, cost = map(
            best.estimate, ("probe_accuracy", "strict_cluster_accuracy", "inoculation_cost")
        )
        after = {
            "probe_accuracy": accuracy,
            "strict_cluster_accuracy": strict,
            "delta": accuracy and strict and Estimate(strict.value - accuracy.value),
            "original_task_change": cost and cost.negative,
        }
        for metric, estimate in after.items():
            of_original = metric == "original_task_change"
            is_readable = best.interpretable or not of_original
            # Every seed measured as many items.
            row_after = best.runs[0].report_rows.get("inoculation_cost" if of_original else metric)
            if estimate:
                yield _our_number(
                    NumberKey(series.probe, metric, "" if of_original else split),
                    estimate,
                    series.model,
                    checkpoint if best.dose == PAPER_DOSE and is_readable else None,
                    f"k = {best.dose:,}",
                    *about,
                    "" if is_readable else NOT_INTERPRETABLE,
                    num_items=row_after.num_items if row_after else None,
                    num_seeds=len(best.runs),
                    runs=tuple(cell.run.key for cell in best.runs),
                )
