"""Fits the answers of another program's file to items: those of a probe, or those of the file.

Nothing is guessed: an answer that fits no item, or several, is refused with its file and line.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from probelight.evaluation.letters import LetterAnswers
from probelight.io.errors import RecordError, nearest
from probelight.metrics.scoring_rules import divided
from probelight.probes.prompts import by_choice
from probelight.probes.record import MASK, Record, Setup, validate, with_mask
from probelight.probes.source import ProbeData, config_of
from probelight.results.importers.answers import Answer, Imported, at, plain

KeptScores = Literal["as_given", "logarithm", "per_character"]
SHOWN = 3  # items that a message names


def answers_in_order(imported: Imported, data: ProbeData) -> tuple[list[Answer], str]:
    """Return the answer to each item of a probe, and what the answers were fitted by.

    The scores of an answer are in the order of the item's choices. Answers are fitted by their ids
    if the probe has one of them (`ID@LINE` where ids repeat), else by question and candidates,
    white space aside; those that name no candidates, by their order.

    Raises:
        RecordError: If an answer fits no item or several, has other candidates or another gold,
            an item is answered twice or not at all; the message names file and line.
    """
    records, name = data.records, data.config.name
    if data.files == imported.files:  # the items are the file's own
        return [*imported.answers], "order"
    if not all(answer.choices for answer in imported.answers):
        if len(imported.answers) != len(records):
            raise RecordError(
                f"{imported.files[0].path}: {len(imported.answers)} rows, but {name} has "
                f"{len(records)} items; give one row per item, in the same order"
            )
        for answer, record in zip(imported.answers, records, strict=True):
            if len(answer.scores) != len(record.choices):
                raise RecordError(
                    f"{answer.where}: {len(answer.scores)} scores, but the item {record.name} has "
                    f"{len(record.choices)} choices"
                )
            if answer.gold not in (None, record.answer):
                raise _other_gold(answer, record, answer.gold, record.answer)
        return [*imported.answers], "order"
    ids = {answer.id for answer in imported.answers}
    indices_by_key: dict[str, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        for key in ids.intersection([record.id, record.name]):
            indices_by_key[key].append(index)
    has_ids = bool(indices_by_key)
    if not has_ids:
        for index, record in enumerate(records):
            indices_by_key[_question(record.stem, record.choices)].append(index)
    fitted: list[Answer | None] = [None] * len(records)
    for answer in imported.answers:
        keys = (_question(text, answer.choices) for text in answer.texts)
        matches = {
            index: records[index].name
            for key in ([answer.id] if has_ids else keys)
            for index in indices_by_key.get(key, [])
        }
        if len(matches) > 1:
            raise RecordError(
                f"{answer.where}: it matches {len(matches)} items of {name}, "
                f"{_names([*matches.values()])}; give it the id of one of them, as ID@LINE"
            )
        if not matches:
            raise _fits_nothing(answer, data, has_ids)
        [(index, record_name)] = matches.items()
        if earlier := fitted[index]:
            raise RecordError(
                f"{answer.where}: the item {record_name} of {name} is already answered at "
                f"{earlier.where}"
            )
        fitted[index] = _in_its_order(answer, records[index])
    if missing := [r.name for r, match in zip(records, fitted, strict=True) if not match]:
        raise RecordError(
            f"{imported.files[0].path}: {len(missing)} of {len(records)} items of {name} are not "
            f"answered: {_names(missing)}"
        )
    return [*filter(None, fitted)], "ids" if has_ids else "texts"


def _question(text: str, choices: Iterable[str]) -> str:
    """Return a key that is equal for two ways to write one question."""
    return "\n".join([with_mask(plain(text)), *sorted(map(plain, choices))])


def _fits_nothing(answer: Answer, data: ProbeData, by_id: bool) -> RecordError:
    """Return the error of an answer that fits no item, with the nearest one."""
    name = data.config.name
    if by_id or not answer.texts:
        near = nearest(answer.id, [record.id for record in data.records])
        return RecordError(f"{answer.where}: {name} has no item with the id {answer.id!r}{near}")
    texts = {with_mask(plain(text)) for text in answer.texts if text}
    for record in data.records:
        if record.stem and with_mask(plain(record.stem)) in texts:
            return _other_candidates(answer, record)
    example = data.records[0]
    return RecordError(
        f"{answer.where}: it matches no item of {name}, neither by its id {answer.id!r} nor by its "
        f"question {_short(answer.texts[0])}; an example of an item is {example.id!r}, "
        f"{_short(example.stem or example.gold)}"
    )


def _in_its_order(answer: Answer, record: Record) -> Answer:
    """Return scores in the order of an item's choices; these and the gold must be the same."""
    if answer.choices == record.choices and answer.gold in (None, record.answer):
        return answer
    choices = [*map(plain, answer.choices)]
    if sorted(choices) != sorted(map(plain, record.choices)):
        raise _other_candidates(answer, record)
    if answer.gold is not None and choices[answer.gold] != plain(record.gold):
        raise _other_gold(answer, record, answer.choices[answer.gold], record.gold)
    remaining, scores = list(zip(choices, answer.scores, strict=True)), []
    for choice in map(plain, record.choices):  # one of two alike has the first score
        index = next(i for i, (text, _) in enumerate(remaining) if text == choice)
        scores.append(remaining.pop(index)[1])
    return replace(answer, scores=tuple(scores))


