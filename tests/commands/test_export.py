"""The folder of a model that was trained to answer questions, in half precision."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from probelight import cli
from probelight.commands.export import export
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.lightning_modules.sentence_choice import SentenceChoice
from tests.fixtures.tiny import Refused


def test_a_question_model_is_stored_in_half_precision(tmp_path: Path) -> None:
    trained = SentenceChoice("dictionary-lm", head="pooler", max_length=64, num_choices=5, seed=3)
    trained.save_pretrained(tmp_path / "best")
    assert export(str(tmp_path / "best"), str(tmp_path / "model")).is_dir()
    for path in (tmp_path / "model").glob("*.safetensors"):
        assert {value.dtype for value in load_file(path).values()} == {torch.float16}, path
    stored = SentenceChoice.from_folder(tmp_path / "model")
    assert (stored.head_kind, stored.max_length, stored.num_choices) == ("pooler", 64, 5)
    for name, value in stored.state_dict().items():
        assert torch.equal(value, trained.state_dict()[name].half().float()), name


def test_what_has_no_half_precision_is_named(tmp_path: Path, refused: Refused) -> None:
    ESIM(max_length=8).save_pretrained(tmp_path / "best")
    line = refused(["export", str(tmp_path / "best"), f"--output_dir={tmp_path / 'model'}"])
    assert f"{tmp_path / 'best'}: ESIM cannot be written in half precision" in line
    assert not (tmp_path / "model").exists()


def test_a_training_state_is_refused(tmp_path: Path, refused: Refused) -> None:
    state = tmp_path / "last.ckpt"
    torch.save({"state_dict": {}}, state)
    line = refused(["export", str(state), f"--output_dir={tmp_path / 'model'}"], cli.FAILURE)
    assert f"{state} is a file; give the folder" in line
    assert not (tmp_path / "model").exists()
