"""The one reader of items: rows of any file, of objects in memory or of the Hub as records.

A row has a column for the sentence or question, its choices and the gold one:

    {"sentence": "A whale is [MASK] than a mouse.", "choices": ["larger", "smaller"],
     "gold": "larger"}

Choices may be texts, a text with | or ; between them, a JSON list, {"text": [...], "label": [...]}
as on the Hub, or objects with label and text. `question` may hold stem and choices, as in the AI2
format. Where choices have labels, the gold is one of them. Each choice may be a column of its own
(A, B, ...), or each wrong one (distractor1, ...), as in SciQ.

Minimal pairs have the fields of BLiMP (Warstadt et al. 2020), or an empty stem and choices:

    {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "UID": "...", "pairID": "0"}

Several wrong sentences are a list under `sentence_bad`, or columns of that name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_uppercase
from typing import Any, TypedDict, Unpack, get_args

from probelight.io.errors import RecordError, nearest
from probelight.io.escaping import listed
from probelight.io.files import MAX_ITEMS, DataFile
from probelight.probes.importers.cells import choices_of, label_of, meta_of, text_of, without_nested
from probelight.probes.importers.columns import OPTION, UNNAMED, ColumnError, Layout, layout_of
from probelight.probes.importers.released import LayoutName
from probelight.probes.record import (
    GoldForm,
    Record,
    RepeatedGoldError,
    RepeatedSentenceError,
    Setup,
    setup_of,
    validate,
)

READ_AS: dict[GoldForm, str] = {
    "text": "the text of a choice",
    "letter": "a letter (A is the first choice)",
    "index": "a number from 0 (0 is the first choice)",
    "index1": "a number from 1 (1 is the first choice)",
}


def answers_by_form(gold: str, choices: Sequence[str]) -> dict[GoldForm, int]:
    """Return the index of the choice that a gold names, by each form that it can have."""
    answers: dict[GoldForm, int] = {}
    texts = [text.strip() for text in choices]
    if gold.strip() in texts:
        answers["text"] = texts.index(gold.strip())
    if len(gold) == 1 and gold in ascii_uppercase[: len(choices)]:
        answers["letter"] = ascii_uppercase.index(gold)
    if gold.isascii() and gold.isdecimal() and len(gold) < 5 and str(int(gold)) == gold:
        if int(gold) < len(choices):
            answers["index"] = int(gold)
        if 0 < int(gold) <= len(choices):
            answers["index1"] = int(gold) - 1
    return answers


class Golds:
    """The golds of one set, which are noted one by one; `form` is what the user says of them."""

    def __init__(self, form: GoldForm | None) -> None:
        self._form = form
        # The first gold, its choices and place: of those that have not a form, and of those that
        # name two choices in two forms.
        self._misfits: dict[GoldForm, tuple[str, Sequence[str], str]] = {}
        self._clashes: dict[tuple[GoldForm, ...], tuple[str, Sequence[str], str]] = {}

    def note(self, gold: str, choices: Sequence[str], where: str) -> None:
        """Take note of an item's gold; RecordError, without `where`, if it names no choice."""
        answers = answers_by_form(gold, choices)
        if not answers or self._form not in {None, *answers}:
            needed = f" as {READ_AS[self._form]}, which --data.gold says" if self._form else ""
            raise RecordError(
                f"the gold {gold[:60]!r} is not one of the choices {listed(choices)}{needed}"
                f"{nearest(gold, choices)}; write the exact text of a choice"
            )
        for form in READ_AS.keys() - answers.keys():
            self._misfits.setdefault(form, (gold, choices, where))
        for forms in combinations(answers, 2):
            if answers[forms[0]] != answers[forms[1]]:
                self._clashes.setdefault(forms, (gold, choices, where))

    def form(self) -> GoldForm:
        """Return the form of all golds; RecordError if there is none, or two make other items."""
        fitting = [self._form] if self._form else [f for f in READ_AS if f not in self._misfits]
        for forms in combinations(fitting, 2):
            if forms in self._clashes:
                gold, choices, where = self._clashes[forms]
                answers = answers_by_form(gold, choices)
                readings = [f"{READ_AS[form]}, {choices[answers[form]]!r}" for form in forms]
                raise RecordError(
                    f"{where}: the gold {gold!r} can be {' or '.join(readings)}, and all golds fit "
                    f"both; give --data.gold {forms[0]} or --data.gold {forms[1]} (in Python "
                    "gold=, in a probe's config `gold:`)"
                )
        if not fitting:
            misfits = [
                f"{form}: {gold!r} ({where})" for form, (gold, _, where) in self._misfits.items()
            ]
            raise RecordError(
                "the golds are written in several ways; write all as the texts of choices. None "
                f"of these ways fits all: {', '.join(sorted(misfits))}"
            )
        return fitting[0]


FOR_ALL = "choices of all items"


