"""Every item of every run and every answer to it, packed for the page's scripts.

An item is held once a probe, however many answered it. The items of a probe are a part, and so are
the answers of a model to them: JSON, deflated, in base64. `DecompressionStream("deflate")` of a
browser reads it, as does `zlib.decompress`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probelight.io.escaping import visible
from probelight.reports.words import count, rate, way
from probelight.results.details import InoculationDetails
from probelight.results.load import INOCULATION, Results, Run, UnreadableResultError
from probelight.results.predictions import (
    PREDICTIONS,
    ContextLine,
    ItemLine,
    read_context_lines,
    read_item_lines,
)
from probelight.results.row import Row

MOST_IN_PAGE = 15_000_000  # bytes of all parts; beyond that they are files next to the page
FOLDER = "items"
STANDARD = ("", "standard")
# Protocols whose answers were given before any example of the probe was seen.
UNTRAINED = ("zero_shot", "grid", "original", "before")
NOTES = ("group", "hops", "distractor_type", "distractor_hops")
Notes = tuple[str | int | None, ...]  # one of each of `NOTES`; None where no run knew it


@dataclass(frozen=True)
class Items:
    """The data of the section "Every item".

    Attributes:
        index: What there is: of each probe the number of the part with its items, of each of its
            models that of the part with its answers and what they are called.
        parts: Base64 texts that the page holds.
        files: By path from the page's folder the files that hold them where they are many.
        num_items: How many items there are.
        unread: Sentences about runs whose items are not among them.
    """

    index: Mapping[str, Any]
    parts: tuple[str, ...]
    files: Mapping[str, str]
    num_items: int
    unread: tuple[str, ...]


class Item(NamedTuple):
    """A question with choices, or a context to go on with.

    Attributes:
        id: That of its file; empty for a context.
        position: Its line there, or in predictions.jsonl for a context.
        question: The stem, or the context.
        choices: The answers, without the empty ones that pad a question behind them; of a context
            the word whose probability was asked for, if any.
        answer: Index of the gold choice; None for a context.
        expected: The words that are right behind a context.
    """

    id: str
    position: int
    question: str
    choices: tuple[str, ...]
    answer: int | None
    expected: tuple[str, ...] = ()


@dataclass
class Sheet:
    """What one run answered to one set of items.

    Attributes:
        run: The run.
        set: The name of the set in its predictions.
        seed: Of these answers, where the run has several.
        control: What was done to the words; empty where the items do not say.
        places: Of the items in those of the probe.
        answers: JSON of the columns, made at once: as numbers, large results do not fit in memory.
        label: What readers call it, different from that of any other sheet of the model.
    """

    run: Run
    set: str
    seed: int | None = None
    control: str = ""
    places: tuple[int, ...] = ()
    answers: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        """What an address calls it."""
        return f"{self.run.key}/{self.set}"

    @property
    def is_standard(self) -> bool:
        """Whether the items are the probe's, not a control's."""
        return self.control in STANDARD

    @property
    def is_before(self) -> bool:
        """Whether they were given before inoculation."""
        return self.run.protocol == "before" or self.set.endswith("_before")

    @property
    def row(self) -> Row:
        """What the run measured first."""
        return self.run.rows[0] if self.run.rows else Row()

    @property
    def size(self) -> int:
        """Number of examples it was trained on."""
        is_untrained = self.is_before or self.run.protocol in UNTRAINED
        return 0 if is_untrained else self.row.dose or self.row.num_train or 0

    @property
    def original_task(self) -> str:
        """The original task of an inoculation, where the items are its."""
        details = self.run.detail(InoculationDetails)
        is_original = details is not None and "original" in self.set.split("_")
        return (details.original_task or "original task") if details and is_original else ""

    @property
    def probe(self) -> str:
        """The probe, or original task, whose items they are."""
        return self.original_task or self.run.probe or self.set


@dataclass
class Answered:
    """The items of a probe and all answers to them.

    Attributes:
        items: Each with its place.
        notes: What is known of each.
        sheets: Of each model, the first ones made before training.
    """

    items: dict[Item, int] = field(default_factory=dict)
    notes: list[Notes] = field(default_factory=list)
    sheets: dict[str, list[Sheet]] = field(default_factory=dict)

    def place(self, item: Item, notes: Notes) -> int:
        """Return the place of an item, which may be new."""
        place = self.items.setdefault(item, len(self.items))
        if place == len(self.notes):
            self.notes.append(notes)
        elif None in self.notes[place]:
            known = zip(self.notes[place], notes, strict=True)
            self.notes[place] = tuple(new if old is None else old for old, new in known)
        return place


def items_of(results: Results, most_in_page: int = MOST_IN_PAGE) -> Items | None:
    """Return every item of the results, None without any; the same results give the same bytes.

    Args:
        results: What was read.
        most_in_page: Bytes of packed data up to which the page holds them itself.
    """
    probes, unread = read_probes(results)
    if not probes:
        return None
    parts: list[str] = []

    def part(text: str) -> int:
        parts.append(base64.b64encode(zlib.compress(text.encode())).decode("ascii"))
        return len(parts) - 1

    index = []
    for name, probe in probes.items():
        models = [
            {
                "name": model,
                "part": part(f"[{','.join(map(_packed, sheets))}]"),
                "sheets": [
                    {
                        "name": sheet.name,
                        "run": sheet.run.key,
                        "label": sheet.label,
                        "protocol": sheet.run.protocol.replace("_", " "),
                    }
                    for sheet in sheets
                ],
                "shown": _shown_first(sheets),
            }
            for model, sheets in probe.sheets.items()
        ]
        columns = [*zip(Item._fields, zip(*probe.items, strict=True), strict=True)]
        columns += zip(NOTES, zip(*probe.notes, strict=True), strict=True)
        known = {
            column: values
            for column, values in columns
            if any(value not in ((), "", None) for value in values)
        }
        index.append({"name": name, "part": part(_json(known)), "models": models})
    in_files = sum(map(len, parts)) > most_in_page
    # A page that was opened from a disk may load scripts, not data.
    files = {f"{FOLDER}/{i}.js": f'probelightItems({i},"{t}");\n' for i, t in enumerate(parts)}
    return Items(
        {"probes": index, "folder": FOLDER if in_files else None},
        () if in_files else tuple(parts),
        files if in_files else {},
        sum(len(probe.items) for probe in probes.values()),
        unread,
    )


def read_probes(results: Results) -> tuple[dict[str, Answered], tuple[str, ...]]:
    """Read the predictions of every run.

    Returns:
        The probes by name, and sentences about runs whose items are not among them.
    """
    probes: dict[str, Answered] = {}
    silent: Counter[str] = Counter()
    unread: list[str] = []
    for run in results.runs:
        try:
            sets = _sets(results, run)
        except UnreadableResultError as error:
            unread.append(f"Not shown: {visible(results.below(str(error)))}.")
            continue
        if not sets:
            silent[run.protocol.replace("_", " ")] += 1
        for name, lines in sets.items():
            first = lines[0]
            sheet = Sheet(run, name)
            if isinstance(first, ItemLine):
                sheet = Sheet(run, name, first.seed, first.control)
            probe = probes.setdefault(sheet.probe, Answered())
            sheet.places = tuple(probe.place(*_item(line, n)) for n, line in enumerate(lines, 1))
            sheet.answers = _answers(lines)
            probe.sheets.setdefault(run.model, []).append(sheet)
    for probe in probes.values():
        probe.sheets = {model: _distinct(found) for model, found in sorted(probe.sheets.items())}
    unread += [
        f"{number} {'run' if number == 1 else 'runs'} ({protocol}) left no answers in "
        f"{PREDICTIONS}."
        for protocol, number in sorted(silent.items())
    ]
    return dict(sorted(probes.items())), tuple(unread)


def _sets(results: Results, run: Run) -> Mapping[str, Sequence[ItemLine | ContextLine]]:
    """Return what a run answered, by set."""
    sets: dict[str, list[ItemLine]] = {}
    for line in read_item_lines(results, run):
        sets.setdefault(line.set, []).append(line)
    if sets:
        return sets
    contexts = read_context_lines(results, run)
    return {run.probe: contexts} if contexts else {}


def _item(line: ItemLine | ContextLine, number: int) -> tuple[Item, Notes]:
    """Return the item of a line, and what is known of it."""
    if isinstance(line, ContextLine):
        target = (line.target,) if line.target else ()
        return Item("", number, line.context, target, None, line.expected), (None,) * len(NOTES)
    num = len(line.choices)
    while num > line.answer + 1 and not line.choices[num - 1]:
        num -= 1
    item = Item(line.id, line.position, line.question, line.choices[:num], line.answer)
    return item, (line.group or None, line.hops, line.distractor_type or None, line.distractor_hops)


def _answers(lines: Iterable[ItemLine | ContextLine]) -> str:
    """Return the answers as JSON of columns, numbers with three significant digits.

    `said` are the first of the best choices, `counts` [item, how many share the best score, what it
    counts] of those that do not count 1 or 0 by `said` alone.
    """
    scores: list[list[float | None]] = []
    said: list[int | None] = []
    counts: list[tuple[int, int, float]] = []
    words: list[Sequence[str]] = []
    for number, line in enumerate(lines):
        if isinstance(line, ItemLine):
            given = line.scores
            said.append(line.prediction)
            if line.tied != 1 or line.correct != float(line.prediction == line.answer):
                counts.append((number, line.tied, _short(line.correct)))
        else:
            given = (line.probability,) if line.target else ()
            words.append(line.predictions)
        scores.append([None if score is None else _short(score) for score in given])
    columns = {"said": said, "counts": counts, "words": words}
    return _json({"scores": scores} | {name: column for name, column in columns.items() if column})


def _distinct(sheets: Iterable[Sheet]) -> list[Sheet]:
    """Return sheets by the number of examples trained on, those of the standard items first.

    Equal ones are there once: each dose repeats what was answered before inoculation.
    """
    kept: dict[tuple[str, str, tuple[int, ...]], Sheet] = {}
    for sheet in sorted(
        sheets,
        key=lambda sheet: (
            *(sheet.size, sheet.is_before, not sheet.is_standard, sheet.control),
            *(sheet.seed or 0, sheet.run.key, sheet.set),
        ),
    ):
        sheet.label = _label(sheet)
        kept.setdefault((sheet.label, sheet.answers, sheet.places), sheet)
    labels = Counter(sheet.label for sheet in kept.values())
    for sheet in kept.values():
        if labels[sheet.label] > 1:
            sheet.label = f"{sheet.label} ({sheet.name})"
    return [*kept.values()]


def _label(sheet: Sheet) -> str:
    """Return what readers call the answers; several of one probe and model may be called alike."""
    run, row = sheet.run, sheet.row
    number = sheet.seed if sheet.seed is not None else row.seed
    seed = "" if number is None else f"seed {number}"
    of = f" of {run.probe}" if sheet.original_task else ""
    trained = [f"after {count(sheet.size)} examples{of}", seed]
    match run.protocol:
        case "zero_shot":
            parts = ["zero shot", way(row.mode)]
        case "curve":
            parts = [*trained, row.mode]
        case "original":
            parts = ["after the original task"]
        case _ if sheet.is_before:
            parts = ["before inoculation"]
        case protocol if protocol == INOCULATION:
            parts = [*trained, "" if row.extra == "none" else row.extra]
            parts.append(f"learning rate {rate(row.learning_rate)}")
            if sheet.original_task and row.control not in STANDARD:
                parts.append(f"inoculated under {row.control.replace('_', ' ')}")
        case "diagnose":
            parts = ["words behind the context"]
        case protocol:
            parts = [protocol.replace("_", " "), sheet.set, seed]
    parts.append("" if sheet.is_standard else sheet.control.replace("_", " "))
    parts.append("selection items" if sheet.set.startswith("selection") else "")
    return ", ".join(filter(None, parts))


def _packed(sheet: Sheet) -> str:
    """Return a sheet's columns and the items they are of: [first, number], or each one."""
    first, num = sheet.places[0], len(sheet.places)
    in_a_row = sheet.places == tuple(range(first, first + num))
    places = {"row": [first, num]} if in_a_row else {"places": sheet.places}
    return f'{{"items":{_json(places)},"answers":{sheet.answers}}}'


def _shown_first(sheets: Sequence[Sheet]) -> list[int]:
    """Return the places of the answers after most training and, if there are any, before it."""
    standard = [place for place, sheet in enumerate(sheets) if sheet.is_standard] or [0]
    after = max(standard, key=lambda place: sheets[place].size)  # the first one of a size
    items = set(sheets[after].places)
    untrained = [place for place in standard if sheets[place].size < sheets[after].size]
    # An inoculated model answered in the same way before; zero shot may be in another.
    is_inoculated = sheets[after].run.protocol == INOCULATION
    for before in sorted(untrained, key=lambda place: sheets[place].is_before != is_inoculated):
        if not items.isdisjoint(sheets[before].places):
            return [after, before]
    return [after]


def _short(number: float) -> float:
    """Return the number with three significant digits."""
    return float(f"{number:.3g}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
