"""Every item of every run and every answer to it, packed for the page's scripts.

An item is stored once per probe, however many models answered it. The items of a probe and the
answers of a model to them are a part each: JSON, deflated, in base64, which a browser reads by
`DecompressionStream("deflate")`.
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
from probelight.reports.numbers import BEFORE, WHOLE, count, rate, replayed, way, when_of
from probelight.results.details import ForgettingDetails, InoculationDetails, WatchDetails
from probelight.results.frames import source_of
from probelight.results.load import INOCULATION, Results, Run, UnreadableResultError
from probelight.results.predictions import (
    DOSE,
    PREDICTIONS,
    ContextLine,
    ItemLine,
    read_context_lines,
    read_item_lines,
)
from probelight.results.row import Row
from probelight.results.watched import trained_models

MOST_IN_PAGE = 15_000_000  # bytes of all parts; beyond that they are files next to the page
FOLDER = "items"
NOTES = ("group", "hops", "distractor_type", "distractor_hops")
Notes = tuple[str | int | None, ...]  # one of each of `NOTES`; None where no run knew it


@dataclass(frozen=True)
class Items:
    """The data of the section "Every item"."""

    index: Mapping[str, Any]  # names, labels and numbers of parts, of each probe and its models
    parts: tuple[str, ...]  # base64; empty if they are in files
    files: Mapping[str, str]  # by path from the page's folder, if the page cannot hold the parts
    num_items: int
    unread: tuple[str, ...]  # sentences about runs whose items are missing


class Item(NamedTuple):
    """A question with choices, or a context to continue."""

    id: str  # in its file; empty for a context
    position: int  # line there; of a context the line in predictions.jsonl
    question: str  # the stem, or the context
    choices: tuple[str, ...]  # without empty padding; of a context the target word, if any
    answer: int | None  # index of the gold choice; None for a context
    expected: tuple[str, ...] = ()  # right continuations of a context


@dataclass
class Sheet:
    """One run's answers to one set of items."""

    run: Run
    name: str  # in addresses
    probe: str  # or original task
    label: str  # unlike that of any other sheet of the model
    size: int  # number of examples trained on, or steps
    is_before: bool  # before inoculation
    control: str  # empty or "standard" for unchanged items
    seed: int  # 0 if nothing was drawn
    places: tuple[int, ...] = ()  # of the items in those of the probe
    answers: str = ""  # JSON of columns: as numbers, large results would not fit in memory

    @property
    def is_watched(self) -> bool:
        """Whether the training looked at the items: those of the dose, or to select with."""
        return self.name.rpartition("/")[2].partition("_")[0] in (DOSE, "selection")


@dataclass
class ProbeItems:
    """The items of a probe by place, what is known of them, and each model's answers."""

    items: dict[Item, int] = field(default_factory=dict)
    notes: dict[Item, Notes] = field(default_factory=dict)
    sheets: dict[str, list[Sheet]] = field(default_factory=dict)

    def place(self, item: Item, notes: Notes) -> int:
        """Return the place of an item, adding it if it is new."""
        known = zip(self.notes.get(item, notes), notes, strict=True)
        self.notes[item] = tuple(new if old is None else old for old, new in known)
        return self.items.setdefault(item, len(self.items))


