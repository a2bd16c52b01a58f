"""What a plan will take of time, memory and disk, and which losses its items can show."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from probelight.io.progress import counted, duration
from probelight.metrics.intervals import num_effective
from probelight.metrics.power import effective_items, paired, paired_items, two_proportions
from probelight.runs.memory import MemoryNeed
from probelight.runs.plan import PlannedJob, statuses
from probelight.runs.spec import Job
from probelight.runs.status import Progress

# The rule for the time of a step as long as no job is finished: forward and backward pass of the
# largest batch, or of 16 questions with 5 choices of 64 tokens where that was not measured.
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
UNKNOWN = "unknown until a run is finished, because a model is not downloaded yet"


@dataclass(frozen=True)
class Plan:
    """What a command would run, and what that takes: the answer to `dry_run`.

    Attributes:
        num_runs: Runs of the command.
        num_done: Those of them that are finished.
        num_steps: Optimiser steps that are left.
        num_texts: Texts that frozen models have left to read.
        seconds: Time that the other runs take, one after the other; None where it is not known.
        memory_bytes: What a run takes at its peak, as far as is known; None where it is not.
        disk_bytes: What finished runs leave behind; None where it is not known.
        lines: All of it in words, with what it is based on.
        detectable: The smallest differences that the items can show, where they are known.
    """

    num_runs: int
    num_done: int
    num_steps: int = 0
    num_texts: int = 0
    seconds: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    lines: tuple[str, ...] = ()
    detectable: Table | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def show(self) -> None:
        """Print it, behind the table of what the items can show."""
        if self.detectable is not None:
            Console(force_jupyter=False).print(self.detectable)
        print(*self.lines, sep="\n")


def plan_of(
    jobs: Sequence[Job], output_dir: Path, device: str = "cpu", num_sharing: int = 1
) -> Plan:
    """Say how many jobs are done, and how much time, memory and disk the others take.

    `device`, "cpu" or "gpu", is for the rule of time as long as no job is finished; `num_sharing`
    is the number of jobs that share a GPU.
    """
    progress = Progress(statuses(output_dir, map(PlannedJob.of, jobs)))
    done = {status.job.key for status in progress.done}
    to_run = [job for job in jobs if job.key not in done]
    types = Counter(map(_kind, jobs))
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    lines = [
        f"{counted(len(jobs), 'run')}: "
        + ", ".join(f"{number} {name}" for name, number in types.items()),
        f"{len(done)} done, {len(to_run)} to be run{failed}",
    ]
    if not to_run:
        return Plan(len(jobs), len(done), seconds=0.0, lines=tuple(lines))
    num_sharing = min(num_sharing, len(to_run))
    needs = _needs(to_run)
    seconds, time_left = _time(to_run, progress, needs, device, num_sharing)
    memory_bytes, memory = _memory(to_run, needs, num_sharing)
    trained_folders = [output_dir / "runs" / s.job.key for s in progress.done if s.job.num_steps]
    disk_bytes, disk = _disk(to_run, trained_folders)
    num_steps, num_texts = (sum(getattr(j, n) for j in to_run) for n in ("num_steps", "num_texts"))
    work = [counted(num_steps, "step")] if num_steps else []
    if num_texts:
        work.append(f"{counted(num_texts, 'text')} read by frozen models")
    lines += [f"time: {', '.join(work) or 'nothing is trained'}{time_left}", f"memory: {memory}"]
    lines += [f"disk: {disk}"] if num_steps else []
    num_done, total = len(done), len(jobs)
    return Plan(
        total, num_done, num_steps, num_texts, seconds, memory_bytes, disk_bytes, tuple(lines)
    )


def _sizes_are_known(to_run: Sequence[Job]) -> bool:
    return all(job.weights_bytes for job in to_run if job.num_steps or job.num_texts)


def _kind(job: Job) -> str:
    return re.match("zero-shot|[^-]*", job.key)[0]  # type: ignore[index]


def _needs(to_run: Sequence[Job]) -> dict[str, MemoryNeed]:
    """Return what each kind of job takes, measured on the most steps of the largest model."""
    if not _sizes_are_known(to_run):
        return {}
    by_size = sorted(to_run, key=lambda job: (job.weights_bytes, job.num_steps))
    measures = {_kind(job): job.memory for job in by_size if job.memory is not None}
    return {kind: measure() for kind, measure in measures.items()}


def _time(
    to_run: Sequence[Job],
    progress: Progress,
    needs: Mapping[str, MemoryNeed],
    device: str,
    num_sharing: int,
) -> tuple[float | None, str]:
    """Return the seconds that jobs take, and the end of the line that says so."""
    source = f"based on {counted(len(progress.done), 'finished run')}"
    seconds = progress.seconds_of([job.num_steps for job in to_run])
    if seconds is not None:
        seconds /= num_sharing  # they shared it too
    elif _sizes_are_known(to_run):
        tokens = {kind: need.step_tokens for kind, need in needs.items() if need.step_tokens}
        step_tokens = [tokens.get(_kind(job), TOKENS_PER_STEP) for job in to_run]
        text = FLOP_PER_WEIGHT_AND_TOKEN_READ * TOKENS_PER_TEXT
        flop = sum(
            (job.num_steps * FLOP_PER_WEIGHT_AND_TOKEN * size + job.num_texts * text)
            * (job.weights_bytes / BYTES_PER_WEIGHT)
            for job, size in zip(to_run, step_tokens, strict=True)
        )
        seconds = flop / FLOP_PER_SECOND[device]
        rules = []
        if sizes := [n for job, n in zip(to_run, step_tokens, strict=True) if job.num_steps]:
            rules.append(
                f"{FLOP_PER_WEIGHT_AND_TOKEN} operations per weight and token, "
                f"{'at most ' * bool(tokens)}{max(sizes):,} tokens per step"
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
    else:
        return None, f"; {UNKNOWN}"
    order = "one after the other" if num_sharing == 1 else f"on one GPU, {num_sharing} at once"
    return seconds, f", {duration(seconds)} {order} ({source})"


def _memory(
    to_run: Sequence[Job], needs: Mapping[str, MemoryNeed], num_sharing: int
) -> tuple[int | None, str]:
    """Return the bytes that the largest job takes, as far as is known, and how they divide."""
    if not _sizes_are_known(to_run):
        return None, UNKNOWN
    if needs:
        need = max(needs.values(), key=lambda need: need.total)
        num_bytes, memory = need.total, need.describe(" per run")
    else:
        copies = (COPIES_IN_MEMORY * _trained(job) * bool(job.num_steps) for job in to_run)
        num_bytes = max(j.weights_bytes + size for j, size in zip(to_run, copies, strict=True))
        trains = any(job.num_steps for job in to_run)
        content = "weights, gradients and AdamW's moments" if trains else "weights"
        memory = f"{_size(num_bytes)} per run for {content}; plus activations"
    if num_sharing > 1:
        memory += f"; {num_sharing} runs on one GPU take {_size(num_sharing * num_bytes)}"
    return num_bytes, memory


def _disk(to_run: Sequence[Job], trained_folders: Sequence[Path]) -> tuple[int | None, str]:
    """Return the bytes that jobs leave behind, and what they take meanwhile."""
    sizes = [_trained(job) for job in to_run if job.num_steps and job.keeps_model]
    if not (trained_folders or _sizes_are_known(to_run)):
        return None, UNKNOWN
    total, source = float(sum(sizes)), "the best model of each run that trains"
    if trained_folders:
        files = (path for run in trained_folders for path in run.rglob("*") if path.is_file())
        total = len(sizes) * sum(path.stat().st_size for path in files) / len(trained_folders)
        source = f"based on {counted(len(trained_folders), 'finished run')}"
    training = [job.weights_bytes + 2 * _trained(job) for job in to_run if job.num_steps]
    disk = f"{_size(total)} ({source}), and " if sizes else ""
    return round(total), f"{disk}{_size(STATES * max(training, default=0))} per run while it trains"


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
