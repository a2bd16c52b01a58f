"""Tables and figures of the psycholinguistic diagnostics (Ettinger 2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from math import isclose
from typing import Any

import pandas as pd

from probelight.probes.diagnostics.sets import SETS
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.charts import row_figure
from probelight.reports.figure import INK, Figure, Line, model_looks
from probelight.reports.numbers import ABSENT, VERDICTS, verdict_of
from probelight.reports.published import published
from probelight.reports.table import Cell, Column, Table, prose, text
from probelight.results.frames import results_frame, with_columns
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.predictions import ContextLine, read_context_lines

PLACE = ["model", "probe", "subset", "perturbation"]
NUMBER = ["metric", *PLACE[1:]]  # identifies a number, ours or the paper's
SPREAD = "_sd"  # after a metric: its standard deviation over shuffles
ENDS = {"": "value", "_ci_low": "ci_low", "_ci_high": "ci_high", SPREAD: "sd"}  # csv suffixes
ACCURACY, SURVIVAL = "accuracy", "survival"  # at each k
SENSITIVITY, MARGIN = "sensitivity", "sensitivity_margin"
PERTURBATIONS = {
    "shuffled": "1st sentence shuffled",
    "truncated": "2nd sentence cut",
    "shuffled+truncated": "shuffled and cut",
    "generic_object": "generic object",
    "generic_subject": "generic subject",
    "generic_both": "generic object, subject",
}
NEGATION: Mapping[tuple[str, ...], str] = {  # by verdicts on statements and their negations
    ("above", "above"): "Sensitive to negation",
    ("above", "below"): "Follows the noun and ignores “not”",
    ("below", "above"): "Goes against the noun, with and without “not”",
}
TOP = 5  # words of a context that are shown
MOST_CONTEXTS = 100  # of a table
COUNTED = "Each share comes with its exact count and, below, Wilson's 95% interval."


def labelled_runs(results: RunSet) -> list[tuple[Run, str]]:
    """Return each run with its model's name, by set; namesakes have the run in brackets."""
    of_sets = [
        run
        for run in results.of("diagnose")
        if {run.probe, *(row.probe for row in run.rows)} <= SETS.keys()
    ]
    times = Counter((run.probe, run.model) for run in of_sets)
    return [
        (run, run.model if times[run.probe, run.model] == 1 else f"{run.model} ({run.path})")
        for run in sorted(of_sets, key=lambda run: [*SETS].index(run.probe))
    ]


@lru_cache(maxsize=2)
def diagnosed(results: RunSet) -> pd.DataFrame:
    """Return a row per number of the diagnostics, by set, perturbed contexts last.

    Further columns than those of the results: `title` of the set in the paper; `condition`, part
    and perturbation; `sd` of a mean over shuffles; `chance`, the sensitivity of a guess.
    """
    labels = {run.path: label for run, label in labelled_runs(results)}
    rows = results_frame(results)
    rows = rows[rows.path.isin([*labels])]
    rows = rows.assign(model=rows.path.map(labels)).drop_duplicates([*PLACE, "metric"], keep="last")
    is_spread = rows.metric.str.endswith(SPREAD)
    spreads = rows[is_spread].assign(metric=rows.metric.str.removesuffix(SPREAD))
    rows = with_columns(rows[~is_spread], spreads, {"value": "sd"}, [*PLACE, "metric"])
    rows["title"] = [SETS[name].title for name in rows.probe]
    perturbed = [PERTURBATIONS.get(name, name.replace("_", " ")) for name in rows.perturbation]
    conditions = zip(rows.subset, perturbed, strict=True)
    rows["condition"] = [", ".join(filter(None, s)) for s in conditions]
    rows["chance"] = [1 / 3 if name == "cprag" else 1 / 2 for name in rows.probe]
    rows["_set"] = [[*SETS].index(name) for name in rows.probe]
    rows["_perturbed"] = rows.perturbation != ""
    rows["_upper"] = [s["upper"] if s and s.kind == "cloze" else 0 for s in rows.part]
    rows = rows.sort_values(["_set", "_perturbed", "_upper"], kind="stable", ignore_index=True)
    rows = rows.astype(object).where(rows.notna(), None)
    shares = [_share_cell(row) for row in rows.to_dict("records")]
    return rows.assign(_share=shares)


