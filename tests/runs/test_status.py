from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from probelight.io.process import Process, this_process
from probelight.io.progress import duration
from probelight.runs import status
from probelight.runs.estimates import detectable_table, plan_of
from probelight.runs.fencing import DRIVER, Attempt, Driver
from probelight.runs.memory import MemoryNeed
from probelight.runs.plan import Failure, JobStatus, PlannedJob, Schedule, State, plan_jobs
from probelight.runs.spec import Job
from probelight.runs.status import Progress, RunView, how_far, show_status, status_view
from tests.runs.harness import DEAD, finish
from tests.runs.runner_spec import folder_of, runner_job
from tests.runs.trivial import cells


def table(folder: Path, *statuses: JobStatus) -> list[str]:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(status_view(folder, Progress(statuses)), soft_wrap=True)
    return console.export_text().splitlines()


def status_of(
    key: str,
    state: State,
    needs: tuple[str, ...] = (),
    seconds: float | None = None,
    failure: Failure | None = None,
    since: float = 100.0,
    num_steps: int = 10,
) -> JobStatus:
    ended_at = None if seconds is None else since + seconds
    attempt = Attempt(1, 1, this_process(), since, ended_at)
    job = PlannedJob(key, "module:run", needs, num_steps=num_steps)
    return JobStatus(job, state, attempt, failure)


def test_time_left_follows_the_steps_and_how_many_run_at_once() -> None:
    finished = [
        status_of("a", State.DONE, seconds=20, num_steps=10),
        status_of("b", State.DONE, seconds=100, num_steps=30),
        status_of("score", State.DONE, seconds=7, num_steps=0),
        status_of("of-a-killed-worker", State.DONE, num_steps=1000),
    ]
    ahead = [
        status_of("c", State.RUNNING, num_steps=20),
        status_of("d", State.RUNNING, num_steps=20),
        status_of("e", State.WAITING, num_steps=10),
        status_of("f", State.WAITING, num_steps=0),
    ]
    # 120 s for 40 steps are 3 s a step: 50 steps and one job without any, on two places or three.
    assert Progress([*finished, *ahead]).seconds_left() == pytest.approx((50 * 3 + 7) / 2)
    assert Progress([*finished, *ahead]).seconds_left(at_once=3) == pytest.approx((50 * 3 + 7) / 3)
    # More places than jobs are of no use.
    assert Progress([*finished, *ahead]).seconds_left(at_once=64) == pytest.approx((50 * 3 + 7) / 4)
    assert Progress(ahead).seconds_left() is None
    assert Progress(finished).seconds_left() == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.25, "1.2 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (273600, "3 d 4 h")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def row_of(lines: list[str], key: str) -> list[str]:
    [line] = [line for line in lines if f" {key} " in line]
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_numbers_time_left_and_a_table_of_what_runs(tmp_path: Path) -> None:
    driver = Driver(1, this_process(), since=time.time() - 3600)
    (tmp_path / DRIVER).write_text(json.dumps(asdict(driver)))
    metrics = tmp_path / "runs" / "b" / "metrics.csv"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("step,epoch,metric,value\n3,0,train/loss,0.5\n4,1,train/loss,0.4\n")
    lines = table(
        tmp_path,
        status_of("a", State.DONE, seconds=50),
        status_of("b", State.RUNNING, since=time.time() - 120),
        status_of("c", State.RUNNING, since=time.time() - 5),
        status_of("d", State.WAITING),
    )
    # 5 s a step; 30 steps are left, two runs run at once.
    assert lines[0] == "4 runs: 1 done, 2 running, 1 waiting, 0 failed; about 1 min 15 s left"
    assert lines[1] == f"{this_process()} has been working on it for 1 h 0 min"
    at_work = ["2 min 0 s ago", "step 5 of 10, epoch 2"]
    assert row_of(lines, "b") == ["b", str(this_process()), *at_work]
    assert row_of(lines, "c")[3] == "started"
    assert not any("error" in line for line in lines)


