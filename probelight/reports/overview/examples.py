"""One item or context of a skill, with the models' answers: what the numbers are about."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median_low
from typing import Any
from urllib.parse import quote, urlencode

from probelight.reports.numbers import WHOLE, when_of
from probelight.reports.overview.skills import POLARITIES, Skill, SkillVerdict
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.predictions import ItemLine, read_context_lines, read_item_lines

MOST_MODELS = 4
MOST_CHOICES = 6
NUM_WORDS = 3  # that a model goes on with where it is alone; of several the first word of each
LONGEST_QUESTION, LONGEST_CHOICE, LONGEST_NAME = 260, 90, 30  # characters
# Sets of items of an inoculation, before it and after.
PROBE_BEFORE, PROBE = "report_probe_before", "report_probe"
ORIGINAL_BEFORE, ORIGINAL = "report_original_before", "report_original"
Choice = tuple[str, bool, tuple[str, ...]]  # a text, whether it is right, and who gave it


@dataclass(frozen=True)
class Example:
    """An item or a context, and its answers."""

    question: str
    choices: tuple[Choice, ...]
    when: str
    silent: tuple[str, ...]  # models without an answer
    more_choices: int  # choices left out, neither right nor chosen
    more_models: int  # models left out
    address: str  # in the page's explorer
    title: str = ""  # why this one is shown; empty for a typical one


@dataclass(frozen=True)
class _Answer:
    """A model's answer: the number of a choice, or words, the most probable first."""

    run: Run
    when: str  # it was given
    item: str  # name in the explorer
    question: str
    choices: Mapping[Any, str]
    right: Sequence[Any]
    given: Sequence[Any]
    ease: float | None  # the example is the item of median ease

    @property
    def is_right(self) -> bool:
        """Whether the first answer is a right one."""
        return any(key in self.right for key in self.given[:1])


def examples(results: RunSet, row: Sequence[SkillVerdict]) -> Iterator[Example]:
    """Yield the examples of the verdicts on one skill; none if no run kept its answers.

    Of a skill that a model knew or learned: an item that the first model gets right, and one that
    inoculation made it forget, or that it gets wrong. Of another skill a typical item.
    """
    if not any(verdict.word in ("knew it", "learned it") for verdict in row):
        yield from filter(None, [_example(results, row)])
        return
    yield from filter(None, [_example(results, row, True)])
    lost = next(filter(None, (forgotten(results, verdict) for verdict in row)), None)
    yield from filter(None, [lost or _example(results, row, False)])


def _example(
    results: RunSet, row: Sequence[SkillVerdict], is_right: bool | None = None
) -> Example | None:
    """Return an item of median ease, of those that the first model gets right or wrong if asked.

    Learned skills are shown with the answers after training, all others with those before it.
    """
    learned = any(verdict.word == "learned it" for verdict in row)
    found: dict[str, _Answer] = {}
    typical: Hashable = None
    for verdict in row:
        answers = _answers(results, verdict, learned) if len(found) < MOST_MODELS else {}
        if is_right is not None and not found:
            answers = {key: one for key, one in answers.items() if one.is_right == is_right}
        if answers and not found:
            eases = [(answer.ease, place) for place, answer in enumerate(answers.values())]
            known = [pair for pair in eases if pair[0] is not None]
            typical = list(answers)[median_low(known)[1] if known else 0]  # the first of equal ones
        if typical in answers:
            found[verdict.model] = answers[typical]
    if not found:
        return None
    title = ""
    if is_right is not None:
        first = cut(next(iter(found)), LONGEST_NAME)
        title = f"{first} gets this {'right' if is_right else 'wrong'}"
    return _shown(found, title, len(row) - len(found))


def forgotten(results: RunSet, verdict: SkillVerdict) -> Example | None:
    """Return an item of the original task that inoculation made a model forget; None without one.

    Of all that were right before and are wrong after, the one in the middle by how sure it was.
    """
    for run in verdict.runs if verdict.skill.kind == "inoculated" else ():
        with suppress(UnreadableResultError):
            sets: dict[str, dict[tuple[str, int], ItemLine]] = {ORIGINAL_BEFORE: {}, ORIGINAL: {}}
            for item in read_item_lines(results, run):
                if item.set in sets:
                    sets[item.set][item.id, item.position] = item
            after_all = sets[ORIGINAL]
            lost = [
                (max(score for score in item.scores if score is not None), place)
                for place, item in sets[ORIGINAL_BEFORE].items()
                if item.correct == 1 and place in after_all and after_all[place].correct == 0
            ]
            if lost:
                answer = _answer(run, after_all[median_low(lost)[1]])
                name = cut(run.model, LONGEST_NAME)
                return _shown({run.model: answer}, f"{name} forgot this (original task)")
    return None


