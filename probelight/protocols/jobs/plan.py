"""How far a sweep is, and when it will be done."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from rich.table import Table

from probelight.io.atomic import write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.files import read_json
from probelight.io.wandb import WandbSettings
from probelight.metrics.power import effective_items, paired, two_proportions
from probelight.protocols.jobs.cells import Cell, CellStatus, State, blocked, statuses
from probelight.protocols.jobs.context import RaySettings, RunContext, TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.results.run_folder import RunFolder
from probelight.results.run_status import PLANNED_FILE

MINUTE, HOUR, DAY = 60, 3600, 86400


class Progress:
    """Numbers of cells and the time left.

    Args:
        statuses: How each cell stands.

    Attributes:
        blocked: Cells that are not started, as something that they need has failed for good.
    """

    def __init__(self, statuses: Iterable[CellStatus]) -> None:
        self.statuses = tuple(statuses)
        self.done, self.running, self.waiting, self.failed = (
            [one for one in self.statuses if one.state is state]
            for state in (State.DONE, State.RUNNING, State.WAITING, State.FAILED)
        )
        lost = blocked([one.cell for one in self.waiting], {one.cell.key for one in self.failed})
        self.blocked = [one for one in self.waiting if one.cell.key in lost]
        self.waiting = [one for one in self.waiting if one.cell.key not in lost]

    def seconds_left(self, at_once: int | None = None) -> float | None:
        """Seconds until the last cell is done; None if nothing is known.

        Args:
            at_once: Cells that run at once; as many as run now when left out.
        """
        left = {one.cell.key: one.cell.num_steps for one in (*self.running, *self.waiting)}
        seconds = self.seconds_of(left)
        if seconds is None or not left:
            return seconds
        return seconds / max(1, min(at_once or len(self.running), len(left)))

    def seconds_of(self, steps: Mapping[str, int]) -> float | None:
        """Seconds that cells with so many steps take one by one; None if nothing is known.

        A cell with steps takes the finished ones' mean seconds a step; one without, the mean
        seconds of those without.
        """
        known = [(one.cell.num_steps, one.seconds) for one in self.done if one.seconds is not None]
        if not known:
            return None
        stepped = [(n, seconds) for n, seconds in known if n]
        plain = [seconds for n, seconds in known if not n]
        typical = fmean(plain or [seconds for _, seconds in known])
        rate = None
        if stepped:
            rate = sum(seconds for _, seconds in stepped) / sum(n for n, _ in stepped)
        return sum(n * rate if n and rate is not None else typical for n in steps.values())


def duration(seconds: float) -> str:
    """Seconds as people say them: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def counted(number: int, noun: str) -> str:
    """1 cell, 2 cells."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def last_line(text: str) -> str:
    """The last line with something on it: of a traceback, the error itself."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


Settings = TypeVar("Settings", TrainerSettings, WandbSettings, RaySettings)


