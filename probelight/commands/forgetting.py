"""`train.py forgetting`: which items were lost and gained between measurements.

What was answered before and after is read from folders of results, as `compare` reads them, from
two columns of a table, or is a count of items alone. Each pair becomes a run of the command's
folder, with the answers to both in its predictions.jsonl.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from probelight.commands.command import Command, command
from probelight.io.errors import RecordError, UsageError, nearest
from probelight.io.escaping import visible
from probelight.io.files import distinct_ends, read_table
from probelight.io.numbers import number_of, whole_number_of
from probelight.io.ranges import Names, NumChoices
from probelight.metrics.comparisons import Runs
from probelight.metrics.forgetting import of_counts
from probelight.metrics.intervals import group_indices, num_groups, runs_interval
from probelight.results.blocks import Block, check_items, names_in_blocks
from probelight.results.details import ForgettingDetails
from probelight.results.load import UnreadableResultError, load_results
from probelight.results.measured import change_rows
from probelight.results.predictions import ItemLine, write_predictions
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder
from probelight.results.systems import BEFORE, System, scores_of, systems_of

PROTOCOL = "forgetting"
_COUNTS = re.compile(r"\d{1,9}(,\d{1,9}){3}", re.ASCII)
_LIKE_COUNTS = re.compile(r"[-\d.,;_ ]*\d[-\d.,;_ ]*")
_COLUMN = re.compile(r"(?P<path>.+?\.(?:csv|tsv)(?:\.gz)?)(?::(?P<name>.*))?", re.IGNORECASE)
_FACTS = ("id", "group", "num_choices")  # columns of a table that are read too
_TRUTHS = {"true": 1.0, "false": 0.0}


@command(
    Command(
        example="train.py forgetting runs/before runs/after --output_dir runs/forgotten",
        shown="measured output_dir probes num_choices",
        positional=True,
    )
)
def forgetting(
    measured: list[str],
    output_dir: Path | None = None,
    probes: Names = (),
    num_choices: NumChoices | None = None,
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

    Raises:
        UsageError: If there is nothing to compare with, or the items are not the same.
        RecordError: If a table is malformed.
    """
    from probelight.reports.build import build_report
    from probelight.reports.formats import page_line, print_tables

    pairs = [*_pairs_of(measured, probes, num_choices)]
    with TemporaryDirectory(prefix="probelight-") as temporary:
        config = {"command": PROTOCOL, "measured": [pair.checksum for pair in pairs]}
        folder = CommandFolder(Path(temporary) if output_dir is None else output_dir, config)
        for place, pair in enumerate(pairs, start=1):
            _write_run(folder, pair, place)
        folder.write_results()
        print_tables(folder.path, PROTOCOL, is_saved=output_dir is not None)
        if output_dir is not None:
            print(page_line(build_report(folder.path)))
    if output_dir is None:
        print("nothing was saved; --output_dir FOLDER saves the results and makes their page")


@dataclass(frozen=True)
class Pair:
    """The same items, measured before and after."""

    probe: str
    split: str
    before: str  # what was measured, for tables
    after: str
    was: Runs  # by seed, (N,) scores
    now: Runs
    num_choices: Sequence[int]  # of each item
    groups: Sequence[int] | None = None
    lines: tuple[ItemLine, ...] = ()  # the answers before and after, where they are known

    @property
    def checksum(self) -> str:
        """What decides the numbers."""
        runs = [{k: list(map(float, v)) for k, v in run.items()} for run in (self.was, self.now)]
        about = [self.probe, self.split, self.before, self.after]
        text = json.dumps([about, runs, [*self.num_choices], self.groups])
        return hashlib.sha256(text.encode()).hexdigest()


def _pairs_of(
    measured: Sequence[str], probes: Sequence[str], num_choices: int | None
) -> Iterator[Pair]:
    """Yield what is to be compared, of folders, columns or counts."""
    first, *others = measured
    if _LIKE_COUNTS.fullmatch(first) and not Path(first).exists():
        if others or num_choices is None or not _COUNTS.fullmatch(first):
            raise UsageError(
                f"{' '.join(measured)}: give a count as four whole numbers of items (right both "
                "times, lost, gained, wrong both times) with --num_choices K, such as 40,10,6,44 "
                "--num_choices 5"
            )
        counts = [int(number) for number in first.split(",")]
        if not sum(counts):
            raise UsageError(f"{first}: no items")
        was, now = of_counts(*counts)
        yield Pair("items", "", "", "counted", was, now, [num_choices] * sum(counts))
        return
    if not others:
        raise UsageError("give two measurements: first the one before, then the one after")
    columns = [_COLUMN.fullmatch(entry) for entry in measured]
    if not any(columns):
        if num_choices is not None:
            raise UsageError("--num_choices: runs record the choices of their items; leave it out")
        yield from _of_folders([Path(entry) for entry in measured], probes)
        return
    for entry, column in zip(measured, columns, strict=True):
        if not column or not column["name"]:
            raise UsageError(
                f"{entry}: give columns of tables, as FILE.csv:COLUMN, or folders, not both"
            )
    if probes:
        raise UsageError("--probes is for folders; a table has the items of only one set")
    yield from _of_columns([(Path(c["path"]), c["name"]) for c in columns if c], num_choices)


