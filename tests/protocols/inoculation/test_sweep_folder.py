"""What `sweep run` gives its driver, and what it says when that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.io.wandb import WandbSettings
from probelight.protocols.inoculation.sweep import run_sweep
from probelight.protocols.jobs.context import RaySettings, RunContext, TrainerSettings
from probelight.protocols.jobs.on_ray import drive
from probelight.protocols.jobs.plan import Planned
from probelight.protocols.jobs.status import RunView
from tests.protocols.jobs.harness import planned
from tests.protocols.jobs.trivial import cells


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, ["results: {}/results.csv", "next: train.py report '{}'"]),
        (
            1,
            [
                "results so far: {}/results.csv",
                "tracebacks: {}/runs/<cell>/error.txt",
                "to try again what failed: train.py sweep run --output_dir '{}'",
            ],
        ),
        (143, ["results so far: {}/results.csv"]),  # train.py says how to go on
    ],
)
def test_the_end_of_a_run_says_what_is_next(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    said: list[str],
) -> None:
    folder = tmp_path / "my sweep"
    folder.mkdir()
    planned(folder, cells(1))
    monkeypatch.setattr(drive, "drive", lambda *_: code)
    assert run_sweep(folder, RaySettings(), RunContext()) == code
    assert capsys.readouterr().out.splitlines() == [line.format(folder) for line in said]


def test_a_run_goes_by_the_plan_but_for_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, cells(2), max_retries=5)
    given: dict[str, Any] = {}

    def driven(folder: Path, planned: Planned, view: RunView) -> int:
        given.update(folder=folder, planned=planned)
        return 0

    monkeypatch.setattr(drive, "drive", driven)
    context = RunContext(TrainerSettings(threads=3), WandbSettings(project="probes"), "there")
    run_sweep(tmp_path, RaySettings(gpus_per_cell=0.5), context)
    found, kept = given["planned"], Planned.read(tmp_path)
    assert given["folder"] == tmp_path
    assert found.cells == plan.cells
    assert found.engine == RaySettings(cpus_per_cell=1, gpus_per_cell=0.5, max_retries=5)
    assert (found.context.trainer.threads, found.context.trainer.accelerator) == (3, "cpu")
    assert not found.context.trainer.progress_bar  # of its own: cells have none
    assert (found.context.wandb.project, found.context.mirror) == ("probes", "there")
    assert found.context.wandb.group == f"{tmp_path.name}-{kept.id}"
    assert kept.engine == RaySettings(cpus_per_cell=1, max_retries=5)  # of one run, not of the plan
