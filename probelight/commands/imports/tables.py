"""`train.py import table`: tables that say what was measured, but not of which choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from probelight.commands.imports import information
from probelight.io.atomic import write_text_atomic
from probelight.io.errors import RecordError
from probelight.io.escaping import visible
from probelight.io.files import DataFile, content_sha256
from probelight.io.ranges import MAX_COUNT, NumChoices, NumEpochs, NumItems, Seed, Within
from probelight.results.importers.columns import (
    Columns,
    TableRow,
    for_model,
    named_rows,
    needed_columns,
    typed_rows,
)
from probelight.results.importers.correct import ScoredItem
from probelight.results.pairs import PROTOCOL as FORGETTING
from probelight.results.pairs import CountedPair
from probelight.results.predictions import DOSE, ItemLine, write_predictions
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder

MOST_RUNS = 1_000  # of a table with a run in each row
NotNegative = Annotated[float, Within(0, inf)]
Difference = Annotated[float, Within(-1, 1)]
NumCounted = Annotated[int, Within(0, MAX_COUNT)]


@dataclass(frozen=True, kw_only=True)
class LearnedItem(TableRow):
    """How an item was learned over the epochs (Swayamdipta et al. 2020): a point of a data map."""

    id: str
    confidence: Annotated[float, Within(0, 1)]
    variability: Annotated[float, Within(0, 0.5)]  # no share deviates further from its mean
    correctness: NotNegative  # a share of the epochs, or with `epochs` how many of them
    epochs: NumEpochs = 1


@dataclass(frozen=True, kw_only=True)
class Training(TableRow):
    """The gain of a training on a new task, and its loss on an old one."""

    identity = ("method", "strength", "learning_rate", "seed", "dose")
    method: str
    gain: Difference
    loss: Difference
    strength: NotNegative | None = None
    learning_rate: NotNegative | None = None
    seed: Seed | None = None
    dose: NumItems | None = None


@dataclass(frozen=True, kw_only=True)
class Counts(TableRow):
    """How many items were right before and after, lost, gained, and never right."""

    identity = ("probe", "model_before", "model")
    both: NumCounted
    lost: NumCounted
    gained: NumCounted
    neither: NumCounted
    num_choices: NumChoices
    probe: str = ""
    model_before: str = ""
    model: str = ""


KINDS: Mapping[str, Sequence[type[TableRow]]] = {  # of tables, by what a row may be
    "correct": (ScoredItem,),
    "pvi": (information.ItemLogarithms, information.ItemEntropies),
    "data_map": (LearnedItem,),
    "trade_off": (Training,),
    "counts": (Counts,),
}
PROTOCOLS = {  # of the runs that `import_tables` makes
    "pvi": "information", "data_map": "data_map", "trade_off": "trade_off", "counts": FORGETTING
}  # fmt: skip


def columns_of(kind: str) -> list[str]:
    """Return the columns that a kind of table may have."""
    return [*dict.fromkeys(column.name for row in KINDS[kind] for column in fields(row))]


def kind_of_table(path: Path, columns: Columns) -> str:
    """Return the kind that a table's first row fits best; RecordError if several fit alike."""
    _, row = next(named_rows(path, columns), ("", {}))
    missing_shares = [
        (fmean(column not in row for column in needed_columns(kind)), name)
        for name, kinds in KINDS.items()
        for kind in kinds
    ]
    least = min(missing_shares)[0]
    names = dict.fromkeys(name for share, name in missing_shares if share == least)
    if len(names) > 1:
        fits = f"{' and '.join(names)} alike" if least < 1 else "no kind of table"
        raise RecordError(
            f"{path}: its columns ({', '.join(row)}) fit {fits}; say which it is, as one of "
            f"import {', '.join(names)}, and name its columns as --columns OURS=THEIRS"
        )
    return next(iter(names))


