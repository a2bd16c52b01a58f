"""An original task is taken from what was saved with the model that was trained on it."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from probelight.commands.inoculation.continued import continued_task, trained_task
from probelight.commands.inoculation.data import original_splits
from probelight.commands.inoculation.settings import OriginalTask
from probelight.io.errors import UsageError
from probelight.io.settings import settings_from
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.registry import ModelSettings
from probelight.results.record import checksums
from probelight.runs.context import RunContext
from tests.fixtures.checkout import ROOT

BUNDLED = OriginalTask(checkpoint="bookshelf-qa")


@pytest.mark.thorough
def test_the_bundled_model_is_continued_as_its_experiment_trained_it() -> None:
    config = yaml.safe_load(
        (ROOT / "configs/experiment/bookshelf_original_task.yaml").read_text(encoding="utf-8")
    )
    model, task = continued_task(ModelSettings(), BUNDLED)
    assert model == ModelSettings(**config["model"], kind="transformer")
    assert task == settings_from(OriginalTask, config["original"] | {"checkpoint": "bookshelf-qa"})
    splits = original_splits(RunContext(), task)
    # As its card has them.
    assert (len(splits.train), len(splits.selection), len(splits.report)) == (16_560, 500, 1_000)
    trained = trained_task(CheckpointRef("bookshelf-qa"))
    assert trained is not None
    assert trained.data_sha256 == checksums(*splits.files)
    keys = [{(r.id, r.stem) for r in s} for s in (splits.train, splits.selection, splits.report)]
    assert not keys[0] & (keys[1] | keys[2])


def test_what_is_given_too_agrees_or_is_refused_with_both_values() -> None:
    task = replace(BUNDLED, name="definitions_large", report_items=10)
    _, continued = continued_task(ModelSettings(head="pooler"), task)
    assert (continued.report_items, continued.reserved_share) == (10, 0.05)
    for given, message in (
        ({"seed": 3}, "original.seed 3: bookshelf-qa was trained with 0"),
        ({"report_split": "dev"}, "original.report_split dev: bookshelf-qa was trained with test"),
    ):
        with pytest.raises(UsageError, match=message):
            continued_task(ModelSettings(), replace(BUNDLED, **given))
    with pytest.raises(UsageError, match=r"name_or_path dictionary-lm: .* with bookshelf-lm"):
        continued_task(ModelSettings("dictionary-lm"), BUNDLED)
    with pytest.raises(UsageError, match=r"give --original.name and --original.sets, or"):
        continued_task(ModelSettings(), OriginalTask())


@pytest.mark.thorough
def test_a_task_with_everything_given_is_left_alone_but_never_measured_on_what_was_trained() -> (
    None
):
    model, task = ModelSettings(), replace(BUNDLED, name="a", sets=["definitions_large"])
    assert continued_task(model, task) == (model, task)
    with pytest.raises(UsageError, match=r"was trained on \d+ of the 5400 items to select with"):
        original_splits(RunContext(), task)
    other = original_splits(RunContext(), replace(task, sets=["definitions_small"]))
    assert not [notice for notice in other.notices if "may have been trained" in notice]


@pytest.mark.thorough
def test_a_folder_that_does_not_say_it_and_changed_files_are_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "assets/bookshelf-qa", tmp_path / "qa"))
    path, task = folder / "choice_head.json", replace(BUNDLED, checkpoint=str(folder))
    settings: dict[str, Any] = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "original_task": None}))
    with pytest.raises(PretrainedError, match="qa does not say what it was trained on"):
        continued_task(ModelSettings(), task)
    settings["original_task"]["data_sha256"] = ["0"]
    path.write_text(json.dumps(settings))
    _, continued = continued_task(ModelSettings(), task)
    with pytest.raises(UsageError, match="the files of definitions_large have changed"):
        original_splits(RunContext(), continued)
    settings["original_task"]["original"]["sets"] = 3
    path.write_text(json.dumps(settings))
    with pytest.raises(PretrainedError, match=r"choice_head.json: `original_task.original.sets`"):
        continued_task(ModelSettings(), task)


def test_every_question_model_of_a_run_says_what_it_was_trained_on(finished: Path) -> None:
    """Of the original task and of the inoculation behind it."""
    folders = sorted(finished.glob("runs/*/checkpoints/best"))
    assert len(folders) == 2
    original, inoculated = (trained_task(CheckpointRef(str(folder))) for folder in folders[::-1])
    assert original is not None
    assert original == inoculated
    [config] = finished.glob("runs/original-*/config.yaml")
    assert asdict(original.original) == yaml.safe_load(config.read_text())["original"]
    model, task = continued_task(
        ModelSettings(),
        OriginalTask(checkpoint=str(folders[1])),
    )
    assert model == original.model
    assert replace(task, checkpoint=None) == original.original