def at_each_k(results: RunSet, name: str) -> dict[str, str]:
    """Return the headings of a metric at each k that was measured: {"accuracy@5": "@5 %"}."""
    depths = diagnosed(results).metric.str.removeprefix(f"{name}@").unique()
    ks = sorted(int(depth) for depth in depths if depth.isdecimal())
    return {f"{name}@{k}": f"@{k} %" for k in ks}


def accuracy_table(results: RunSet) -> Table | None:
    """Make the table of word-prediction accuracy (tables 4, 7, 8 and 11 of the paper)."""
    return _completions(
        results,
        at_each_k(results, ACCURACY),
        "diagnostics_accuracy",
        "Words that people expect",
        "@k: the share of contexts in which an expected word is among the model's k best. In "
        "NEG-136 and NEG-1500, only affirmative statements count, because after “not” hardly any "
        "word is wrong. Contexts whose expected words are not in a model's vocabulary are left "
        f"out, so models may have different counts. {COUNTED} ± is the standard deviation over "
        "shuffles.",
    )


def survival_table(results: RunSet) -> Table | None:
    """Make the table of contexts that keep an expected word when perturbed (section 7.1)."""
    return _completions(
        results,
        at_each_k(results, SURVIVAL),
        "diagnostics_survival",
        "Are words still expected in perturbed contexts?",
        "Of the contexts in which an expected word is among the model's k best, the share in which "
        "one still is when the context is perturbed (the mean share over shuffles). "
        f"{COUNTED} perturbations.jsonl of each run has the contexts and the words.",
    )


def sensitivity_table(results: RunSet) -> Table | None:
    """Make the table of completion sensitivity (tables 5, 9, 12 and 14)."""
    return _completions(
        results,
        {SENSITIVITY: "prefers %", MARGIN: "by over 0.01, %"},
        "diagnostics_sensitivity",
        "Good or bad completions",
        "How often the good completion is more probable than the bad one, and how often by more "
        "than 0.01. CPRAG-102: more probable than both bad ones (33.3% by chance). ROLE-88: more "
        "probable than in the context with the roles reversed. NEG-136: the true one is more "
        f"probable than the false one (50% by chance). {COUNTED}",
    )


def _completions(
    results: RunSet, metrics: Mapping[str, str], name: str, title: str, note: str
) -> Table | None:
    """Make a table of metrics (headings by name) whose rows are parts of sets."""
    rows = diagnosed(results)
    rows = rows[rows.metric.isin([*metrics])]
    table_rows = rows.drop_duplicates(PLACE)
    measured = [metric for metric in metrics if metric in {*rows.metric}]
    csv = [*PLACE, "num_items"]
    for metric in measured:
        names = {column: f"{metric}{end}" for end, column in ENDS.items()}
        metric_rows = rows[rows.metric == metric]
        table_rows = with_columns(table_rows, metric_rows, names | {"_share": f"_{metric}"}, PLACE)
        csv += names.values()

    def shares(metric: str) -> Column:
        return Column(metrics[metric], lambda row: getattr(row, f"_{metric}") or ABSENT)

    return tables.table(
        name,
        title,
        note,
        table_rows,
        [text("set", "title", "condition")],
        rows="probe subset perturbation",
        across="model",
        each=[*map(shares, measured)],
        csv=" ".join(csv),
    )


