"""Progress of a sweep and estimates for the rest: what `sweep plan`, `run` and `status` print."""

from __future__ import annotations

import math
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich import progress as rich_progress
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from probelight.io.escaping import brief, visible
from probelight.io.package import program
from probelight.metrics.intervals import num_effective
from probelight.metrics.power import effective_items, paired, paired_items, two_proportions
from probelight.protocols.jobs.fencing import last_driver
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.plan import (
    Failure,
    JobStatus,
    PlannedJob,
    Schedule,
    State,
    blocked,
    status_of,
    statuses,
)
from probelight.results.run_folder import METRICS_FILE, read_metrics

MINUTE, HOUR, DAY = 60, 3600, 86400


def duration(seconds: float) -> str:
    """Return seconds as text: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 cell, 2 cells."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def last_line(text: str) -> str:
    """Return the last line that is not empty: the error itself at the end of a traceback."""
    return brief(next((s for line in reversed(text.splitlines()) if (s := line.strip())), ""))


class Progress:
    """Statuses of jobs by state, and estimates of the time left.

    `blocked` are those of the waiting jobs that will never start, as one that they need has failed.
    """

    def __init__(self, statuses: Iterable[JobStatus]) -> None:
        self.statuses = tuple(statuses)
        self.done, self.running, self.waiting, self.failed = (
            [status for status in self.statuses if status.state is state]
            for state in (State.DONE, State.RUNNING, State.WAITING, State.FAILED)
        )
        failed = {status.job.key for status in self.failed}
        never = blocked([status.job for status in self.waiting], failed)
        self.blocked = [status for status in self.waiting if status.job.key in never]
        self.waiting = [status for status in self.waiting if status.job.key not in never]

    def seconds_left(self, at_once: int | None = None) -> float | None:
        """Return the seconds until the last job is done, `at_once` at a time; None if unknown."""
        steps = [status.job.num_steps for status in (*self.running, *self.waiting)]
        seconds = self.seconds_of(steps)
        if seconds is None or not steps:
            return seconds
        return seconds / max(1, min(at_once or len(self.running), len(steps)))

    def seconds_of(self, steps: Sequence[int]) -> float | None:
        """Return the seconds that jobs of so many steps take one after the other; None if unknown.

        A job with steps takes the mean seconds per step of the finished ones; a job without steps
        the mean seconds of those without.
        """
        known = [(s.job.num_steps, s.seconds) for s in self.done if s.seconds is not None]
        if not known:
            return None
        stepped = [(n, seconds) for n, seconds in known if n]
        plain = [seconds for n, seconds in known if not n]
        typical = fmean(plain or [seconds for _, seconds in known])
        rate = None
        if stepped:
            rate = sum(seconds for _, seconds in stepped) / sum(n for n, _ in stepped)
        return sum(n * rate if n and rate is not None else typical for n in steps)


class RunView:
    """The terminal of a run: a line for each job that ended, and a bar with the time left below."""

    def __init__(self, bar: bool = True, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=True, highlight=False)
        self.at_once = 1
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("cells"),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("{task.description}"),
            console=self.console,
            disable=not bar or not self.console.is_terminal,
        )
        self._left: float | None = None
        self._left_at = time.monotonic()

    @contextmanager
    def shown(self, schedule: Schedule) -> Iterator[None]:
        """Show the progress of a schedule's jobs until the block ends."""
        found = statuses(schedule.runs_dir.parent, schedule.jobs.values())
        self._runs_dir = schedule.runs_dir
        self._statuses: dict[str, JobStatus] = {status.job.key: status for status in found}
        num_done, num_jobs = len(schedule.done), len(schedule.jobs)
        self.say(f"{num_done} of {num_jobs} cells are finished")
        with self._bar:
            self._task = self._bar.add_task("", total=num_jobs, completed=num_done)
            yield

    def say(self, line: str) -> None:
        """Print a line."""
        self.console.print(visible(line), markup=False)

    def tick(self) -> None:
        """Count down the time left."""
        left = None if self._left is None else self._left - (time.monotonic() - self._left_at)
        text = "" if left is None else f"about {duration(max(0.0, left))} left"
        self._bar.update(self._task, description=text)

    def finished(self, key: str) -> None:
        """Report that a job has its result, and what is left."""
        found = status_of(self._runs_dir, self._statuses[key].job, driver=None)
        status = replace(found, state=State.DONE, failure=None)
        progress = self._note(status)
        took = "" if status.seconds is None else f" in {duration(status.seconds)}"
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        left = f", about {duration(self._left)} left" if self._left else ""
        done = f"{len(progress.done)} of {len(progress.statuses)} done"
        self.say(f"{key}: finished{took}. {done}{failed}{left}")
        self._bar.advance(self._task)

    def failed(self, key: str, failure: Failure) -> None:
        """Report that a job has failed."""
        state = State.FAILED if failure.is_final else State.WAITING
        self._note(replace(self._statuses[key], state=state, failure=failure))
        end = "for good" if failure.is_final else f"{failure.times} of {failure.tries} times"
        self.say(f"{key}: failed {end}: {last_line(failure.error)}")

    def _note(self, status: JobStatus) -> Progress:
        self._statuses[status.job.key] = status
        progress = Progress(self._statuses.values())
        self._left, self._left_at = progress.seconds_left(self.at_once), time.monotonic()
        return progress


