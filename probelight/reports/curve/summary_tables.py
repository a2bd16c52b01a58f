"""The paper's summary tables with ours among their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from probelight.reports.curve.curve import FULL
from probelight.reports.curve.lines import (
    PAPER,
    TRAINED,
    Entry,
    Line,
    entries_of,
    language_of,
    owner_of,
    points_text,
)
from probelight.reports.curve.summary import LANGUAGE, PAPER_SPLIT, Summary, published, summaries
from probelight.reports.kit.columns import gap_cell, shown, text
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Cell, Column, Declared, Table
from probelight.reports.kit.text import ABSENT, count, unsigned
from probelight.reports.published import PublishedCurve, ScoreKey
from probelight.results.load import Results

# Score, its heading, and the group it stands in; LangSense has its unclipped sum beside it.
HEADINGS = {"ws": "WS %", "max": "MAX %"}
CONTROL_HEADINGS = {"langsense_pert": "pert", "langsense_nolang": "nolang"}


def curve_summary_tables(results: Results, *, with_paper: bool = True) -> list[Table]:
    """A table a probe, as the paper has them: MC-MLM probes, and the whole network for MC-QA.

    Args:
        results: The results.
        with_paper: Whether people see the paper's rows among ours; the csv file has them always.
    """
    found = summaries(results)
    made = []
    for probe in dict.fromkeys(summary.curve.probe for summary in found):
        own = [summary for summary in found if summary.curve.probe == probe]
        frozen = [summary for summary in own if summary.curve.mode != FULL]
        whole = [summary for summary in own if summary.curve.mode == FULL]
        made += [_summary_table(probe, frozen, "", with_paper)] if frozen else []
        made += [_summary_table(probe, whole, "_full", with_paper)] if whole else []
    return [table for table in made if table is not None]


def _summary_table(
    probe: str, found: Sequence[Summary], suffix: str, with_paper: bool
) -> Table | None:
    modes = [m for m in TRAINED if any(s.curve.mode == m for s in found)]
    entries = entries_of(found)
    paper = published(probe) if _has_modes(published(probe), modes) else []
    seen = paper if with_paper else []
    lines = []
    for entry in entries:
        row = next(iter(entry.values())).paper
        lines += [Line(entry), *([Line(entry, row)] if row and row in seen else [])]
    told = [line.paper for line in lines]
    lines += [Line({}, row) for row in seen if row not in told]
    scores = [] if suffix else [(ScoreKey("zero_shot"), "zero-shot %", "")]
    scores += [(ScoreKey(what, m), HEADINGS[what], TRAINED[m]) for m in modes for what in HEADINGS]
    columns: list[Column[Line]] = [
        text("model", lambda line: line.name, small=lambda line: line.about),
        *(shown(label, partial(Line.cell, key=key), group) for key, label, group in scores),
    ]
    for name, control in _senses(found).items():
        columns += _sense(name, control)
    columns.append(text("points", lambda line: points_text(line.sizes)))
    table = Declared(
        f"curve_summary_{probe}{suffix}",
        f"{probe.replace('_', ' ')}{' (questions)' if suffix else ''}: its curves in a few numbers",
        _note(found, seen),
        columns,
    ).of(lines)
    # People see a model in a row; the file has a line a score.
    records = [record for entry in entries for record in _records(entry)]
    records += [record for row in paper for record in _paper_records(row)]
    return table and replace(table, records=tuple(records))


def _has_modes(rows: Sequence[PublishedCurve], modes: Sequence[str]) -> bool:
    return any(ScoreKey("ws", mode) in row.scores for row in rows for mode in modes)


def _sense(name: str, control: str) -> list[Column[Line]]:
    """LangSense, and beside it the unclipped sum, which the paper has not."""

    def clipped(line: Line) -> Cell:
        held = language_of(line.entry).lang_sense(control) if not line.paper else None
        return line.published(ScoreKey(name)) if line.paper else sense_cell(held)

    def unclipped(line: Line) -> Cell:
        return gap_cell(None if line.paper else language_of(line.entry).lang_gap(control))

    group = f"LangSense {CONTROL_HEADINGS.get(name, control.replace('_', ' '))}"
    return [shown("clipped", clipped, group), shown("unclipped", unclipped, group)]


def _senses(found: Sequence[Summary]) -> dict[str, str]:
    """The controls that LangSense is told of by its names: the paper's, then any other."""
    return LANGUAGE | {name: c for summary in found for name, c in summary.senses.items()}