def _share_cell(row: Mapping[str, Any]) -> Cell:
    """Return a share with its exact count, or a mean over shuffles with its standard deviation."""
    value, number = row["value"], row["num_items"]
    interval = numbers.between(row["ci_low"], row["ci_high"])
    if row["sd"] is not None:
        return Cell(f"{numbers.percent(value)} ± {numbers.percent(row['sd'])}", interval)
    if not number:
        return Cell(numbers.percent(value), interval)
    right = value * number
    exact = f"{round(right):,}/{number:,}" if isclose(right, round(right)) else f"n = {number:,}"
    return Cell(f"{numbers.percent(value)} ({exact})", interval)


def first_words_table(results: RunSet) -> Table | None:
    """Make the table of what models' best words go by (sections 9.1 to 9.4 of the paper)."""
    rows = diagnosed(results)
    at_k = [name for metric in (ACCURACY, SURVIVAL) for name in at_each_k(results, metric)]
    rows = rows[~rows.metric.isin([SENSITIVITY, MARGIN, *at_k])]
    order = pd.factorize(rows.metric)[0]
    rows = rows.assign(_measured=rows.metric.map(numbers.measure), _order=order)
    return tables.table(
        "diagnostics_first_words",
        "What decides the first word",
        "For a model's best word: how often it repeats the subject if it is not the expected word "
        "(“a daisy is a daisy”; all errors of both BERTs do in section 9.1 of the paper), how "
        "often it begins with the sound that the article before it requires, and how often it "
        f"stays the same, or changes, when “not” is inserted into the statement. {COUNTED}",
        rows.sort_values(["_set", "_order"], kind="stable"),
        [text("set", "title", "condition"), text("measured", "_measured")],
        rows="probe metric subset perturbation",
        across="model",
        each=[Column("share %", lambda row: row._share)],
        csv="model probe metric subset perturbation value ci_low ci_high num_items",
    )


def words_tables(results: RunSet) -> list[Table | None]:
    """Make a table per set of the best words after each context (tables 6, 10, 13 and 15)."""
    words_column = Column(
        "words", lambda row: Cell(row.words or ABSENT, row._hit), "left", prose=True
    )
    by_set: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run, label in labelled_runs(results):
        lines_by_context: dict[str, list[ContextLine]] = {}  # a context may have several targets
        with suppress(UnreadableResultError):  # the page's items say so
            for line in read_context_lines(results, run):
                lines_by_context.setdefault(line.context, []).append(line)
        for context, lines in lines_by_context.items():
            expected = dict.fromkeys(word for line in lines for word in line.expected)
            words = lines[0].predictions[:TOP]
            ranks = (f"{word} is no. {n}" for n, word in enumerate(words, 1) if word in expected)
            record = {
                "model": label,
                "context": context,
                "expected": "|".join(expected),
                "words": ", ".join(words),
                "_expected": ", ".join(expected) or ABSENT,
                "_hit": next(ranks, ""),
                "_runs": run.key,
            }
            by_set.setdefault(run.probe, {}).setdefault(context, []).append(record)
    return [
        tables.table(
            f"diagnostics_words_{probe}",
            f"What models say: {SETS[probe].title}",
            f"The {TOP} most probable words after each context, the best one first, and the place "
            f"of the expected one among them. {min(MOST_CONTEXTS, len(contexts))} of "
            f"{len(contexts):,} different contexts are shown; predictions.jsonl of each run has "
            "all.",
            [record for records in [*contexts.values()][:MOST_CONTEXTS] for record in records],
            [prose("context", "context"), text("expected", "_expected")],
            rows="context",
            across="model",
            each=[words_column],
            csv="model context expected words",
        )
        for probe, contexts in by_set.items()
    ]


def accuracy_figure(results: RunSet) -> Figure | None:
    """Draw the accuracies of whole sets at each k, with the paper's perturbations."""
    rows = diagnosed(results)
    is_shown = (rows.perturbation == "") | _is_in_paper(rows)
    return _figure(
        "diagnostics_accuracy",
        "Words that people expect",
        "The share of contexts in which an expected word is among the model's k best. Lines are "
        "95% intervals.",
        {name: at.removesuffix(" %") for name, at in at_each_k(results, ACCURACY).items()},
        rows[is_shown & (rows.subset == "")],
    )


