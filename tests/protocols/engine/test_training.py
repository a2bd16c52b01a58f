from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from probelight.lightning_modules.inoculation import Inoculation
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.protocols import cli
from probelight.protocols.engine.training import compile_transformers
from tests.fixtures.checkout import ROOT

PRESETS = sorted((ROOT / "configs" / "trainer").glob("*.yaml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_trainer_preset_goes_behind_an_experiment(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = ROOT / "configs" / "experiment" / "inoculate_hypernymy.yaml"
    with pytest.raises(SystemExit, match="0"):
        cli.main(["inoculate", f"--config={experiment}", f"--config={path}", "--print_config"])
    printed = yaml.safe_load(capsys.readouterr().out)
    preset = yaml.safe_load(path.read_text())["trainer"]
    assert {name: printed["trainer"][name] for name in preset} == preset
    assert printed["probe"]["name"] == "hypernymy"


def test_a_model_is_written_from_gathered_weights(tiny_model: Path, tmp_path: Path) -> None:
    source = SentenceChoice(str(tiny_model), max_length=32, seed=1)
    gathered = {f"task.{n}": v.clone() for n, v in source.state_dict().items()}
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.zero_()  # as empty as a shard that another process holds
    Inoculation(source).save_pretrained(tmp_path / "model", state_dict=gathered)
    again = SentenceChoice.from_folder(tmp_path / "model").state_dict()
    assert again.keys() == {name.removeprefix("task.") for name in gathered}
    assert all(torch.equal(again[name.removeprefix("task.")], v) for name, v in gathered.items())


@pytest.mark.slow
def test_a_compiled_transformer_gives_the_same_and_keeps_its_names(tiny_model: Path) -> None:
    module: Any = SentenceChoice(str(tiny_model), max_length=32)
    names = list(module.state_dict())
    batch = {
        "input_ids": torch.arange(5, 17).view(2, 6),
        "attention_mask": torch.ones(2, 6, dtype=torch.long),
        "token_type_ids": torch.zeros(2, 6, dtype=torch.long),
        "pair_index": torch.tensor([[0, 1]]),
        "choice_mask": torch.ones(1, 2, dtype=torch.bool),
    }
    with torch.no_grad():
        plain = module(batch)
        compile_transformers(module)
        assert torch.allclose(module(batch), plain, atol=1e-6)
    assert list(module.state_dict()) == names
