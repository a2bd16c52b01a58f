"""What a plan leaves for whoever runs it without its config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.protocols.jobs.job import RaySettings, RunContext, TrainerSettings
from probelight.protocols.jobs.plan import Plan, PlannedJob, wandb_group
from probelight.results import run_folder

PLAN = Plan(
    RunContext(
        TrainerSettings(accelerator="cpu", threads=1, checkpoint_every=20),
        WandbSettings(project="probes", tags=("a", "b")),
        "file:///mirror",
    ),
    RaySettings(max_retries=5),
    (
        PlannedJob("original-a", "module:original", num_steps=7),
        PlannedJob("trial-b", "module:trial", ("original-a",), ("trial-a",), 3, is_drawn=True),
    ),
)


def test_a_plan_is_read_as_it_was_and_its_folder_keeps_its_id(tmp_path: Path) -> None:
    PLAN.keep(tmp_path)
    assert Plan.read(tmp_path) == PLAN
    assert wandb_group(tmp_path, WandbSettings()) == f"{tmp_path.name}-{PLAN.id}"
    assert wandb_group(tmp_path, WandbSettings(group="mine")) == "mine"
    again = Plan(RunContext(), RaySettings(take_over=True, max_retries=1))
    assert again.id != PLAN.id
    again.keep(tmp_path)
    found = Plan.read(tmp_path)  # never from whom the folder was taken
    assert (found.id, found.engine) == (PLAN.id, RaySettings(max_retries=1))


def test_options_of_a_run_come_before_those_of_the_plan() -> None:
    assert PLAN.under(RunContext(), RaySettings()) == PLAN
    context = RunContext(TrainerSettings(threads=2), mirror="elsewhere")
    trainer = TrainerSettings(accelerator="cpu", threads=2, checkpoint_every=20)
    user = RaySettings(max_retries=0, take_over=True)
    assert PLAN.under(context, user) == replace(
        PLAN,
        context=RunContext(trainer, PLAN.context.wandb, "elsewhere"),
        engine=user,
    )


@pytest.mark.parametrize("text", ["", "{", "{}", '{"trainer": {"theads": 1}}', "[]", None])
def test_a_missing_or_damaged_plan_is_refused(tmp_path: Path, text: str | None) -> None:
    message = "sweep plan` again"
    if text is None:
        message = f"sweep plan --config ... --output_dir {tmp_path}` makes one"
    else:
        (tmp_path / run_folder.PLANNED).write_text(text)
    with pytest.raises(UsageError, match=message):
        Plan.read(tmp_path)
