"""The items of another program's file as a probe of their own, where no probe is given."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record, Setup, validate, with_mask
from probelight.probes.source import ProbeData, config_of
from probelight.results.importers.answers import Answer, Imported, at


def own_items(found: Imported) -> ProbeData:
    """The items that a file holds, with the setup that is told from them.

    Raises:
        RecordError: If an item has no question, candidates or gold, or is none that can be asked;
            the message names file and line.
    """
    setup = _setup(found.answers)
    records = []
    for number, answer in enumerate(found.answers, start=1):
        with at(answer.where):
            records.append(validate(_record(answer, number, setup), setup))
    first: dict[str, str] = {}
    for record, answer in zip(records, found.answers, strict=True):
        if (other := first.setdefault(record.id, answer.where)) != answer.where:
            raise RecordError(
                f"{answer.where}: the id {record.id!r} stands at {other} too; an item has one row"
            )
    config = config_of(found.name, setup, records, ())
    blanks = sum(r.stem != a.texts[0] for r, a in zip(records, found.answers, strict=True))
    notices = (f"the blank of {blanks} items is written {MASK} here",) if blanks else ()
    return ProbeData(config, tuple(records), found.files, notices)


def _setup(answers: Sequence[Answer]) -> Setup:
    """Whole sentences without a question, sentences with a mask, or questions with answers."""
    questions = [answer.texts[0] for answer in answers if answer.texts]
    if not any(question.strip() for question in questions):
        return "minimal_pair"
    return "mc_mlm" if all(with_mask(text).count(MASK) == 1 for text in questions) else "mc_qa"


def _record(answer: Answer, number: int, setup: Setup) -> Record:
    lacking = [
        *([] if answer.texts else ["question"]),
        *([] if answer.choices else ["candidates"]),
        *([] if answer.gold is not None else ["gold"]),
    ]
    if lacking:
        raise RecordError(
            f"the file does not say the item's {' and '.join(lacking)}: give its probe as --probe "
            "NAME, or its file as --data.path with --data.setup"
            + (" (or the right ones in a file of their own, as --gold)" * (lacking == ["gold"]))
        )
    assert answer.gold is not None
    return Record(
        id=answer.id or f"item-{number}",
        stem=with_mask(answer.texts[0]) if setup == "mc_mlm" else answer.texts[0],
        choices=answer.choices,
        answer=answer.gold,
        meta={"paradigm": answer.paradigm} if answer.paradigm else {},
        position=number,
    )