def sensitivity_figure(results: RunSet) -> Figure | None:
    """Draw the sensitivities that the paper has too, with and without the margin."""
    rows = diagnosed(results)
    return _figure(
        "diagnostics_sensitivity",
        "Good or bad completions",
        "How often the good completion is more probable than the bad one, and how often by more "
        "than 0.01. The vertical line is chance; a model whose 95% interval reaches it is not "
        "clearly above chance.",
        {SENSITIVITY: "", MARGIN: "by over 0.01"},
        rows[_is_in_paper(rows)],
    )


def _figure(
    name: str, title: str, caption: str, metrics: Mapping[str, str], rows: pd.DataFrame
) -> Figure | None:
    """Draw each metric on each part of a set, with the paper's numbers as crosses."""
    rows = rows[rows.metric.isin([*metrics])]
    if rows.empty:
        return None
    names = zip(rows.condition, rows.metric.map(metrics), strict=True)
    rows = rows.assign(
        heading=rows.title,
        name=[", ".join(filter(None, words)) or "all" for words in names],
        look=rows.model,
        chance=rows.chance.where(rows.metric == SENSITIVITY),
        _part=rows.groupby(["title", "condition"], sort=False).ngroup(),
        _rank=rows.metric.map([*metrics].index),
    ).sort_values(["_part", "_rank"], kind="stable")
    named_rows = rows.drop_duplicates(["heading", "name"]).drop(columns=["look", "value"])
    paper_rows = named_rows.merge(_printed(), on=NUMBER)
    looks = model_looks(rows.model.unique())
    looks["BERT-B (paper)"] = Line(INK, "none", "x")
    looks["BERT-L (paper)"] = Line(INK, "none", "+")
    crosses = "" if paper_rows.empty else " Crosses: Ettinger (2020), without intervals."
    drawn_rows = pd.concat([rows, paper_rows])
    return row_figure(name, title, caption + crosses, drawn_rows, looks, "%")


def _printed() -> pd.DataFrame:
    """Return the paper's numbers in our columns."""
    numbers = published().query("paper == 'Ettinger 2020'").rename(columns={"part": "subset"})
    return numbers.assign(look=numbers.name + " (paper)")[[*NUMBER, "look", "value"]]


def _is_in_paper(rows: pd.DataFrame) -> Any:
    """Return for each row whether the paper has that number."""
    return pd.MultiIndex.from_frame(rows[NUMBER]).isin(pd.MultiIndex.from_frame(_printed()[NUMBER]))


def diagnostics_summary(results: RunSet) -> str:
    """Return each model's verdicts, those on negation, and which runs are not shown."""
    rows = diagnosed(results)
    rows = rows[(rows.metric == SENSITIVITY) & (rows.perturbation == "")]
    verdicts = {
        (row.model, row.probe, row.subset): verdict_of((row.ci_low, row.ci_high), row.chance)
        for row in rows.itertuples()
    }
    by_finding: dict[str, list[str]] = {}
    for (model, probe, subset), verdict in verdicts.items():
        negated = verdicts.get((model, probe, "negative"))
        if probe in ("cprag", "role") and not subset and verdict != "unknown":
            finding = f"Preference for good completions is {VERDICTS[verdict]}"
        elif (probe, subset) == ("neg_simp", "affirmative") and negated is not None:
            finding = NEGATION.get((verdict, negated), "Not clearly sensitive to negation")
        else:
            continue
        by_finding.setdefault(finding, []).append(f"{model} on {SETS[probe].title}")
    sentences = [f"{finding}: {numbers.listed(names)}." for finding, names in by_finding.items()]
    labelled = [run for run, _ in labelled_runs(results)]
    sentences += [
        f"Not shown: {run.path}, because its record names no diagnostic set."
        for run in results.of("diagnose")
        if run not in labelled
    ]
    return " ".join(sentences)