_MOST_FAILED = 20  # rows; `error.txt` in the run folders has them all
_WATCH_SECONDS = 2.0  # between two looks


def show_status(output_dir: Path, jobs: Sequence[PlannedJob], watch: bool) -> None:
    """Print the status once, or with `watch` again and again until the last job has ended."""
    console = Console()
    if not watch:
        view = status_view(output_dir, Progress(statuses(output_dir, jobs)))
        console.print(view, soft_wrap=True)  # a path that is broken cannot be copied
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            progress = Progress(statuses(output_dir, jobs))
            live.update(status_view(output_dir, progress), refresh=True)
            if not progress.running and not progress.waiting:
                return
            time.sleep(_WATCH_SECONDS)


def status_view(output_dir: Path, progress: Progress) -> Group:
    """Return the whole status: numbers, the driver, the jobs that run, those that failed."""
    running = [
        {
            "cell": s.job.key,
            "process": str(s.attempt.owner),
            "since": f"{_ago(s.attempt.since)} ago",
            "how far": how_far(output_dir / "runs" / s.job.key, s.job.num_steps),
        }
        for s in progress.running
        if s.attempt is not None
    ]
    tried_again, failed = (
        [
            {"cell": s.job.key, "times": str(s.failure.times), "error": last_line(s.failure.error)}
            for s in progress.statuses
            if s.failure is not None and s.failure.is_final == is_final
        ]
        for is_final in (False, True)
    )
    tables = {
        "running": running,
        "failed, to be tried again": tried_again,
        "failed for good": failed[:_MOST_FAILED],
    }
    lines = _numbers_line(progress), _driver_line(output_dir, progress)
    parts: list[Text | Table] = [Text(line) for line in lines]
    for title, rows in tables.items():
        if rows:
            columns = [Column(name, overflow="fold") for name in rows[0]]
            table = Table(*columns, title=title, title_justify="left", title_style="bold")
            for row in rows:
                table.add_row(*map(Text, row.values()))
            parts.append(table)
    if failed:
        more = f"and {len(failed) - _MOST_FAILED} more; " if failed[_MOST_FAILED:] else ""
        parts.append(Text(f"{more}tracebacks: {output_dir}/runs/<cell>/error.txt", style="dim"))
    return Group(*parts)


def _numbers_line(progress: Progress) -> str:
    numbers = (
        f"{counted(len(progress.statuses), 'cell')}: {len(progress.done)} done, "
        f"{len(progress.running)} running, {len(progress.waiting)} waiting, "
        f"{len(progress.failed)} failed"
    )
    if progress.blocked:
        numbers += f", {len(progress.blocked)} not started because they need a failed one"
    if left := progress.seconds_left():
        numbers += f"; about {duration(left)} left"
    return numbers


def _driver_line(output_dir: Path, progress: Progress) -> str:
    command = f"{program()} sweep run --output_dir {shlex.quote(str(output_dir))}"
    driver = last_driver(output_dir)
    if driver is None:
        return f"not started yet; to start: {command}"
    if not driver.is_gone:
        return f"{driver.process} has been working on it for {_ago(driver.since)}"
    ended = "was killed" if driver.ended is None else f"ended {_ago(driver.ended)} ago"
    again = "" if len(progress.done) == len(progress.statuses) else f"; to resume: {command}"
    return f"no process is working on it; {driver.process} {ended}{again}"


def _ago(moment: float) -> str:
    return duration(max(0.0, time.time() - moment))


def how_far(run_dir: Path, num_steps: int) -> str:
    """Return the last step and epoch in the metrics.csv of a run."""
    try:
        rows = read_metrics(run_dir / METRICS_FILE)
        epochs = [int(epoch) for _, epoch, *_ in rows if epoch]
    except (OSError, ValueError):  # not there yet, or damaged
        rows = []
    if not rows:
        return "started"
    step = max(step for step, *_ in rows) + 1
    epoch = f", epoch {max(epochs) + 1}" if epochs else ""
    return f"step {step}" + (f" of {num_steps}" if num_steps else "") + epoch


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