def test_what_failed_is_told_from_what_is_tried_again_and_what_is_behind_it(tmp_path: Path) -> None:
    once, often = Failure(1, 3, "Traceback\nValueError: x\n"), Failure(3, 3, "OSError: disk full")
    lines = table(
        tmp_path,
        status_of("a", State.FAILED, failure=often),
        status_of("b", State.WAITING, failure=once),
        status_of("c", State.WAITING, needs=("a",)),
        status_of("d", State.WAITING, needs=("c", "b")),
    )
    numbers = "4 runs: 0 done, 0 running, 1 waiting, 1 failed"
    assert lines[0] == f"{numbers}, 2 not started because they need a failed one"
    assert lines[1] == f"not started yet; to start: train.py sweep run --output_dir {tmp_path}"
    titles = [line.strip() for line in lines]
    tried, failed = titles.index("failed, to be tried again"), titles.index("failed for good")
    assert tried < failed
    assert row_of(lines[tried:failed], "b") == ["b", "1", "ValueError: x"]
    assert row_of(lines[failed:], "a") == ["a", "3", "OSError: disk full"]
    assert lines[-1] == f"tracebacks: {tmp_path}/runs/<run>/error.txt"


def test_of_many_failures_the_first_are_shown(tmp_path: Path) -> None:
    failure = Failure(1, 1, "ValueError: [red]no[/red]")
    lines = table(tmp_path, *(status_of(f"c{i}", State.FAILED, failure=failure) for i in range(25)))
    assert lines[0] == "25 runs: 0 done, 0 running, 0 waiting, 25 failed"
    assert row_of(lines, "c19")[2] == "ValueError: [red]no[/red]"
    assert not any(" c20 " in line for line in lines)
    assert lines[-1].startswith("and 5 more; tracebacks: ")


@pytest.mark.parametrize(
    ("process", "ended", "state", "message"),
    [
        (
            this_process(),
            30.0,
            State.WAITING,
            "ended 30 s ago; to resume: train.py sweep run --out",
        ),
        (this_process(), 30.0, State.DONE, "ended 30 s ago"),
        (DEAD, None, State.WAITING, "was killed; to resume: train.py sweep run --output_dir"),
    ],
)
def test_who_has_gone_is_told_with_how_to_go_on(
    tmp_path: Path, process: Process, ended: float | None, state: State, message: str
) -> None:
    current_time = time.time()
    driver = Driver(1, process, current_time - 60, None if ended is None else current_time - ended)
    (tmp_path / DRIVER).write_text(json.dumps(asdict(driver)))
    line = table(tmp_path, status_of("a", state))[1]
    assert line.startswith(f"no process is working on it; {process} {message}")
    assert ("to resume" in line) == (state is State.WAITING)


@pytest.mark.parametrize(
    ("text", "num_steps", "message"),
    [
        (None, 5, "started"),
        ("step,epoch,metric,value\n", 5, "started"),
        ("step,epoch,metric,value\n0,0,a,1\n", 0, "step 1, epoch 1"),
        ("step,epoch,metric,value\n9,,a,1\n4,2,a,1\n", 20, "step 10 of 20, epoch 3"),
        ("step,epoch,metric,value\n0,,a,1\n", 20, "step 1 of 20"),
        ("step,epoch\n0,1\n", 20, "started"),
        ("step,epoch,metric,value\n0,x,a,1\n", 20, "started"),
    ],
)
def test_how_far_a_cell_is_stands_in_its_metrics(
    tmp_path: Path, text: str | None, num_steps: int, message: str
) -> None:
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    assert how_far(tmp_path, num_steps) == message


def test_watching_ends_with_the_sweep_also_where_cells_wait_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = [PlannedJob("a", "module:run"), PlannedJob("b", "module:run", ("a",))]
    (tmp_path / "runs" / "a").mkdir(parents=True)
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        assert len(looks) < 5
        if len(looks) == 3:
            Failure(1, 1, "ValueError: no").keep(tmp_path / "runs" / "a")

    monkeypatch.setattr(status.time, "sleep", sleep)
    show_status(tmp_path, plan, watch=True)
    assert looks == [2.0] * 3
    assert "2 runs: 0 done, 0 running, 0 waiting, 1 failed" in capsys.readouterr().out


class Run:
    """A run of five trivial runs of 10 steps each, of which the last needs the one before."""

    def __init__(self, folder: Path, terminal: bool = False, bar: bool = True) -> None:
        self.runs_dir = folder / "runs"
        self.jobs = cells(5)
        self.runs = [folder_of(job, self.runs_dir) for job in self.jobs]
        self.keys = [job.key for job in self.jobs]
        self.out = io.StringIO()
        options = {"soft_wrap": True, "highlight": False, "width": 60}
        self.view = RunView(bar, Console(file=self.out, force_terminal=terminal, **options))

    def schedule(self, max_retries: int = 0) -> Schedule:
        jobs = [PlannedJob(key, "module:run", num_steps=10) for key in self.keys[:4]]
        last = PlannedJob(self.keys[4], "module:run", (self.keys[3],), num_steps=10)
        return Schedule(self.runs_dir, [*jobs, last], max_retries)

    def finish(self, number: int, seconds: float) -> str:
        finish(self.runs[number], seconds)
        return self.keys[number]


