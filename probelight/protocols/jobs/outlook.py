"""How far a sweep is, and what is left of it: time, memory, disk, detectable differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.table import Table

from probelight.metrics.power import effective_items, paired, two_proportions
from probelight.protocols.jobs.cells import Cell, CellStatus, State, blocked, statuses
from probelight.protocols.jobs.job import Job
from probelight.results.run_folder import RunFolder

MINUTE, HOUR, DAY = 60, 3600, 86400


class Progress:
    """Numbers of cells and the time left.

    Args:
        statuses: How each cell is.

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


# The rule for the time of a step as long as no cell is finished: forward and backward pass of 16
# questions with 5 choices of 64 tokens.
FLOP_PER_WEIGHT_AND_TOKEN = 6
TOKENS_PER_STEP = 16 * 5 * 64
FLOP_PER_SECOND = {"cpu": 1e11, "gpu": 5e13}
BYTES_PER_WEIGHT = 4
COPIES_IN_MEMORY = 4  # weights, gradients, AdamW's two moments
COPIES_OF_STATES = 6  # while a cell trains: two states of weights and moments

DISCORDANT = 0.3  # share of items that two settings answer differently


@dataclass(frozen=True)
class Outlook:
    """The jobs of a plan and how far they are.

    Attributes:
        jobs: All jobs of it.
        progress: How their cells are.
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


def plan_jobs(output_dir: Path, jobs: Sequence[Job]) -> Outlook:
    """Make the run folders, and look which jobs have a result."""
    for job in jobs:
        RunFolder(output_dir / "runs", job.name, job.config)
    found = statuses(output_dir, map(Cell.of, jobs))
    return Outlook(tuple(jobs), Progress(found))


def plan_lines(plan: Outlook, output_dir: Path, device: str = "cpu") -> list[str]:
    """Say how many cells are done, and what time, memory and disk the others take.

    Args:
        plan: The jobs and how far they are.
        output_dir: Folder of the sweep.
        device: "cpu" or "gpu", for the rule of time.
    """
    types = Counter(job.key.split("-")[0] for job in plan.jobs)
    progress, left = plan.progress, plan.left
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    lines = [
        f"{counted(len(plan.jobs), 'cell')}: "
        + ", ".join(f"{number} {name}" for name, number in types.items()),
        f"{len(progress.done)} done, {len(left)} to be run{failed}",
    ]
    if not left:
        return lines
    sizes_are_known = all(job.weights_bytes for job in left if job.num_steps)
    unknown = "not known before a cell is finished, as the weights of a model are not here yet"

    steps = counted(sum(job.num_steps for job in left), "step")
    seconds = progress.seconds_of({job.key: job.num_steps for job in left})
    source = f"as {counted(len(progress.done), 'finished cell')} took"
    if seconds is None and sizes_are_known:
        weights = sum(job.num_steps * job.weights_bytes / BYTES_PER_WEIGHT for job in left)
        flop = weights * FLOP_PER_WEIGHT_AND_TOKEN * TOKENS_PER_STEP
        seconds = flop / FLOP_PER_SECOND[device]
        source = (
            f"by rule: {FLOP_PER_WEIGHT_AND_TOKEN} operations a weight and token, "
            f"{TOKENS_PER_STEP:,} tokens a step, "
            f"{FLOP_PER_SECOND[device] / 1e9:,.0f} billion operations a second; "
            "evaluation not counted"
        )
    if seconds is None:
        lines.append(f"time: {steps}; {unknown}")
    else:
        lines.append(f"time: {steps}, {duration(seconds)} one after the other ({source})")

    if sizes_are_known:
        largest = max(job.weights_bytes for job in left)
        lines.append(
            f"memory: {_size(COPIES_IN_MEMORY * largest)} a cell for weights, gradients and "
            "AdamW's moments; activations come on top"
        )
    else:
        lines.append(f"memory: {unknown}")

    trained = [one.cell.key for one in progress.done if one.cell.num_steps]
    found = [
        sum(p.stat().st_size for p in (output_dir / "runs" / key).rglob("*") if p.is_file())
        for key in trained
    ]
    sizes = [job.weights_bytes for job in left if job.num_steps]
    if not found and not sizes_are_known:
        return [*lines, f"disk: {unknown}"]
    if found:
        total, source = len(sizes) * fmean(found), f"as {counted(len(found), 'finished cell')}"
    else:
        total, source = float(sum(sizes)), "the best model of each cell that trains"
    states = _size(COPIES_OF_STATES * max(sizes, default=0))
    return [*lines, f"disk: {_size(total)} ({source}), and {states} a cell while it trains"]


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"


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
        same_items, other_items = paired(num_items, DISCORDANT), two_proportions(num_items)
        points = ["-" if d > 1 else f"{100 * d:.1f}" for d in (same_items, other_items)]
        of_means = ""
        if num_seeds > 1:
            best = paired(effective_items(num_items, num_seeds, correlation=0.0), DISCORDANT)
            of_means = ("-" if best > 1 else f"{100 * best:.1f}") + f" ({num_seeds})"
        table.add_row(name, str(num_items), *points, of_means)
    table.caption = (
        "between two models on the same items, on as many other items each, and between their "
        "means over seeds (in brackets how many) at best, were an item's outcomes independent "
        f"between them; 80% power, alpha 0.05; {DISCORDANT:.0%} of the items answered differently; "
        "questions about one concept count as independent here, so with several of them more is "
        "needed"
    )
    table.caption_justify = "left"
    return table