def expected_device(accelerator: str) -> str:
    """Return "cpu" or "gpu" for `trainer.accelerator`, as far as can be told without torch."""
    auto = "gpu" if shutil.which("nvidia-smi") else "cpu"
    return {"cpu": "cpu", "auto": auto}.get(accelerator, "gpu")


def plan_lines(
    jobs: Sequence[Job],
    output_dir: Path,
    device: str = "cpu",
    num_sharing: int = 1,
    noun: str = "cell",
) -> list[str]:
    """Say how many jobs are done, and how much time, memory and disk the others take.

    `device`, "cpu" or "gpu", is for the rule of time as long as no job is finished; `num_sharing`
    is the number of jobs that share a GPU, `noun` what a job is called.
    """
    progress = Progress(statuses(output_dir, map(PlannedJob.of, jobs)))
    done = {status.job.key for status in progress.done}
    left = [job for job in jobs if job.key not in done]
    types = Counter(job.key.split("-")[0] for job in jobs)
    failed = f", {len(progress.failed)} of them failed before" if progress.failed else ""
    lines = [
        f"{counted(len(jobs), noun)}: "
        + ", ".join(f"{number} {name}" for name, number in types.items()),
        f"{len(done)} done, {len(left)} to be run{failed}",
    ]
    if not left:
        return lines
    reading = [job for job in left if job.num_steps or job.num_texts]
    sizes_are_known = all(job.weights_bytes for job in reading)
    unknown = f"unknown until a {noun} is finished, because a model is not downloaded yet"

    num_sharing = min(num_sharing, len(left))
    seconds = progress.seconds_of([job.num_steps for job in left])
    seconds = None if seconds is None else seconds / num_sharing  # they shared it too
    finished = counted(len(done), f"finished {noun}")
    source = f"based on {finished}"
    if seconds is None and sizes_are_known:
        step, text = (
            FLOP_PER_WEIGHT_AND_TOKEN * TOKENS_PER_STEP,
            FLOP_PER_WEIGHT_AND_TOKEN_READ * TOKENS_PER_TEXT,
        )
        flop = sum(
            (job.num_steps * step + job.num_texts * text) * job.weights_bytes / BYTES_PER_WEIGHT
            for job in left
        )
        seconds = flop / FLOP_PER_SECOND[device]
        rules = []
        if any(job.num_steps for job in left):
            rules.append(
                f"{FLOP_PER_WEIGHT_AND_TOKEN} operations per weight and token, "
                f"{TOKENS_PER_STEP:,} tokens per step"
            )
        if any(job.num_texts for job in left):
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
            job.name.split("-")[0]: job.memory
            for job in sorted(left, key=lambda job: (job.weights_bytes, job.num_steps))
            if job.memory is not None
        }
        trains = any(job.num_steps for job in left)
        copies = max(
            job.weights_bytes + COPIES_IN_MEMORY * _trained(job) * bool(job.num_steps)
            for job in left
        )
        held = "weights, gradients and AdamW's moments" if trains else "weights"
        memory = f"{_size(copies)} per {noun} for {held}; plus activations"
        if largest:
            need = max((measure() for measure in largest.values()), key=lambda need: need.total)
            copies, memory = need.total, need.shown(f" per {noun}")
        if num_sharing > 1:
            memory += f"; {num_sharing} {noun}s on one GPU take {_size(num_sharing * copies)}"

    trained = [output_dir / "runs" / s.job.key for s in progress.done if s.job.num_steps]
    found = [sum(p.stat().st_size for p in run.rglob("*") if p.is_file()) for run in trained]
    training = [job.weights_bytes + 2 * _trained(job) for job in left if job.num_steps]
    sizes = [_trained(job) for job in left if job.num_steps and job.keeps_model]
    if found or sizes_are_known:
        total, source = float(sum(sizes)), f"the best model of each {noun} that trains"
        if found:
            total = len(sizes) * fmean(found)
            source = f"based on {counted(len(found), f'finished {noun}')}"
        states = _size(STATES * max(training, default=0))
        disk = f"{_size(total)} ({source}), and " if sizes else ""
        disk += f"{states} per {noun} while it trains"
    num_steps, num_texts = (sum(getattr(j, n) for j in left) for n in ("num_steps", "num_texts"))
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
    wanted = [f"n for\n{100 * loss:.0f} pts" for loss in WANTED]
    table.pad_edge = False  # 80 columns are few
    table.add_column("set", overflow="fold")
    for head in ("n", "effective\nn", "same\nitems", "other\nitems", "of\nmeans", *wanted):
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