def _shown(found: Mapping[str, _Answer], title: str, more_models: int = 0) -> Example:
    """Return the models' answers to one question as an example."""
    first = next(iter(found.values()))
    num_words = NUM_WORDS if len(found) == 1 else 1
    given = [key for answer in found.values() for key in answer.given[:num_words]]
    kept = dict.fromkeys([*given, *first.right])
    others = (key for key, text in first.choices.items() if text)
    every = list(dict.fromkeys([*kept, *others]))
    shown = every[: max(MOST_CHOICES, len(kept))]
    if first.choices:
        shown.sort()
    where = {"probe": first.run.probe, "model": first.run.model, "item": first.item}
    return Example(
        question=first.question,
        choices=tuple(
            (
                cut(first.choices.get(key, str(key)), LONGEST_CHOICE),
                key in first.right,
                tuple(model for model, answer in found.items() if key in answer.given[:1]),
            )
            for key in shown
        ),
        when=first.when,
        silent=tuple(model for model, answer in found.items() if not answer.given),
        more_choices=len(every) - len(shown),
        more_models=more_models,
        address=f"#items?{urlencode(where, safe='@', quote_via=quote)}",
        title=title,
    )


def _when(run: Run) -> str:
    size = next((n for row in run.rows for n in (row.num_train, row.dose) if n), None)
    return when_of(run, size or 0)


def _answers(results: RunSet, verdict: SkillVerdict, learned: bool) -> dict[Hashable, _Answer]:
    """Return answers by question, of the first run that left readable ones."""
    skill, found = verdict.skill, dict[Hashable, _Answer]()
    for run in verdict.runs[:: -1 if learned else 1]:
        with suppress(UnreadableResultError):
            is_diagnosed = skill.kind == "diagnosed"
            answers = (
                _words(results, run, skill) if is_diagnosed else _choices(results, run, learned)
            )
            for question, answer in answers:
                found.setdefault(question, answer)  # of several seeds the first one's
        if found:
            break
    return found


def _words(results: RunSet, run: Run, skill: Skill) -> Iterator[tuple[Hashable, _Answer]]:
    contexts = list(enumerate(read_context_lines(results, run), start=1))
    if skill.about in POLARITIES:  # the two alternate
        contexts = contexts[POLARITIES.index(skill.about) :: len(POLARITIES)]
    for number, line in contexts:
        question = cut(line.context, LONGEST_QUESTION) + " ___"
        words, ease = line.predictions, line.probability
        yield (
            line.context,
            _Answer(run, _when(run), f"@{number}", question, {}, line.expected, words, ease),
        )


def _choices(results: RunSet, run: Run, learned: bool) -> Iterator[tuple[Hashable, _Answer]]:
    wanted = PROBE if learned else PROBE_BEFORE
    for item in read_item_lines(results, run):
        if item.control in WHOLE and (run.protocol != "inoculation" or item.set == wanted):
            yield item.content, _answer(run, item)


def _answer(run: Run, item: ItemLine) -> _Answer:
    scores = [s for i, s in enumerate(item.scores) if i != item.answer and s is not None]
    right = item.scores[item.answer]
    ease = None if right is None or not scores else right - max(scores)
    question, choices = cut(item.question, LONGEST_QUESTION), dict(enumerate(item.choices))
    given = [] if item.prediction is None else [item.prediction]
    when = "before inoculation" if item.set in (PROBE_BEFORE, ORIGINAL_BEFORE) else _when(run)
    return _Answer(run, when, item.name, question, choices, [item.answer], given, ease)


def cut(text: str, longest: int) -> str:
    """Shorten a text in its middle, as the question is at its end."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3].rstrip()} … {text[-end:].lstrip()}"
