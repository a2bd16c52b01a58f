"""Read the results below a folder, and report which could not be read and why."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from probelight.io.documents import read_json
from probelight.io.errors import ProbelightError, RecordError
from probelight.io.escaping import all_visible, brief, visible
from probelight.io.files import SETTINGS, distinct_ends, read_text, regular_file
from probelight.results.hits import Hits, Side, read_hits, read_sides
from probelight.results.record import (
    COMMAND,
    FORMAT,
    OTHER_FORMAT,
    RESULT,
    RunRecord,
    artifact_change,
    read_result,
    remedy,
)
from probelight.results.row import Role, Row
from probelight.results.run_folder import (
    CONFIG,
    PLANNED,
    format_of,
    planned_keys,
    superseded_results,
)

FIT = "fit"  # the protocol of a fit, whose folder is that of its run
GRID_FILE = "grid.json"  # next to the result of a grid: the prediction for each pair
INOCULATION = "inoculation"
WATCH = "watch"  # the protocol of a training that a callback scores
MAX_NAMED = 3  # folders in the title's line
MOST_UNFINISHED = 12  # failed runs, and unfinished ones; a sweep may be planned with hundreds
RUNS_FOLDER, ERROR = "runs", "error.txt"


class UnreadableResultError(ProbelightError, ValueError):
    """A result file that is cut short or malformed; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Run(RunRecord):
    """A run's record, and where it lies."""

    path: str = ""  # folder of the run, relative to the folder of its `RunSet`
    command: str = ""  # as it was typed; empty where it was not recorded
    hits: Hits | None = None  # scores of a curve's items, where they were recorded
    sides: Mapping[str, Side] = field(default_factory=dict)  # the same of an inoculation's items

    @property
    def role(self) -> Role:
        """The role of its model."""
        return self.rows[0].role if self.rows else ""

    @property
    def kind(self) -> str:
        """The type of its model."""
        return self.rows[0].kind if self.rows else ""


