"""Estimates for the rest of a plan: time, memory and disk, and the differences it can detect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from rich.table import Table

from probelight.metrics.power import effective_items, paired, two_proportions
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.plan import PlannedJob, statuses
from probelight.protocols.jobs.status import Progress, counted, duration

# The rule for the time of a step as long as no job is finished: forward and backward pass of 16
# questions with 5 choices of 64 tokens.
FLOP_PER_WEIGHT_AND_TOKEN = 6
TOKENS_PER_STEP = 16 * 5 * 64
FLOP_PER_SECOND = {"cpu": 1e11, "gpu": 5e13}
BYTES_PER_WEIGHT = 4
COPIES_IN_MEMORY = 4  # weights, gradients, AdamW's two moments
COPIES_OF_STATES = 6  # while a job trains: two states of weights and moments

DISCORDANT = 0.3  # share of items that two settings answer differently


def plan_lines(jobs: Sequence[Job], output_dir: Path, device: str = "cpu") -> list[str]:
    """Say how many jobs are done, and how much time, memory and disk the others take.

    `device`, "cpu" or "gpu", is for the rule of time as long as no job is finished.
    """
    progress = Progress(statuses(output_dir, map(PlannedJob.of, jobs)))
    done = {status.job.key for status in progress.done}
    left = [job for job in jobs if job.key not in done]
    types = Counter(job.key.split("-")[0] for job in jobs)
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    lines = [
        f"{counted(len(jobs), 'cell')}: "
        + ", ".join(f"{number} {name}" for name, number in types.items()),
        f"{len(done)} done, {len(left)} to be run{failed}",
    ]
    if not left:
        return lines
    sizes_are_known = all(job.weights_bytes for job in left if job.num_steps)
    unknown = "not known before a cell is finished, as the weights of a model are not here yet"

    steps = counted(sum(job.num_steps for job in left), "step")
    seconds = progress.seconds_of([job.num_steps for job in left])
    source = f"as {counted(len(done), 'finished cell')} took"
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

    trained = [status.job.key for status in progress.done if status.job.num_steps]
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
    """Return the smallest differences in accuracy that can be detected, per set of items.

    Each of `rows` has a set's name, its number of items and the number of seeds.
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
