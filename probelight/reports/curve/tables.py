"""The tables of learning curves: the paper's summaries, every point, rivals and parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, stdev
from typing import Any

from probelight.metrics.learning_curve import WEIGHTS, is_complete
from probelight.probes.controls import STANDARD
from probelight.reports import numbers
from probelight.reports import table as kit
from probelight.reports.curve.comparisons import rivals, standard_curves
from probelight.reports.curve.curves import LANGUAGE, MODES, SENSE, ProbeCurve, Score, curves, score
from probelight.reports.numbers import ABSENT, INTERVAL, TOO_FEW, named
from probelight.reports.published import published, short_name
from probelight.reports.table import ACCURACY, SIZE, Cell, Column, Table, share, table, text, whole
from probelight.results.load import RunSet

TRAINED = dict(zip(MODES, ("MLP", "linear", "whole network"), strict=True))
UNCLIPPED = "_unclipped"
ENDS = ("", UNCLIPPED)  # of the names of a LangSense
VALUE = "value ci_low ci_high"
GAP = "standard_minus_control difference_low difference_high"
BEFORE, AFTER = "zero_shot zero_shot_low zero_shot_high", "trained trained_low trained_high"
RIVALLED: dict[Score, str] = {"zero_shot": "zero-shot", "weighted_sum": "WS", "maximum": "MAX"}
DIFFERENCES = {score: f"{score}_difference {score}_low {score}_high" for score in RIVALLED}
Record = dict[str, Any]


def summary_tables(results: RunSet) -> list[Table | None]:
    """Make a table for each probe, with another one for MC-QA."""
    by_key: dict[tuple[str, bool], list[ProbeCurve]] = {}
    for curve in standard_curves(results):
        key = (curve.probe, curve.setup == "mc_qa")
        by_key.setdefault(key, []).append(curve)
    return [_summary_table(*key, by_key[key]) for key in sorted(by_key)]


def _summary_table(
    probe: str, are_questions: bool, probe_curves: Sequence[ProbeCurve]
) -> Table | None:
    """Make the table of a probe: a row per curve, in the csv file a row per score."""
    senses = LANGUAGE | {name: c for curve in probe_curves for name, c in curve.senses.items()}
    return table(
        f"curve_summary_{probe}{'_full' * are_questions}",
        f"Learning curves in numbers: {probe.replace('_', ' ')}{' (questions)' * are_questions}",
        _summary_note(probe_curves),
        [
            {**record, "_curve": number}
            for number, curve in enumerate(probe_curves)
            for record in _score_records(curve)
        ],
        [
            text("model", "_name", "_about"),
            text("trained", "mode", "_rate"),
            text("values of N", "_points"),
        ],
        rows="_curve",
        across="score",
        each=_score_column,
        values=["zero_shot", "ws", "max", *(name + end for name in senses for end in ENDS)],
        csv=f"probe model split train mode learning_rate points score {VALUE}",
    )


def _score_records(curve: ProbeCurve) -> Iterator[Record]:
    scores = {key.name: estimate for key, estimate in curve.scores.items()}
    gaps = {name + UNCLIPPED: curve.lang_gap(control) for name, control in curve.senses.items()}
    start = curve.line().get(0)
    scorer = numbers.scored_by(start.mode) if start and start.mode != curve.mode else ""
    notes = (curve.where, scorer and f"zero-shot by {scorer}")
    for name, estimate in (scores | gaps).items():
        if estimate:
            yield {
                **curve.record,
                **named(VALUE, estimate),
                **_summed_points(curve.sizes),
                "score": name,
                "num_seeds": None if name == "zero_shot" else curve.num_seeds,
                "_name": short_name(curve.model),
                "_about": ", ".join(filter(None, notes)),
            }


def _score_column(name: str) -> list[Column]:
    if name in ("ws", "max"):
        return [kit.accuracy(f"{name.upper()} %", VALUE, group="trained")]
    if name == "zero_shot":
        return [kit.accuracy("zero-shot %", VALUE, group="untrained")]
    sense = name.removeprefix(SENSE).removesuffix(UNCLIPPED).replace("_", " ")
    column = kit.gap if name.endswith(UNCLIPPED) else kit.accuracy  # what is clipped has no sign
    label = "unclipped" if name.endswith(UNCLIPPED) else "clipped"
    return [column(label, VALUE, group=f"LangSense {sense}")]


def _summary_note(probe_curves: Sequence[ProbeCurve]) -> str:
    note = (
        "WS, weighted score: the mean of the accuracies at N = 62 to 4,000, in which small N count "
        "most (weights 0.23 to 0.07). MAX: the best of them; as in the paper, it is chosen on the "
        "items that it is measured on, so it is slightly too high. LangSense: the same weighted "
        "mean of standard minus control, in points, with negative differences counted as 0, as in "
        "the paper. Noise alone makes it positive, so the unclipped mean is next to it (pert: key "
        "words replaced; nolang: no language)."
    )
    groups = sorted({curve.num_groups for curve in probe_curves if curve.num_groups is not None})
    note += (
        " Below each number is its 95% interval, over seeds and over items (in "
        f"{' or '.join(map(numbers.count, groups))} groups); it is wide if there are few, and "
        f"“{TOO_FEW}” if there are two."
        if groups
        else " There is no interval: the runs did not record which items were right."
    )
    if any(curve.sizes and not is_complete(curve.sizes) for curve in probe_curves):
        note += (
            f" With fewer than all {len(WEIGHTS)} values of N, the weights are renormalised, and "
            "the result is not compared with the paper's."
        )
    trained = dict.fromkeys(curve.train for curve in probe_curves if curve.train)
    note += "".join(f" Training examples: {rows}." for rows in trained)
    return f"{note} Rate: the learning rate."


def curve_table(results: RunSet) -> Table | None:
    """Make the table of all points: means over seeds, controls, and the difference."""
    all_curves = curves(results)
    frame = kit.framed(
        {**_point_record(curve, control, num_train), "_curve": number}
        for number, curve in enumerate(all_curves)
        for control, line in curve.points.items()
        for num_train in line
    )
    if frame.empty:
        return None
    note = (
        "Accuracy after training on N examples, with the full question (standard) and under "
        f"controls. {INTERVAL}, over groups of items and over seeds (over items alone if a "
        "run did not record which were right). It is wide if there are few groups or seeds, and "
        f"“{TOO_FEW}” if there are two. Below the median seed are the lowest and the highest "
        "one. The difference is in percentage points on the same items and seeds, with its "
        "interval or, if there is none, its lowest and highest seed. At chance: runs whose "
        "accuracy on the training examples is not above chance; the mean includes them."
    )
    standard_columns = [
        kit.accuracy("accuracy %"),
        Column(
            "median seed %",
            lambda row: (
                Cell(numbers.percent(row.median), numbers.between(row.seed_min, row.seed_max))
                if row.num_seeds > 1
                else ABSENT
            ),
        ),
        whole("seeds", "num_seeds"),
        kit.number("at chance", "_at_chance", str),
        kit.size(),
    ]
    control_columns = [
        kit.accuracy("accuracy %"),
        kit.gap("standard − control", "standard_minus_control _low _high"),
    ]
    controls = sorted({control for curve in all_curves for control in curve.controls})
    return table(
        "learning_curve",
        "Learning curves",
        note,
        frame,
        [
            text("probe", "probe", "split"),
            text("model", "model"),
            text("trained", "mode", "_rate"),
            whole("N", "num_train"),
            share("chance", "chance"),
            share("chance with empty choices", "scored_chance"),
            share("majority", "majority"),
        ],
        rows="_curve num_train",
        across="_group",
        each=lambda group: standard_columns if group == STANDARD else control_columns,
        values=[STANDARD, *(control.replace("_", " ") for control in controls)],
        visible=frame.sort_values(["_curve", "num_train"], kind="stable"),
        csv=f"model probe mode split learning_rate control num_train {ACCURACY} median seed_min "
        f"seed_max seed_sd num_seeds num_at_chance {SIZE} chance majority {GAP} difference_min "
        "difference_max",
    )


def _point_record(curve: ProbeCurve, control: str, num_train: int) -> Record:
    point = curve.line(control)[num_train]
    values = [*point.rows.value]
    gap = None if control == STANDARD else curve.difference(control, num_train)
    ends = point.train_rows.ci_low.dropna()
    stuck = [end <= curve.chance for end in ends if curve.chance is not None]
    return {
        **curve.record,
        **named(ACCURACY, point.estimate),
        **named(GAP, gap),
        "mode": point.mode,
        "control": control,
        "num_train": num_train,
        "median": median(values),
        "seed_min": min(values),
        "seed_max": max(values),
        "seed_sd": stdev(values) if len(values) > 1 else None,
        "num_seeds": len(values),
        "num_at_chance": sum(stuck) if stuck else None,
        "num_items": point.num_items,
        "difference_min": gap and min(gap.of_seeds),
        "difference_max": gap and max(gap.of_seeds),
        # An interval without hits is from the items alone, however few seeds there are.
        "accuracy_num_seeds": len(point.hits),
        "standard_minus_control_num_seeds": len(point.hits),
        **dict(zip(("_low", "_high"), gap.span if gap else (None, None), strict=True)),
        "_group": control.replace("_", " "),
        "_at_chance": f"{sum(stuck)} of {len(stuck)}" if stuck else None,
        "_runs": [*point.rows.run],
    }


def against_table(results: RunSet) -> Table | None:
    """Make the table of each model against its random weights and the baselines."""
    all_curves = standard_curves(results)
    records: list[Record] = []
    for curve in all_curves:
        for rival in rivals(curve, all_curves) if curve.role == "model" else ():
            sizes = [size for size in curve.sizes if size in rival.sizes]
            seeds = [c.num_seeds for c in (curve, rival) if c.num_seeds]
            record = {
                **curve.record,
                "against": rival.model,
                **_summed_points(sizes),
                "_runs": curve.record["_runs"] + rival.record["_runs"],
            }
            for name, columns in DIFFERENCES.items():
                num_seeds = 1 if name == "zero_shot" else min(seeds, default=None)
                record |= named(columns, score(name, curve.line(), rival.line()))
                record[f"{name}_difference_num_seeds"] = num_seeds
            records.append(record)
    return table(
        "curve_against",
        "What pre-training contributes",
        "Each model minus the same architecture with random weights, trained in the same way, and "
        "minus the baselines over word vectors (named in brackets). Differences are in percentage "
        "points, over the values of N that both curves have, with 95% intervals that pair items "
        "and seeds. An interval that includes 0 shows no clear benefit of pre-training.",
        records,
        [
            text("probe", "probe", "split"),
            text("model", "model", "mode"),
            text("against", "against"),
            text("values of N", "_points"),
            *(
                kit.gap("difference", DIFFERENCES[score], group=name)
                for score, name in RIVALLED.items()
            ),
        ],
        csv=f"probe split mode model against points {' '.join(DIFFERENCES.values())}",
    )


def parts_table(results: RunSet) -> Table | None:
    """Make the table of parts, untrained and at the largest N (Talmor et al. 2020, table 6)."""
    records = [record for curve in curves(results) for record in _part_records(curve)]
    note = (
        "Accuracy by template and by set of choices, before training and at the largest N (mean "
        "over seeds). Each accuracy has its 95% interval over items (Wilson, averaged over "
        "seeds), which is wide because parts have few items. Paper: table 6, for BERT-WWM on items "
        "that annotators agreed on, so it is not the same measure; one of our templates may cover "
        "two of the paper's."
    )
    frame = kit.framed(records)
    return table(
        "curve_parts",
        "Which parts were known, and which were learned",
        note,
        frame,
        [
            text("probe", "probe", "split"),
            text("model", "model", "mode"),
            text("part", "_name"),
            whole("n", "num_items"),
            kit.accuracy("zero-shot %", BEFORE),
            whole("N", "num_train"),
            kit.accuracy("trained %", AFTER),
            kit.number("change", "_change", numbers.points),
            kit.number("paper %", "_published", str),
        ],
        # Intervals are from the items alone, however few seeds there are.
        visible=frame.drop(columns="num_seeds", errors="ignore"),
        csv=f"probe model mode split part num_items {BEFORE} num_train {AFTER} num_seeds",
    )


def _part_records(curve: ProbeCurve) -> Iterator[Record]:
    for subset, line in curve.subset_lines.items():
        last = max(line)
        points = line.get(0), line[last] if last else None
        untrained, trained = (point.over_items if point else None for point in points)
        name = "/".join(subset["words"]) if subset.kind == "choices" else subset.text
        name = str(subset["name"]) if subset.kind == "template" else name
        paper_numbers = []  # two of the paper's templates (table 6) may share one of ours
        if subset.kind == "template":
            table_6 = "paper == 'Talmor et al. 2020' and table == 6"
            rows = published().query(f"{table_6} and probe == @curve.probe and part == @name")
            paper_numbers = [f"{100 * value:.0f}" for value in rows.value]
        yield {
            **curve.record,
            **named(BEFORE, untrained),
            **named(AFTER, trained),
            "part": subset.text,
            "num_items": line[last].num_items,
            "num_train": last or None,
            "num_seeds": len(line[last].rows) if last else None,
            "_name": name,
            "_change": trained.value - untrained.value if untrained and trained else None,
            "_published": " / ".join(paper_numbers) or None,
            "_runs": [key for point in points if point for key in point.rows.run],
        }


def _summed_points(sizes: Sequence[int]) -> Record:
    """Return the points of a sum, for the csv file and for people."""
    listed = ", ".join(map(numbers.count, sizes)) or ABSENT
    are_all = len(sizes) == len(WEIGHTS)
    return {
        "points": " ".join(map(str, sizes)),
        "_points": f"all {len(WEIGHTS)}" if are_all else listed,
    }
