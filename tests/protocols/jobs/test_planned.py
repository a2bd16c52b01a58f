"""What a plan leaves for whoever runs it without its config."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.protocols.jobs.cells import Cell
from probelight.protocols.jobs.job import RaySettings, RunContext, TrainerSettings
from probelight.protocols.jobs.plan import Plan, wandb_group
from probelight.results import run_folder

PLANNED = Plan(
    RunContext(
        TrainerSettings(accelerator="cpu", threads=1, checkpoint_every=20),
        WandbSettings(project="probes", tags=("a", "b")),
        "file:///mirror",
    ),
    RaySettings(max_retries=5),
    (
        Cell("original-a", "module:original", num_steps=7),
        Cell("trial-b", "module:trial", ("original-a",), ("trial-a",), 3, is_drawn=True),
    ),
)


def test_what_was_planned_is_read_as_it_was(tmp_path: Path) -> None:
    PLANNED.keep(tmp_path)
    assert Plan.read(tmp_path) == PLANNED


def test_a_folder_without_a_plan_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"sweep plan --config ... --output_dir {tmp_path}"):
        Plan.read(tmp_path)


def test_a_folder_keeps_its_id_and_never_whom_it_was_taken_from(tmp_path: Path) -> None:
    PLANNED.keep(tmp_path)
    again = Plan(RunContext(), RaySettings(take_over=True, max_retries=1))
    assert again.id != PLANNED.id
    again.keep(tmp_path)
    found = Plan.read(tmp_path)
    assert (found.id, found.engine) == (PLANNED.id, RaySettings(max_retries=1))


def test_a_run_without_options_takes_all_of_the_plan() -> None:
    assert PLANNED.under(RunContext(), RaySettings()) == PLANNED


def test_an_option_of_the_run_comes_before_the_plans() -> None:
    context = RunContext(TrainerSettings(threads=2), mirror="elsewhere")
    found = PLANNED.under(context, RaySettings(max_retries=0))
    trainer = TrainerSettings(accelerator="cpu", threads=2, checkpoint_every=20)
    assert found.context == RunContext(trainer, PLANNED.context.wandb, "elsewhere")
    assert found.engine == RaySettings(max_retries=0)
    assert found.cells == PLANNED.cells


@pytest.mark.parametrize("text", ["", "{", "{}", '{"trainer": {"theads": 1}}', "[]"])
def test_a_damaged_file_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / run_folder.PLANNED).write_text(text)
    with pytest.raises(UsageError, match="sweep plan` again"):
        Plan.read(tmp_path)


def test_report_and_cells_share_a_group(tmp_path: Path) -> None:
    PLANNED.keep(tmp_path)
    assert wandb_group(tmp_path, WandbSettings()) == f"{tmp_path.name}-{PLANNED.id}"
    assert wandb_group(tmp_path, WandbSettings(group="mine")) == "mine"