def _other_candidates(answer: Answer, record: Record) -> RecordError:
    """Return the error of an answer with other candidates than its item."""
    choices, candidates = ({*map(plain, question.choices)} for question in (record, answer))
    unknown, missing = sorted(candidates - choices), sorted(choices - candidates)
    differences = [
        f"{problem} {', '.join(map(_short, texts[:SHOWN]))}"
        for texts, problem in ((unknown, "the item does not have"), (missing, "missing are"))
        if texts
    ]
    return RecordError(
        f"{answer.where}: the candidates are not those of the item {record.name}: "
        f"{', and '.join(differences) or 'one occurs a different number of times'}"
    )


def _other_gold(answer: Answer, record: Record, its: object, ours: object) -> RecordError:
    """Return the error of an answer with another gold than its item."""
    return RecordError(
        f"{answer.where}: the right choice is {str(its)!r}, but for the item {record.name} it is "
        f"{ours!r}"
    )


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def refuse_other_questions(files: Sequence[Imported]) -> None:
    """Refuse files that have another question than the first one under an id of it."""
    first_by_id = {answer.id: answer for answer in files[0].answers if answer.id and answer.texts}
    for answer in (answer for imported in files[1:] for answer in imported.answers):
        first = first_by_id.get(answer.id)
        questions = [a.texts[0] for a in (first, answer) if a and a.texts]
        if first and len({with_mask(plain(question)) for question in questions}) == 2:
            raise RecordError(
                f"{answer.where}: the item {answer.id!r} asks {_short(answer.texts[0])}, but "
                f"{_short(first.texts[0])} at {first.where}; --data.name is for files that answer "
                "the same items"
            )


def items_of_file(imported: Imported) -> ProbeData:
    """Return the items of a file as a probe, with the setup that they show."""
    questions = ["".join(answer.texts[:1]) for answer in imported.answers]
    setup: Setup = "mc_qa"
    stems = [*map(with_mask, questions)]
    if not any(map(str.strip, questions)):
        setup = "minimal_pair"  # whole sentences
    elif all(stem.count(MASK) == 1 for stem in stems):
        setup = "mc_mlm"
    else:
        stems = questions
    records: list[Record] = []
    no_notes: dict[str, str] = {}  # shared: there may be a million items
    line_by_id: dict[str, str] = {}
    for number, (answer, stem) in enumerate(zip(imported.answers, stems, strict=True), start=1):
        if answer.gold is None or not (answer.texts and answer.choices):
            texts_by_name = {"question": answer.texts, "candidates": answer.choices}
            missing = [name for name, texts in texts_by_name.items() if not texts]
            missing += ["gold"] * (answer.gold is None)
            raise RecordError(
                f"{answer.where}: the file does not have the item's {' and '.join(missing)}; give "
                "the probe as --probe NAME, or a file of its items as --data.path with --data.setup"
                + (" (or a second file with the right answers, as --gold)" * (missing == ["gold"]))
            )
        record = Record(
            id=answer.id or f"item-{number}",
            stem=stem,
            choices=answer.choices,
            answer=answer.gold,
            meta={"paradigm": answer.paradigm} if answer.paradigm else no_notes,
            position=number,
        )
        try:
            validate(record, setup)
        except RecordError as error:
            raise RecordError(f"{answer.where}: {error}") from None
        if (first_line := line_by_id.setdefault(record.id, answer.where)) != answer.where:
            raise RecordError(
                f"{answer.where}: the id {record.id!r} is already at {first_line}; give one row "
                "per item"
            )
        records.append(record)
    config = config_of(imported.name, setup, records, ())
    blanks = sum(map(operator.ne, stems, questions))
    notices = (f"the blank in {blanks} items was replaced by {MASK}",) if blanks else ()
    return ProbeData(config, tuple(records), imported.files, notices)


