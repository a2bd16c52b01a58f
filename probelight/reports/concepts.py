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
from probelight.metrics.clusters import strict_if_independent
from probelight.metrics.intervals import FEW, Interval, Term
from probelight.reports import table as tables
from probelight.reports.inoculation.runs import Series, doses, inoculations
from probelight.reports.numbers import ABSENT, INTERVAL, Estimate, listed, named
from probelight.reports.table import Cell, Column, Table, accuracy, framed, share, text, whole
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run, UnreadableResultError
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
    *SERIES, "about", "asked", "is_whole", "dose", "run", "place", "question", "concept",
    "difficulty", "gold", "answer", "correct",
]  # fmt: skip


@lru_cache(maxsize=2)
def answers(results: Results) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row per answer to a question about a concept, and sentences on unreadable files.

    Inoculations come first, then zero-shot runs whose predictions name concepts. Runs with the same
    questions have the same number `asked`; `is_whole` says that these are the whole split,
    `is_several` that the concept has several questions, `is_enough` that at least `FEW` have.
    """
    numbers: dict[object, int] = {}
    unread: dict[str, None] = {}
    rows = []
    for series, run, sets, is_whole in _sources(results):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError as error:
            unread[f"Not counted by concept: {visible(results.below(str(error)))}."] = None
            continue
        for dose, name in sets.items():
            kept = [line for line in lines if line.group and name in ("", line.set)]
            difficulties = [difficulty_of(vars(line)) for line in kept]
            # Only runs with the same items are averaged.
            asked = tuple((line.asked, line.group) for line in kept), tuple(difficulties)
            number = numbers.setdefault((series, asked), len(numbers))
            rows += [
                (*series, series.about, number, is_whole, dose, run.key, place, line.question,
                 line.group, difficulty, line.choices[line.answer],
                 "" if line.prediction is None else line.choices[line.prediction], line.correct)
                for place, (line, difficulty) in enumerate(zip(kept, difficulties, strict=True))
            ]  # fmt: skip
    found = pd.DataFrame(rows, columns=COLUMNS)
    found["is_whole"] = found.groupby(SERIES).is_whole.transform("all")
    by_concept = found.groupby(["asked", "dose", "run", "concept"])
    found["is_several"] = by_concept.place.transform("size") > 1
    several = found.concept.where(found.is_several).groupby(found.asked).transform("nunique")
    return found.assign(is_enough=several >= FEW), tuple(unread)


def _sources(results: Results) -> Iterator[tuple[Series, Run, Mapping[int, str], bool]]:
    """Yield series, run, its sets by dose ("" for any set) and whether they are whole splits."""
    for series, line in doses(inoculations(results)).items():
        for dose in line:
            # The model before inoculation is the same whatever the dose.
            before = {UNTRAINED: BEFORE} if dose is line[0] else {}
            for cell in dose.runs:
                yield series, cell.run, {**before, dose.dose: AFTER}, cell.whole_split
    for entry in zero_shots(results).itertuples():
        series = Series(entry.model, entry.probe, "", "", entry.split)
        yield series, results.by_path[entry.path], {UNTRAINED: ""}, True


def clusters_table(results: Results) -> Table | None:
    """Make the table of soft and strict cluster accuracy by model and dose."""
    found, _ = answers(results)
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
                **asked.iloc[0][SHOWN],
                "dose": dose,
                "num_seeds": asked.run.nunique(),
                **counted(asked),
                **{f"several_{k}": v for k, v in counted(asked[asked.is_several]).items()},
                "_about": asked.about.iloc[0],
                "_runs": [*asked.run.unique()],
            }
            for (_, dose), asked in found[found.is_enough].groupby(["asked", "dose"])
        ],
        [
            *columns,
            whole("questions", "several_num_questions", group=SEVERAL),
            share("if independent %", "several_strict_if_independent", group=SEVERAL),
        ],
    )


def counted(asked: pd.DataFrame) -> dict[str, Any]:
    """Return soft and strict accuracy at a dose, means over seeds with their intervals.

    There is none that is strict if questions of the split were not asked.
    """
    by_concept = asked.groupby(["run", "concept"], sort=False).correct
    strict = if_independent = None
    if asked.is_whole.all():
        mean = _over_seeds if asked.run.nunique() > 1 else intervals.accuracy_interval
        strict = mean(by_concept.prod())
        if_independent = fmean(
            strict_if_independent([*rows.correct], [*rows.concept])
            for _, rows in asked.groupby("run")
        )
    return {
        "num_concepts": asked.concept.nunique(),
        "num_questions": asked.place.nunique(),
        "accuracy": asked.correct.mean(),
        "strict_if_independent": if_independent,
        **named("soft soft_ci_low soft_ci_high", Estimate(*_over_seeds(by_concept.mean()))),
        **named("strict strict_ci_low strict_ci_high", strict and Estimate(*strict)),
    }


def _over_seeds(by_concept: pd.Series[float]) -> Interval:
    """Return the mean over concepts and seeds, with its interval."""
    by_run = [shares.to_numpy() for _, shares in by_concept.groupby(level="run", sort=False)]
    return intervals.sum_interval([Term(1.0, dict(enumerate(by_run)))])


def concepts_table(results: Results) -> Table | None:
    """Make the table of the concepts known most and least."""
    found, _ = answers(results)
    found = found[found.is_enough & found.is_several]
    every = [(asked, _concepts(asked)) for _, asked in found.groupby("asked")]
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
        pd.concat([concepts for _, concepts in every]) if every else [],
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
        shown=framed(row for pair in every[:MOST_MODELS] for row in _surest(*pair)),
    )


def _concepts(asked: pd.DataFrame) -> pd.DataFrame:
    """Return a row per concept, with the shares right before and after."""
    last = asked.dose.max()
    by_concept = asked.groupby("concept")
    found = by_concept[SHOWN].first().assign(dose=last, num_questions=by_concept.place.nunique())
    shares = asked.groupby(["dose", "concept"]).correct.agg(fmean)
    found["share_before"] = shares.get(UNTRAINED)
    found["share_after"] = shares[last] if last != UNTRAINED else None
    right = (shares[last] * found.num_questions).round(9)
    # Right on 9 of 10 is surer than on 2 of 2.
    bounds = map(intervals.wilson, right, found.num_questions)
    found["_low"], found["_high"] = zip(*bounds, strict=True)
    found["_alike"] = found.groupby(["_low", "_high"]).dose.transform("size")
    found["_runs"] = [tuple(asked.run.unique())] * len(found)
    return found.assign(_about=asked.about.iloc[0]).reset_index()


def _surest(asked: pd.DataFrame, concepts: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a row per question of the concepts known most and least."""
    most = concepts[concepts["_low"] > 0].sort_values("_low", ascending=False, kind="stable")
    least = concepts[concepts["_high"] < 1].sort_values("_high", kind="stable")
    for rank, ranked in (("best", most), ("least", least)):
        for concept in ranked[:OF_EACH].to_dict("records"):
            of_concept = asked[asked.concept == concept["concept"]]
            for _, rows in islice(of_concept.groupby("place"), MOST_QUESTIONS):
                last = rows[rows.dose == concept["dose"]]
                yield concept | {
                    "_rank": rank,
                    "_alike": f"{concept['_alike']} tied",
                    "_size": f"{concept['num_questions']} questions",
                    "_question": Cell(rows.question.iloc[0], rows.gold.iloc[0]),
                    "_before": _answer(rows[rows.dose == UNTRAINED]),
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


def summary(results: Results) -> str:
    """Return which models know more whole concepts than by chance, and what is not counted."""
    found, unread = answers(results)
    verdicts: dict[str, list[str]] = {}
    for _, asked in found[found.is_enough & found.is_several].groupby("asked"):
        last, series = counted(asked[asked.dose == asked.dose.max()]), asked.iloc[0]
        if last["strict"] is not None:
            is_above = last["strict_ci_low"] > last["strict_if_independent"]
            verdict = "More concepts" if is_above else "Not clearly more concepts"
            split = f" ({series.report_split})" if series.report_split else ""
            verdicts.setdefault(verdict, []).append(f"{series.model} on {series.probe}{split}")
    sentences = [
        f"{verdict} are right on all questions than if right answers were spread at random: "
        f"{listed(names)}."
        for verdict, names in verdicts.items()
    ]
    if probes := [*found[~found.is_enough].probe.unique()]:
        sentences.append(
            f"Not counted by concept, because fewer than {FEW} concepts have several questions: "
            f"{', '.join(probes)}."
        )
    return " ".join([*sentences, *unread])
