"""How much of what is asked about each concept a model knows (Richardson & Sabharwal 2020, 5.4).

All of it is from predictions.jsonl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import fsum
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from probelight.io.escaping import visible
from probelight.metrics.clusters import credits_by_cluster, shares_by_cluster, strict_if_independent
from probelight.metrics.intervals import FEW, Term, accuracy_interval, sum_interval, wilson
from probelight.reports import table as tables
from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.runs import Series, inoculations
from probelight.reports.table import Cell, Column, Table, accuracy, framed, share, text, whole
from probelight.reports.words import ABSENT, INTERVAL, listed
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import ItemLine, difficulty_of, read_item_lines

BEFORE, AFTER = "report_probe_before", "report_probe"  # sets in an inoculation's predictions
UNTRAINED = 0  # the dose of a model before inoculation, or without any
SEVERAL = "asked several times"
OF_EACH = 4  # most-known concepts of a model that are shown, and least-known ones
MOST_MODELS = 4
MOST_QUESTIONS = 3


@dataclass(frozen=True, eq=False)
class Asked:
    """A model that was asked about concepts, once or before and after inoculation.

    Attributes:
        series: The model, the probe and, of an inoculation, what it was chosen by.
        is_whole: Whether these are all questions of the split, and so of each concept.
        answers: By dose, ascending, and key of the run: (N,) the questions with its answers, the
            same questions for all; `UNTRAINED` is before inoculation.
    """

    series: Series
    is_whole: bool
    answers: Mapping[int, Mapping[str, tuple[ItemLine, ...]]]

    @property
    def last(self) -> int:
        """The largest dose."""
        return max(self.answers)

    @cached_property
    def questions(self) -> tuple[ItemLine, ...]:
        """(N,) what was asked, with the answers of one of the runs."""
        return next(iter(self.answers[self.last].values()))

    @cached_property
    def several(self) -> Asked:
        """The same with the questions about concepts that have more than one."""
        sizes = Counter(line.group for line in self.questions)
        kept = {
            dose: {
                run: tuple(line for line in lines if sizes[line.group] > 1)
                for run, lines in runs.items()
            }
            for dose, runs in self.answers.items()
        }
        return replace(self, answers=kept)

    def at(self, dose: int, place: int) -> list[ItemLine]:
        """Return each run's answer to a question."""
        return [lines[place] for lines in self.answers[dose].values()]

    def credit(self, dose: int, place: int) -> float:
        """Return what a question counts, mean over seeds."""
        return fmean(line.correct for line in self.at(dose, place))


class Gathered(NamedTuple):
    """Everything that was asked about concepts.

    Attributes:
        asked: What there is something to say of.
        few: Where under `FEW` concepts have more than one question.
        unread: Sentences about predictions that could not be read.
    """

    asked: tuple[Asked, ...]
    few: tuple[Asked, ...]
    unread: tuple[str, ...]


@lru_cache(maxsize=2)
def gathered(results: Results) -> Gathered:
    """Return the inoculations and, after them, zero-shot runs whose predictions name concepts."""
    found: dict[tuple[Series, object], dict[int, dict[str, tuple[ItemLine, ...]]]] = {}
    unread: dict[str, None] = {}
    cut: set[Series] = set()
    for series, run, sets, is_whole in _sources(results):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError as error:
            unread[f"Not counted by concept: {visible(results.below(str(error)))}."] = None
            continue
        if not is_whole:
            cut.add(series)
        for dose, name in sets.items():
            own = tuple(line for line in lines if line.group and name in ("", line.set))
            if own:
                # Runs that were asked about other items are not averaged with.
                questions = tuple(
                    (line.asked, line.group, difficulty_of(vars(line))) for line in own
                )
                found.setdefault((series, questions), {}).setdefault(dose, {})[run.key] = own
    enough, few = list[Asked](), list[Asked]()
    for (series, _), answers in found.items():
        asked = Asked(series, series not in cut, dict(sorted(answers.items())))
        num_concepts = len({line.group for line in asked.several.questions})
        (enough if num_concepts >= FEW else few).append(asked)
    return Gathered(tuple(enough), tuple(few), tuple(unread))


