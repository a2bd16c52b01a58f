"""Planning: which cells are missing, what they will cost, what they can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from probelight.metrics.power import effective_items, paired, two_proportions
from probelight.protocols.jobs.cells.standing import Cell, standings
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.progress import Progress, counted, duration
from probelight.results.run_folder import RunFolder

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
        return tuple(one.cell for one in self.progress.standings)

    @property
    def left(self) -> list[Job]:
        """The jobs without a result."""
        done = {one.cell.key for one in self.progress.done}
        return [job for job in self.jobs if job.key not in done]


def plan_jobs(output_dir: Path, jobs: Sequence[Job]) -> Plan:
    """Makes the run folders, and looks which jobs have a result."""
    for job in jobs:
        RunFolder(output_dir / "runs", job.name, job.config)
    found = standings(output_dir, map(Cell.of, jobs))
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
