"""Table 7 of Richardson & Sabharwal 2020, groups 3 and 4, with ours beside its rows."""

from __future__ import annotations

from probelight.reports.inoculation.columns import cost
from probelight.reports.kit.columns import accuracy, field, gap, text, whole
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import ABSENT
from probelight.reports.papers.beside import Beside
from probelight.reports.papers.science_rows import GROUPS, SPLITS, Entry, left_out, ours, theirs
from probelight.results.load import Results

MINUS_PAPER = "ours − paper, points"
CHANGE = "original_task_change change_ci_low change_ci_high"


def science_models_table(results: Results) -> Table | None:
    """Groups 3 and 4 for each probe of the paper that there are results of, on its items."""
    own = ours(results)
    if not own:
        return None
    probes = list(dict.fromkeys(entry.probe for entry in own))
    order = list(GROUPS)
    entries = sorted(
        [*theirs(probes), *own],
        key=lambda e: (probes.index(e.probe), order.index(e.group), e.ours),
    )
    columns: list[Column[Entry]] = [
        text("probe", lambda entry: entry.probe, "probe"),
        text("", lambda entry: GROUPS[entry.group]),
        field("group", lambda entry: entry.group),
        text("model", lambda entry: entry.model, "model", lambda e: "" if e.ours else "paper"),
        field("source", lambda entry: "ours" if entry.ours else "paper"),
        whole("k", lambda entry: entry.dose, "dose"),
        *(_accuracy(split) for split in SPLITS),
        cost("original task, points", lambda entry: entry.change, lambda e: e.interpretable),
        gap("", lambda entry: entry.change, CHANGE).hidden,
        field("cost_interpretable", lambda entry: entry.interpretable if entry.ours else None),
    ]
    beside: list[Column[Entry]] = [
        gap("accuracy", lambda e: _gap(e.compared), "ours_minus_paper", MINUS_PAPER),
        text("the paper's lies", lambda e: _lies(e) or ABSENT, group=MINUS_PAPER),
        field("paper_lies", _lies),
        gap("original task", lambda e: e.change_gap, "change_minus_paper", MINUS_PAPER),
    ]
    people: Column[Entry] = gap(
        "ours − people, points",
        lambda e: _gap(e.with_people),
        "ours_minus_people people_ci_low people_ci_high",
    )
    if all(entry.compared is None for entry in entries):
        beside = [column.hidden for column in beside]
    with_people = any(entry.with_people for entry in entries)
    return Declared(
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
        "proportions (Newcombe 1998)." + left_out(results),
        [*columns, *beside, people if with_people else people.hidden],
    ).of(entries)


def _accuracy(split: str) -> Column[Entry]:
    names = f"{split}_accuracy {split}_ci_low {split}_ci_high"
    return accuracy(split, lambda entry: entry.values.get(split), names)


def _gap(beside: Beside | None) -> Estimate | None:
    return None if beside is None else beside.difference


def _lies(entry: Entry) -> str:
    return "" if entry.compared is None else entry.compared.lies