def _sources(results: Results) -> Iterator[tuple[Series, Run, Mapping[int, str], bool]]:
    """Yield series, run, its sets by dose ("" is any) and whether they are whole splits."""
    for series, line in doses(inoculations(results)).items():
        for dose in line:
            # The model before inoculation is the same whatever the dose.
            before = {UNTRAINED: BEFORE} if dose is line[0] else {}
            for one in dose.runs:
                yield series, one.run, {**before, dose.dose: AFTER}, one.whole_split
    for entry in zero_shots(results).itertuples():
        series = Series(entry.model, entry.probe, "", "", entry.split)
        yield series, results.by_path[entry.path], {UNTRAINED: ""}, True


def clusters_table(results: Results) -> Table | None:
    """Make the table of soft and strict cluster accuracy: rows are models and doses."""
    return tables.table(
        "concepts",
        "Concept by concept: soft and strict",
        "Soft: the share of a concept's questions that are right, mean over concepts. Strict: "
        "concepts with every question right; none where not all questions of the split were "
        "asked. If independent: the strict share to expect if as many right answers fell on "
        "questions whatever their concept; what is above it is knowledge of concepts. A concept "
        "with one question counts the same either way, so those with more are counted apart. k = "
        f"0: before inoculation, or without any. {INTERVAL}, over concepts and seeds.",
        [
            {
                **asked.series._asdict(),
                "dose": dose,
                "num_seeds": len(asked.answers[dose]),
                **counted(asked, dose),
                **{f"several_{k}": v for k, v in counted(asked.several, dose).items()},
                "_about": _about(asked.series),
                "_runs": list(asked.answers[dose]),
            }
            for asked in gathered(results).asked
            for dose in asked.answers
        ],
        [
            text("probe", "probe", "_about"),
            whole("k", "dose"),
            whole("seeds", "num_seeds"),
            *(
                column
                for group, prefix in (("all concepts", ""), (SEVERAL, "several_"))
                for column in (
                    whole("concepts", f"{prefix}num_concepts", group=group),
                    *(
                        accuracy(
                            f"{name} %",
                            f"{prefix}{name} {prefix}{name}_ci_low {prefix}{name}_ci_high",
                            group=group,
                        )
                        for name in ("soft", "strict")
                    ),
                )
            ),
            whole("questions", "several_num_questions", group=SEVERAL),
            share("if independent %", "several_strict_if_independent", group=SEVERAL),
        ],
    )


def counted(asked: Asked, dose: int) -> dict[str, Any]:
    """Return the answers at a dose counted by concept, means over seeds with their intervals.

    `strict`, the share of the concepts with every question right, and `strict_if_independent`, that
    share if right answers fell on questions whatever their concept, are None where questions are
    missing.
    """
    concepts = [line.group for line in asked.questions]
    credits = [[line.correct for line in lines] for lines in asked.answers[dose].values()]
    found = {
        "num_concepts": len(set(concepts)),
        "num_questions": len(concepts),
        "accuracy": fmean(map(fmean, credits)),
        "strict_if_independent": None,
    }
    strict: tuple[float | None, ...] = (None, None, None)
    if asked.is_whole:
        own = [strict_if_independent(credit, concepts) for credit in credits]
        found["strict_if_independent"] = fmean(own)
        by_seed = [credits_by_cluster(credit, concepts) for credit in credits]
        strict = accuracy_interval(by_seed[0]) if len(by_seed) == 1 else _over_seeds(by_seed)
    soft = _over_seeds([shares_by_cluster(credit, concepts) for credit in credits])
    for name, values in (("soft", soft), ("strict", strict)):
        ends = (name, f"{name}_ci_low", f"{name}_ci_high")
        found |= dict(zip(ends, values, strict=True))
    return found


def _over_seeds(by_seed: list[list[float]]) -> tuple[float, float, float]:
    """Return the mean over concepts and seeds, with its interval."""
    return sum_interval([Term(1.0, {seed: np.array(own) for seed, own in enumerate(by_seed)})])


def _about(series: Series) -> str:
    origin = f"originally {series.original_task}" if series.original_task else ""
    return ", ".join(filter(None, (series.model, origin, series.remarks)))


