"""`train.py forgetting`: which items were lost and gained between measurements.

What was answered before and after is read from folders of results, as `compare` reads them, from
two columns of a table, or is a count of items alone. Each pair becomes a run of the command's
folder, with the answers to both in its predictions.jsonl.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from probelight.commands.command import Command, command
from probelight.evaluation.answers import read_answers, refuse_unanswered
from probelight.io.documents import number_of, whole_number_of
from probelight.io.errors import RecordError, UsageError, nearest
from probelight.io.files import read_table
from probelight.io.ranges import MAX_CHOICES, MAX_COUNT, Names, NumChoices, Points
from probelight.metrics.intervals import group_indices
from probelight.metrics.verdicts import MARGIN
from probelight.results.blocks import Block, names_in_blocks
from probelight.results.pairs import PROTOCOL, CountedPair, Pair, pair_of
from probelight.results.run_folder import CommandFolder
from probelight.results.systems import BEFORE, System, systems_of

_COUNTS = re.compile(r"\d{1,15}(,\d{1,15}){3}", re.ASCII)
_LIKE_COUNTS = re.compile(r"[-\d.,;_ ]*\d[-\d.,;_ ]*")
_COLUMN = re.compile(r"(?P<path>.+?\.(?:csv|tsv)(?:\.gz)?)(?::(?P<name>.*))?", re.IGNORECASE)
_ITEM_COLUMNS = ("id", "group", "num_choices")  # columns of a table that are read too
_TRUTHS = {"true": 1.0, "false": 0.0}


@command(
    Command(
        example="train.py forgetting runs/before runs/after --output_dir runs/forgotten",
        options="measured output_dir probes num_choices margin",
        positional=True,
    )
)
def forgetting(
    measured: list[str],
    output_dir: Path | None = None,
    probes: Names = (),
    num_choices: NumChoices | None = None,
    margin: Points = 100 * MARGIN,
) -> None:
    """Counts the items that a model lost and gained between two measurements.

    The tables also show what guessing alone would lose and gain, intervals by groups and seeds, and
    the smallest loss that would have been detected (Harmon et al. 2026).

    Args:
        measured: The measurement before, then one or several after it: folders of results
            (zero-shot, curve, inoculation, original task, import), or columns of scores from 0 to 1
            in a table, as FILE.csv:COLUMN (its columns id, group and num_choices are read too). Or
            one count of items that were right both times, lost, gained and wrong both times, such
            as 40,10,6,44, with --num_choices.
        output_dir: Folder of the results and their page. Without it the tables are only printed.
        probes: Probes, or original tasks, to read from folders; by default all that both have.
        num_choices: Number of choices per item, for counts, and for tables without that column.
        margin: The loss of accuracy that does not matter, in percentage points.

    Raises:
        UsageError: If there is nothing to compare with, or the items are not the same.
        RecordError: If a table is malformed.
    """
    from probelight.reports.build import build_report
    from probelight.reports.formats import page_line, print_tables

    pairs = [*_pairs_of(measured, probes, num_choices)]
    with TemporaryDirectory(prefix="probelight-") as temporary:
        config: dict[str, Any] = {"command": PROTOCOL}
        config |= {"measured": [pair.checksum for pair in pairs], "margin": margin}
        folder = CommandFolder(Path(temporary) if output_dir is None else output_dir, config)
        for number, pair in enumerate(pairs, start=1):
            pair.write(folder, number, margin / 100)
        folder.write_results()
        print_tables(folder.path, PROTOCOL, is_saved=output_dir is not None)
        if output_dir is not None:
            print(page_line(build_report(folder.path)))
    if output_dir is None:
        print("nothing was saved; --output_dir FOLDER saves the results and makes their page")


def _pairs_of(
    measured: Sequence[str], probes: Sequence[str], num_choices: int | None
) -> Iterator[Pair]:
    """Yield the pairs of folders, of columns or of counts."""
    first, *later = measured
    if _LIKE_COUNTS.fullmatch(first) and not os.path.lexists(first):
        if later or num_choices is None or not _COUNTS.fullmatch(first):
            raise UsageError(
                f"{' '.join(measured)}: give a count as four whole numbers of items (right both "
                "times, lost, gained, wrong both times) with --num_choices K, such as 40,10,6,44 "
                "--num_choices 5"
            )
        both, lost, gained, neither = (int(number) for number in first.split(","))
        if not 0 < both + lost + gained + neither <= MAX_COUNT:
            raise UsageError(f"{first}: give counts of 1 to {MAX_COUNT:,} items in all")
        yield CountedPair.of((both, lost, gained, neither), num_choices)
        return
    if not later:
        raise UsageError("give two measurements: first the one before, then the one after")
    columns = [_COLUMN.fullmatch(entry) for entry in measured]
    if not any(columns):
        if num_choices is not None:
            raise UsageError("--num_choices: runs record the choices of their items; leave it out")
        yield from folder_pairs([Path(entry) for entry in measured], probes)
        return
    for entry, column in zip(measured, columns, strict=True):
        if not column or not column["name"]:
            raise UsageError(
                f"{entry}: give columns of tables, as FILE.csv:COLUMN, or folders, not both"
            )
    if probes:
        raise UsageError("--probes is for folders; a table has the items of only one set")
    yield from _column_pairs([(Path(c["path"]), c["name"]) for c in columns if c], num_choices)


def _column_pairs(columns: Sequence[tuple[Path, str]], num_choices: int | None) -> Iterator[Pair]:
    """Yield the pairs of the first column with each other one; rows of all files are the items."""
    scores_by_column: list[list[float]] = []
    item_columns: dict[str, tuple[Path, list[str]]] = {}  # texts, and the first file with them
    tables = {
        path: read_table(path, any_case=True) for path in dict.fromkeys(path for path, _ in columns)
    }
    for path, table in tables.items():
        for column in filter(table.columns.__contains__, _ITEM_COLUMNS):
            first_path, first_texts = item_columns.setdefault(column, (path, [*table[column]]))
            for (line, text), first_text in zip(table[column].items(), first_texts, strict=False):
                if text != first_text or not text:
                    reason = (
                        f"but {first_text!r} in {first_path}" if text else "which must not be empty"
                    )
                    raise RecordError(
                        f"{line}: {column} is {text!r}, {reason}; all files must have the same "
                        "items in the same order"
                    )
        if "id" in table.columns and (repeated_ids := table["id"][table["id"].duplicated()]).size:
            first_line = table.index[table["id"] == repeated_ids.iloc[0]][0]
            raise RecordError(
                f"{repeated_ids.index[0]}: the id {repeated_ids.iloc[0]!r} is already at "
                f"{first_line}; give one row per item"
            )
    for path, name in columns:
        table = tables[path]
        if name.lower() not in table.columns:
            raise RecordError(
                f"{path}:1: no column {name!r}{nearest(name, [*table.columns])}; it has "
                f"{', '.join(map(str, table.columns))}"
            )
        scores_by_column.append(
            [_score(text, f"{line}: {name}") for line, text in table[name.lower()].items()]
        )
        if len(scores_by_column[-1]) != len(scores_by_column[0]):
            raise RecordError(
                f"{path}: {len(scores_by_column[-1])} items, but {len(scores_by_column[0])} in "
                f"{columns[0][0]}"
            )
    if (num_choices is None) == ("num_choices" not in item_columns):
        raise UsageError(
            "give the number of choices per item: either --num_choices K or a column num_choices, "
            "not both"
        )
    choices = [num_choices or 0] * len(scores_by_column[0])
    if num_choices is None:
        path, texts = item_columns["num_choices"]
        for index, (line, text) in enumerate(zip(tables[path].index, texts, strict=True)):
            count = whole_number_of(text)
            if count is None or not 2 <= count <= MAX_CHOICES:
                raise RecordError(
                    f"{line}: num_choices is {text[:40]!r}; give 2 or more, at most {MAX_CHOICES:,}"
                )
            choices[index] = count
    groups = group_indices(item_columns["group"][1]).tolist() if "group" in item_columns else None
    for (path, name), later_scores in zip(columns[1:], scores_by_column[1:], strict=True):
        first, later = {0: np.array(scores_by_column[0])}, {0: np.array(later_scores)}
        yield Pair(path.stem, "", columns[0][1], name, first, later, choices, groups)


def _score(text: str, location: str) -> float:
    score = _TRUTHS.get(text.strip().lower(), number_of(text))
    if not 0 <= score <= 1:
        raise RecordError(f"{location} is {text!r}; give a score from 0 to 1 for each item")
    return score


def folder_pairs(folders: Sequence[Path], probes: Sequence[str] = ()) -> Iterator[Pair]:
    """Yield each system of the later folders with that of the first one, on the same items."""
    systems_by_folder = []
    for answers, *_ in read_answers(folders, mixed=True):
        systems, _ = systems_of(answers)
        # What inoculations began with is no measurement of their own.
        systems_by_folder.append([s for s in systems if s.first.key.answered != BEFORE])
    answered_probes = sorted({s.first.key.probe for group in systems_by_folder for s in group})
    refuse_unanswered(probes, answered_probes)
    chosen_probes = [*probes] or answered_probes
    pairs_by_probe: dict[str, list[tuple[System, System]]] = {probe: [] for probe in chosen_probes}
    first_systems = systems_by_folder[0]
    for folder, systems in zip(folders[1:], systems_by_folder[1:], strict=True):
        later_systems = [system for system in systems if system.first.key.probe in pairs_by_probe]
        pairs = [
            (earlier, later)
            for later in later_systems
            if (earlier := _system_before(first_systems, later))
        ]
        if not pairs:
            answered = (
                ", ".join(sorted({s.first.key.probe for s in compared})) or "no answers to items"
                for compared in (systems, first_systems)
            )
            raise UsageError(
                f"{folder}: no set was answered both before and after; it has {next(answered)}, "
                f"and {folders[0]} has {next(answered)}"
            )
        for earlier, later in pairs:
            pairs_by_probe[later.first.key.probe].append((earlier, later))
    for pairs in pairs_by_probe.values():
        if pairs:
            distinct_systems = {id(system): system for pair in pairs for system in pair}.values()
            block = Block(pairs[0][1].first.key, (), (), tuple(distinct_systems))
            name_of = {id(system): name for name, system in names_in_blocks([block])[0].items()}
            for earlier, later in pairs:
                yield pair_of(earlier, later, name_of[id(earlier)], name_of[id(later)])


def _system_before(systems: Sequence[System], later: System) -> System | None:
    """Return the system that answered a system's set before; of several that of its model."""
    candidates = [system for system in systems if system.first.key.probe == later.first.key.probe]
    same_model = [system for system in candidates if system.first.model == later.first.model]
    candidates = same_model if len(candidates) > 1 and same_model else candidates
    if len(candidates) > 1:
        models = "; ".join(
            ", ".join(filter(None, (system.first.model, *system.first.setting.values())))
            for system in candidates
        )
        raise UsageError(
            f"{candidates[0].first.folder}: several models or settings answered "
            f"{later.first.key.probe}, and only one can be the one before: {models}; give "
            "the folder of one of its runs (in runs/)"
        )
    return next(iter(candidates), None)