@dataclass(frozen=True)
class Planned:
    """The settings of a plan that whoever runs it needs too, and its cells.

    Args:
        context: What the cells run under.
        engine: Where they run, and how often they are tried.
        cells: All cells; reports leave out what an earlier plan left in the folder.
        id: Drawn for the folder's first plan: its cells' group in W&B.
    """

    context: RunContext
    engine: RaySettings
    cells: tuple[Cell, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def keep(self, folder: Path) -> None:
        """Writes them into the folder of the sweep, under the id that it has."""
        before = Planned.read(folder) if (folder / PLANNED_FILE).exists() else None
        engine = replace(self.engine, take_over=False)  # of one run, never of a plan
        said = {
            "id": before.id if before else self.id,
            "engine": asdict(engine),
            **self.context.to_json(),
            "cells": [asdict(cell) for cell in self.cells],
        }
        write_text_atomic(folder / PLANNED_FILE, json.dumps(said, indent=1) + "\n")

    @staticmethod
    def read(folder: Path) -> Planned:
        """What the last plan kept.

        Raises:
            UsageError: If nothing was planned, or the file is damaged.
        """
        path = folder / PLANNED_FILE
        try:
            found = read_json(path)
            cells = [
                Cell(**{**one, "needs": tuple(one["needs"]), "follows": tuple(one["follows"])})
                for one in found["cells"]
            ]
            engine = RaySettings(**found["engine"])
            return Planned(RunContext.from_json(found), engine, tuple(cells), found["id"])
        except FileNotFoundError:
            raise UsageError(
                f"{folder} holds no plan; `train.py sweep plan --config ... --output_dir {folder}` "
                "makes one"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} is damaged or of another version ({error}); remove it and run "
                "`train.py sweep plan` again, which writes it"
            ) from error

    def under(self, context: RunContext, engine: RaySettings) -> Planned:
        """The plan, with those settings in the place of its own that are not the default."""
        mine = self.context
        changed = RunContext(
            _under(mine.trainer, context.trainer),
            _under(mine.wandb, context.wandb),
            mine.mirror if context.mirror is None else context.mirror,
        )
        return replace(self, context=changed, engine=_under(self.engine, engine))


def wandb_group(folder: Path, wandb: WandbSettings) -> str:
    """The group of all runs of a sweep in W&B: its cells' and its report's."""
    return wandb.group or f"{folder.resolve().name}-{Planned.read(folder).id}"


def _under(planned: Settings, given: Settings) -> Settings:
    default = type(given)()
    names = [one.name for one in fields(given)]
    changed = {n: getattr(given, n) for n in names if getattr(given, n) != getattr(default, n)}
    return replace(planned, **changed)


# The rule for the time of a step as long as no cell is finished: forward and backward pass of 16
# questions with 5 choices of 64 tokens.
FLOP_PER_WEIGHT_AND_TOKEN = 6
TOKENS_PER_STEP = 16 * 5 * 64
FLOP_PER_SECOND = {"cpu": 1e11, "gpu": 5e13}
BYTES_PER_WEIGHT = 4
COPIES_IN_MEMORY = 4  # weights, gradients, AdamW's two moments
COPIES_OF_STATES = 6  # while a cell trains: two states of weights and moments

_UNKNOWN = "not known before a cell is finished, as the weights of a model are not here yet"
DISCORDANT = 0.3  # share of items that two settings answer differently