def concepts_table(results: Results) -> Table | None:
    """Make the table of the concepts known most and least; its csv file has all with several."""
    every = [_concepts(asked.several) for asked in gathered(results).asked]
    return tables.table(
        "known_concepts",
        "The concepts known most and least",
        f"Of each model the {OF_EACH} concepts that it surely knows most of and least of after the "
        "largest k, by the end of the 95% interval of the share of their questions that are right "
        "(right on 9 of 10 is surer than on 2 of 2), among those with several questions; of those "
        "alike, which are counted, the first by name. Some are there by luck alone: how many, the "
        "strict share if independent says, in the table above. Up to "
        f"{MOST_QUESTIONS} questions of each are shown, with what most seeds answer; what that "
        f"counts is said where seeds differ or choices tie. Up to {MOST_MODELS} models are shown; "
        "the csv file has all, and all their concepts with several questions.",
        [concept for concepts in every for concept in concepts],
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
        shown=framed(row for concepts in every[:MOST_MODELS] for row in _surest(concepts)),
        csv="model probe original_task report_split dose concept num_questions share_before "
        "share_after selection setup control",
    )


def _concepts(asked: Asked) -> list[dict[str, Any]]:
    """Return a record for each concept of a model, with its questions' places."""
    places: dict[str, list[int]] = {}
    for place, line in enumerate(asked.questions):
        places.setdefault(line.group, []).append(place)
    found = []
    for name in sorted(places):
        own = places[name]
        right = {d: fsum(asked.credit(d, place) for place in own) for d in asked.answers}
        shares = {dose: value / len(own) for dose, value in right.items()}
        record = {
            **asked.series._asdict(),
            "dose": asked.last,
            "concept": name,
            "num_questions": len(own),
            "share_before": shares.get(UNTRAINED),
            "share_after": shares[asked.last] if asked.last != UNTRAINED else None,
            "_about": _about(asked.series),
            "_size": f"{len(own)} questions",
            # Right on 9 of 10 is surer than on 2 of 2.
            "_bounds": wilson(right[asked.last], len(own)),
            "_places": own,
            "_asked": asked,
            "_runs": sorted({run for runs in asked.answers.values() for run in runs}),
        }
        found.append(record)
    return found


def _surest(concepts: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield a row for each question of the concepts known most and least."""
    alike = Counter(one["_bounds"] for one in concepts)
    most = [one for one in concepts if one["_bounds"][0] > 0]
    most.sort(key=lambda one: -one["_bounds"][0])
    least = [one for one in concepts if one["_bounds"][1] < 1]
    least.sort(key=lambda one: one["_bounds"][1])
    for rank, ranked in (("most", most[:OF_EACH]), ("least", least[:OF_EACH])):
        for one in ranked:
            asked: Asked = one["_asked"]
            for place in one["_places"][:MOST_QUESTIONS]:
                line = asked.questions[place]
                after = asked.last if asked.last != UNTRAINED else None
                yield one | {
                    "_rank": rank,
                    "_alike": f"{alike[one['_bounds']]} alike",
                    "_question": Cell(line.question, line.choices[line.answer]),
                    "_before": _answer(asked, UNTRAINED, place),
                    "_after": _answer(asked, after, place),
                }


def _answer(asked: Asked, dose: int | None, place: int) -> Cell:
    """Return what most seeds answer to a question, and what that counts."""
    if dose is None or dose not in asked.answers:
        return Cell(ABSENT)
    credit, lines = asked.credit(dose, place), asked.at(dose, place)
    if credit == 1:
        return Cell("right")
    index = Counter(line.prediction for line in lines).most_common(1)[0][0]
    answer = "" if index is None else lines[0].choices[index]
    return Cell(answer or ABSENT, f"counts {credit:.2g}" if credit else "")


def summary(results: Results) -> str:
    """Return which models know concepts and not only answers, and what is not counted."""
    found = gathered(results)
    known: dict[bool, list[str]] = {True: [], False: []}
    for asked in found.asked:
        own, series = counted(asked.several, asked.last), asked.series
        if own["strict"] is not None:
            split = f" ({series.report_split})" if series.report_split else ""
            is_above = own["strict_ci_low"] > own["strict_if_independent"]
            known[is_above].append(f"{series.model} on {series.probe}{split}")
    alike = "than if right answers fell on any questions alike"
    starts = {
        True: f"More concepts are known whole {alike}",
        False: f"Not shown to be more {alike}",
    }
    sentences = [f"{starts[is_above]}: {listed(own)}." for is_above, own in known.items() if own]
    if probes := dict.fromkeys(one.series.probe for one in found.few):
        sentences.append(
            f"Not counted by concept, because under {FEW} concepts have more than one question: "
            f"{', '.join(probes)}."
        )
    return " ".join([*sentences, *found.unread])
