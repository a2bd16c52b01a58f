"""Finds the result files below a folder and reads them; what could not be read is kept and said."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from probelight.io.artifacts import change, read_result, remedy
from probelight.io.escaping import all_visible, visible
from probelight.io.files import read_json
from probelight.results.items.hits import Hits, read_hits
from probelight.results.items.inoculation_hits import Side, read_sides
from probelight.results.model_names import told_apart, with_distinct_models
from probelight.results.planned import PLANNED_FILE, of_earlier_plans, planned_cells
from probelight.results.provenance import COMMAND
from probelight.results.record import RunRecord
from probelight.results.row import Role, Row
from probelight.results.unfinished import unfinished

RUNS_FOLDER = "runs"
RESULT_FILE = "result.json"
GRID_FILE = "grid.json"  # beside the result of a grid: what was said of each pair
INOCULATION = "inoculation"
MAX_NAMED = 3  # folders in the title's line


class UnreadableResultError(ValueError):
    """A result file that is cut short or not what the contract says; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Run(RunRecord):
    """A run's record, and where it lies.

    Attributes:
        path: Folder of the run, relative to the folder of its `Results`.
        asked: The command that made it, as it was typed; empty where it was not recorded.
        hits: Which items its runs got right, where a curve's run recorded them.
        sides: What each reported item counted before and after, where an inoculation recorded it.
    """

    path: str = ""
    asked: str = ""
    hits: Hits | None = None
    sides: Mapping[str, Side] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """What its model is there for."""
        return self.rows[0].role if self.rows else ""

    @property
    def kind(self) -> str:
        """The kind of its model."""
        return self.rows[0].kind if self.rows else ""


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a report is made from; a key of caches, so compared by identity.

    Attributes:
        name: Name of the folder, or of several.
        runs: One a run key, sorted by key.
        left_out: Sentences about files that are not part of the report, and why.
        folder: The folder itself, or the nearest one that all of several lie in; None for results
            that were not read from one.
        damaged: Those sentences of `left_out` that are about files that cannot be read.
    """

    name: str
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()
    folder: Path | None = None
    damaged: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """The rows of all runs."""
        return [row for run in self.runs for row in run.rows]

    def of(self, protocol: str) -> list[Run]:
        """The runs of one protocol."""
        return [run for run in self.runs if run.protocol == protocol]

    def below(self, message: str) -> str:
        """A message whose paths begin in the folder: a page is read elsewhere too."""
        return message if self.folder is None else message.replace(f"{self.folder}/", "")

    def read(self, run: Run, name: str) -> Any | None:
        """What a JSON file beside a run's result.json holds; None where there is none.

        Of a JSON Lines file it is the list of its lines.

        Raises:
            UnreadableResultError: If it is cut short, is not JSON, or is not what the run left.
        """
        if self.folder is None:
            return None
        folder = self.folder / run.path
        if said := change(folder, run.files, name):
            raise UnreadableResultError(f"{run.path}/{said}; {remedy(Path(run.path))}")
        try:
            return read_json(folder / name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            at = f"{run.path}/{name}"
            raise UnreadableResultError(_unreadable(error, folder / name, at)) from error


def load_results(folder: Path | Sequence[Path]) -> Results:
    """Reads every `runs/*/result.json` below a folder; several output folders in it are fine.

    Args:
        folder: One, or several whose results are to stand together. A run that lies below two of
            them, or in a copy of its folder, counts once.

    Raises:
        FileNotFoundError: If none is given, one is not there or holds no result, or none of all
            results can be read.
    """
    folders = [folder] if isinstance(folder, Path) else list(dict.fromkeys(folder))
    if not folders:
        raise FileNotFoundError("no folder with results was given")
    roots = {given: _existing(given) for given in folders}
    root = Path(os.path.commonpath(roots.values()))
    found = {given: _result_paths(own) for given, own in roots.items()}
    every = sorted({path for own in found.values() for path in own}, key=lambda path: path.parts)
    read: dict[Path, Run] = {}
    left_out: dict[Path, str] = {}
    damaged = _damaged_plans(every, root)
    more = [*damaged]
    earlier = of_earlier_plans(every)
    for path in every:
        name = path.relative_to(root).as_posix()
        if path in earlier:
            left_out[path] = f"{name}: of an earlier plan of the sweep, so not in this report"
            continue
        try:
            read[path] = read_run(path, name=name)
        except UnreadableResultError as error:
            left_out[path] = str(error)
            damaged.append(left_out[path])
    for given, own in found.items():
        if not own or not read:
            raise FileNotFoundError(_nothing(given, [left_out[path] for path in own]))
    runs, repeated = _once(read.values())
    unused: list[str] = []
    runs = with_distinct_models([_with_hits(run, root, unused) for run in runs])
    more += [*repeated, *unused, *unfinished(roots.values(), root, RUNS_FOLDER, RESULT_FILE)]
    said = tuple(visible(sentence) for sentence in [*left_out.values(), *more])
    unreadable = tuple(visible(sentence) for sentence in [*damaged, *unused])
    name = visible(_name(list(roots.values())))
    return Results(name, tuple(runs), said, root, unreadable)


def read_run(path: Path, *, name: str | None = None) -> Run:
    """Reads one result.json.

    Args:
        path: The file.
        name: How messages and the report call it; the path where it is None.

    Raises:
        UnreadableResultError: If it is cut short, is not JSON, or lacks what a report needs.
    """
    name = name or path.as_posix()
    try:
        run = Run.from_json(all_visible(read_result(path)), name)
    except (OSError, ValueError) as error:
        raise UnreadableResultError(_unreadable(error, path, name)) from error
    return replace(
        run,
        path=name.removesuffix(f"/{RESULT_FILE}"),
        key=run.key or path.parent.name,
        asked=_asked(path.parent.parent.parent / COMMAND),
    )


def _unreadable(error: OSError | ValueError, path: Path, name: str) -> str:
    """The sentence about a file, which is the same wherever its folder lies: a page says it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: cannot be read ({error.strerror})"
    text, root = str(error), str(path).removesuffix(name)
    text = text.replace(root, "") if root else text
    return text if text.startswith(name) else f"{name}: {text}"