def with_kept_scores(answers: Sequence[Answer], kept_scores: KeptScores) -> tuple[Answer, ...]:
    """Return the answers with what is kept of their scores.

    That is the logarithm of a probability, the score per character of its choice (as `acc_norm` of
    lm-evaluation-harness), or the score as it is.
    """
    if kept_scores == "as_given":
        return tuple(answers)
    kept_answers = []
    for answer in answers:
        with at(answer.where):
            if kept_scores == "logarithm":
                scores = _logarithms(answer.scores)
                labelled = (
                    replace(label_answer, scores=tuple(_logarithms(label_answer.scores)))
                    for label_answer in answer.labelled
                )
                answer = replace(answer, labelled=tuple(labelled))
            elif answer.labelled:
                raise RecordError("--scores per_character: these are scores of labels, not choices")
            else:
                sizes = [len(choice.strip()) for choice in answer.choices]
                if 0 in (sizes or [0]):
                    raise RecordError(
                        "--scores per_character: the texts of the choices are not known"
                    )
                scores = divided(answer.scores, sizes)
        kept_answers.append(replace(answer, scores=tuple(scores)))
    return tuple(kept_answers)


def _logarithms(scores: Sequence[float]) -> list[float]:
    if wrong := [score for score in scores if not 0 <= score <= 1]:
        raise RecordError(f"--scores logarithm: {wrong[0]:g} is not a probability between 0 and 1")
    return [math.log(score) if score else -math.inf for score in scores]


def letters_of(answers: Sequence[Answer], data: ProbeData) -> LetterAnswers:
    """Return the scores of labels by item and order, as `ask_letters` does.

    The order of the item's choices comes first, or the first one of the file in its place. The
    notices say where orders are missing.
    """
    labels: list[list[Sequence[float]]] = []
    choices, gold_labels, num_reordered, num_uneven = [], [], 0, 0
    max_orders = Counter[int]()  # orders of an item, by its number of choices
    for answer, record in zip(answers, data.records, strict=True):
        texts = [*map(plain, record.choices)]
        file_order = tuple(range(len(texts)))
        orders = [tuple(texts.index(plain(text)) for text in row.order) for row in answer.labelled]
        rows = [(order, row.scores) for order, row in zip(orders, answer.labelled, strict=True)]
        rows.sort(key=lambda row: row[0] != file_order)
        labels.append([scores for _, scores in rows])
        gold_labels.append([order.index(record.answer) for order, _ in rows])
        choices.append([by_choice(scores, order) for order, scores in rows])
        num_reordered += rows[0][0] != file_order
        max_orders[len(texts)] = max(max_orders[len(texts)], len(orders))
        times = Counter(pair for order in orders for pair in enumerate(order))  # label and choice
        is_even = len(times) == len(texts) ** 2 and len({*times.values()}) == 1
        num_uneven += len(orders) > 1 and not is_even
    num_fewer = sum(len(item) < max_orders[len(item[0])] for item in labels)
    count_by_problem = {
        "items were not asked in the order of their file": num_reordered,
        "items were asked in fewer orders than others": num_fewer,
        "items: not every choice had every label equally often, so `letter_debiased` keeps some of "
        "the bias towards labels": num_uneven,
    }
    notices = tuple(f"{count} {problem}" for problem, count in count_by_problem.items() if count)
    return LetterAnswers(data.config.name, data.records, labels, choices, gold_labels, notices)
