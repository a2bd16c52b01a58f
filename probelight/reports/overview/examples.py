"""One item or context of a skill, with the models' answers: what the numbers are about."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
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
class _ModelAnswer:
    """A model's answer: the number of a choice, or words, the most probable first."""

    run: Run
    when: str  # before or after which training
    item: str  # name in the explorer
    question: str
    choices: Mapping[Any, str]
    right: Sequence[Any]
    predictions: Sequence[Any]
    ease: float | None

    @property
    def is_right(self) -> bool:
        """Whether the first answer is right."""
        return any(key in self.right for key in self.predictions[:1])


Key = TypeVar("Key")
KeyedAnswer = tuple[Hashable, _ModelAnswer]  # with what tells its question from another


def examples(results: RunSet, verdicts: Sequence[SkillVerdict]) -> Iterator[Example]:
    """Yield the examples of the verdicts on one skill; none if no run kept its answers.

    Of a skill that a model knew or learned: an item that the first model gets right, and one that
    inoculation made it forget, or that it gets wrong. Of another skill a typical item.
    """
    if not any(verdict.word in ("knew it", "learned it") for verdict in verdicts):
        yield from filter(None, [_example(results, verdicts)])
        return
    yield from filter(None, [_example(results, verdicts, True)])
    lost = next(filter(None, (forgotten_example(results, verdict) for verdict in verdicts)), None)
    yield from filter(None, [lost or _example(results, verdicts, False)])


def _example(
    results: RunSet, verdicts: Sequence[SkillVerdict], is_right: bool | None = None
) -> Example | None:
    """Return a typical item, of those that the first model gets right or wrong if asked.

    Learned skills are shown with the answers after training, all others with those before it.
    """
    learned = any(verdict.word == "learned it" for verdict in verdicts)
    by_model: dict[str, _ModelAnswer] = {}
    typical: Hashable = None
    for verdict in verdicts:
        answers = _answers(results, verdict, learned) if len(by_model) < MOST_MODELS else {}
        if is_right is not None and not by_model:
            answers = {q: answer for q, answer in answers.items() if answer.is_right == is_right}
        if answers and not by_model:
            eases = [(a.ease, _size(a), q) for q, a in answers.items() if a.ease is not None]
            typical = _typical(eases) if eases else next(iter(answers))
        if typical in answers:
            by_model[verdict.model] = answers[typical]
    if not by_model:
        return None
    title = ""
    if is_right is not None:
        first = cut(next(iter(by_model)), LONGEST_NAME)
        title = f"{first} gets this {'right' if is_right else 'wrong'}"
    return _example_of(by_model, title, len(verdicts) - len(by_model))


def forgotten_example(results: RunSet, verdict: SkillVerdict) -> Example | None:
    """Return an item of the original task that inoculation made a model forget; None without one.

    Of all that were right before and are wrong after, a typical one by how sure it was.
    """
    for run in verdict.runs if verdict.skill.kind == "inoculated" else ():
        with suppress(UnreadableResultError):
            items: dict[str, dict[tuple[str, int], ItemLine]] = {ORIGINAL_BEFORE: {}, ORIGINAL: {}}
            for item in read_item_lines(results, run):
                if item.set in items:
                    items[item.set][item.id, item.position] = item
            after = items[ORIGINAL]
            lost = [
                (max(score for score in item.scores if score is not None), _size(item), key)
                for key, item in items[ORIGINAL_BEFORE].items()
                if item.correct == 1 and key in after and after[key].correct == 0
            ]
            if lost:
                answer = _answer(run, after[_typical(lost)])
                name = cut(run.model, LONGEST_NAME)
                return _example_of({run.model: answer}, f"{name} forgot this (original task)")
    return None


def _typical(candidates: Sequence[tuple[float, int, Key]]) -> Key:
    """Return the key of the shortest item (ease, size, key) of the fifth around the median ease."""
    ranked = sorted(candidates, key=lambda candidate: candidate[0])
    middle, reach = (len(ranked) - 1) // 2, len(ranked) // 10
    return min(ranked[middle - reach : middle + reach + 1], key=lambda candidate: candidate[1])[2]