def import_tables(
    kind: str, files: Sequence[tuple[Path, str]], output_dir: Path, name: str, columns: Columns
) -> list[Row]:
    """Make a run of each file, or of each of its rows that is one.

    Args:
        kind: One of `PROTOCOLS`.
        files: Each file with the name of its model; "" for that of the file.
        output_dir: Folder of the results.
        name: Name of the items; "" for that of the file.
        columns: What is read for each of our columns.
    """
    if kind == "counts":
        pairs = [pair for file in files for pair in _pairs(*file, name, columns)]
        checksums = [pair.checksum for pair in pairs]
        folder = CommandFolder(output_dir, {"command": "import", "measured": checksums})
        for number, pair in enumerate(pairs, start=1):
            pair.write(folder, number)
        folder.write_results()
        return folder.rows()
    runs: list[tuple[dict[str, Any], Path, list[Row], Sequence[Any]]] = []
    for path, model in files:
        its_columns = for_model(columns, model)
        for number, (rows, lines) in enumerate(_measured(kind, path, its_columns), start=1):
            config: dict[str, Any] = {
                "protocol": PROTOCOLS[kind],
                "model": visible(model or path.stem),
                "probe": name or path.stem,
                "data": [content_sha256(path)],
                "number": number,
                **({"columns": its_columns} if columns else {}),
            }
            runs.append((config, path, rows, lines))
    folder = CommandFolder(output_dir, {"command": "import", "runs": [run[0] for run in runs]})
    for config, path, rows, lines in runs:
        row = Row(protocol=config["protocol"], model=config["model"], probe=config["probe"])
        run = folder.run(f"import-{row.probe}-{row.model}-{config['number']}", config)
        if run.result() is not None:
            continue
        rows = [replace(r, protocol=row.protocol, model=row.model, probe=row.probe) for r in rows]
        if kind == "pvi":
            write_text_atomic(run.path / information.ITEMS, information.items_csv(lines))
        if kind == "data_map":
            write_predictions(run, lines)
        run.write_metrics(rows)
        notice = f"{row.model}: imported from {path.name}, measured by another program"
        record = RunRecord.of(row, rows, [], notices=(notice,), versions={})
        run.finish(
            replace(
                record,
                counts={"items": len(lines)} if lines else {},
                data=(DataFile(path=path.name, sha256=config["data"][0]),),
                source=ModelSource(loaded_from=f"{kind} import"),
            )
        )
    folder.write_results()
    return folder.rows()


def _measured(kind: str, path: Path, columns: Columns) -> Iterator[tuple[list[Row], Sequence[Any]]]:
    """Yield what was measured in each run of a file, and what is known of each item."""
    if kind == "pvi":
        bits = information.read_bits(path, columns)
        yield information.information_rows(bits), bits
    elif kind == "data_map":
        lines = learned_lines(path, columns)
        dynamics = ("confidence", "variability", "correctness")
        means = {f"{DOSE}_{name}": fmean(getattr(ln, name) for ln in lines) for name in dynamics}
        yield _rows(means, Row(num_items=len(lines))), lines
    else:
        trainings = [row for _, row in typed_rows(path, columns, [Training], MOST_RUNS)]
        if len({training.method for training in trainings}) < 2:
            raise RecordError(f"{path}: there are not two methods to compare")
        for training in trainings:
            method = "" if training.method.casefold() == "none" else training.method
            setting = {name: getattr(training, name) for name in Training.identity[1:]}
            changes = {"probe_gain": training.gain, "inoculation_cost": training.loss}
            yield _rows(changes, Row(keeping=method, **setting)), ()


def _rows(numbers: Mapping[str, float], row: Row) -> list[Row]:
    return [replace(row, metric=name, value=number) for name, number in numbers.items()]


def learned_lines(path: Path, columns: Columns) -> list[ItemLine]:
    """Return the items of a data map; the message of a `RecordError` names file and line."""
    lines = list[ItemLine]()
    for where, learned in typed_rows(path, columns, [LearnedItem]):
        if learned.correctness > learned.epochs:
            raise RecordError(
                f"{where}: correctness is {learned.correctness:g}; give a share of the epochs, or "
                "their number too, as --columns epochs=6"
            )
        correctness = learned.correctness / learned.epochs
        lines.append(
            ItemLine(
                set=DOSE,
                id=learned.id,
                position=len(lines) + 1,
                question=learned.id,
                choices=("the right answer",),
                scores=(learned.confidence,),
                prediction=None,
                tied=0,
                answer=0,
                correct=correctness,
                confidence=learned.confidence,
                variability=learned.variability,
                correctness=correctness,
            )
        )
    return lines


def _pairs(path: Path, model: str, name: str, columns: Columns) -> Iterator[CountedPair]:
    """Yield the counts in each row of a table, with the names of what was measured."""
    rows = typed_rows(path, for_model(columns, model), [Counts], MOST_RUNS)
    for number, (where, row) in enumerate(rows, start=1):
        counts = (row.both, row.lost, row.gained, row.neither)
        if not 0 < sum(counts) <= MAX_COUNT:
            raise RecordError(f"{where}: {sum(counts):,} items in all; give 1 to {MAX_COUNT:,}")
        yield replace(
            CountedPair.of(counts, row.num_choices),
            probe=row.probe or name or path.stem,
            name_before=row.model_before,
            name_after=row.model or model or f"row {number}",
        )
