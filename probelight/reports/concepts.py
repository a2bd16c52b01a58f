"""Accuracy by concept, soft and strict (Richardson & Sabharwal 2020, section 5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from statistics import fmean
from typing import Any

import pandas as pd

from probelight.io.escaping import visible
from probelight.metrics import intervals
from probelight.metrics.intervals import FEW, Interval, Term
from probelight.metrics.knowledge import strict_if_independent
from probelight.reports import table as tables
from probelight.reports.inoculation.runs import Series, dose_lines
from probelight.reports.numbers import ABSENT, INTERVAL, Estimate, listed, named
from probelight.reports.table import Cell, Column, Table, accuracy, framed, share, text, whole
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.predictions import difficulty_of, read_item_lines

BEFORE, AFTER = "report_probe_before", "report_probe"  # sets in an inoculation's predictions
UNTRAINED = 0  # the dose of a model before inoculation, or without any
SEVERAL = "concepts with several questions"
OF_EACH = 4  # most-known concepts of a model that are shown, and least-known ones
MOST_MODELS = 4
MOST_QUESTIONS = 3
SERIES = [*Series._fields]
SHOWN = [name for name in SERIES if name != "keeping"]  # which is not told apart here
COLUMNS = [
    *SERIES, "about", "question_set", "is_whole", "dose", "run", "place", "question", "concept",
    "difficulty", "gold", "answer", "correct",
]  # fmt: skip


@lru_cache(maxsize=2)
def answers(results: RunSet) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row per answer to a question about a concept, and sentences on unreadable files.

    Inoculations come first, then zero-shot runs whose predictions name concepts. Runs with the same
    questions have the same number `question_set`; `is_whole` says that these are the whole split,
    `is_several` that the concept has several questions, `is_enough` that at least `FEW` have.
    """
    set_numbers: dict[object, int] = {}
    unread: dict[str, None] = {}
    records = []
    for series, about, run, sets, is_whole in _answered_sets(results):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError as error:
            unread[f"Not counted by concept: {visible(results.below(str(error)))}."] = None
            continue
        for dose, name in sets.items():
            concept_lines = [line for line in lines if line.group and name in ("", line.set)]
            difficulties = [difficulty_of(vars(line)) for line in concept_lines]
            # Only runs with the same items are averaged.
            contents = tuple((line.content, line.group) for line in concept_lines)
            questions = contents, tuple(difficulties)
            number = set_numbers.setdefault((series, questions), len(set_numbers))
            records += [
                (*series, about, number, is_whole, dose, run.key, position, line.question,
                 line.group, difficulty, line.choices[line.answer],
                 "" if line.prediction is None else line.choices[line.prediction], line.correct)
                for position, (line, difficulty)
                in enumerate(zip(concept_lines, difficulties, strict=True))
            ]  # fmt: skip
    rows = pd.DataFrame(records, columns=COLUMNS)
    rows["is_whole"] = rows.groupby(SERIES).is_whole.transform("all")
    by_concept = rows.groupby(["question_set", "dose", "run", "concept"])
    rows["is_several"] = by_concept.place.transform("size") > 1
    several = rows.concept.where(rows.is_several).groupby(rows.question_set).transform("nunique")
    return rows.assign(is_enough=several >= FEW), tuple(unread)


def _answered_sets(results: RunSet) -> Iterator[tuple[Series, str, Run, Mapping[int, str], bool]]:
    """Yield series, name, run, its sets by dose ("" for any), and if they are whole splits."""
    by_series = dose_lines(results, controls=False) if results.of("inoculation") else {}
    for series, line in by_series.items():
        for dose in line:
            # The model before inoculation is the same whatever the dose.
            sets_before = {UNTRAINED: BEFORE} if dose is line[0] else {}
            for cell in dose.runs:
                sets = {**sets_before, dose.dose: AFTER}
                yield series, series.about, cell.run, sets, cell.whole_split
    for entry in zero_shots(results).itertuples():
        series = Series(entry.model, entry.probe, "", "", entry.split)
        about = ", ".join(filter(None, (entry.model, entry.split)))
        yield series, about, results.by_path[entry.path], {UNTRAINED: ""}, True