def _size(item: _ModelAnswer | ItemLine) -> int:
    choices = item.choices.values() if isinstance(item, _ModelAnswer) else item.choices
    return len(item.question) + sum(map(len, choices))


def _example_of(answers: Mapping[str, _ModelAnswer], title: str, more_models: int = 0) -> Example:
    """Return the models' answers to one question as an example."""
    first = next(iter(answers.values()))
    num_words = NUM_WORDS if len(answers) == 1 else 1
    chosen = [key for answer in answers.values() for key in answer.predictions[:num_words]]
    needed = dict.fromkeys([*chosen, *first.right])
    further = (key for key, text in first.choices.items() if text)
    ordered = list(dict.fromkeys([*needed, *further]))
    visible = ordered[: max(MOST_CHOICES, len(needed))]
    if first.choices:
        visible.sort()
    query = {"probe": first.run.probe, "model": first.run.model, "item": first.item}
    return Example(
        question=first.question,
        choices=tuple(
            (
                cut(first.choices.get(key, str(key)), LONGEST_CHOICE),
                key in first.right,
                tuple(model for model, a in answers.items() if key in a.predictions[:1]),
            )
            for key in visible
        ),
        when=first.when,
        silent=tuple(model for model, answer in answers.items() if not answer.predictions),
        more_choices=len(ordered) - len(visible),
        more_models=more_models,
        address=f"#items?{urlencode(query, safe='@', quote_via=quote)}",
        title=title,
    )


def _moment(run: Run) -> str:
    size = next((n for row in run.rows for n in (row.num_train, row.dose) if n), None)
    return when_of(run, size or 0)


def _answers(results: RunSet, verdict: SkillVerdict, learned: bool) -> dict[Hashable, _ModelAnswer]:
    """Return answers by question, of the first run that left readable ones."""
    skill, by_question = verdict.skill, dict[Hashable, _ModelAnswer]()
    item_set = PROBE if learned else PROBE_BEFORE
    for run in verdict.runs[:: -1 if learned else 1]:
        with suppress(UnreadableResultError):
            if skill.kind == "diagnosed":
                answers = _context_answers(results, run, skill)
            else:
                answers = (
                    (item.content, _answer(run, item))
                    for item in read_item_lines(results, run)
                    if item.control in WHOLE
                    if run.protocol != "inoculation" or item.set == item_set
                )
            for question, answer in answers:
                by_question.setdefault(question, answer)  # of several seeds the first one's
        if by_question:
            break
    return by_question


def _context_answers(results: RunSet, run: Run, skill: Skill) -> Iterator[KeyedAnswer]:
    contexts = list(enumerate(read_context_lines(results, run), start=1))
    if skill.about in POLARITIES:  # the two alternate
        contexts = contexts[POLARITIES.index(skill.about) :: len(POLARITIES)]
    for number, line in contexts:
        question = cut(line.context, LONGEST_QUESTION) + " ___"
        words, ease = line.predictions, line.probability
        yield (
            line.context,
            _ModelAnswer(run, _moment(run), f"@{number}", question, {}, line.expected, words, ease),
        )


def _answer(run: Run, item: ItemLine) -> _ModelAnswer:
    scores = [s for i, s in enumerate(item.scores) if i != item.answer and s is not None]
    right = item.scores[item.answer]
    ease = None if right is None or not scores else right - max(scores)
    question, choices = cut(item.question, LONGEST_QUESTION), dict(enumerate(item.choices))
    predictions = [] if item.prediction is None else [item.prediction]
    when = "before inoculation" if item.set in (PROBE_BEFORE, ORIGINAL_BEFORE) else _moment(run)
    return _ModelAnswer(run, when, item.name, question, choices, [item.answer], predictions, ease)


def cut(text: str, longest: int) -> str:
    """Shorten a text in its middle, as the question is at its end."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3].rstrip()} … {text[-end:].lstrip()}"
