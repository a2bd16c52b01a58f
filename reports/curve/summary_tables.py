"""The paper's summary tables with ours among their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metrics.learning_curve import WEIGHTS
from reports.curve.summary import (
    FULL,
    LANGUAGE,
    MODES,
    PAPER_SPLIT,
    Estimate,
    Summary,
    published,
    summaries,
)
from reports.kit.layout import (
    ABSENT,
    Cell,
    Column,
    Table,
    between,
    count,
    percent,
    points,
    points_between,
    rate,
    unsigned,
)
from reports.kit.published import PublishedCurve, short_name
from results.load import Results

PAPER = "Talmor et al. 2020"
TRAINED = dict(zip(MODES, ("MLP", "linear", "whole network"), strict=True))
# Score, its heading, and the group it stands in; LangSense has its unclipped sum beside it.
HEADINGS = {"ws": "WS %", "max": "MAX %"}
CONTROL_HEADINGS = {"langsense_pert": "pert", "langsense_nolang": "nolang"}
Entry = dict[str, Summary]  # the curves of one model by mode


def curve_summary_tables(results: Results) -> list[Table]:
    """A table a probe, as the paper has them: MC-MLM probes, and the whole network for MC-QA."""
    found = summaries(results)
    made = []
    for probe in dict.fromkeys(summary.curve.probe for summary in found):
        own = [summary for summary in found if summary.curve.probe == probe]
        frozen = [summary for summary in own if summary.curve.mode != FULL]
        whole = [summary for summary in own if summary.curve.mode == FULL]
        made += [_summary_table(probe, frozen, "")] if frozen else []
        made += [_summary_table(probe, whole, "_full")] if whole else []
    return made


def _summary_table(probe: str, found: Sequence[Summary], suffix: str) -> Table:
    modes = [m for m in TRAINED if any(s.curve.mode == m for s in found)]
    entries = _entries(found)
    paper = published(probe) if _has_modes(published(probe), modes) else []
    names = [f"{mode}_{what}" for mode in modes for what in HEADINGS]
    heads = [Column("model", "left")]
    heads += [] if suffix else [Column("zero-shot %")]
    heads += [Column(HEADINGS[n.split("_")[1]], group=TRAINED[n.split("_")[0]]) for n in names]
    for label in CONTROL_HEADINGS.values():
        heads += [Column("clipped", group=f"LangSense {label}")]
        heads += [Column("unclipped", group=f"LangSense {label}")]
    heads += [Column("points", "left")]
    scores = [*([] if suffix else ["zero_shot"]), *names]
    rows: list[tuple[Cell, ...]] = []
    told = set()
    for entry in entries:
        rows.append(_our_cells(entry, scores))
        row = next(iter(entry.values())).paper
        if row in paper and row is not None:
            rows.append(_paper_cells(row, scores, entry))
            told.add(row.model)
    rows += [_paper_cells(row, scores, {}) for row in paper if row.model not in told]
    records = [record for entry in entries for record in _records(entry)]
    records += [record for row in paper for record in _paper_records(row)]
    return Table(
        f"curve_summary_{probe}{suffix}",
        f"{probe.replace('_', ' ')}{' (questions)' if suffix else ''}: its curves in a few numbers",
        _note(found, paper),
        tuple(heads),
        tuple(rows),
        tuple(records),
    )


def _entries(found: Sequence[Summary]) -> list[Entry]:
    """The curves of a model by mode; one with several learning rates has several entries."""
    entries: list[Entry] = []
    for place in dict.fromkeys((s.curve.model, s.curve.source) for s in found):
        own = [s for s in found if (s.curve.model, s.curve.source) == place]
        by_mode = {m: [s for s in own if s.curve.mode == m] for m in TRAINED}
        for rank in range(max(map(len, by_mode.values()))):
            entries.append({m: line[rank] for m, line in by_mode.items() if rank < len(line)})
    return entries


def _has_modes(rows: Sequence[PublishedCurve], modes: Sequence[str]) -> bool:
    return any(f"{mode}_ws" in row.scores for row in rows for mode in modes)


def _our_cells(entry: Entry, scores: Sequence[str]) -> tuple[Cell, ...]:
    first = next(iter(entry.values()))
    rates = ", ".join(
        f"{TRAINED[mode]} {rate(s.curve.learning_rate)}"
        for mode, s in entry.items()
        if s.curve.learning_rate is not None
    )
    about = ", ".join(
        text for text in (first.curve.where, f"rates {rates}" if rates else "") if text
    )
    cells = [Cell(short_name(first.curve.model), about)]
    cells += [estimate_cell(_score(entry, name)) for name in scores]
    held = _language(entry)
    for control in LANGUAGE.values():
        cells += [gap_cell(held.lang_sense(control), sign=False), gap_cell(held.lang_gap(control))]
    return (*cells, Cell(points_text(first.sizes)))


def _paper_cells(row: PublishedCurve, scores: Sequence[str], entry: Entry) -> tuple[Cell, ...]:
    """A row of the paper; where ours may stand beside it, with ours minus the paper's."""
    cells = [Cell(f"{PAPER}: {row.short_name}", f"table {row.table}")]
    for name in (*scores, *LANGUAGE):
        value = row.scores.get(name)
        text = ABSENT if value is None else f"{100 * value:.0f}"
        owner = _owner(entry, name)
        gap = ""
        if owner is not None and owner.beside_paper(name) is not None and name in owner.scores:
            gap = f"ours {points(owner.scores[name].value - row.scores[name])}"
        cells += [Cell(text, gap), *([Cell(ABSENT)] if name in LANGUAGE else [])]
    return (*cells, Cell(points_text(list(WEIGHTS))))