def items_of(results: Results, most_in_page: int = MOST_IN_PAGE) -> Items | None:
    """Return every item of the results; None without any. The same results give the same bytes.

    Packed data of more than `most_in_page` bytes go into files next to the page.
    """
    probes, unread = read_probes(results)
    if not probes:
        return None
    parts: list[str] = []

    def part(text: str) -> int:
        parts.append(base64.b64encode(zlib.compress(text.encode())).decode("ascii"))
        return len(parts) - 1

    def answers(sheet: Sheet) -> str:
        first, num = sheet.places[0], len(sheet.places)
        is_row = sheet.places == tuple(range(first, first + num))
        places = {"row": [first, num]} if is_row else {"places": sheet.places}
        return f'{{"items":{_json(places)},"answers":{sheet.answers}}}'

    index = []
    for name, probe in probes.items():
        models = [
            {
                "name": model,
                "part": part(f"[{','.join(map(answers, sheets))}]"),
                "sheets": [
                    {"name": sheet.name, "run": sheet.run.key, "label": sheet.label}
                    | {"protocol": sheet.run.protocol.replace("_", " ")}
                    for sheet in sheets
                ],
                "shown": _shown_first(sheets),
            }
            for model, sheets in probe.sheets.items()
        ]
        rows = ((*item, *notes) for item, notes in probe.notes.items())
        columns = zip((*Item._fields, *NOTES), zip(*rows, strict=True), strict=True)
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


def read_probes(results: Results) -> tuple[dict[str, ProbeItems], tuple[str, ...]]:
    """Return all answers by probe, and sentences about runs whose items are missing."""
    probes: dict[str, ProbeItems] = {}
    silent: Counter[str] = Counter()
    unread: list[str] = []
    watched = trained_models(results)
    for run in results.runs:
        if run.protocol == "inoculation_cell":  # the items of the chosen one are in the report's
            continue
        sets: dict[str, list[ItemLine | ContextLine]] = {}
        try:
            for item in read_item_lines(results, run):
                sets.setdefault(item.set, []).append(item)
            if not sets and (contexts := read_context_lines(results, run)):
                sets[run.probe] = [*contexts]
        except UnreadableResultError as error:
            unread.append(f"Not shown: {visible(results.below(str(error)))}.")
            continue
        if not sets:
            silent[run.protocol.replace("_", " ")] += 1
        for name, lines in sets.items():
            sheet = _sheet(run, name, lines[0])
            probe = probes.setdefault(sheet.probe, ProbeItems())
            sheet.places = tuple(probe.place(*_item(line, n)) for n, line in enumerate(lines, 1))
            sheet.answers = _answers(lines)
            probe.sheets.setdefault(watched.get(run.path, run.model), []).append(sheet)
    for probe in probes.values():
        probe.sheets = {model: _distinct(found) for model, found in sorted(probe.sheets.items())}
    unread += [
        f"{number} {'run' if number == 1 else 'runs'} ({protocol}) kept no answers in "
        f"{PREDICTIONS}."
        for protocol, number in sorted(silent.items())
    ]
    return dict(sorted(probes.items())), tuple(unread)


def _item(line: ItemLine | ContextLine, number: int) -> tuple[Item, Notes]:
    """Return the item of a line, and what is known of it."""
    if isinstance(line, ContextLine):
        target = (line.target,) if line.target else ()
        return Item("", number, line.context, target, None, line.expected), (None,) * len(NOTES)
    last = max([line.answer, *(place for place, text in enumerate(line.choices) if text)])
    item = Item(line.id, line.position, line.question, line.choices[: last + 1], line.answer)
    return item, (line.group or None, line.hops, line.distractor_type or None, line.distractor_hops)


def _answers(lines: Sequence[ItemLine | ContextLine]) -> str:
    """Return the answers as JSON of columns, numbers with three significant digits.

    `said` are the first of the best choices. `counts` are [item, number of choices with the best
    score, score] of items that do not simply count 1 or 0 by `said`.
    """
    items = [line for line in lines if isinstance(line, ItemLine)]
    contexts = [line for line in lines if isinstance(line, ContextLine)]
    scores = [line.scores for line in items]
    scores += [(line.probability,) if line.target else () for line in contexts]
    columns = {
        "scores": [[score if score is None else _short(score) for score in row] for row in scores],
        "said": [line.prediction for line in items],
        "counts": [
            (number, line.tied, _short(line.correct))
            for number, line in enumerate(items)
            if line.tied != 1 or line.correct != float(line.prediction == line.answer)
        ],
        "words": [line.predictions for line in contexts],
    }
    return _json({name: column for name, column in columns.items() if column})