@dataclass(frozen=True)
class ItemFile:
    """The content of one file."""

    records: tuple[Record, ...]  # in the order of the file
    files: tuple[DataFile, ...]  # the file, and what the user said of all items: choices, golds
    notices: tuple[str, ...]  # for a reader of the results ("505 ids repeat")


class Options(TypedDict, total=False):
    """How a set of items is read."""

    candidates: Sequence[str]  # the choices of every item that has no column of choices
    gold: GoldForm | None  # how golds are read; by default in the one way that fits all of them
    name: str  # items without an id become `<name>-<line>`; by default the name of the file
    leave_out: Collection[int]  # lines not to read: rows of a released file that cannot be used
    ids_repeat: bool  # whether ids may repeat, as in some released files; they are counted
    golds_repeat: bool  # whether a gold may be two choices of an item, in the same way
    layout: LayoutName | None  # of a released set; by default the one that its columns tell


class RowReader:
    """Takes rows one by one and makes records of all of them.

    Args:
        source: The file or set, for messages.
        setup: The setup that each item must fit; None allows any.
        advice: What messages say of one bad row, with {row} for its number.
        **options: As of `read_file`; `name` is needed.
    """

    def __init__(
        self, source: str, setup: Setup | None, advice: str = "", **options: Unpack[Options]
    ) -> None:
        for chosen, kind in ((setup, Setup), (options.get("gold"), GoldForm)):
            if chosen not in (None, *get_args(kind)):
                raise ValueError(f"{chosen!r}: it must be one of {', '.join(get_args(kind))}")
        self.leave_out = options.get("leave_out", ())
        self._source, self._setup, self._advice, self._options = source, setup, advice, options
        self._candidates = tuple(options.get("candidates", ()))
        self._golds = Golds(options.get("gold"))
        self._records: list[Record] = []
        self._to_read: dict[int, str] = {}  # golds to read when all are there, by place
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._num_unnamed = self._num_for_all = 0

    @contextmanager
    def errors_at(self, position: int) -> Iterator[None]:
        """Let errors about a row begin with its place."""
        try:
            yield
        except RecordError as error:
            is_one_row = self._advice and not isinstance(error, ColumnError)
            advice = f". {self._advice}".format(row=position) if is_one_row else ""
            raise RecordError(f"{self._source}:{position}: {error}{advice}") from None

    def layout(self, columns: Sequence[str]) -> Layout:
        """Return what the columns of a row hold; RecordError if they hold no item."""
        names = tuple(columns)
        if names not in self._layouts:
            self._layouts[names] = layout_of(
                names, self._setup, bool(self._candidates), self._options.get("layout")
            )
        return self._layouts[names]

    def add(self, position: int, columns: Sequence[str], cells: Sequence[Any]) -> None:
        """Read a row; RecordError names its position in the set, from 1, and what is wrong."""
        with self.errors_at(position):
            if position > MAX_ITEMS:
                raise RecordError(f"a set can have at most {MAX_ITEMS:,} rows")
            columns, cells = without_nested(columns, cells)
            layout = self.layout(columns)
            row = layout.cells_by_field(cells)
            meta, identifier, stem = meta_of(row), row.get("id"), ""
            if "sentence_good" in row:
                texts = [row["sentence_good"], *row["sentence_bad"]]
                choices = tuple(text_of(text or "", "a sentence") for text in texts)
                if identifier is None and row.get("pairID") not in (None, ""):
                    # It alone repeats from paradigm to paradigm.
                    names = [meta.get("paradigm", ""), label_of(row["pairID"], "`pairID`")]
                    identifier = "-".join(filter(None, map(str, names)))
                answer = 0
            else:
                stem = text_of(row["sentence"], layout.name("sentence"))
                choices, answer = self._choices(row, stem, layout, position)
            self._num_unnamed += identifier is None
            name = f"{self._options['name']}-{position}" if identifier is None else identifier
            self._records.append(
                Record(label_of(name, "`id`"), stem, choices, answer, meta, position, self._source)
            )

    def _choices(
        self, row: Mapping[str, Any], stem: str, layout: Layout, position: int
    ) -> tuple[tuple[str, ...], int]:
        """Return a question's choices and the gold's index, 0 while the gold is still unread."""
        gold, gold_name = row["gold"], layout.name("gold")
        if gold is None or gold == "":
            raise RecordError(f"no gold: {gold_name} is missing or null")
        if isinstance(gold, list):
            raise RecordError(f"{len(gold)} golds: {gold_name} is a list; one is needed")
        gold = label_of(gold, gold_name)
        if "distractor1" in row:  # the order is drawn by content
            texts = [text_of(text, "a choice") for text in (gold, *row["distractor1"])]
            hashes = [hashlib.sha256(f"{stem}\0{text}".encode()).hexdigest() for text in texts]
            order = sorted(range(len(texts)), key=hashes.__getitem__)
            return tuple(texts[index] for index in order), order.index(0)
        labels: Sequence[str] = ()
        if "choices" in row:
            labels, choices = choices_of(row["choices"], layout.name("choices"))
        elif layout.num_options:
            choices = _options(row, layout)
        else:
            choices, self._num_for_all = self._candidates, self._num_for_all + 1
        if not labels:
            self._golds.note(gold, choices, f"{self._source}:{position}")
            self._to_read[len(self._records)] = gold
            return choices, 0
        if gold not in labels:
            raise RecordError(f"no gold: {gold_name} {gold!r} is not one of {listed(labels)}")
        return choices, labels.index(gold)

    def item_file(self) -> ItemFile:
        """Return the items of all rows; its files are what the user said of all of them.

        Raises:
            RecordError: If golds can be read in two ways, an item is malformed, an id repeats, or
                there are none.
        """
        records, form = self._records, self._golds.form()
        repeats: list[int] = []
        repeated_golds: list[int] = []
        by_id: dict[str, Record] = {}
        for index, record in enumerate(records):
            if index in self._to_read:
                answer = answers_by_form(self._to_read[index], record.choices)[form]
                records[index] = record = replace(record, answer=answer)
            with self.errors_at(record.position):
                try:
                    validate(record, self._setup or setup_of(record))
                except RepeatedSentenceError:  # released files have some: all are named at once
                    repeats.append(record.position)
                except RepeatedGoldError:
                    if not self._options.get("golds_repeat"):
                        raise
                    repeated_golds.append(record.position)
                namesake = by_id.setdefault(record.id, record)
                if namesake is not record and not self._options.get("ids_repeat"):
                    raise RecordError(
                        f"line {namesake.position} has the id {record.id!r} too; give each item an "
                        "id of its own, or none (then its line number is its name). If this is a "
                        "released file, write `ids_repeat: true` in the probe's config"
                    )
        if repeats:
            lines = f" ({lines_of(repeats, 50)})" if len(repeats) > 1 else ""
            raise RecordError(
                f"{self._source}:{repeats[0]}: the same sentence twice, so neither can be the "
                f"right one{lines}. Correct it, or write in the probe's config `leave_out: "
                f"{{<split>: [{', '.join(map(str, repeats[:50]))}]}}`"
            )
        if not records:
            raise RecordError(f"{self._source}:1: the file is empty; it has no items")
        settings = {}
        gold = self._options.get("gold")
        if gold and not self._to_read:
            raise RecordError(f"{self._source}: all golds are labels of choices; leave out gold")
        if self._num_for_all:  # other choices make other items
            settings[f"{FOR_ALL} - {', '.join(self._candidates)}"] = json.dumps(self._candidates)
        if gold:
            settings[f"golds - {gold}"] = gold
        files = tuple(
            DataFile(name, hashlib.sha256(text.encode()).hexdigest(), len(records))
            for name, text in settings.items()
        )
        notices = self._notices(form)
        if repeated_golds:
            notices += (
                f"{len(repeated_golds)} items have the gold as two choices, which tie in scores of "
                f"their words ({lines_of(repeated_golds)})",
            )
        return ItemFile(tuple(records), files, notices)

    def _notices(self, form: GoldForm) -> tuple[str, ...]:
        records, notices = self._records, list[str]()
        if repeated := len(records) - len({record.id for record in records}):
            notices.append(f"{repeated} ids repeat")
        repeats = [
            r.position for r in records if len({c.strip() for c in r.choices}) < len(r.choices)
        ]
        if repeats:
            rows = f"{len(repeats)} rows repeat" if len(repeats) > 1 else "1 row repeats"
            notices.append(f"{rows} a choice that is not the gold one ({lines_of(repeats)})")
        if num_unnamed := self._num_unnamed:
            notices.append(f"{num_unnamed} rows have no id and are named by their line numbers")
        if left_out := sorted(self.leave_out):
            notices.append(f"{len(left_out)} rows left out by the config ({lines_of(left_out)})")
        unread = dict.fromkeys(c for layout in self._layouts.values() for c in layout.unread)
        if UNNAMED in unread:
            notices.append(f"{UNNAMED} is ignored")
            del unread[UNNAMED]
        if unread:
            notices.append(f"columns ignored: {listed([*unread])}")
        if len(records) >= 10 and all(r.answer == 0 and r.stem for r in records):
            notices.append(
                "the gold is the first choice of every item; beware of asking by letters"
            )
        if self._to_read and form != "text":
            notices.append(f"each gold is read as {READ_AS[form]}")
        return tuple(notices)


def _options(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """Return the choices of columns with one choice each; those of an item may be fewer."""
    fields = [f"{OPTION}{rank}" for rank in range(layout.num_options)]
    while fields and row[fields[-1]] in (None, ""):
        fields.pop()
    return tuple(label_of(row[field], layout.name(field)) for field in fields)


def lines_of(numbers: Sequence[int], most: int = 10) -> str:
    """Return line numbers in words, of many the first ones and how many more."""
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"lines {', '.join(map(str, numbers[:most]))}{more}"