def _owner(entry: Entry, score: str) -> Summary | None:
    """The curve that a score is from."""
    if not entry:
        return None
    if score == "zero_shot":
        return next(iter(entry.values()))
    return _language(entry) if score in LANGUAGE else entry.get(score.split("_")[0])


def _language(entry: Entry) -> Summary:
    """The curve that LangSense is from: the paper takes the MLP's, or the whole network's."""
    return entry.get("mlp") or entry.get(FULL) or next(iter(entry.values()))


def _score(entry: Entry, score: str) -> Estimate | None:
    owner = _owner(entry, score)
    return None if owner is None else owner.scores.get(score)


def estimate_cell(estimate: Estimate | None) -> Cell:
    """An accuracy in per cent with its interval."""
    if estimate is None:
        return Cell(ABSENT)
    return Cell(percent(estimate.value), between(estimate.low, estimate.high))


def gap_cell(estimate: Estimate | None, *, sign: bool = True) -> Cell:
    """A difference in percentage points with its interval; what cannot be negative has no sign."""
    if estimate is None:
        return Cell(ABSENT)
    if estimate.low is None or estimate.high is None:
        return Cell(points(estimate.value) if sign else unsigned(estimate.value))
    if sign:
        return Cell(points(estimate.value), points_between(estimate.low, estimate.high))
    low, high = unsigned(estimate.low), unsigned(estimate.high)
    return Cell(unsigned(estimate.value), f"{low} to {high}")


def points_text(sizes: Sequence[int]) -> str:
    """The points that a sum is made of; the whole curve by its ends."""
    if list(sizes) == list(WEIGHTS):
        return f"all {len(WEIGHTS)}"
    return ", ".join(map(count, sizes)) if sizes else ABSENT


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
        unclipped = {f"{n}_unclipped": summary.lang_gap(c) for n, c in LANGUAGE.items()}
        for score, estimate in (*summary.scores.items(), *unclipped.items()):
            if estimate is None:
                continue
            paper = summary.beside_paper(score) if summary is _owner(entry, score) else None
            yield {
                **place,
                "score": score.removeprefix(f"{mode}_"),
                "value": estimate.value,
                "ci_low": estimate.low,
                "ci_high": estimate.high,
                "paper": paper,
                "difference": None if paper is None else estimate.value - paper,
            }


def _paper_records(row: PublishedCurve) -> Iterator[dict[str, object]]:
    for name, value in row.scores.items():
        mode, _, score = name.partition("_")
        known = mode in TRAINED
        yield {
            "source": f"{PAPER}, table {row.table}",
            "probe": row.probe,
            "model": row.model,
            "split": PAPER_SPLIT,
            "mode": mode if known else "",
            "score": score if known else name,
            "value": value,
        }