@dataclass(frozen=True, eq=False)
class RunSet:
    """Everything a report is made from; a key of caches, so compared by identity."""

    name: str  # of the folder, or of several
    runs: tuple[Run, ...]  # one per run key, sorted by key, numbers by size
    left_out: tuple[str, ...] = ()  # sentences about files that are not part of the report
    folder: Path | None = None  # the nearest that holds all runs; None if not read from files
    damaged: tuple[str, ...] = ()  # the sentences of `left_out` about files that cannot be read

    @property
    def rows(self) -> list[Row]:
        """The rows of all runs."""
        return [row for run in self.runs for row in run.rows]

    @cached_property
    def by_path(self) -> dict[str, Run]:
        """The runs by the paths of their folders."""
        return {run.path: run for run in self.runs}

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """Each notice of the runs once, with its run or the number of its runs."""
        keys_by_notice: dict[str, list[str]] = {}
        for run in self.runs:
            for notice in run.notices:
                keys_by_notice.setdefault(notice, []).append(run.key)
        return tuple(
            f"{notice} ({keys[0] if len(keys) == 1 else f'{len(keys)} runs'})"
            for notice, keys in keys_by_notice.items()
        )

    def of(self, protocol: str) -> list[Run]:
        """Return the runs of one protocol."""
        return [run for run in self.runs if run.protocol == protocol]

    def below(self, message: str) -> str:
        """Return a message with paths relative to the folder, as a page is read elsewhere too."""
        return message if self.folder is None else message.replace(f"{self.folder}/", "")

    def read(self, run: Run, name: str) -> Any | None:
        """Read a JSON file, or the lines of a JSON Lines file, of a run; None if there is none.

        Raises:
            UnreadableResultError: If it is damaged, or has changed since the run ended.
        """
        if self.folder is None:
            return None
        folder = self.folder / run.path
        if changed := artifact_change(folder, run.files, name):
            raise UnreadableResultError(f"{run.path}/{changed}; {remedy(Path(run.path))}")
        try:
            return read_json(folder / name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            at = f"{run.path}/{name}"
            raise UnreadableResultError(_unreadable(error, folder / name, at)) from error


def natural_key(name: str) -> list[int | str]:
    """Return the key that sorts names with numbers by them: step50 before step100."""
    return [int(t) if t.isdecimal() else t for t in re.split(r"(\d+)", name)]


def load_results(folder: Path | Sequence[Path]) -> RunSet:
    """Read every `runs/*/result.json` below one or several folders.

    A run that lies below two of them, or in a copy of its folder, counts once.

    Raises:
        FileNotFoundError: If a folder is not there or holds no result, or no result can be read.
    """
    folders = [folder] if isinstance(folder, Path) else list(dict.fromkeys(folder))
    if not folders:
        raise FileNotFoundError("no folder with results was given")
    if missing := [user_dir for user_dir in folders if not user_dir.is_dir()]:
        raise FileNotFoundError(f"{missing[0]}: there is no such folder")
    roots = {user_dir: user_dir.resolve() for user_dir in folders}
    root = Path(os.path.commonpath(roots.values()))
    paths_below = {user_dir: _result_paths(user_dir, below) for user_dir, below in roots.items()}
    every = sorted({p for paths in paths_below.values() for p in paths}, key=lambda p: p.parts)

    read: list[Run] = []
    left_out: dict[Path, str] = {}
    unreadable: list[str] = []
    earlier = superseded_results(every)
    folders_of_runs = {path.parent.parent.parent for path in every}
    foreign = {folder for folder in folders_of_runs if format_of(folder) != FORMAT}
    for path in every:
        name = path.relative_to(root).as_posix()
        if (command_dir := path.parent.parent.parent) in foreign and not _is_fit(path):
            left_out[path] = f"{os.path.relpath(command_dir, root)}: {OTHER_FORMAT}"
            unreadable.append(left_out[path])
            continue
        if path in earlier:
            left_out[path] = f"{name}: from an earlier plan of the sweep, so not in this report"
            continue
        try:
            read.append(read_run(path, name=name))
        except UnreadableResultError as error:
            left_out[path] = str(error)
            unreadable.append(str(error))
    if not read:
        user_dir, paths = next(iter(paths_below.items()))
        reasons = "\n  ".join(dict.fromkeys(left_out[path] for path in every if path in paths))
        raise FileNotFoundError(f"{user_dir}: none of its results can be read:\n  {reasons}")

    damaged_plans = _damaged_plans(every, root)
    runs, repeated = _without_repeats(read)
    unused_hits: list[str] = []
    runs = with_distinct_models([_with_hits(run, root, unused_hits) for run in runs])
    unfinished = unfinished_notices(roots.values(), root)
    unreadable = [*dict.fromkeys(unreadable)]
    reasons_left_out = dict.fromkeys(left_out.values())
    notices = [*reasons_left_out, *damaged_plans, *repeated, *unused_hits, *unfinished]
    return RunSet(
        visible(_report_name(roots.values())),
        tuple(runs),
        tuple(map(brief, notices)),
        root,
        tuple(map(brief, [*damaged_plans, *unreadable, *unused_hits])),
    )


def _result_paths(user_dir: Path, folder: Path) -> list[Path]:
    """Return the results below a folder; FileNotFoundError if there are none."""
    paths = [path for path in folder.rglob(RESULT) if path.parent.parent.name == RUNS_FOLDER]
    paths = paths or [*folder.glob(RESULT)]  # a fit's folder holds its result itself
    if not paths:
        raise FileNotFoundError(
            f"{user_dir}: no results here. Give the --output_dir of a command such as zero-shot, "
            f"inoculate or demo, in which they are {RUNS_FOLDER}/*/{RESULT}, or a folder with "
            "several of them"
        )
    return paths


def _is_fit(path: Path) -> bool:
    """Return whether a result is a fit's; folders of fits have no format."""
    try:
        return read_result(path).get("protocol") == FIT
    except (OSError, ValueError):
        return False


def _damaged_plans(result_paths: Iterable[Path], root: Path) -> list[str]:
    """Return a sentence about each plan of a sweep that cannot be read."""
    return [
        f"{os.path.relpath(folder / PLANNED, root)}: damaged, so runs of an earlier plan are "
        "counted too; rerun `sweep plan`"
        for folder in dict.fromkeys(path.parent.parent.parent for path in result_paths)
        if (folder / PLANNED).exists() and planned_keys(folder) is None
    ]


def _report_name(folders: Iterable[Path]) -> str:
    """Return the name of a report made from these folders."""
    names = list(distinct_ends(folder.as_posix() for folder in folders).values())
    if (num_more := len(names) - MAX_NAMED) > 0:
        names = [*names[:MAX_NAMED], f"{num_more} more folders"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def read_run(path: Path, *, name: str | None = None) -> Run:
    """Read one result.json, which messages and the report call `name`, or by its path.

    Raises:
        UnreadableResultError: If it is damaged, or lacks what a report needs.
    """
    name = name or path.as_posix()
    try:
        run = Run.from_json(all_visible(read_result(path)), name)
    except (OSError, ValueError) as error:
        raise UnreadableResultError(_unreadable(error, path, name)) from error
    try:
        command = read_text(path.parent.parent.parent / COMMAND, SETTINGS)
    except (OSError, ValueError):  # no number depends on it
        command = ""
    return replace(
        run,
        path=PurePath(name).parent.as_posix(),
        key=run.key or path.parent.name,
        command=visible(command.strip()),
    )


def _unreadable(error: OSError | ValueError, path: Path, name: str) -> str:
    """Return a sentence about an unreadable file, with its path below the folder."""
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: cannot be read ({error.strerror})"
    text, root = str(error), str(path).removesuffix(name)
    text = text.replace(root, "") if root else text
    return text if text.startswith(name) else f"{name}: {text}"


def _without_repeats(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """Return the first run of each key by path, and a sentence about each of the others.

    Folders may be named by hand, so keys are compared within a protocol, model and probe. The same
    step of two trainings has one key, so those are compared within a folder.
    """
    first_of: dict[tuple[str, ...], Run] = {}
    repeated = []
    for run in runs:
        training = str(PurePath(run.path).parent) if run.protocol == WATCH else ""
        first = first_of.setdefault((run.key, run.protocol, run.model, run.probe, training), run)
        if first is not run:
            same = "the same numbers" if first.rows == run.rows else "OTHER numbers"
            repeated.append(
                f"{run.path}: the run {run.key} exists twice, with {same}; "
                f"only the one in {first.path} is counted"
            )
    keys = sorted(first_of, key=lambda names: [*map(natural_key, names)])
    return [first_of[key] for key in keys], repeated


def _with_hits(run: Run, root: Path, notices: list[str]) -> Run:
    """Return the run with its hits; add to `notices` why they cannot be used."""
    name = run.hits_file
    sizes = {row.num_train for row in run.rows if row.num_train is not None}
    of_curve = run.protocol != INOCULATION
    if not name or Path(name).name != name or (of_curve and len(sizes) != 1):
        return run
    path = f"{run.path}/{name}"
    try:
        value = read_json(root / path)
        if changed := artifact_change(root / run.path, run.files, name):
            raise ValueError(changed)
        if of_curve:
            return replace(run, hits=read_hits(value, sizes.pop(), path))
        return replace(run, sides=read_sides(value, path))
    except (OSError, ValueError) as error:
        reason = _unreadable(error, root / path, path).removeprefix(path).lstrip(": ")
        notices.append(f"{path}: not used, so intervals are based on counts alone ({reason})")
        return run


def with_distinct_models(runs: Sequence[Run]) -> list[Run]:
    """Rename models that have the same name but were loaded from different places."""
    locations: dict[str, set[str]] = {}
    for run in runs:
        if location := run.source.loaded_from:
            locations.setdefault(run.model, set()).add(location)
    names = {
        (label, location): f"{label} ({visible(end)})"
        for label, sources in locations.items()
        if len(sources) > 1
        for location, end in distinct_ends(sorted(sources)).items()
    }
    renamed = []
    for run in runs:
        source = run.source
        if control_of := names.get((source.control_of, source.loaded_from)):
            run = replace(run, source=replace(source, control_of=control_of))
        if name := names.get((run.model, source.loaded_from)):
            rows = (replace(row, model=name) if row.model == run.model else row for row in run.rows)
            run = replace(run, model=name, rows=tuple(rows))
        renamed.append(run)
    return renamed


def unfinished_notices(folders: Iterable[Path], root: Path) -> list[str]:
    """Return a sentence about each unfinished run below the folders, or one about many of them."""
    runs = [
        path.parent
        for path in sorted({path for folder in folders for path in folder.rglob(CONFIG)})
        if path.parent.parent.name == RUNS_FOLDER
        and not (path.parent / RESULT).exists()
        # A command's own folder may lie in a folder of that name, as in runs/curve.
        and not (path.parent / RUNS_FOLDER).is_dir()
    ]
    failed = [run for run in runs if (run / ERROR).exists()]
    waiting = [run.relative_to(root).as_posix() for run in runs if run not in failed]
    notices = []
    for run in failed[:MOST_UNFINISHED]:
        try:  # the last line of the traceback
            text = regular_file(run / ERROR).read_text(encoding="utf-8", errors="replace")
            reason = (text.strip() or "no reason given").splitlines()[-1]
        except (OSError, RecordError) as error:  # a folder, say
            cause = str(error).removeprefix(f"{run / ERROR}: ")
            reason = f"{ERROR} cannot be read: {getattr(error, 'strerror', None) or cause}"
        name = run.relative_to(root).as_posix()
        notices.append(f"{name}: failed, so not in this report ({reason})")
    if len(failed) > MOST_UNFINISHED:
        notices.append(f"{len(failed) - MOST_UNFINISHED:,} more runs failed; see {ERROR} of each")
    if len(waiting) > MOST_UNFINISHED:
        names = ", ".join(waiting[:MOST_UNFINISHED])
        return [*notices, f"{len(waiting):,} runs are not finished yet: {names}, ..."]
    return [*notices, *(f"{run}: not finished yet, so not in this report" for run in waiting)]