@dataclass(frozen=True)
class Plan:
    """What a plan found.

    Attributes:
        jobs: All jobs of it.
        progress: How their cells stand.
    """

    jobs: tuple[Job, ...]
    progress: Progress

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the jobs."""
        return tuple(one.cell for one in self.progress.statuses)

    @property
    def left(self) -> list[Job]:
        """The jobs without a result."""
        done = {one.cell.key for one in self.progress.done}
        return [job for job in self.jobs if job.key not in done]


def plan_jobs(output_dir: Path, jobs: Sequence[Job]) -> Plan:
    """Makes the run folders, and looks which jobs have a result."""
    for job in jobs:
        RunFolder(output_dir / "runs", job.name, job.config)
    found = statuses(output_dir, map(Cell.of, jobs))
    return Plan(tuple(jobs), Progress(found))


def plan_lines(plan: Plan, output_dir: Path, device: str = "cpu") -> list[str]:
    """What a plan says.

    Args:
        plan: The plan.
        output_dir: Folder of the sweep.
        device: "cpu" or "gpu", for the rule of time.
    """
    kinds = Counter(job.key.split("-")[0] for job in plan.jobs)
    progress, left = plan.progress, plan.left
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    parts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    lines = [
        f"{counted(len(plan.jobs), 'cell')}: {parts}",
        f"{len(progress.done)} done, {len(left)} to be run{failed}",
    ]
    if left:
        lines += [_time(left, progress, device), _memory(left), _disk(plan, output_dir)]
    return lines


def detectable_table(rows: Iterable[tuple[str, int, int]]) -> Table:
    """The smallest differences in accuracy that can be expected to be found.

    Args:
        rows: Name, number of items and number of seeds of each set of items.
    """
    title = "smallest difference in accuracy that can be shown, in percentage points"
    table = Table(title=title, title_justify="left")
    for column in ("items", "number", "same items", "other items", "mean of seeds"):
        table.add_column(column, justify="left" if column == "items" else "right")
    for name, num_items, num_seeds in dict.fromkeys(rows):
        best = paired(effective_items(num_items, num_seeds, correlation=0.0), DISCORDANT)
        apart = two_proportions(num_items)
        values = (_points(paired(num_items, DISCORDANT)), _points(apart))
        seeds = f"{_points(best)} ({num_seeds})" if num_seeds > 1 else ""
        table.add_row(name, str(num_items), *values, seeds)
    table.caption = (
        "between two models on the same items, on as many other items each, and between their "
        "means over seeds (in brackets how many) at best, were an item's outcomes independent "
        f"between them; 80% power, alpha 0.05; {DISCORDANT:.0%} of the items answered differently; "
        "questions about one concept count as independent here, so with several of them more is "
        "needed"
    )
    table.caption_justify = "left"
    return table


def _points(difference: float) -> str:
    return "-" if difference > 1 else f"{100 * difference:.1f}"


def _time(left: Sequence[Job], progress: Progress, device: str) -> str:
    """From finished cells where there are any, else by the rule above."""
    seconds = progress.seconds_of({cell.key: cell.num_steps for cell in left})
    if seconds is not None:
        source = f"as {counted(len(progress.done), 'finished cell')} took"
    else:
        source = (
            f"by rule: {FLOP_PER_WEIGHT_AND_TOKEN} operations a weight and token, "
            f"{TOKENS_PER_STEP:,} tokens a step, "
            f"{FLOP_PER_SECOND[device] / 1e9:,.0f} billion operations a second; "
            "evaluation not counted"
        )
        seconds = sum(map(_flop, left)) / FLOP_PER_SECOND[device]
        if not _sizes_are_known(left):
            return f"time: {_steps(left)}; {_UNKNOWN}"
    return f"time: {_steps(left)}, {duration(seconds)} one after the other ({source})"


def _steps(left: Sequence[Job]) -> str:
    return counted(sum(cell.num_steps for cell in left), "step")


def _sizes_are_known(left: Sequence[Job]) -> bool:
    return all(cell.weights_bytes for cell in left if cell.num_steps)


def _flop(cell: Job) -> float:
    weights = cell.weights_bytes / BYTES_PER_WEIGHT
    return cell.num_steps * FLOP_PER_WEIGHT_AND_TOKEN * weights * TOKENS_PER_STEP


def _memory(left: Sequence[Job]) -> str:
    if not _sizes_are_known(left):
        return f"memory: {_UNKNOWN}"
    largest = max(cell.weights_bytes for cell in left)
    return (
        f"memory: {_size(COPIES_IN_MEMORY * largest)} a cell for weights, gradients and AdamW's "
        "moments; activations come on top"
    )


def _disk(plan: Plan, output_dir: Path) -> str:
    """What cells leave, from finished ones where there are any, and what one needs."""
    trained = [one.cell.key for one in plan.progress.done if one.cell.num_steps]
    found = [_folder_bytes(output_dir / "runs" / key) for key in trained]
    sizes = [job.weights_bytes for job in plan.left if job.num_steps]
    if found:
        source = f"as {counted(len(found), 'finished cell')}"
        total = sum(found) / len(found) * len(sizes)
    elif not _sizes_are_known(plan.left):
        return f"disk: {_UNKNOWN}"
    else:
        total, source = float(sum(sizes)), "the best model of each cell that trains"
    states = COPIES_OF_STATES * max(sizes, default=0)
    return f"disk: {_size(total)} ({source}), and {_size(states)} a cell while it trains"


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"
