from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.plan import Failure, plan_jobs
from probelight.protocols.jobs.status import detectable_table, plan_lines
from probelight.results.run_folder import RunFolder
from tests.protocols.jobs.harness import finish

RUNNER = "module:run"
# A model of 25 million weights: 100 MB.
TRAINED = [
    Job(f"inoculate-{i}", {"number": i}, RUNNER, num_steps=100, weights_bytes=100_000_000)
    for i in range(3)
]
SCORED = Job("before-x", {"number": 9}, RUNNER, weights_bytes=100_000_000)


def said(folder: Path, *jobs: Job, device: str = "cpu") -> list[str]:
    plan_jobs(folder, jobs)
    return plan_lines(jobs, folder, device)


def finished(folder: Path, job: Job, seconds: float, num_bytes: int) -> None:
    run = RunFolder(folder / "runs", job.name, job.config)
    finish(run, seconds)
    size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    (run.path / "weights").write_bytes(bytes(num_bytes - size))


def test_a_new_plan_goes_by_the_rule(tmp_path: Path) -> None:
    lines = said(tmp_path, SCORED, *TRAINED)
    # 300 steps of 6 x 25e6 x 5120 operations are 2.304e14: 2304 s at 1e11 a second.
    assert lines == [
        "4 cells: 1 before, 3 inoculate",
        "0 done, 4 to be run",
        "time: 300 steps, 38 min 24 s one after the other (by rule: 6 operations a weight and "
        "token, 5,120 tokens a step, 100 billion operations a second; evaluation not counted)",
        "memory: 400 MB a cell for weights, gradients and AdamW's moments; activations come on top",
        "disk: 300 MB (the best model of each cell that trains), and 600 MB a cell while it trains",
    ]
    [line] = [line for line in said(tmp_path, *TRAINED, device="gpu") if line.startswith("time")]
    assert "300 steps, 4.6 s one after the other" in line
    assert "50,000 billion operations a second" in line
    assert len(list(tmp_path.glob("runs/*/config.yaml"))) == 4


def test_finished_cells_are_better_than_the_rule(tmp_path: Path) -> None:
    finished(tmp_path, TRAINED[0], seconds=50, num_bytes=2_000_000)
    lines = said(tmp_path, *TRAINED)
    # 0.5 s a step for 200 steps, and 2 MB for each of the two that are left.
    assert lines[:3] == [
        "3 cells: 3 inoculate",
        "1 done, 2 to be run",
        "time: 200 steps, 1 min 40 s one after the other (as 1 finished cell took)",
    ]
    assert lines[4] == "disk: 4 MB (as 1 finished cell), and 600 MB a cell while it trains"
    finished(tmp_path, TRAINED[1], seconds=150, num_bytes=4_000_000)
    lines = said(tmp_path, *TRAINED)
    assert lines[2].endswith("100 steps, 1 min 40 s one after the other (as 2 finished cells took)")
    assert lines[4].startswith("disk: 3 MB (as 2 finished cells)")
    finished(tmp_path, TRAINED[2], seconds=1, num_bytes=1000)
    assert said(tmp_path, *TRAINED) == ["3 cells: 3 inoculate", "3 done, 0 to be run"]


def test_what_had_failed_is_to_be_run_again(tmp_path: Path) -> None:
    plan_jobs(tmp_path, TRAINED)
    Failure(1, 1, "no").keep(tmp_path / "runs" / TRAINED[0].key)
    Failure(1, 2, "once").keep(tmp_path / "runs" / TRAINED[1].key)  # it was killed before the next
    assert said(tmp_path, *TRAINED)[1] == "0 done, 3 to be run, 1 of them failed before"


def test_weights_that_are_not_here_yet_are_no_reason_to_promise_anything(tmp_path: Path) -> None:
    remote = [replace(job, weights_bytes=0) for job in TRAINED[:1]]
    *_, time, memory, disk = said(tmp_path, *remote, *TRAINED[1:])
    unknown = "not known before a cell is finished, as the weights of a model are not here yet"
    assert time == f"time: 300 steps; {unknown}"
    assert (memory, disk) == (f"memory: {unknown}", f"disk: {unknown}")


def test_the_smallest_differences_are_those_of_power_in_points(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # (1.95996 sqrt(0.3) + 0.84162 sqrt(0.29))^2 / 0.01 = 233.1 items find a tenth on the same
    # items; by Fleiss's table 388 find it on others; three seeds are at best 78 x 3 = 234 items.
    tests = [("a", 234, 1), ("b", 388, 1), ("a", 234, 1), ("c", 78, 3), ("few", 3, 2)]
    table = detectable_table(tests)
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    found = {name: [*cells] for name, *cells in rows}
    assert list(found) == ["a", "b", "c", "few"]
    assert found["a"][:2] == ["234", "10.0"]
    assert found["a"][3] == ""
    assert found["b"][2] == "10.0"
    assert found["c"][3] == "10.0 (3)"
    assert found["few"][:3] == ["3", "-", "-"]
    Console(width=120).print(table)
    shown = " ".join(capsys.readouterr().out.split())
    assert "80% power, alpha 0.05; 30% of the items answered differently" in shown