def test_each_end_of_a_cell_is_a_line_with_what_is_left(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.finish(0, 20)
    schedule = run.schedule(max_retries=1)
    first, second, bad, last = run.keys[0], run.keys[1], run.keys[3], run.keys[4]
    with run.view.following(schedule):
        run.view.at_once = 2
        run.view.finished(run.finish(1, 40))
        for times in (1, 2):
            error = f"Traceback\nValueError: \x1b[31mno\x07 {times}\n"
            run.view.failed(bad, schedule.fail(bad, error))
        run.view.finished(run.finish(2, 30))
        run.view.say(f"not [bold]styled[/bold]: {last}")
    # 20 s and 40 s for 10 steps each are 3 s a step: 30 steps are 90 s, two at once 45 s. The run
    # that failed for good and the one behind it take none of the time.
    assert run.out.getvalue().splitlines() == [
        "1 of 5 runs are finished",
        f"{second}: finished in 40 s. 2 of 5 done, about 45 s left",
        f"{bad}: failed 1 of 2 times: ValueError: \\x1b[31mno\\x07 1",
        f"{bad}: failed for good: ValueError: \\x1b[31mno\\x07 2",
        f"{run.keys[2]}: finished in 30 s. 3 of 5 done, 1 failed",
        f"not [bold]styled[/bold]: {last}",
    ]
    assert first not in run.out.getvalue()


@pytest.mark.parametrize(("terminal", "bar"), [(False, True), (False, False), (True, True)])
def test_a_log_has_a_line_for_each_minute_without_another(
    tmp_path: Path, terminal: bool, bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("probelight.runs.status.time.monotonic", lambda: now[0])
    run = Run(tmp_path, terminal, bar)
    with run.view.following(run.schedule()):
        for seconds in (59, 1, 59):
            now[0] += seconds
            run.view.tick()
        run.view.finished(run.finish(0, 20))  # 20 s for each of the other four
        for seconds in (59, 1):
            now[0] += seconds
            run.view.tick()
    minutes = [line for line in run.out.getvalue().splitlines() if "runs done" in line]
    in_log = ["0 of 5 runs done", "1 of 5 runs done, about 20 s left"]
    assert minutes == (in_log if bar and not terminal else [])


@pytest.mark.parametrize(("terminal", "bar"), [(True, True), (True, False), (False, True)])
def test_a_bar_is_shown_on_a_terminal_unless_it_is_not_wanted(
    tmp_path: Path, terminal: bool, bar: bool
) -> None:
    run = Run(tmp_path, terminal, bar)
    with run.view.following(run.schedule()):
        run.view.tick()
        run.view.finished(run.finish(0, 20))
        run.view.tick()
    text = run.out.getvalue()
    assert ("\x1b" in text) == ("━" in text) == ("1/5" in text) == (terminal and bar)
    assert f"{run.keys[0]}: finished in 20 s. 1 of 5 done, about 1 min 20 s left" in text


RUNNER = "module:run"
# A model of 25 million weights: 100 MB.
TRAINED = [
    runner_job(f"inoculate-{i}", {"number": i}, RUNNER, num_steps=100, weights_bytes=100_000_000)
    for i in range(3)
]
SCORED = runner_job("before-x", {"number": 9}, RUNNER, weights_bytes=100_000_000)


def planned(folder: Path, *jobs: Job, device: str = "cpu", num_sharing: int = 1) -> list[str]:
    plan_jobs(folder, jobs)
    return [*plan_of(jobs, folder, device, num_sharing).lines]


def finished(folder: Path, job: Job, seconds: float, num_bytes: int) -> None:
    run = folder_of(job, folder / "runs")
    finish(run, seconds)
    size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    (run.path / "weights").write_bytes(bytes(num_bytes - size))


def test_a_new_plan_goes_by_the_rule(tmp_path: Path) -> None:
    lines = planned(tmp_path, SCORED, *TRAINED)
    # 300 steps of 6 x 25e6 x 5120 operations are 2.304e14: 2304 s at 1e11 a second.
    assert lines == [
        "4 runs: 1 before, 3 inoculate",
        "0 done, 4 to be run",
        "time: 300 steps, 38 min 24 s one after the other (rough estimate: 6 operations per weight "
        "and token, 5,120 tokens per step, 100 billion operations per second; evaluation not "
        "counted)",
        "memory: 400 MB per run for weights, gradients and AdamW's moments; plus activations",
        "disk: 300 MB (the best model of each run that trains), and 600 MB per run while it trains",
    ]
    [line] = [line for line in planned(tmp_path, *TRAINED, device="gpu") if line.startswith("time")]
    assert "300 steps, 4.6 s one after the other" in line
    assert "50,000 billion operations per second" in line
    assert len(list(tmp_path.glob("runs/*/config.yaml"))) == 4


def test_large_models_are_measured_once_for_the_most_steps_of_each_kind(tmp_path: Path) -> None:
    calls: list[str] = []

    def measured(name: str, activations: int) -> Callable[[], MemoryNeed]:
        def measure() -> MemoryNeed:
            calls.append(name)
            need = MemoryNeed(10**9, 10**9, 2 * 10**9, activations, "batches of 16 items")
            return replace(need, step_tokens=activations // 10**7)

        return measure

    large = [
        runner_job(
            name,
            {"number": number},
            RUNNER,
            num_steps=number,
            weights_bytes=10**9,
            memory=measured(f"{name}{number}", number * 10**9),
        )
        for name in ("original-x", "inoculate-x")
        for number in (1, 3, 2)
    ]
    memory = "memory: about 7.0 GB per run: weights 1.0, gradients 1.0, AdamW 2.0, activations "
    memory += "3.0 for batches of 16 items"
    plan = plan_of(large, tmp_path)
    assert memory in plan.lines
    # 12 steps of 300 tokens by 25e7 weights: 6 operations each are 5.4e12.
    assert plan.seconds == pytest.approx(54.0)
    assert "at most 300 tokens per step" in plan.lines[2]
    assert sorted(calls) == ["inoculate-x3", "original-x3"]
    assert f"{memory}; 2 runs on one GPU take 14.0 GB" in plan_of(large, tmp_path, "gpu", 2).lines


def test_frozen_models_read_texts_and_hold_their_weights(tmp_path: Path) -> None:
    heads = runner_job("curve-x", {"number": 1}, RUNNER, weights_bytes=100_000_000, num_texts=1000)
    more = runner_job("curve-x", {"number": 2}, RUNNER, weights_bytes=100_000_000)
    # 1,000 texts of 64 tokens by 25e6 weights: 2 x 1.6e12 operations are 32 s at 1e11 a second.
    plan = plan_of([heads, more], tmp_path / "not-made")
    assert [*plan.lines] == [
        "2 runs: 2 curve",
        "0 done, 2 to be run",
        "time: 1,000 texts read by frozen models, 32 s one after the other (rough estimate: 2 "
        "operations per weight and token read, 64 tokens per text, heads not counted, 100 billion "
        "operations per second; evaluation not counted)",
        "memory: 100 MB per run for weights; plus activations",
    ]
    assert (plan.num_runs, plan.num_done, plan.num_steps, plan.num_texts) == (2, 0, 0, 1000)
    assert (plan.seconds, plan.memory_bytes, plan.disk_bytes) == (32.0, 100_000_000, 0)
    assert not (tmp_path / "not-made").exists()


def test_a_model_that_is_removed_takes_disk_while_it_trains_alone(tmp_path: Path) -> None:
    removed = [replace(job, keeps_model=False) for job in TRAINED]
    *_, disk = planned(tmp_path, *removed)
    assert disk == "disk: 600 MB per run while it trains"


def test_an_adapter_takes_the_disk_and_the_memory_of_an_adapter(tmp_path: Path) -> None:
    """Of 100 MB of weights 1 MB is trained: 3 MB besides in memory, two states of 102 MB."""
    adapter = [replace(job, saved_bytes=1_000_000) for job in TRAINED]
    *_, memory, disk = planned(tmp_path, *adapter)
    assert memory.startswith("memory: 103 MB per run for weights")
    number = len(TRAINED)
    assert disk == (
        f"disk: {number} MB (the best model of each run that trains), and 204 MB per run "
        "while it trains"
    )


def test_cells_that_share_a_gpu_are_planned_by_their_share(tmp_path: Path) -> None:
    def times(lines: list[str]) -> tuple[str, str]:
        time, memory = (line for line in lines if line.startswith(("time", "memory")))
        return time.split(" (")[0], memory.split("; ")[-1]

    # The GPU has so many operations to do, whoever asks for them; memory is taken by each.
    by_rule = times(planned(tmp_path, *TRAINED, device="gpu", num_sharing=2))
    assert by_rule == (
        "time: 300 steps, 4.6 s on one GPU, 2 at once",
        "2 runs on one GPU take 800 MB",
    )
    # Its 50 s were those of two next to each other; the last two have the GPU to themselves.
    finished(tmp_path, TRAINED[0], seconds=50, num_bytes=2_000_000)
    measured = times(planned(tmp_path, *TRAINED, num_sharing=4))
    assert measured == (
        "time: 200 steps, 50 s on one GPU, 2 at once",
        "2 runs on one GPU take 800 MB",
    )


def test_finished_cells_are_better_than_the_rule(tmp_path: Path) -> None:
    finished(tmp_path, TRAINED[0], seconds=50, num_bytes=2_000_000)
    lines = planned(tmp_path, *TRAINED)
    # 0.5 s a step for 200 steps, and 2 MB for each of the two that are left.
    assert lines[:3] == [
        "3 runs: 3 inoculate",
        "1 done, 2 to be run",
        "time: 200 steps, 1 min 40 s one after the other (based on 1 finished run)",
    ]
    assert lines[4] == "disk: 4 MB (based on 1 finished run), and 600 MB per run while it trains"
    finished(tmp_path, TRAINED[1], seconds=150, num_bytes=4_000_000)
    lines = planned(tmp_path, *TRAINED)
    assert lines[2].endswith("100 steps, 1 min 40 s one after the other (based on 2 finished runs)")
    assert lines[4].startswith("disk: 3 MB (based on 2 finished runs)")
    finished(tmp_path, TRAINED[2], seconds=1, num_bytes=1000)
    assert planned(tmp_path, *TRAINED) == ["3 runs: 3 inoculate", "3 done, 0 to be run"]


def test_what_had_failed_is_to_be_run_again(tmp_path: Path) -> None:
    plan_jobs(tmp_path, TRAINED)
    Failure(1, 1, "no").keep(tmp_path / "runs" / TRAINED[0].key)
    Failure(1, 2, "once").keep(tmp_path / "runs" / TRAINED[1].key)  # it was killed before the next
    assert planned(tmp_path, *TRAINED)[1] == "0 done, 3 to be run, 1 of them failed before"


def test_weights_that_are_not_here_yet_are_no_reason_to_promise_anything(tmp_path: Path) -> None:
    remote = [replace(job, weights_bytes=0) for job in TRAINED[:1]]
    *_, time, memory, disk = planned(tmp_path, *remote, *TRAINED[1:])
    unknown = "unknown until a run is finished, because a model is not downloaded yet"
    assert time == f"time: 300 steps; {unknown}"
    assert (memory, disk) == (f"memory: {unknown}", f"disk: {unknown}")


def test_the_smallest_differences_are_those_of_power_in_points(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # (1.95996 sqrt(0.3) + 0.84162 sqrt(0.29))^2 / 0.01 = 233.1 items find a tenth on the same
    # items; by Fleiss's table 388 find it on others; three seeds are at best 78 x 3 = 234 items.
    sizes = [("a", 234, 1), ("b", 388, 1), ("a", 234, 1), ("c", 78, 3), ("few", 3, 2)]
    tests = [(name, [*range(number)], seeds) for name, number, seeds in sizes]
    # Two groups of 234 items are as good as two items.
    tests.append(("pair", [0] * 234 + [1] * 234, 1))
    table = detectable_table(tests)
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    cells_by_name = {name: [*cells] for name, *cells in rows}
    assert list(cells_by_name) == ["a", "b", "c", "few", "pair"]
    assert cells_by_name["a"][:3] == ["234", "234", "10.0"]
    assert cells_by_name["a"][4] == ""
    assert cells_by_name["b"][3] == "10.0"
    assert cells_by_name["c"][4] == "10.0 (3)"
    assert cells_by_name["few"][:4] == ["3", "3", "-", "-"]
    assert cells_by_name["pair"][:3] == ["468", "2", "-"]
    # For 5 points (1.959964 sqrt(0.3) + 0.841621 sqrt(0.2975))^2 / 0.0025 = 939.5 independent ones.
    needed = (1.959964 * math.sqrt(0.3) + 0.841621 * math.sqrt(0.2975)) ** 2 / 0.0025
    assert cells_by_name["a"][5] == "940"
    assert int(cells_by_name["pair"][5].replace(",", "")) == pytest.approx(needed * 234, rel=1e-5)
    Console(width=120).print(table)
    printed = " ".join(capsys.readouterr().out.split())
    assert "80% power, alpha 0.05 and 30% of the items answered differently" in printed
