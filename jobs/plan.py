"""Planning: which cells are missing, what they will cost, what they can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from jobs.job import Job
from jobs.progress import Progress, duration
from jobs.queue.entry import FAIL, RUNNING, WAITING, Entry
from jobs.queue.lease import RESULT
from jobs.queue.queue import Queue
from metrics.power import effective_items, paired, two_proportions
from results.record import RunRecord
from results.run_folder import RunFolder

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
class Plan:
    """What a plan found and queued.

    Attributes:
        cells: All cells of the sweep.
        done: Keys of those with a result.
        failed: Keys of those that had failed for good.
        active: Keys of those that wait or run already.
        queued: Keys of those that were queued now.
        stray: Cells that wait from an earlier plan and are not among `cells`.
    """

    cells: tuple[Job, ...]
    done: tuple[str, ...]
    failed: tuple[str, ...]
    active: tuple[str, ...]
    queued: tuple[str, ...]
    stray: tuple[str, ...]


def plan_cells(output_dir: Path, cells: Sequence[Job], queue: Queue) -> Plan:
    """Makes the run folders and queues the cells without a result that nobody has queued."""
    runs_dir = output_dir / "runs"
    entries = {entry.key: entry for entry in queue.entries()}
    for cell in cells:
        _drop_incomplete(runs_dir / cell.key / RESULT)
    done = [cell.key for cell in cells if (runs_dir / cell.key / RESULT).exists()]
    missing = [cell for cell in cells if cell.key not in set(done)]
    for cell in missing:
        RunFolder(runs_dir, cell.name, cell.config)
    queued = queue.enqueue(missing)
    keys = {cell.key for cell in cells}
    return Plan(
        cells=tuple(cells),
        done=tuple(done),
        failed=tuple(key for key in queued if key in entries and entries[key].state is FAIL),
        active=tuple(cell.key for cell in missing if cell.key not in set(queued)),
        queued=tuple(queued),
        stray=tuple(k for k, e in entries.items() if e.state is WAITING and k not in keys),
    )


def _drop_incomplete(result_path: Path) -> None:
    """Removes a result that was made without some of the runs it needs: they are tried again."""
    if not result_path.exists():
        return
    if (facts := RunRecord.read(result_path).inoculation) and facts.missing:
        result_path.unlink()


def plan_lines(
    plan: Plan, entries: Sequence[Entry], output_dir: Path, device: str = "cpu"
) -> list[str]:
    """What a plan says.

    Args:
        plan: The plan.
        entries: The queue's entries after it.
        output_dir: Folder of the sweep.
        device: "cpu" or "gpu", for the rule of time.
    """
    kinds = Counter(str(cell.config.get("protocol", "cell")) for cell in plan.cells)
    running = sum(entry.state is RUNNING for entry in entries)
    lines = [
        f"{len(plan.cells)} cells: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()),
        f"{len(plan.done)} done, {len(plan.active)} queued before ({running} run), "
        f"{len(plan.queued)} queued now ({len(plan.failed)} of them had failed)",
    ]
    if plan.stray:
        lines.append(
            f"{len(plan.stray)} cells of an earlier plan wait too, for example {plan.stray[0]}"
        )
    left = [cell for cell in plan.cells if cell.key not in set(plan.done)]
    if left:
        lines += [_time(left, entries, device), _memory(left), _disk(left, plan, output_dir)]
    return lines


def detectable_table(rows: Iterable[tuple[str, int, int]]) -> Table:
    """The smallest differences in accuracy that can be expected to be found.

    Args:
        rows: Name, number of items and number of seeds of each set of items.
    """
    table = Table(title="smallest detectable difference, in points", title_justify="left")
    for column in ("items", "number", "two models on them", "on as many others", "seeds' mean"):
        table.add_column(column, justify="left" if column == "items" else "right")
    for name, num_items, num_seeds in dict.fromkeys(rows):
        best = paired(effective_items(num_items, num_seeds, correlation=0.0), DISCORDANT)
        apart = two_proportions(num_items)
        values = (_points(paired(num_items, DISCORDANT)), _points(apart))
        seeds = f"{_points(best)} ({num_seeds})" if num_seeds > 1 else ""
        table.add_row(name, str(num_items), *values, seeds)
    table.caption = (
        f"80% power, alpha 0.05; {DISCORDANT:.0%} of the items answered differently; the mean over "
        "seeds at best, were an item's outcomes independent between them; questions about one "
        "concept count as independent here, so with several of them more is needed"
    )
    table.caption_justify = "left"
    return table


def _points(difference: float) -> str:
    return "-" if difference > 1 else f"{100 * difference:.1f}"


def _time(left: Sequence[Job], entries: Sequence[Entry], device: str) -> str:
    """From finished cells where there are any, else by the rule above."""
    progress = Progress(entries)
    seconds = progress.seconds_of({cell.key: cell.num_steps for cell in left})
    if seconds is not None:
        source = f"as the {len(progress.done)} finished cells took"
    else:
        source = (
            f"by rule: {FLOP_PER_WEIGHT_AND_TOKEN} operations a weight and token, "
            f"{TOKENS_PER_STEP} tokens a step, {FLOP_PER_SECOND[device]:.0e} operations a second; "
            "evaluation not counted"
        )
        seconds = sum(map(_flop, left)) / FLOP_PER_SECOND[device]
    steps = sum(cell.num_steps for cell in left)
    return f"time: {steps} steps, {duration(seconds)} for one worker ({source})"


def _flop(cell: Job) -> float:
    weights = cell.weights_bytes / BYTES_PER_WEIGHT
    return cell.num_steps * FLOP_PER_WEIGHT_AND_TOKEN * weights * TOKENS_PER_STEP


def _memory(left: Sequence[Job]) -> str:
    largest = max(cell.weights_bytes for cell in left)
    return (
        f"memory: {_size(COPIES_IN_MEMORY * largest)} a worker for weights, gradients and moments; "
        "activations come on top"
    )


def _disk(left: Sequence[Job], plan: Plan, output_dir: Path) -> str:
    """What cells leave, from finished ones where there are any, and what a worker needs."""
    trained = {cell.key for cell in plan.cells if cell.num_steps}
    found = [_folder_bytes(output_dir / "runs" / key) for key in plan.done if key in trained]
    sizes = [cell.weights_bytes for cell in left if cell.num_steps]
    if found:
        total, source = sum(found) / len(found) * len(sizes), f"as {len(found)} finished cells"
    else:
        total, source = float(sum(sizes)), "the best model of each cell that trains"
    states = COPIES_OF_STATES * max(sizes, default=0)
    return f"disk: {_size(total)} ({source}), and {_size(states)} a worker while it trains"


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"
