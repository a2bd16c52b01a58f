"""Every item of every run and every answer to it, packed for the page's scripts.

An item is stored once per probe, however many models answered it. The items of a probe and the
answers of a model to them are a chunk each: JSON, deflated, in base64, which a browser reads by
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
from probelight.reports.numbers import BEFORE, WHOLE, count, rate, replayed, scored_by, when_of
from probelight.results.details import ForgettingDetails, InoculationDetails, WatchDetails
from probelight.results.frames import source_of, trained_models
from probelight.results.load import INOCULATION, Run, RunSet, UnreadableResultError
from probelight.results.predictions import (
    DOSE,
    PREDICTIONS,
    ContextLine,
    ItemLine,
    read_context_lines,
    read_item_lines,
)
from probelight.results.row import Row

MOST_IN_PAGE = 15_000_000  # bytes of all chunks; beyond that they are files next to the page
FOLDER = "items"
NOTES = ("group", "hops", "distractor_type", "distractor_hops")
Notes = tuple[str | int | None, ...]  # one of each of `NOTES`; None where no run knew it


@dataclass(frozen=True)
class Items:
    """The data of the section "Every item"."""

    index: Mapping[str, Any]  # names, labels and numbers of chunks, of each probe and its models
    chunks: tuple[str, ...]  # base64; empty if they are in files
    files: Mapping[str, str]  # by path from the page's folder, if the page cannot hold the chunks
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
    item_indices: tuple[int, ...] = ()  # of the items in those of the probe
    answers: str = ""  # JSON of columns: as numbers, large results would not fit in memory

    @property
    def is_watched(self) -> bool:
        """Whether the training looked at the items: those of the dose, or to select with."""
        return self.name.rpartition("/")[2].partition("_")[0] in (DOSE, "selection")


@dataclass
class ProbeItems:
    """The items of a probe by index, what is known of them, and each model's answers."""

    items: dict[Item, int] = field(default_factory=dict)
    notes: dict[Item, Notes] = field(default_factory=dict)
    sheets: dict[str, list[Sheet]] = field(default_factory=dict)

    def index_of(self, item: Item, notes: Notes) -> int:
        """Return the index of an item, adding it if it is new."""
        pairs = zip(self.notes.get(item, notes), notes, strict=True)
        self.notes[item] = tuple(new if old is None else old for old, new in pairs)
        return self.items.setdefault(item, len(self.items))


def items_of(results: RunSet, most_in_page: int = MOST_IN_PAGE) -> Items | None:
    """Return every item of the results; None without any. The same results give the same bytes.

    Packed data of more than `most_in_page` bytes go into files next to the page.
    """
    probes, unread = read_probes(results)
    if not probes:
        return None
    chunks: list[str] = []

    def add_chunk(text: str) -> int:
        chunks.append(base64.b64encode(zlib.compress(text.encode())).decode("ascii"))
        return len(chunks) - 1

    def answers(sheet: Sheet) -> str:
        start, length = sheet.item_indices[0], len(sheet.item_indices)
        is_row = sheet.item_indices == tuple(range(start, start + length))
        indices = {"row": [start, length]} if is_row else {"places": sheet.item_indices}
        return f'{{"items":{_json(indices)},"answers":{sheet.answers}}}'

    index = []
    for name, probe in probes.items():
        models = [
            {
                "name": model,
                "part": add_chunk(f"[{','.join(map(answers, sheets))}]"),
                "sheets": [
                    {"name": sheet.name, "run": sheet.run.key, "label": sheet.label}
                    | {"protocol": sheet.run.protocol.replace("_", " ")}
                    for sheet in sheets
                ],
                "shown": _initially_visible(sheets),
            }
            for model, sheets in probe.sheets.items()
        ]
        rows = ((*item, *notes) for item, notes in probe.notes.items())
        columns = zip((*Item._fields, *NOTES), zip(*rows, strict=True), strict=True)
        filled_columns = {
            column: values
            for column, values in columns
            if any(value not in ((), "", None) for value in values)
        }
        index.append({"name": name, "part": add_chunk(_json(filled_columns)), "models": models})
    in_files = sum(map(len, chunks)) > most_in_page
    # A page that was opened from a disk may load scripts, not data.
    files = {f"{FOLDER}/{i}.js": f'probelightItems({i},"{c}");\n' for i, c in enumerate(chunks)}
    return Items(
        {"probes": index, "folder": FOLDER if in_files else None},
        () if in_files else tuple(chunks),
        files if in_files else {},
        sum(len(probe.items) for probe in probes.values()),
        unread,
    )