def clusters_table(results: RunSet) -> Table | None:
    """Make the table of soft and strict cluster accuracy by model and dose."""
    rows, _ = answers(results)
    columns = [text("probe", "probe", "_about"), whole("k", "dose"), whole("seeds", "num_seeds")]
    for group, prefix in (("all concepts", ""), (SEVERAL, "several_")):
        columns.append(whole("concepts", f"{prefix}num_concepts", group=group))
        columns += [accuracy(f"{n} %", f"{prefix}{n}", group=group) for n in ("soft", "strict")]
    return tables.table(
        "concepts",
        "Accuracy by concept: soft and strict",
        "Soft: the share of a concept's questions that are right, averaged over concepts. Strict: "
        "the share of concepts with every question right; missing if not all questions of the "
        "split were asked. If independent: the strict share to expect if as many right answers "
        "were spread over the questions at random; a higher share shows knowledge of whole "
        "concepts. A concept with one question counts the same either way, so concepts with "
        "several questions are counted separately too. k = 0: before inoculation, or without any. "
        f"{INTERVAL}, over concepts and seeds.",
        [
            {
                **set_rows.iloc[0][SHOWN],
                "dose": dose,
                "num_seeds": set_rows.run.nunique(),
                **counted(set_rows),
                **{f"several_{k}": v for k, v in counted(set_rows[set_rows.is_several]).items()},
                "_about": set_rows.about.iloc[0],
                "_runs": [*set_rows.run.unique()],
            }
            for (_, dose), set_rows in rows[rows.is_enough].groupby(["question_set", "dose"])
        ],
        [
            *columns,
            whole("questions", "several_num_questions", group=SEVERAL),
            share("if independent %", "several_strict_if_independent", group=SEVERAL),
        ],
    )


def counted(rows: pd.DataFrame) -> dict[str, Any]:
    """Return soft and strict accuracy at a dose, means over seeds with their intervals.

    There is none that is strict if questions of the split were not asked.
    """
    by_concept = rows.groupby(["run", "concept"], sort=False).correct
    strict = if_independent = None
    if rows.is_whole.all():
        mean = _over_seeds if rows.run.nunique() > 1 else intervals.accuracy_interval
        strict = mean(by_concept.prod())
        if_independent = fmean(
            strict_if_independent([*run_rows.correct], [*run_rows.concept])
            for _, run_rows in rows.groupby("run")
        )
    return {
        "num_concepts": rows.concept.nunique(),
        "num_questions": rows.place.nunique(),
        "accuracy": rows.correct.mean(),
        "strict_if_independent": if_independent,
        **named("soft", Estimate(*_over_seeds(by_concept.mean()))),
        **named("strict", strict and Estimate(*strict)),
    }


def _over_seeds(by_concept: pd.Series[float]) -> Interval:
    """Return the mean over concepts and seeds, with its interval."""
    by_run = [shares.to_numpy() for _, shares in by_concept.groupby(level="run", sort=False)]
    return intervals.sum_interval([Term(1.0, dict(enumerate(by_run)))])


def concepts_table(results: RunSet) -> Table | None:
    """Make the table of the concepts known most and least."""
    rows, _ = answers(results)
    rows = rows[rows.is_enough & rows.is_several]
    by_set = [(set_rows, _concept_rows(set_rows)) for _, set_rows in rows.groupby("question_set")]
    return tables.table(
        "known_concepts",
        "The concepts known best and least",
        f"For each model, the {OF_EACH} concepts with several questions that it most surely knows "
        "best, and least, after the largest k: by the lower end (best) or upper end (least) of the "
        "95% interval of the share right, so that 9 of 10 is surer than 2 of 2. Tied: concepts "
        "with the same interval, of which the first by name are shown. Some are here by luck "
        "alone: see “if independent” in the table above. Each concept has up to "
        f"{MOST_QUESTIONS} questions, with the answer of most seeds and its mean score. The csv "
        f"file has every concept, and the models after the first {MOST_MODELS}.",
        pd.concat([concepts for _, concepts in by_set]) if by_set else [],
        [
            text("probe", "probe", "_about"),
            text("known", "_rank", "_alike"),
            text("concept", "concept", "_size"),
            share("before", "share_before", group="right %"),
            share("after", "share_after", group="right %"),
            Column("question, right answer", lambda row: row._question, "left", prose=True),
            Column("answer before", lambda row: row._before, "left", prose=True),
            Column("after", lambda row: row._after, "left", prose=True),
        ],
        visible=framed(row for pair in by_set[:MOST_MODELS] for row in _surest_rows(*pair)),
    )