def _asked(path: Path) -> str:
    try:
        return visible(path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):  # no number hangs on it
        return ""


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    return folder.resolve()


def _result_paths(root: Path) -> list[Path]:
    """Every result file below a folder, sorted by its place in it."""
    return sorted(
        (path for path in root.rglob(RESULT_FILE) if path.parent.parent.name == RUNS_FOLDER),
        key=lambda path: path.parts,
    )


def _name(roots: Sequence[Path]) -> str:
    """What folders are called together: their names, with as much before them as is needed."""
    names = list(told_apart([root.as_posix() for root in roots]).values())
    if (rest := len(names) - MAX_NAMED) > 0:
        names = [*names[:MAX_NAMED], f"{rest} more folders"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _damaged_plans(paths: Iterable[Path], root: Path) -> list[str]:
    """What is said of the plans of sweeps that cannot be read, some results of which are there."""
    folders = dict.fromkeys(path.parent.parent.parent for path in paths)
    return [
        f"{os.path.relpath(folder / PLANNED_FILE, root)}: damaged, so runs of an earlier plan are "
        "counted too; give `sweep plan` again"
        for folder in folders
        if (folder / PLANNED_FILE).exists() and planned_cells(folder) is None
    ]


def _once(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """One run a key, the first by path, and a sentence about each of the others.

    Keys are compared within a protocol, model and probe, so that folders named by hand are safe.
    """
    kept: dict[tuple[str, ...], Run] = {}
    repeated = []
    for run in runs:
        first = kept.setdefault((run.key, run.protocol, run.model, run.probe), run)
        if first is not run:
            same = "the same numbers" if first.rows == run.rows else "OTHER numbers"
            repeated.append(
                f"{run.path}: the run {run.key} is there twice, with {same}; "
                f"only the one in {first.path} is counted"
            )
    return [kept[key] for key in sorted(kept)], repeated


def _with_hits(run: Run, root: Path, left_out: list[str]) -> Run:
    """The run with its hits; why they cannot be used is added to `left_out`."""
    name = run.hits_file
    sizes = {row.num_train for row in run.rows if row.num_train is not None}
    of_curve = run.protocol != INOCULATION
    if not name or Path(name).name != name or (of_curve and len(sizes) != 1):
        return run
    path = f"{run.path}/{name}"
    try:
        value = read_json(root / path)
        if said := change(root / run.path, run.files, name):
            raise ValueError(said)
        if of_curve:
            return replace(run, hits=read_hits(value, sizes.pop(), path))
        return replace(run, sides=read_sides(value, path))
    except (OSError, ValueError) as error:
        reason = _unreadable(error, root / path, path).removeprefix(path).lstrip(": ")
        left_out.append(f"{path}: not used, so intervals are from the counts alone ({reason})")
        return run


def _nothing(folder: Path, left_out: list[str]) -> str:
    if left_out:
        return f"{folder}: none of its results can be read:\n  " + "\n  ".join(left_out)
    return (
        f"{folder}: no result is there. A report is made from the files {RUNS_FOLDER}/*/"
        f"{RESULT_FILE} that zero-shot, inoculate and demo write below their --output_dir; "
        "give that folder, or one that holds several of them"
    )
