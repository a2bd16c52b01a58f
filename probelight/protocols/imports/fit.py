"""Which item of a probe each answer of another program's file is about; nothing is guessed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from probelight.io.errors import RecordError, nearest
from probelight.probes.record import Record, with_mask
from probelight.probes.source import ProbeData
from probelight.results.importers.answers import Answer, Imported, plain

SHOWN = 3  # items that a message names


class Fitted(NamedTuple):
    """The scores of a probe's items.

    Attributes:
        scores: One list an item, in the order of the probe, one score a choice in its order.
        by: What the answers were fitted by: their ids, texts, or order.
    """

    scores: list[list[float]]
    by: str


def fitted(found: Imported, data: ProbeData) -> Fitted:
    """The scores of all items of a probe.

    Answers are fitted by their ids if the probe has one of them (`ID@LINE` where ids repeat), else
    by question and candidates, white space aside; those that name no candidates, by their order.

    Args:
        found: What the file says.
        data: The probe.

    Raises:
        RecordError: If an answer fits no item or several, has other candidates or another gold,
            an item is answered twice or not at all; the message names file and line.
    """
    if not all(answer.choices for answer in found.answers):
        return Fitted(_in_order(found, data), "order")
    ids = _by(data.records, lambda record: {record.id, record.name})
    by_id = any(answer.id in ids for answer in found.answers)
    named = (
        ids if by_id else _by(data.records, lambda record: {_asked(record.stem, record.choices)})
    )
    places = {record.name: place for place, record in enumerate(data.records)}
    scores: dict[int, list[float]] = {}
    wheres: dict[int, str] = {}
    for answer in found.answers:
        keys = [answer.id] if by_id else [_asked(text, answer.choices) for text in answer.texts]
        own = [record for key in dict.fromkeys(keys) for record in named.get(key, [])]
        record = _one(answer, own, data, by_id)
        place = places[record.name]
        if place in scores:
            raise RecordError(
                f"{answer.where}: the item {record.name} of {data.config.name} is answered at "
                f"{wheres[place]} too"
            )
        scores[place], wheres[place] = _in_its_order(answer, record), answer.where
    _refuse_missing(found, data, scores)
    return Fitted(
        [scores[place] for place in range(len(data.records))], "ids" if by_id else "texts"
    )


def refuse_other_questions(files: Sequence[Imported]) -> None:
    """Refuse files of which one asks something else under an id of the first.

    Raises:
        RecordError: If there is such an item; the message names file and line.
    """
    asked = {one.id: one for one in files[0].answers if one.id and one.texts}
    for answer in (answer for found in files[1:] for answer in found.answers):
        first = asked.get(answer.id)
        texts = [with_mask(plain(one.texts[0])) for one in (first, answer) if one and one.texts]
        if first and len(set(texts)) == 2:
            raise RecordError(
                f"{answer.where}: the item {answer.id!r} asks {_short(answer.texts[0])}, but "
                f"{_short(first.texts[0])} at {first.where}; --data.name is for files that answer "
                "the same items"
            )


def _asked(text: str, choices: Iterable[str]) -> str:
    """What tells questions apart."""
    return "\n".join([with_mask(plain(text)), *sorted(map(plain, choices))])


def _by(
    records: Iterable[Record], names: Callable[[Record], set[str]]
) -> Mapping[str, list[Record]]:
    found = defaultdict[str, list[Record]](list)
    for record in records:
        for name in names(record):
            found[name].append(record)
    return found


def _one(answer: Answer, own: Sequence[Record], data: ProbeData, by_id: bool) -> Record:
    own = list({record.name: record for record in own}.values())
    if len(own) > 1:
        raise RecordError(
            f"{answer.where}: it fits {len(own)} items of {data.config.name}, {_names(own)}; give "
            "it the id of one of them, as ID@LINE"
        )
    if own:
        return own[0]
    name = data.config.name
    if by_id or not answer.texts:
        near = nearest(answer.id, [record.id for record in data.records])
        raise RecordError(f"{answer.where}: the id {answer.id!r} is none of {name}{near}")
    texts = {with_mask(plain(text)) for text in answer.texts if text}
    stems = ((r, with_mask(plain(r.stem))) for r in data.records if r.stem)
    if same := next((r for r, stem in stems if stem in texts), None):
        raise _other_candidates(answer, same)
    example = data.records[0]
    raise RecordError(
        f"{answer.where}: it fits no item of {name}, neither by its id {answer.id!r} nor by its "
        f"question {_short(answer.texts[0])}; an item of {name} is {example.id!r}, "
        f"{_short(example.stem or example.gold)}"
    )


def _in_its_order(answer: Answer, record: Record) -> list[float]:
    """The scores in the order of an item's choices, which must be its own and its gold."""
    own = [plain(choice) for choice in answer.choices]
    if sorted(own) != sorted(map(plain, record.choices)):
        raise _other_candidates(answer, record)
    if answer.gold is not None and own[answer.gold] != plain(record.gold):
        raise _other_gold(answer, record, answer.choices[answer.gold])
    left = list(zip(own, answer.scores, strict=True))
    scores = []
    for choice in map(plain, record.choices):  # one of two alike has the first score
        place = next(i for i, (text, _) in enumerate(left) if text == choice)
        scores.append(left.pop(place)[1])
    return scores


def _in_order(found: Imported, data: ProbeData) -> list[list[float]]:
    if len(found.answers) != len(data.records):
        raise RecordError(
            f"{found.file.path}: {len(found.answers)} rows, where {data.config.name} has "
            f"{len(data.records)} items; a row an item is needed, in their order"
        )
    for answer, record in zip(found.answers, data.records, strict=True):
        if len(answer.scores) != len(record.choices):
            raise RecordError(
                f"{answer.where}: {len(answer.scores)} scores, where the item {record.name} has "
                f"{len(record.choices)} choices"
            )
        if answer.gold not in (None, record.answer):
            raise _other_gold(answer, record, str(answer.gold))
    return [list(answer.scores) for answer in found.answers]


def _refuse_missing(found: Imported, data: ProbeData, scores: Mapping[int, object]) -> None:
    missing = [record for place, record in enumerate(data.records) if place not in scores]
    if missing:
        raise RecordError(
            f"{found.file.path}: {len(missing)} of {len(data.records)} items of "
            f"{data.config.name} are not answered: {_names(missing)}"
        )


def _other_candidates(answer: Answer, record: Record) -> RecordError:
    own, its = ({plain(text) for text in texts} for texts in (answer.choices, record.choices))
    differ = [f"{_listed(own - its)} is none of the item's"] if own - its else []
    differ += [f"{_listed(its - own)} is missing"] if its - own else []
    return RecordError(
        f"{answer.where}: the candidates are not those of the item {record.name}: "
        f"{', and '.join(differ) or 'one stands there another number of times'}"
    )


def _other_gold(answer: Answer, record: Record, said: str) -> RecordError:
    right = record.answer if not answer.choices else record.gold
    return RecordError(
        f"{answer.where}: the gold is {said!r}, but that of the item {record.name} is {right!r}"
    )


def _names(records: Sequence[Record]) -> str:
    names = ", ".join(record.name for record in records[:SHOWN])
    return names + (f" and {len(records) - SHOWN} more" if len(records) > SHOWN else "")


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(_short(text) for text in sorted(texts)[:SHOWN])


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
