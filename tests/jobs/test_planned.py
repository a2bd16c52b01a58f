"""What a plan leaves for workers that have no config."""

from __future__ import annotations

from pathlib import Path

import pytest

from callbacks.wandb.settings import WandbSettings
from jobs.context import RunContext, TrainerSettings
from jobs.planned import Planned, wandb_group
from jobs.settings import EngineSettings
from results.planned import PLANNED_FILE
from storage.errors import UsageError

PLANNED = Planned(
    RunContext(
        TrainerSettings(accelerator="cpu", threads=1, checkpoint_every=20),
        WandbSettings(project="probes", tags=("a", "b")),
        "file:///mirror",
    ),
    EngineSettings(max_retries=5),
    ("original-a", "before-b"),
)
NOTHING_SAID = Planned(RunContext(), EngineSettings())


def test_what_was_planned_is_read_as_it_was(tmp_path: Path) -> None:
    assert Planned.read(tmp_path) is None
    PLANNED.keep(tmp_path)
    assert Planned.read(tmp_path) == PLANNED


def test_a_worker_without_options_takes_all_of_the_plan() -> None:
    assert PLANNED.under(NOTHING_SAID) == PLANNED


def test_an_option_of_the_worker_comes_before_the_plans() -> None:
    context = RunContext(TrainerSettings(threads=2), mirror="elsewhere")
    found = PLANNED.under(Planned(context, EngineSettings()))
    trainer = TrainerSettings(accelerator="cpu", threads=2, checkpoint_every=20)
    assert found.context == RunContext(trainer, PLANNED.context.wandb, "elsewhere")
    assert found.engine == PLANNED.engine


@pytest.mark.parametrize("text", ["", "{", "{}", '{"trainer": {"theads": 1}}', "[]"])
def test_a_damaged_file_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / PLANNED_FILE).write_text(text)
    with pytest.raises(UsageError, match="sweep plan` again"):
        Planned.read(tmp_path)


def test_report_and_cells_share_a_group(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text('{"study": "sweep-1a2b"}')
    assert wandb_group(tmp_path, WandbSettings()) == f"{tmp_path.name}-sweep-1a2b"
    assert wandb_group(tmp_path, WandbSettings(group="mine")) == "mine"