def _concept_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row per concept, with the shares right before and after."""
    last = rows.dose.max()
    by_concept = rows.groupby("concept")
    concepts = by_concept[SHOWN].first().assign(dose=last, num_questions=by_concept.place.nunique())
    shares = rows.groupby(["dose", "concept"]).correct.agg(fmean)
    concepts["share_before"] = shares.get(UNTRAINED)
    concepts["share_after"] = shares[last] if last != UNTRAINED else None
    right = (shares[last] * concepts.num_questions).round(9)
    # Right on 9 of 10 is surer than on 2 of 2.
    bounds = map(intervals.wilson, right, concepts.num_questions)
    concepts["_low"], concepts["_high"] = zip(*bounds, strict=True)
    concepts["_alike"] = concepts.groupby(["_low", "_high"]).dose.transform("size")
    concepts["_runs"] = [tuple(rows.run.unique())] * len(concepts)
    return concepts.assign(_about=rows.about.iloc[0]).reset_index()


def _surest_rows(answer_rows: pd.DataFrame, concepts: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a row per question of the concepts known most and least."""
    most = concepts[concepts["_low"] > 0].sort_values("_low", ascending=False, kind="stable")
    least = concepts[concepts["_high"] < 1].sort_values("_high", kind="stable")
    for rank, ranked in (("best", most), ("least", least)):
        for concept in ranked[:OF_EACH].to_dict("records"):
            of_concept = answer_rows[answer_rows.concept == concept["concept"]]
            for _, question_rows in islice(of_concept.groupby("place"), MOST_QUESTIONS):
                last = question_rows[question_rows.dose == concept["dose"]]
                yield concept | {
                    "_rank": rank,
                    "_alike": f"{concept['_alike']} tied",
                    "_size": f"{concept['num_questions']} questions",
                    "_question": Cell(question_rows.question.iloc[0], question_rows.gold.iloc[0]),
                    "_before": _answer(question_rows[question_rows.dose == UNTRAINED]),
                    "_after": Cell(ABSENT) if concept["dose"] == UNTRAINED else _answer(last),
                }


def _answer(rows: pd.DataFrame) -> Cell:
    """Return the answer that most seeds give to a question, and its mean score."""
    if rows.empty:
        return Cell(ABSENT)
    score = fmean(rows.correct)
    if score == 1:
        return Cell("right")
    [(answer, _)] = Counter(rows.answer).most_common(1)
    return Cell(answer or ABSENT, f"score {score:.2g}" if score else "")


def concepts_summary(results: RunSet) -> str:
    """Return which models know more whole concepts than by chance, and what is not counted."""
    rows, unread = answers(results)
    verdicts: dict[str, list[str]] = {}
    for _, set_rows in rows[rows.is_enough & rows.is_several].groupby("question_set"):
        accuracy, series = counted(set_rows[set_rows.dose == set_rows.dose.max()]), set_rows.iloc[0]
        if accuracy["strict"] is not None:
            is_above = accuracy["strict_ci_low"] > accuracy["strict_if_independent"]
            verdict = "More concepts" if is_above else "Not clearly more concepts"
            split = f" ({series.report_split})" if series.report_split else ""
            verdicts.setdefault(verdict, []).append(f"{series.model} on {series.probe}{split}")
    sentences = [
        f"{verdict} are right on all questions than if right answers were spread at random: "
        f"{listed(names)}."
        for verdict, names in verdicts.items()
    ]
    if probes := [*rows[~rows.is_enough].probe.unique()]:
        sentences.append(
            f"Not counted by concept, because fewer than {FEW} concepts have several questions: "
            f"{', '.join(probes)}."
        )
    return " ".join([*sentences, *unread])
