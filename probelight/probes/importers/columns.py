"""The columns of a set of items: what each holds by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from probelight.io.errors import RecordError
from probelight.io.escaping import listed
from probelight.probes.importers.released import (
    NAMED_LAYOUTS,
    RELEASED,
    LayoutName,
    ReleasedLayout,
)
from probelight.probes.record import META_FIELDS, Setup

GOOD, BAD = "sentence_good", "sentence_bad"
# The names of a column, in lower case with _ between words; messages have the first of each.
_NAMES = {field: (field,) for field in ("id", *META_FIELDS)} | {
    "sentence": (
        *("sentence", "text", "stem", "question", "question_stem", "question.stem"),
        *("ctx", "goal"),  # HellaSwag, PIQA
    ),
    # MedMCQA calls it cop.
    "gold": ("gold", "answer", "label", "answerkey", "correct_answer", "cop"),
    "choices": ("choices", "candidates", "options", "question.choices", "endings"),
    "context": ("context", "passage", "article", "premise"),
    "notes": ("notes", "meta"),
    "cluster": ("cluster", "group"),
    "UID": ("uid",),
    "pairID": ("pairid",),
    "support": ("support",),  # SciQ's passage, for texts of prompts
}
_FIELDS = {name: field for field, names in _NAMES.items() for name in names}
# A column of one choice each: A, option_b, choice1, answerC, ending0, sol1 (PIQA), opa (MedMCQA).
_OPTION = re.compile(
    r"(option|opt|op|choice|answer|candidate|ending|solution|sol)?(?:([a-j])|(?<=\w)(\d{1,2}))"
)
OPTION = "option "  # the field of the first such column is "option 0"
UNNAMED = "the unnamed first column (a pandas index?)"
_SEVERAL = {BAD, "distractor1"}  # which several columns may hold
# What a column of sentences calls them.
JUDGEMENTS = dict.fromkeys(("good", "right", "correct", "grammatical", "acceptable"), GOOD)
JUDGEMENTS |= dict.fromkeys(("bad", "wrong", "incorrect", "ungrammatical", "unacceptable"), BAD)


class ColumnError(RecordError):
    """The columns hold no items, or can be read in two ways."""


class Layout(NamedTuple):
    """What the columns of a row hold."""

    columns: Sequence[str]  # as they are called
    fields: Sequence[str]  # what each holds; "" for one that is not read
    released: ReleasedLayout | None = None  # of a set whose items are made of its columns

    def name(self, field: str) -> str:
        """Return what the column of a field is called, for messages."""
        if field not in self.fields:
            return f"the {field}"
        return f"`{self.columns[self.fields.index(field)]}`"

    @property
    def num_options(self) -> int:
        """Number of columns that hold one choice each."""
        return sum(field.startswith(OPTION) for field in self.fields)

    @property
    def unread(self) -> list[str]:
        """The columns that are not read."""
        return [c for c, field in zip(self.columns, self.fields, strict=True) if not field]

    def cells_by_field(self, cells: Sequence[Any]) -> dict[str, Any]:
        """Return the cell of each field; a list where several columns may hold it."""
        row: dict[str, Any] = {}
        for field, cell in zip(self.fields, cells, strict=True):
            if field in _SEVERAL:
                row.setdefault(field, []).extend(cell if isinstance(cell, list) else [cell])
            else:
                row[field] = cell
        if self.released is None:
            return row
        item_cells = {name: row.pop(name) for name in self.released.columns if name in row}
        return self.released.fields_of(item_cells) | row


def layout_of(
    columns: Sequence[str],
    setup: Setup | None,
    has_candidates: bool,
    layout_name: LayoutName | None = None,
) -> Layout:
    """Return what the columns of a row hold; `has_candidates` says that none needs to hold choices.

    A `layout_name` is that of a released set, which is else known by its columns.

    Raises:
        ColumnError: If a column is missing, or two can be read as the same.
    """
    columns = [
        column.strip() or (f"column {number}" if number > 1 else UNNAMED)
        for number, column in enumerate(columns, 1)
    ]
    released = None if has_candidates else _released(columns)
    if layout_name:
        released = NAMED_LAYOUTS[layout_name]
        if missing := released.needed - {column.lower() for column in columns}:
            raise ColumnError(
                f"no column {listed(sorted(missing))}, which the layout {layout_name} of the "
                f"probe's config needs. There are {listed(columns)}"
            )
    options = {} if released else option_fields(columns)
    fields = [options.get(column) or field_of(column) for column in columns]
    if released:
        fields = [
            column.lower() if column.lower() in released.columns else field
            for column, field in zip(columns, fields, strict=True)
        ]

    def refuse_several(why: str, *names: str) -> None:
        several = [c for c, field in zip(columns, fields, strict=True) if field in names]
        if len(several) > 1:
            raise ColumnError(f"{' and '.join(several)} {why}")

    are_sentences = {GOOD, BAD} <= {*fields} and not {"sentence", "choices"} & {*fields}
    is_pair = "choices" not in fields if setup == "minimal_pair" else not setup and are_sentences
    if is_pair:
        if not {GOOD, BAD} <= {*fields}:
            raise ColumnError(
                f"minimal pairs need a column {GOOD} and one or more {BAD}, but the columns are "
                f"{listed(columns)}"
            )
        why = "cannot be columns of one minimal pair; keep the sentences alone"
        refuse_several(why, GOOD, "sentence", "gold", "choices", "context")
        refuse_several("both name the paradigm; keep one of them", "UID", "paradigm")
        fields = ["" if field.startswith(OPTION) else field for field in fields]
    elif are_sentences:
        raise ColumnError(
            "these are columns of minimal pairs, whole sentences; use the setup minimal_pair"
        )
    elif not released:
        first_option = f"{OPTION}0"
        has_choices = has_candidates or {"distractor1", first_option} & {*fields}
        for field in ("sentence", "gold", *([] if has_choices else ["choices"])):
            if field not in fields:
                for_all = ", or give --data.choices a,b for all items" if field == "choices" else ""
                raise ColumnError(
                    f"no column for the {field}: call it {' or '.join(_NAMES[field][:3])} (in a "
                    f"table, on the first line){for_all}. There are {listed(columns)}"
                )
        why = "are two texts; write them in one column, as they are to be read"
        refuse_several(why, "sentence", "context")
        for sets_of_choices in combinations(("choices", "distractor1", first_option), 2):
            if {*sets_of_choices} <= {*fields}:
                several = [columns[fields.index(field)] for field in sets_of_choices]
                raise ColumnError(f"{' and '.join(several)} both hold choices; keep one of them")
        refuse_several("both hold choices; keep one of them", "choices")
        fields = ["" if field in {GOOD, BAD, "UID", "pairID"} else field for field in fields]
    for field in {*fields} - _SEVERAL - {""}:
        refuse_several(f"both name the {field}; keep one of them", field)
    return Layout(columns, fields, released)


def _released(columns: Sequence[str]) -> ReleasedLayout | None:
    """Return the layout of the released set that has these columns, if there is one.

    A column beside them that may be another text, gold or choice makes it another set.
    """
    for layout in RELEASED:
        unread_columns = [c for c in columns if c.lower() not in layout.columns]
        item_fields = {"sentence", "context", "gold", "choices", "distractor1"}
        is_other = item_fields & {*map(field_of, unread_columns)} or option_fields(unread_columns)
        if layout.needed <= {column.lower() for column in columns} and not is_other:
            return layout
    return None


def option_fields(columns: Sequence[str]) -> dict[str, str]:
    """Return the field of each column that holds one choice, such as "option 1" for option_b.

    Raises:
        ColumnError: If some are missing, or two sets of columns may be the choices.
    """
    columns_by_form: dict[tuple[str | None, bool], dict[int, str]] = {}
    for column in columns:
        if match := _OPTION.fullmatch(re.sub(r"[\s_-]", "", column.lower())):
            word, letter, digits = match.groups()
            rank = int(digits) if digits else ord(letter) - ord("a")
            named = columns_by_form.setdefault((word, bool(digits)), {})
            if rank in named:
                raise ColumnError(f"{named[rank]} and {column} both name one choice; keep one")
            named[rank] = column
    sets = [(form, named) for form, named in columns_by_form.items() if len(named) > 1]
    if len(sets) > 1:
        all_columns = " and ".join(", ".join(named.values()) for _, named in sets)
        raise ColumnError(f"{all_columns} both hold choices; keep one of them")
    fields = {}
    for (_, are_numbers), named in sets:
        first = 1 if are_numbers and 0 not in named else 0
        if [*sorted(named)] != [*range(first, first + len(named))]:
            raise ColumnError(
                f"the columns {listed([named[rank] for rank in sorted(named)])} hold choices, but "
                "one between them or before them is missing"
            )
        fields = {column: f"{OPTION}{rank - first}" for rank, column in named.items()}
    return fields


def field_of(column: str) -> str:
    """Return what a column holds by its name, "" where the name is not known."""
    name = re.sub(r"[\s-]+", "_", column.lower())
    if re.fullmatch(r"distractor_?\d+", name):
        return "distractor1"
    words = letter_words(name) - {"sentence", "sentences"}
    judged = JUDGEMENTS.get(words.pop(), "") if len(words) == 1 else ""
    # Wrong sentences may be numbered: bad_1, bad_2.
    return _FIELDS.get(name) or (judged if judged == BAD or not name[-1:].isdecimal() else "")


def letter_words(text: str) -> set[str]:
    """Return the words of a text in lower case, without numbers and marks."""
    return {*re.findall(r"[^\W\d_]+", text.lower())}
