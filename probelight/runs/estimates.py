"""What a plan will take of time, memory and disk, and which losses its items can show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.table import Table

from probelight.metrics.intervals import num_effective
from probelight.metrics.power import effective_items, paired, paired_items, two_proportions
from probelight.runs.plan import PlannedJob, statuses
from probelight.runs.spec import Job
from probelight.runs.status import Progress, counted, duration

# The rule for the time of a step as long as no job is finished: forward and backward pass of 16
# questions with 5 choices of 64 tokens.
FLOP_PER_WEIGHT_AND_TOKEN = 6
TOKENS_PER_STEP = 16 * 5 * 64
FLOP_PER_WEIGHT_AND_TOKEN_READ = 2  # the forward pass alone, of one text of 64 tokens
TOKENS_PER_TEXT = 64
FLOP_PER_SECOND = {"cpu": 1e11, "gpu": 5e13}
BYTES_PER_WEIGHT = 4  # half as many are multiplied about twice as fast
COPIES_IN_MEMORY = 3  # of what is trained, besides all weights: gradients, AdamW's two moments
STATES = 2  # while a job trains: all weights, and two moments of what is trained
DISCORDANT = 0.3  # share of items that two settings answer differently
WANTED = (0.05, 0.02)  # losses of which the table says how many items they need


def plan_lines(
    jobs: Sequence[Job],
    output_dir: Path,
    device: str = "cpu",
    num_sharing: int = 1,
) -> list[str]:
    """Say how many jobs are done, and how much time, memory and disk the others take.

    `device`, "cpu" or "gpu", is for the rule of time as long as no job is finished; `num_sharing`
    is the number of jobs that share a GPU.
    """
    progress = Progress(statuses(output_dir, map(PlannedJob.of, jobs)))
    done = {status.job.key for status in progress.done}
    to_run = [job for job in jobs if job.key not in done]
    types = Counter(job.key.split("-")[0] for job in jobs)
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    lines = [
        f"{counted(len(jobs), 'run')}: "
        + ", ".join(f"{number} {name}" for name, number in types.items()),
        f"{len(done)} done, {len(to_run)} to be run{failed}",
    ]
    if not to_run:
        return lines
    reading = [job for job in to_run if job.num_steps or job.num_texts]
    sizes_are_known = all(job.weights_bytes for job in reading)
    unknown = "unknown until a run is finished, because a model is not downloaded yet"

    num_sharing = min(num_sharing, len(to_run))
    seconds = progress.seconds_of([job.num_steps for job in to_run])
    seconds = None if seconds is None else seconds / num_sharing  # they shared it too
    finished = counted(len(done), "finished run")
    source = f"based on {finished}"
    if seconds is None and sizes_are_known:
        step, text = (
            FLOP_PER_WEIGHT_AND_TOKEN * TOKENS_PER_STEP,
            FLOP_PER_WEIGHT_AND_TOKEN_READ * TOKENS_PER_TEXT,
        )
        flop = sum(
            (job.num_steps * step + job.num_texts * text) * job.weights_bytes / BYTES_PER_WEIGHT
            for job in to_run
        )
        seconds = flop / FLOP_PER_SECOND[device]
        rules = []
        if any(job.num_steps for job in to_run):
            rules.append(
                f"{FLOP_PER_WEIGHT_AND_TOKEN} operations per weight and token, "
                f"{TOKENS_PER_STEP:,} tokens per step"
            )
        if any(job.num_texts for job in to_run):
            rules.append(
                f"{FLOP_PER_WEIGHT_AND_TOKEN_READ} operations per weight and token read, "
                f"{TOKENS_PER_TEXT} tokens per text, heads not counted"
            )
        source = (
            f"rough estimate: {', '.join(rules)}, {FLOP_PER_SECOND[device] / 1e9:,.0f} billion "
            "operations per second; evaluation not counted"
        )
    time_left = f"; {unknown}"
    if seconds is not None:
        how = "one after the other" if num_sharing == 1 else f"on one GPU, {num_sharing} at once"
        time_left = f", {duration(seconds)} {how} ({source})"

    memory = disk = unknown
    if sizes_are_known:
        # Jobs of one kind take alike: of each kind that with the most steps, of the largest model.
        largest = {
            job.key.split("-")[0]: job.memory
            for job in sorted(to_run, key=lambda job: (job.weights_bytes, job.num_steps))
            if job.memory is not None
        }
        trains = any(job.num_steps for job in to_run)
        copies = max(
            job.weights_bytes + COPIES_IN_MEMORY * _trained(job) * bool(job.num_steps)
            for job in to_run
        )
        held = "weights, gradients and AdamW's moments" if trains else "weights"
        memory = f"{_size(copies)} per run for {held}; plus activations"
        if largest:
            need = max((measure() for measure in largest.values()), key=lambda need: need.total)
            copies, memory = need.total, need.describe(" per run")
        if num_sharing > 1:
            memory += f"; {num_sharing} runs on one GPU take {_size(num_sharing * copies)}"

    trained = [output_dir / "runs" / s.job.key for s in progress.done if s.job.num_steps]
    folder_sizes = [sum(p.stat().st_size for p in run.rglob("*") if p.is_file()) for run in trained]
    training = [job.weights_bytes + 2 * _trained(job) for job in to_run if job.num_steps]
    sizes = [_trained(job) for job in to_run if job.num_steps and job.keeps_model]
    if folder_sizes or sizes_are_known:
        total, source = float(sum(sizes)), "the best model of each run that trains"
        if folder_sizes:
            total = len(sizes) * fmean(folder_sizes)
            source = f"based on {counted(len(folder_sizes), 'finished run')}"
        states = _size(STATES * max(training, default=0))
        disk = f"{_size(total)} ({source}), and " if sizes else ""
        disk += f"{states} per run while it trains"
    num_steps, num_texts = (sum(getattr(j, n) for j in to_run) for n in ("num_steps", "num_texts"))
    work = [counted(num_steps, "step")] if num_steps else []
    if num_texts:
        work.append(f"{counted(num_texts, 'text')} read by frozen models")
    lines += [f"time: {', '.join(work) or 'nothing is trained'}{time_left}", f"memory: {memory}"]
    return [*lines, f"disk: {disk}"] if num_steps else lines


def _trained(job: Job) -> int:
    return job.saved_bytes or job.weights_bytes


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"


def detectable_table(rows: Iterable[tuple[str, Sequence[Hashable], int]]) -> Table:
    """Return the smallest differences in accuracy that can be detected, per set of items.

    Each of `rows` has a set's name, the group of each of its items, and the number of seeds.
    """
    title = "smallest loss or gain in accuracy that can be detected, in percentage points"
    table = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    loss_heads = [f"n for\n{100 * loss:.0f} pts" for loss in WANTED]
    table.pad_edge = False  # 80 columns are few
    table.add_column("set", overflow="fold")
    for head in ("n", "effective\nn", "same\nitems", "other\nitems", "of\nmeans", *loss_heads):
        table.add_column(head, justify="right", no_wrap=True)
    for name, num_items, effective, num_seeds in dict.fromkeys(
        (name, len(groups), num_effective(groups), seeds) for name, groups, seeds in rows
    ):
        same_items, other_items = paired(effective, DISCORDANT), two_proportions(effective)
        points = ["-" if d > 1 else f"{100 * d:.1f}" for d in (same_items, other_items)]
        of_means = ""
        if num_seeds > 1:
            best = paired(effective_items(effective, num_seeds, correlation=0.0), DISCORDANT)
            of_means = ("-" if best > 1 else f"{100 * best:.1f}") + f" ({num_seeds})"
        numbers = [paired_items(loss, DISCORDANT) * num_items / effective for loss in WANTED]
        counts = (f"{math.ceil(number):,}" for number in numbers)
        table.add_row(name, f"{num_items:,}", f"{effective:,.0f}", *points, of_means, *counts)
    table.caption = (
        "effective n: the number of independent items with as much information, if all items of a "
        "group are answered alike (Kish). same items: between two models, or before and after. "
        "other items: between two sets of n items. of means: as same items, between means "
        "over seeds (their number in brackets), at best, if the seeds' answers to an item are "
        "independent. n for 5 pts: items needed to detect such a change, in groups like these. "
        f"All with 80% power, alpha 0.05 and {DISCORDANT:.0%} of the items answered differently."
    )
    return table