def _sheet(run: Run, name: str, line: ItemLine | ContextLine) -> Sheet:
    """Return the sheet of a run and a set, from one of its lines; the answers are added later."""
    row = run.rows[0] if run.rows else Row()
    details = run.detail(InoculationDetails)
    control, seed = (line.control, line.seed) if isinstance(line, ItemLine) else ("", None)
    seed = row.seed if seed is None else seed
    is_before = run.protocol == "before" or name.endswith("_before")
    # The examples of an original task are none of the probe's.
    size = 0 if is_before or run.protocol == "original" else row.dose or row.num_train or 0
    if (look := run.detail(WatchDetails)) is not None:
        size = look.step
    task = ""
    if details and "original" in name.split("_"):
        task = details.original_task or "original task"
    elif details and isinstance(line, ItemLine) and (source := source_of(run, line)) != run.probe:
        task = source
    seed_text = "" if seed is None else f"seed {seed}"
    trained = [f"after {count(size)} examples{f' of {run.probe}' if task else ''}", seed_text]
    match run.protocol:
        case "zero_shot":
            parts = ["zero shot" if when_of(run) == BEFORE else "", way(row.mode)]
        case "watch":
            parts = [when_of(run)]
        case "curve":
            parts = [*trained, row.mode]
        case "original":
            parts = ["after the original task"]
        case "forgetting":
            compared = run.detail(ForgettingDetails)
            was = f"before: {compared.before}" if compared else "before"
            parts = [was if is_before else f"after: {run.model}", seed_text]
        case _ if is_before:
            parts = ["before inoculation"]
        case "inoculation":
            parts = [*trained, "" if row.extra == "none" else replayed(row.extra), row.kept]
            parts.append(f"learning rate {rate(row.learning_rate)}")
            if task and row.control not in WHOLE:
                parts.append(f"inoculated with control {row.control.replace('_', ' ')}")
        case "diagnose":
            parts = ["words after the context"]
        case protocol:
            parts = [protocol.replace("_", " "), name, seed_text]
    parts.append("" if control in WHOLE else control.replace("_", " "))
    parts.append("selection items" if name.startswith("selection") else "")
    parts.append("dose items" if name == DOSE else "")
    label, probe = ", ".join(filter(None, parts)), task or run.probe or name
    return Sheet(run, f"{run.key}/{name}", probe, label, size, is_before, control, seed or 0)


def _distinct(sheets: Iterable[Sheet]) -> list[Sheet]:
    """Sort sheets by size and drop repeats: each dose repeats the answers before inoculation."""

    def order(sheet: Sheet) -> tuple[object, ...]:
        is_changed = sheet.control not in WHOLE
        key = sheet.run.key, sheet.name
        is_later = sheet.is_watched, sheet.is_before, is_changed
        return sheet.size, *is_later, sheet.control, sheet.seed, *key

    kept: dict[tuple[object, ...], Sheet] = {}
    for sheet in sorted(sheets, key=order):
        kept.setdefault((sheet.label, sheet.answers, sheet.places), sheet)
    labels = Counter(sheet.label for sheet in kept.values())
    for sheet in kept.values():
        if labels[sheet.label] > 1:
            sheet.label = f"{sheet.label} ({sheet.name})"
    return [*kept.values()]


def _shown_first(sheets: Sequence[Sheet]) -> list[int]:
    """Return the places of the answers after most training and, if any, before it."""
    standard = [place for place, sheet in enumerate(sheets) if sheet.control in WHOLE] or [0]
    after = max(standard, key=lambda place: sheets[place].size)  # the first one of a size
    size, items = sheets[after].size, set(sheets[after].places)
    before = [p for p in standard if sheets[p].size < size and items & {*sheets[p].places}]
    # An inoculated model answered in the same way before; zero shot may be in another.
    is_inoculated = sheets[after].run.protocol == INOCULATION
    before.sort(key=lambda place: sheets[place].is_before != is_inoculated)
    return [after, *before[:1]]


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
