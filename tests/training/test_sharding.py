"""FSDP divides a model by its layers, and trains, stops and goes on as DDP does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from pytorch_lightning.plugins import FSDPPrecision
from torch import nn
from torch.distributed import HashStore
from torch.distributed.fsdp import FullyShardedDataParallel
from transformers import AutoModelForCausalLM

from probelight.models.last_layer import EncoderAt
from probelight.models.networks import is_gathered_by_layer
from probelight.training.sharding import by_layer, gathered_at_once
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.models.test_last_layer import make_batch, make_encoder


@pytest.fixture
def divided() -> Any:
    """Divides a network on the CPU as a training does, in a group of one process."""
    torch.distributed.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)

    def make(network: nn.Module) -> Any:
        strategy = by_layer()
        strategy.precision_plugin = FSDPPrecision("bf16-mixed")
        return FullyShardedDataParallel(
            network,
            mixed_precision=strategy.mixed_precision_config,
            device_id=torch.device("cpu"),
            **strategy.kwargs,
        )

    yield make
    torch.distributed.destroy_process_group()


def test_each_layer_is_a_unit_and_positions_stay_exact(
    divided: Callable[[nn.Module], Any], causal_folder: Callable[[str], Path]
) -> None:
    model = AutoModelForCausalLM.from_pretrained(causal_folder("llama"))
    ids = torch.tensor([[5, 6, 7, 8]])
    frequencies = model.model.rotary_emb.inv_freq.clone()
    expected = model(input_ids=ids).logits.detach()
    outside, layer = gathered_at_once(model)
    assert {id(weight) for weight in layer} == {id(w) for w in model.model.layers[0].parameters()}
    assert len(outside) + 2 * len(layer) == len([*model.parameters()])  # of two layers
    assert not is_gathered_by_layer(model)
    sharded = divided(model)
    units = [m for m in sharded.modules() if isinstance(m, FullyShardedDataParallel)]
    assert [type(unit.module).__name__ for unit in units] == [
        "LlamaForCausalLM",
        "LlamaDecoderLayer",
        "LlamaDecoderLayer",
    ]
    assert is_gathered_by_layer(sharded.module)
    torch.testing.assert_close(sharded(input_ids=ids).logits.detach(), expected)
    assert torch.equal(sharded.module.model.rotary_emb.inv_freq, frequencies)


def test_a_last_layer_that_is_gathered_by_its_call_is_called(
    divided: Callable[[nn.Module], Any],
) -> None:
    reader = EncoderAt(make_encoder("bert"))
    batch, column = make_batch("right"), torch.tensor([0, 3, 2, 1, 0])
    with torch.no_grad():
        expected = reader(batch, column)
        assert reader.is_reduced
        divided(nn.ModuleDict({"encoder": reader.encoder}))
        assert not reader.is_reduced
        torch.testing.assert_close(reader(batch, column), expected)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_two_processes_that_are_killed_end_as_two_with_whole_models(
    family: str,
    inoculation_config: dict[str, Any],
    curve_lm: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """The original task trains all weights, of BERT the inoculation too, of GPT-2 an adapter."""
    config = inoculation_config
    if family == "gpt2":
        model = {"name_or_path": str(curve_lm("gpt2")), "kind": "causal", "max_length": 32}
        config = {**config, "model": model, "tuning": "lora"}

    def inoculate(strategy: str, *kill_at: str) -> int:
        trainer = {"devices": 2, "strategy": strategy, "threads": 1}
        path = tmp_path / f"{strategy}.yaml"
        path.write_text(yaml.safe_dump({**config, "trainer": {**config["trainer"], **trainer}}))
        program = "tests.training.sharded_on_cpu" if strategy == "fsdp" else "probelight"
        command = [sys.executable, "-m", program, *kill_at, "inoculate", f"--config={path}"]
        done = subprocess.run(
            [*command, f"--output_dir={tmp_path / strategy}"], cwd=ROOT, timeout=200
        )
        return done.returncode

    assert inoculate("ddp") == 0
    assert inoculate("fsdp", "3") == -9  # within an epoch of the original task
    assert inoculate("fsdp", "12") == -9  # and of the inoculation
    assert inoculate("fsdp") == 0
    rows = [read_results(tmp_path / strategy / "results.csv") for strategy in ("ddp", "fsdp")]
    assert len(rows[0]) == len(rows[1]) > 20
    for whole, divided in zip(*rows, strict=True):
        assert (whole["metric"], whole["epoch"]) == (divided["metric"], divided["epoch"])
        assert float(whole["value"]) == pytest.approx(float(divided["value"]), abs=1e-6)