def _of_columns(columns: Sequence[tuple[Path, str]], num_choices: int | None) -> Iterator[Pair]:
    """Yield the pairs of the first column with each other one; rows of all files are the items."""
    values: list[list[float]] = []
    facts: dict[str, tuple[Path, list[str]]] = {}  # of the items, by column
    read = {
        path: read_table(path, any_case=True) for path in dict.fromkeys(path for path, _ in columns)
    }
    for path, table in read.items():
        for fact in (fact for fact in _FACTS if fact in table.columns):
            first_path, known = facts.setdefault(fact, (path, [*table[fact]]))
            for (place, text), other in zip(table[fact].items(), known, strict=False):
                if text != other or not text:
                    reason = f"but {other!r} in {first_path}" if text else "which must not be empty"
                    raise RecordError(
                        f"{place}: {fact} is {text!r}, {reason}; all files must have the same "
                        "items in the same order"
                    )
        if "id" in table.columns and (again := table["id"][table["id"].duplicated()]).size:
            first_line = table.index[table["id"] == again.iloc[0]][0]
            raise RecordError(
                f"{again.index[0]}: the id {again.iloc[0]!r} is already at {first_line}; give one "
                "row per item"
            )
    for path, name in columns:
        table = read[path]
        if name.lower() not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise RecordError(
                f"{path}:1: no column {name!r}{nearest(name, [*table.columns])}; it has {there}"
            )
        values.append(
            [_score(text, f"{place}: {name}") for place, text in table[name.lower()].items()]
        )
        if len(values[-1]) != len(values[0]):
            raise RecordError(
                f"{path}: {len(values[-1])} items, but {len(values[0])} in {columns[0][0]}"
            )
    if (num_choices is None) == ("num_choices" not in facts):
        raise UsageError(
            "give the number of choices per item: either --num_choices K or a column num_choices, "
            "not both"
        )
    choices = [num_choices or 0] * len(values[0])
    if num_choices is None:
        path, texts = facts["num_choices"]
        for number, (place, text) in enumerate(zip(read[path].index, texts, strict=True)):
            if (count := whole_number_of(text)) is None or count < 2:
                raise RecordError(f"{place}: num_choices is {text!r}; give 2 or more")
            choices[number] = count
    groups = group_indices(facts["group"][1]).tolist() if "group" in facts else None
    for (path, name), after in zip(columns[1:], values[1:], strict=True):
        was, now = {0: np.array(values[0])}, {0: np.array(after)}
        yield Pair(path.stem, "", columns[0][1], name, was, now, choices, groups)


def _score(text: str, place: str) -> float:
    score = _TRUTHS.get(text.strip().lower(), number_of(text))
    if not 0 <= score <= 1:
        raise RecordError(f"{place} is {text!r}; give a score from 0 to 1 for each item")
    return score