def read_probes(results: RunSet) -> tuple[dict[str, ProbeItems], tuple[str, ...]]:
    """Return all answers by probe, and sentences about runs whose items are missing."""
    probes: dict[str, ProbeItems] = {}
    num_without_answers: Counter[str] = Counter()
    unread: list[str] = []
    model_by_path = trained_models(results)
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
            num_without_answers[run.protocol.replace("_", " ")] += 1
        for set_name, lines in sets.items():
            sheet = _sheet(run, set_name, lines[0])
            probe = probes.setdefault(sheet.probe, ProbeItems())
            pairs = [_item(line, number) for number, line in enumerate(lines, start=1)]
            sheet.item_indices = tuple(probe.index_of(*pair) for pair in pairs)
            sheet.answers = _answers(lines)
            probe.sheets.setdefault(model_by_path.get(run.path, run.model), []).append(sheet)
    for probe in probes.values():
        probe.sheets = {model: _distinct(sheets) for model, sheets in sorted(probe.sheets.items())}
    unread += [
        f"{number} {'run' if number == 1 else 'runs'} ({protocol}) kept no answers in "
        f"{PREDICTIONS}."
        for protocol, number in sorted(num_without_answers.items())
    ]
    return dict(sorted(probes.items())), tuple(unread)


def _item(line: ItemLine | ContextLine, number: int) -> tuple[Item, Notes]:
    """Return the item of a line, and its notes."""
    if isinstance(line, ContextLine):
        target = (line.target,) if line.target else ()
        return Item("", number, line.context, target, None, line.expected), (None,) * len(NOTES)
    last = max([line.answer, *(index for index, text in enumerate(line.choices) if text)])
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
    if (watch_details := run.detail(WatchDetails)) is not None:
        size = watch_details.step
    task = ""
    if details and "original" in name.split("_"):
        task = details.original_task or "original task"
    elif details and isinstance(line, ItemLine) and (source := source_of(run, line)) != run.probe:
        task = source
    seed_text = "" if seed is None else f"seed {seed}"
    training = [f"after {count(size)} examples{f' of {run.probe}' if task else ''}", seed_text]
    match run.protocol:
        case "zero_shot":
            phrases = ["zero shot" if when_of(run) == BEFORE else "", scored_by(row.mode)]
        case "watch":
            phrases = [when_of(run)]
        case "curve":
            phrases = [*training, row.mode]
        case "original":
            phrases = ["after the original task"]
        case "forgetting":
            change = run.detail(ForgettingDetails)
            before_label = f"before: {change.before}" if change else "before"
            phrases = [before_label if is_before else f"after: {run.model}", seed_text]
        case _ if is_before:
            phrases = ["before inoculation"]
        case "inoculation":
            replay = "" if row.extra == "none" else replayed(row.extra)
            phrases = [*training, replay, row.method]
            phrases.append(f"learning rate {rate(row.learning_rate)}")
            if task and row.control not in WHOLE:
                phrases.append(f"inoculated with control {row.control.replace('_', ' ')}")
        case "diagnose":
            phrases = ["words after the context"]
        case protocol:
            phrases = [protocol.replace("_", " "), name, seed_text]
    phrases.append("" if control in WHOLE else control.replace("_", " "))
    phrases.append("selection items" if name.startswith("selection") else "")
    phrases.append("dose items" if name == DOSE else "")
    label, probe = ", ".join(filter(None, phrases)), task or run.probe or name
    return Sheet(run, f"{run.key}/{name}", probe, label, size, is_before, control, seed or 0)


def _distinct(sheets: Iterable[Sheet]) -> list[Sheet]:
    """Sort sheets by size and drop repeats: each dose repeats the answers before inoculation."""

    def order(sheet: Sheet) -> tuple[object, ...]:
        is_changed = sheet.control not in WHOLE
        key = sheet.run.key, sheet.name
        is_later = sheet.is_watched, sheet.is_before, is_changed
        return sheet.size, *is_later, sheet.control, sheet.seed, *key

    distinct_sheets: dict[tuple[object, ...], Sheet] = {}
    for sheet in sorted(sheets, key=order):
        distinct_sheets.setdefault((sheet.label, sheet.answers, sheet.item_indices), sheet)
    labels = Counter(sheet.label for sheet in distinct_sheets.values())
    for sheet in distinct_sheets.values():
        if labels[sheet.label] > 1:
            sheet.label = f"{sheet.label} ({sheet.name})"
    return [*distinct_sheets.values()]


def _initially_visible(sheets: Sequence[Sheet]) -> list[int]:
    """Return the indices of the answers after most training and, if any, before it."""
    standard = [index for index, sheet in enumerate(sheets) if sheet.control in WHOLE] or [0]
    last = max(standard, key=lambda index: sheets[index].size)  # the first one of a size
    size, items = sheets[last].size, set(sheets[last].item_indices)
    is_smaller = [sheet.size < size and items & {*sheet.item_indices} for sheet in sheets]
    earlier = [index for index in standard if is_smaller[index]]
    # An inoculated model answered in the same way before; zero shot may be in another.
    is_inoculated = sheets[last].run.protocol == INOCULATION
    earlier.sort(key=lambda index: sheets[index].is_before != is_inoculated)
    return [last, *earlier[:1]]


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
