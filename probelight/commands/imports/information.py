"""`train.py import pvi`: V-information from another program's probabilities of the right labels."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import json_object, number_of
from probelight.io.errors import RecordError, nearest
from probelight.io.escaping import as_cell, visible
from probelight.io.files import DataFile, content_sha256, delimiter_of, item_lines, read_table
from probelight.metrics.intervals import mean_interval
from probelight.results.importers.answers import our_names
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row, Subset
from probelight.results.run_folder import CommandFolder

PROTOCOL = "information"
COLUMNS = ("id", "label", "log_probability", "log_probability_without")
# In place of the two: what guessing and the model leave unknown of the right label, in bits.
ENTROPIES = ("null_entropy", "conditional_entropy")
ITEMS = "pvi.csv"  # in the run's folder: the bits of each item


def import_information(
    files: Sequence[tuple[Path, str]],
    output_dir: Path,
    name: str = "",
    columns: Mapping[str, str] | None = None,
) -> list[Row]:
    """Make a run of each file, given with the name of its model ("" for that of the file)."""
    imported = [
        (path, visible(model or path.stem), read_bits(path, columns)) for path, model in files
    ]
    runs: list[dict[str, Any]] = [
        {"protocol": PROTOCOL, "model": model, "probe": name or path.stem,
         "data": [content_sha256(path)], **({"columns": columns} if columns else {})}
        for path, model, _ in imported
    ]  # fmt: skip
    folder = CommandFolder(output_dir, {"command": "import", "runs": runs})
    for config, (path, model, items) in zip(runs, imported, strict=True):
        run = folder.run(f"import-{config['probe']}-{model}", config)
        if run.result() is not None:
            continue
        rows = list(_rows(items, Row(protocol=PROTOCOL, model=model, probe=str(config["probe"]))))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        cells = ((as_cell(item), as_cell(label), bits) for item, label, bits in items)
        writer.writerows([("id", "label", "pvi"), *cells])
        write_text_atomic(run.path / ITEMS, text.getvalue())
        run.write_metrics(rows)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                model=model,
                probe=str(config["probe"]),
                rows=tuple(rows),
                counts={"items": len(items)},
                notices=(f"{model}: imported from {path.name}, measured by another program",),
                data=(DataFile(path=path.name, sha256=config["data"][0]),),
                source=ModelSource(loaded_from="pvi import"),
                versions={},
            )
        )
    folder.write_results()
    return folder.rows()


def read_bits(path: Path, columns: Mapping[str, str] | None = None) -> list[tuple[str, str, float]]:
    """Return id, label and pointwise V-information in bits of each item of a file.

    Its columns, or the keys of its JSON lines, are those of `COLUMNS`; probabilities are those of
    the right label as natural logarithms, with the input and without it. With `ENTROPIES` an item
    needs no id, which is then its line, and no label. `columns` has the file's names by these.

    Raises:
        RecordError: If a column is missing, or a number is not one; the message names file and
            line.
    """
    rows: dict[str, Mapping[str, Any]]
    if delimiter_of(path):
        table = read_table(path, any_case=not columns)
        rows = table.set_axis(our_names([*table], columns, f"{path}:1: "), axis=1).to_dict("index")
    else:
        rows = {}
        for line, text in item_lines(path):
            try:
                cells = json_object(text)
                names = our_names([*cells], columns)
                rows[line] = dict(zip(names, cells.values(), strict=True))
            except RecordError as error:
                raise RecordError(f"{line}: {error}") from None
    if not rows:
        raise RecordError(f"{path}: no items")
    items, line_by_id = [], dict[str, str]()
    for line, row in rows.items():
        has_entropies = bool(row.keys() & {*ENTROPIES})
        if has_entropies and row.keys() & {*COLUMNS[2:]}:
            raise RecordError(
                f"{line}: there are entropies and log-probabilities; name one of them"
            )
        if has_entropies:
            row = {"id": line.rpartition(":")[2], "label": "any", **row}
        needed = (*COLUMNS[:2], *ENTROPIES) if has_entropies else COLUMNS
        if missing := [column for column in needed if column not in row]:
            near = nearest(missing[0], [*row])
            raise RecordError(f"{line}: {missing[0]!r} is missing{near}; give {', '.join(needed)}")
        for column in COLUMNS[:2]:
            is_name = isinstance(row[column], str | int) and not isinstance(row[column], bool)
            if not is_name or row[column] == "":
                raise RecordError(f"{line}: {column} is {row[column]!r}; give a text or a number")
        if (name := str(row["id"])) in line_by_id:
            raise RecordError(f"{line}: the id {name!r} is already at {line_by_id[name]}")
        line_by_id[name] = line
        if has_entropies:
            entropies = [number_of(row[column]) for column in ENTROPIES]
            if not all(bits >= 0 for bits in entropies):
                raise RecordError(f"{line}: entropies in bits are numbers from 0")
            bits = entropies[0] - entropies[1]
        else:
            logs = [_logarithm(row[column], f"{line}: {column}") for column in COLUMNS[2:]]
            bits = (logs[0] - logs[1]) / math.log(2)
        items.append((name, str(row["label"]), round(bits, 6)))
    return items


def _logarithm(value: Any, location: str) -> float:
    number = number_of(value)
    if not number <= 1e-6:
        raise RecordError(
            f"{location} is {value!r}; give the natural logarithm of a probability above 0"
        )
    return number


def _rows(items: Sequence[tuple[str, str, float]], row: Row) -> list[Row]:
    """Return V-information of all items, and of those of each label where there are several."""
    by_label: dict[str, list[float]] = {}
    for _, label, bits in items:
        by_label.setdefault(label, []).append(bits)
    bits_by_subset: dict[Subset | None, Sequence[float]] = {None: [bits for _, _, bits in items]}
    if 1 < len(by_label) < len(items):
        for label, label_bits in sorted(by_label.items()):
            bits_by_subset[Subset.of("label", f"label={label}", name=label)] = label_bits
    rows, row = [], replace(row, metric="v_information")
    for subset, subset_bits in bits_by_subset.items():
        interval = mean_interval({0: np.array(subset_bits)})
        row = replace(row, subset=subset, value=interval.value, num_items=len(subset_bits))
        is_known = math.isfinite(interval.high)
        rows.append(replace(row, ci_low=interval.low, ci_high=interval.high) if is_known else row)
    return rows