def _of_folders(folders: Sequence[Path], probes: Sequence[str]) -> Iterator[Pair]:
    """Yield each system of the later folders with that of the first one, on the same items."""
    names = distinct_ends(str(folder.resolve()) for folder in folders)
    by_folder = []
    for folder in folders:
        results, name = load_results(folder), visible(names[str(folder.resolve())])
        try:
            systems, _ = systems_of([*scores_of(results, name, mixed=True)])
        except UnreadableResultError as error:
            raise UnreadableResultError(f"{folder}: {error}") from error
        # What inoculations began with is no measurement of their own.
        by_folder.append([one for one in systems if one.first.key.answered != BEFORE])
    known = sorted({one.first.key.probe for systems in by_folder for one in systems})
    for probe in probes:
        if probe not in known:
            there = ", ".join(known) or "nothing"
            raise UsageError(
                f"--probes {probe}: these results have no answers to it{nearest(probe, known)}; "
                f"they have answers to {there}"
            )
    wanted = [*probes] or known
    by_probe: dict[str, list[tuple[System, System]]] = {probe: [] for probe in wanted}
    for folder, of_folder in zip(folders[1:], by_folder[1:], strict=True):
        afters = [one for one in of_folder if one.first.key.probe in by_probe]
        pairs = [(before, one) for one in afters if (before := _before(by_folder[0], one))]
        if not pairs:
            answered = (
                ", ".join(sorted({s.first.key.probe for s in one})) or "no answers to items"
                for one in (of_folder, by_folder[0])
            )
            raise UsageError(
                f"{folder}: no set was answered both before and after; it has {next(answered)}, "
                f"and {folders[0]} has {next(answered)}"
            )
        for before, after in pairs:
            by_probe[after.first.key.probe].append((before, after))
    for pairs in by_probe.values():
        if pairs:
            each = {id(system): system for pair in pairs for system in pair}.values()
            block = Block(pairs[0][1].first.key, (), (), tuple(each))
            name_of = {id(system): name for name, system in names_in_blocks([block])[0].items()}
            for before, after in pairs:
                yield _of_systems(before, after, name_of[id(before)], name_of[id(after)])


def _before(systems: Sequence[System], after: System) -> System | None:
    """Return the system that answered a system's set before; of several that of its model."""
    found = [one for one in systems if one.first.key.probe == after.first.key.probe]
    same = [one for one in found if one.first.model == after.first.model]
    found = same if len(found) > 1 and same else found
    if len(found) > 1:
        which = "; ".join(
            ", ".join(filter(None, (one.first.model, *one.first.setting.values()))) for one in found
        )
        raise UsageError(
            f"{found[0].first.folder}: several models or settings answered "
            f"{after.first.key.probe}, and only one can be the one before: {which}; give the "
            "folder of one of its runs (in runs/)"
        )
    return next(iter(found), None)


def _of_systems(before: System, after: System, name_before: str, name_after: str) -> Pair:
    block = Block(after.first.key, (), (), (before, after))
    check_items(block)
    items, groups = block.items, block.groups
    was, now = (system.scores(items) for system in (before, after))
    if len(was) > 1 and was.keys() != now.keys():
        raise UsageError(
            f"{block.title}: seeds {sorted(was)} before, but {sorted(now)} after; give the same "
            "seeds, or a single one before"
        )
    lines: list[ItemLine] = []
    probe, split = after.first.key.probe, after.first.key.split
    start = np.mean(list(was.values()), axis=0)
    for system, ending in ((before, "_before"), (after, "")):
        for run in system.runs:
            for item, score in zip(items, start, strict=True):
                line = replace(run.lines[item], set=f"{probe}{ending}", seed=run.seed)
                lines.append(line if ending else replace(line, before=float(score)))
    choices = [len(item[2]) for item in items]
    return Pair(
        probe,
        split,
        name_before,
        name_after,
        was,
        now,
        choices,
        None if groups is None else groups.tolist(),
        tuple(lines),
    )


def _write_run(folder: CommandFolder, pair: Pair, place: int) -> None:
    """Write the run of a pair, if it is not there yet; `place` is its place among all."""
    config = {"protocol": PROTOCOL, "pair": pair.checksum}
    run = folder.run(f"{PROTOCOL}-{place:03}-{pair.probe}-{pair.after}", config)
    if run.result() is not None:
        return
    row = Row(protocol=PROTOCOL, model=pair.after, probe=pair.probe, split=pair.split)
    row = replace(row, num_items=len(pair.num_choices))
    rows = []
    for name, runs in (("accuracy_before", pair.was), ("accuracy", pair.now)):
        value, low, high = runs_interval(runs, pair.groups)
        rows.append(replace(row, metric=name, value=value, ci_low=low, ci_high=high))
    rows += change_rows(pair.was, pair.now, pair.num_choices, pair.groups, row)
    run.write_metrics(rows)
    if pair.lines:
        write_predictions(run, pair.lines)
    groups = len(pair.num_choices) if pair.groups is None else num_groups(pair.groups)
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=pair.after,
            probe=pair.probe,
            rows=tuple(rows),
            counts={"items": len(pair.num_choices), "groups": groups},
            seeds=tuple(seed for seed in pair.now if len(pair.now) > 1),
            details=(ForgettingDetails(before=pair.before, num_seeds=len(pair.now)),),
        )
    )
