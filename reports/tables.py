"""The tables of a report, one function a table; None where there is nothing to show."""

from __future__ import annotations

from reports.analyses.tables import ranks_table, taxonomy_distance_table, unigrams_table
from reports.curve.against import curve_against_table
from reports.curve.medals import MedalRule, medals_table, read_rule
from reports.curve.parts import curve_parts_table
from reports.curve.summary_tables import curve_summary_tables
from reports.curve.tables import curve_table
from reports.grids.facts import grid_table, sizes_table
from reports.inoculation.candidates import pareto_table
from reports.inoculation.difficulty import difficulty_table
from reports.inoculation.parts import inoculation_parts_table
from reports.inoculation.published import science_models_table
from reports.inoculation.seeds import seeds_table
from reports.inoculation.tables import inoculation_table, original_table
from reports.kit.layout import (
    ABSENT,
    BY_GROUPS,
    INTERVAL,
    Cell,
    Column,
    Table,
    accuracy_cell,
    accuracy_record,
    between,
    percent,
    size_cell,
)
from reports.zero_shot.facts import ZeroShot, zero_shots
from results.load import Results, Row


def tables(results: Results, medal_rule: MedalRule | None = None) -> list[Table]:
    """Every table that the results have something for, in the order of the page.

    Args:
        results: What was measured.
        medal_rule: When a model has earned a medal; the shipped rule where it is None.
    """
    before = (
        zero_shot_table,
        predicted_shares_table,
        parts_table,
        ranks_table,
        grid_table,
        sizes_table,
        taxonomy_distance_table,
    )
    after = (
        unigrams_table,
        original_table,
        seeds_table,
        science_models_table,
        inoculation_table,
        pareto_table,
        difficulty_table,
        inoculation_parts_table,
    )
    made = [
        *(make(results) for make in before),
        *curve_summary_tables(results),
        medals_table(results, medal_rule or read_rule()),
        *(make(results) for make in (curve_against_table, curve_parts_table, curve_table)),
        *(make(results) for make in after),
    ]
    return [table for table in made if table is not None]


def zero_shot_table(results: Results) -> Table | None:
    """Accuracy before any training: rows are probes, columns are models."""
    found = zero_shots(results)
    if not found:
        return None
    models = list(dict.fromkeys(entry.label for entry in found))
    heads = [Column("probe", "left"), Column("chance"), Column("majority")]
    with_ties = any(entry.tied for entry in found)
    for model in models:
        heads += [Column(label, group=model) for label in ("accuracy %", "macro %", "n")]
        heads.append(Column("against chance", "left", group=model))
        heads += [Column("ties %", group=model)] * with_ties
    rows = []
    for probe, split in dict.fromkeys((e.probe, e.accuracy.split) for e in found):
        own = {e.label: e for e in found if (e.probe, e.accuracy.split) == (probe, split)}
        first = next(iter(own.values()))
        row = [Cell(probe, _how(first)), Cell(percent(first.chance)), Cell(percent(first.majority))]
        for model in models:
            row += _zero_shot_cells(own.get(model), with_ties)
        rows.append(tuple(row))
    return Table(
        "zero_shot",
        "Accuracy before any training",
        f"{INTERVAL} ({BY_GROUPS}) and the number of items n. Majority: always the most frequent "
        "answer. Macro: the mean of the accuracies of each answer."
        + (" Ties: items whose best score n choices share; they count 1/n." if with_ties else ""),
        tuple(heads),
        tuple(rows),
        tuple(_zero_shot_record(entry) for entry in found),
    )


def predicted_shares_table(results: Results) -> Table | None:
    """How often each answer was predicted, whatever the question."""
    found = [entry for entry in zero_shots(results) if entry.shares]
    if not found:
        return None
    models = list(dict.fromkeys(entry.label for entry in found))
    heads = [Column("probe", "left"), Column("answer", "left")]
    heads += [Column("predicted %", group=model) for model in models]
    shares = {
        (e.probe, e.accuracy.split, share.subset, e.label): share
        for e in found
        for share in e.shares
    }
    rows = [
        (
            Cell(probe, split),
            Cell(answer),
            *(_share_cell(shares.get((probe, split, answer, model))) for model in models),
        )
        for probe, split, answer in dict.fromkeys(key[:3] for key in shares)
    ]
    records = [
        {"model": model, "probe": probe, "split": split, "answer": answer, "share": share.value}
        for (probe, split, answer, model), share in shares.items()
    ]
    return Table(
        "predicted_shares",
        "What the model tends to say",
        "Share of the items on which each answer was predicted. A model that mostly says one thing "
        "scores near the share of items where that happens to be right.",
        tuple(heads),
        tuple(rows),
        tuple(records),
    )


def parts_table(results: Results) -> Table | None:
    """Zero-shot accuracy by template, perturbation or control."""
    parts = [(entry, row) for entry in zero_shots(results) for row in entry.parts]
    if not parts:
        return None
    heads = (
        Column("probe", "left"),
        Column("part", "left"),
        Column("model", "left"),
        Column("accuracy %"),
        Column("n"),
    )
    rows = [
        (
            Cell(entry.probe, entry.accuracy.split),
            Cell(_part(row)),
            Cell(entry.label),
            Cell(percent(row.value), between(row.ci_low, row.ci_high)),
            size_cell(row),
        )
        for entry, row in parts
    ]
    records = [
        {"model": e.label, "probe": e.probe, "part": _part(row), **accuracy_record(row)}
        for e, row in parts
    ]
    return Table(
        "zero_shot_parts",
        "Parts and variants of the probes",
        f"{INTERVAL}; parts are small, and their intervals wide.",
        heads,
        tuple(rows),
        tuple(records),
    )


def _zero_shot_cells(entry: ZeroShot | None, with_ties: bool) -> list[Cell]:
    if entry is None:
        return [Cell(ABSENT)] * (4 + with_ties)
    row = entry.accuracy
    verdict = {"unknown": ABSENT}.get(entry.verdict, entry.verdict)
    ties = [Cell(percent(entry.tied))] * with_ties
    return [accuracy_cell(row), Cell(percent(entry.macro)), size_cell(row), Cell(verdict), *ties]


def _how(entry: ZeroShot) -> str:
    """The split, and how choices were scored where it was not by the mask's candidates."""
    mode = entry.accuracy.mode
    other = "" if mode in ("", "zero_shot") else mode.replace("_", " ")
    return ", ".join(text for text in (entry.accuracy.split, other) if text)


def _zero_shot_record(entry: ZeroShot) -> dict[str, object]:
    return {
        "model": entry.label,
        "probe": entry.probe,
        "split": entry.accuracy.split,
        "mode": entry.accuracy.mode,
        **accuracy_record(entry.accuracy),
        "chance": entry.chance,
        "majority_accuracy": entry.majority,
        "macro_accuracy": entry.macro,
        "tied_share": entry.tied,
        "against_chance": entry.verdict,
    }


def _share_cell(share: Row | None) -> Cell:
    return Cell(ABSENT) if share is None else Cell(percent(share.value))


def _part(row: Row) -> str:
    control = "" if row.control == "standard" else row.control
    return ", ".join(text for text in (row.subset, row.perturbation, control) if text)