def sense_cell(estimate: Estimate | None) -> Cell:
    """What cannot be negative, in percentage points without a sign."""
    if estimate is None:
        return Cell(ABSENT)
    if estimate.ci_low is None or estimate.ci_high is None:
        return Cell(unsigned(estimate.value))
    low, high = unsigned(estimate.ci_low), unsigned(estimate.ci_high)
    return Cell(unsigned(estimate.value), f"{low} to {high}")


def _note(found: Sequence[Summary], paper: Sequence[PublishedCurve]) -> str:
    said = (
        "WS: accuracies at N = 62 to 4,000 averaged with falling weights (0.23 to 0.07). MAX: the "
        "best of them, chosen on the items that it is measured on, as in the paper, so a little "
        "too high. LangSense: the same weighted sum over standard minus control, in points, "
        "clipped at 0 at each N as in the paper; clipping makes noise positive, so the unclipped "
        "sum stands beside it (pert: key words perturbed; nolang: no language)."
    )
    if groups := {s.curve.num_groups for s in found if s.curve.num_groups is not None}:
        numbers = " or ".join(map(count, sorted(groups)))
        said += (
            " Below each number its 95% interval, over items and over seeds (the items in "
            f"{numbers} groups; of few groups or seeds it is wide)."
        )
    else:
        said += " There is no interval: the runs did not record which items were right."
    if part := [s for s in found if not s.complete and s.sizes]:
        sums = "; ".join(dict.fromkeys(f"N = {points_text(s.sizes)}" for s in part))
        said += f" Sums over {sums} are renormalised and stand beside no number of the paper."
    if paper:
        said += (
            f" Rows of {PAPER} are its table {paper[0].table}; “ours” is ours minus the paper's, "
            "given for the same model (and word vectors) on the released train and dev files with "
            "all seven points."
        )
    trained = dict.fromkeys(s.curve.train for s in found if s.curve.train)
    return said + "".join(f" Train rows: {text}." for text in trained)


def _records(entry: Entry) -> Iterator[dict[str, object]]:
    for mode, summary in entry.items():
        curve = summary.curve
        place = {
            "source": "this report",
            "probe": curve.probe,
            "model": curve.model,
            "split": curve.split,
            "train": curve.train,
            "mode": mode,
            "learning_rate": curve.learning_rate,
            "points": " ".join(map(str, summary.sizes)),
        }
        unclipped = {
            ScoreKey(f"{n}_unclipped"): summary.lang_gap(c) for n, c in summary.senses.items()
        }
        for score, estimate in (*summary.scores.items(), *unclipped.items()):
            if estimate is None:
                continue
            paper = summary.beside_paper(score) if summary is owner_of(entry, score) else None
            yield {
                **place,
                "score": score.name,
                "value": estimate.value,
                "ci_low": estimate.ci_low,
                "ci_high": estimate.ci_high,
                "paper": paper,
                "difference": None if paper is None else estimate.value - paper,
            }


def _paper_records(row: PublishedCurve) -> Iterator[dict[str, object]]:
    for score, value in row.scores.items():
        yield {
            "source": f"{PAPER}, table {row.table}",
            "probe": row.probe,
            "model": row.model,
            "split": PAPER_SPLIT,
            "mode": score.mode,
            "score": score.name,
            "value": value,
        }


def own_summary_tables(results: Results) -> list[Table]:
    """The tables without the paper's rows: the page has a section of those."""
    return curve_summary_tables(results, with_paper=False)
