"""The record: a multiple-choice item, validated when it is read, and its group.

A minimal pair has no stem. Its choices are two or more whole sentences, and a model should give the
right one the highest probability.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from probelight.io.documents import whole_number_of
from probelight.io.errors import RecordError
from probelight.io.ranges import MAX_CHOICES

Setup = Literal["mc_mlm", "mc_qa", "minimal_pair"]
GoldForm = Literal["text", "letter", "index", "index1"]  # how a gold names its choice
GroupBy = Literal["cluster", "word", "stem", "arguments", "paradigm", "subject"]
MASK = "[MASK]"
# How other programs write a blank.
OTHER_MASK = re.compile(
    r"<mask>|\[mask\]|\[blank\]|<extra_id_0>|_{2,}|(?<!\w)_(?!\w)", re.IGNORECASE
)

META_FIELDS = (
    "cluster",  # items about one concept; splits and bootstraps keep them together
    "hops",
    "distractor_type",
    "distractor_hops",
    "first_distractor",  # of a conjunction of two properties: the wrong answer that has the first
    "template",
    "arguments",
    "source",
    "paradigm",  # of a minimal pair, BLiMP's UID
    "subject",  # of a question, as in MMLU
)


class RepeatedSentenceError(RecordError):
    """A minimal pair with two equal sentences."""


class RepeatedGoldError(RecordError):
    """A question with the gold choice twice."""


@dataclass(frozen=True, slots=True)  # of which there may be a million
class Record:
    """A multiple-choice item.

    Attributes:
        id: The id in the file. Ids may repeat, so only (`id`, `position`) identifies an item.
        stem: Question or sentence, with exactly one `[MASK]` in MC-MLM probes; empty in minimal
            pairs.
        choices: Answer texts, in the order of the file; whole sentences in minimal pairs.
        answer: Index of the gold choice.
        meta: Facts about the item by name, see `META_FIELDS`.
        position: Line of the item in its file, from 1; 0 for an item not read from a file.
        file: The file, for messages; it does not count when items are compared.
        turns: Earlier messages of the user in a chat, each with the assistant's answer.
    """

    id: str
    stem: str
    choices: tuple[str, ...]
    answer: int
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)
    position: int = 0
    file: str = field(default="", compare=False)
    turns: tuple[tuple[str, str], ...] = ()

    @property
    def gold(self) -> str:
        """The text of the gold choice."""
        return self.choices[self.answer]

    @property
    def wrong(self) -> tuple[str, ...]:
        """The texts of the other choices, in the order of the file."""
        return self.choices[: self.answer] + self.choices[self.answer + 1 :]

    @property
    def name(self) -> str:
        """A unique name in the file."""
        return f"{self.id}@{self.position}"

    @property
    def where(self) -> str:
        """File and line, or the name of an item that is not from a file."""
        return f"{self.file}:{self.position}" if self.file else self.name


def validate(record: Record, setup: Setup | None = None) -> Record:
    """Check one record and return it.

    Args:
        record: The item.
        setup: "mc_mlm" needs exactly one `[MASK]` in the stem; "minimal_pair" needs sentences that
            differ, and no stem or mask.

    Raises:
        RepeatedSentenceError: If two sentences of a minimal pair are equal.
        RepeatedGoldError: If the gold choice of a question appears twice.
        RecordError: If anything else is wrong; the message does not name file and line.
    """
    choice = "sentence" if setup == "minimal_pair" else "choice"
    if setup != "minimal_pair" and not record.stem.strip():
        raise RecordError("the stem is empty")
    if not 2 <= (num_choices := len(record.choices)) <= MAX_CHOICES:
        raise RecordError(f"{num_choices} {choice}(s); 2 to {MAX_CHOICES:,} are needed")
    texts = [text.strip() for text in record.choices]
    if not all(texts):
        raise RecordError(f"a {choice} is empty")
    if not 0 <= record.answer < len(record.choices):
        raise RecordError(f"the answer {record.answer} is not one of {len(record.choices)} choices")
    if setup == "minimal_pair":
        if record.stem.strip():
            raise RecordError(
                "a minimal pair has whole sentences and no stem, but this one has the stem "
                f"{record.stem[:60]!r}"
            )
        if masked := [text for text in record.choices if MASK in text]:
            raise RecordError(
                f"{MASK} in the sentence {masked[0][:60]!r}; a minimal pair must not have a mask"
            )
        if len({*texts}) < len(texts):
            raise RepeatedSentenceError(f"the same sentence twice: {record.gold!r}")
    elif texts.count(texts[record.answer]) > 1:
        raise RepeatedGoldError(f"the gold choice {record.gold!r} appears twice")
    if setup == "mc_mlm":
        check_mask(record.stem)
    for name in ("hops", "distractor_hops"):  # as tables sort them
        edges = record.meta.get(name)
        if edges is not None and whole_number_of(edges) is None:
            raise RecordError(f"`{name}` in `notes` is {edges!r}; a whole number is needed")
    return record


def setup_of(record: Record) -> Setup:
    """Return the setup of an item by its form."""
    if not record.stem.strip():
        return "minimal_pair"
    return "mc_mlm" if MASK in record.stem else "mc_qa"


def check_mask(stem: str) -> None:
    """Raise a RecordError unless a sentence has exactly one mask."""
    if stem.count(MASK) != 1:
        hint = "" if MASK in stem else " (questions without one have the setup mc_qa)"
        if blank := OTHER_MASK.search(stem.replace(MASK, "")):
            hint = f": write {MASK} instead of {blank[0]!r}; it becomes each model's own mask"
        raise RecordError(f"{stem.count(MASK)} {MASK} in the stem; exactly one is needed{hint}")


def with_mask(text: str) -> str:
    """Return a text with `[MASK]` for its only blank, in any form that `OTHER_MASK` finds."""
    blanks = [] if MASK in text else OTHER_MASK.findall(text)
    return text.replace(blanks[0], MASK) if len(blanks) == 1 else text


def share_choices(records: Sequence[Record]) -> bool:
    """Return whether all items have the same choices, in any order, like the classes of a task."""
    choices = {*records[0].choices} if records else set()
    return bool(records) and all({*record.choices} == choices for record in records)


def chance_of(records: Sequence[Record]) -> float:
    """Return the expected accuracy of guessing among the choices of each item."""
    return fmean(1 / len(record.choices) for record in records)


def group_of(record: Record, group_by: GroupBy | None) -> str:
    """Return the group of an item, which splits must not divide.

    Args:
        record: The item.
        group_by: "cluster", "word", "paradigm" and "subject" group items by that field of `meta`.
            "arguments" groups them by their arguments, in any order, or by the stem if no template
            fits. "stem" groups them by the words of the stem, or of the right sentence of a minimal
            pair. None makes each item its own group; exact copies share one.

    Raises:
        RecordError: If the item has no cluster, word, paradigm or subject.
    """
    if group_by is None:
        return json.dumps([record.id, record.stem, record.choices, record.answer])
    if group_by == "arguments" and record.meta.get("arguments"):
        return " | ".join(sorted(str(argument) for argument in record.meta["arguments"]))
    if group_by in {"arguments", "stem"}:
        return " ".join((record.stem or record.gold).casefold().split())
    group = record.meta.get(group_by)
    if group is None or group == "":
        raise RecordError(f"{record.where}: the item has no `{group_by}` to group it by")
    return str(group)


def groups_of(records: Iterable[Record], group_by: GroupBy | None) -> list[str]:
    """Return the group of each item."""
    return [group_of(record, group_by) for record in records]
