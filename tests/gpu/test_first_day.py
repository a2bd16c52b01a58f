"""What to see first on a machine with GPUs; on the CPU the same code is tried, smaller.

pytest -m gpu tests/gpu
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from probelight.commands.curve import runs as curve_runs
from probelight.io.package import BUNDLED_MODEL
from probelight.models.checkpoint_files import model_folder
from probelight.runs.memory import GB
from tests.fixtures.checkout import ROOT
from tests.gpu.test_on_a_gpu import answers, assert_close, inoculation, run, values
from tests.runs.harness import wait_until

GPUS = torch.cuda.device_count()


def on(devices: int) -> list[Any]:
    """The CPU, and GPUs, so many of them."""
    are_there = pytest.mark.skipif(devices > GPUS, reason=f"there are no {devices} CUDA devices")
    return ["cpu", pytest.param("gpu", marks=[pytest.mark.gpu, are_there])]


def llama(folder: Path, *, has_weights: bool = True, **sizes: int) -> Path:
    """A random Llama with the tokenizer of the bundled model, small by default."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder(BUNDLED_MODEL))
    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    settings: dict[str, Any] = {**small, "num_attention_heads": 2, **sizes}
    config = LlamaConfig(vocab_size=len(tokenizer), architectures=["LlamaForCausalLM"], **settings)
    torch.manual_seed(0)
    if has_weights:
        LlamaForCausalLM(config).save_pretrained(folder)
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("device", on(1))
def test_near_ties_of_half_precision_are_decided_by_single(device: str, tmp_path: Path) -> None:
    scores = {}
    for dtype in ("float32", "bfloat16"):
        out = tmp_path / dtype
        options = [f"--model.dtype={dtype}", f"--trainer.accelerator={device}"]
        run("zero-shot", "--probes=taxonomy_small,age_small", *options, f"--output_dir={out}")
        scores[dtype] = answers(out)
    records = [
        json.loads(p.read_text()) for p in (tmp_path / "bfloat16").glob("runs/*/result.json")
    ]
    notices = [notice for record in records for notice in record.get("notices", [])]
    close = [notice for notice in notices if "were scored again in float32" in notice]
    num_rescored = sum(int(notice.split()[0]) for notice in close)
    assert 0 < num_rescored < len(scores["bfloat16"])
    exact = [
        item
        for item, row in scores["bfloat16"].items()
        if row == pytest.approx(scores["float32"][item], abs=1e-4)
    ]
    assert len(exact) >= num_rescored


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("device", on(1))
def test_packed_rows_have_the_scores_of_rows_alone(
    device: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = llama(tmp_path / "llama")
    arguments = ["zero-shot", "--probes=taxonomy_small", f"--model.name_or_path={folder}"]
    run(*arguments, f"--output_dir={tmp_path / 'packed'}", *device_options(device, precision))
    monkeypatch.setattr("probelight.models.causal.PackedReader._is_exact", lambda *_: False)
    run(*arguments, f"--output_dir={tmp_path / 'alone'}", "--trainer.accelerator=cpu")
    tolerance = {"32-true": 1e-3, "bf16-mixed": 0.3, "16-mixed": 0.05}[precision]
    assert_close(tmp_path / "alone", tmp_path / "packed", tolerance)


def device_options(device: str, precision: str = "32-true") -> list[str]:
    return [f"--trainer.accelerator={device}", f"--trainer.precision={precision}"]


@pytest.mark.slow
@pytest.mark.parametrize("device", on(1))
def test_an_adapter_of_a_decoder_is_trained(device: str, tmp_path: Path) -> None:
    model = {"name_or_path": str(llama(tmp_path / "llama")), "kind": "causal"}
    aggregates = {}
    for place in {"cpu", device}:
        run(*inoculation(tmp_path / place, model=model, tuning="lora"), *device_options(place))
        aggregates[place] = values(tmp_path / place / "out", "aggregate")
        [best] = (tmp_path / place).glob("out/runs/inoculate-*/checkpoints/best")
        assert (best / "adapter_model.safetensors").is_file()
    assert aggregates[device] == pytest.approx(aggregates["cpu"], abs=0.05)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), *on(1)[1:]])
def test_a_llama_of_a_billion_weights_takes_what_was_planned(
    device: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Llama 3.2 1B but for its words, which are those of the bundled tokenizer.
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16}
    sizes |= {"num_attention_heads": 32, "num_key_value_heads": 8}
    if device == "cpu":
        sizes = {}
        monkeypatch.setattr(curve_runs, "LARGE", 0)
    # Weights of 4 GB are neither written nor read.
    folder = llama(tmp_path / "llama", has_weights=device == "cpu", **sizes)
    model = {"name_or_path": str(folder), "kind": "causal", "random_weights": device == "gpu"}
    full = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-5}
    grid = {"sizes": [16], "seeds": [1], "controls": ["standard"], "full": full}
    config = {"probes": ["hypernymy_small"], "random_weights": False, "model": model, "grid": grid}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    precision = "32-true" if device == "cpu" else "bf16-mixed"
    command = ["curve", f"--config={path}", *device_options(device, precision)]
    command.append(f"--output_dir={tmp_path / 'out'}")
    run(*command, "--dry_run=true")
    planned = re.findall(r"memory: about ([0-9.]+) GB", capsys.readouterr().out)
    assert planned
    if device == "gpu":
        torch.cuda.reset_peak_memory_stats()
    run(*command)
    if device == "gpu":
        peak = torch.cuda.max_memory_allocated() / GB
        assert float(planned[0]) == pytest.approx(peak, rel=0.25)
    assert 0 <= values(tmp_path / "out", "accuracy")[-1] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("device", on(2))
def test_two_devices_train_stop_and_go_on_as_one(
    device: str, strategy: str, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "probelight"]
    if (device, strategy) == ("cpu", "fsdp"):
        program = [sys.executable, "-m", "tests.training.sharded_on_cpu"]
    options = [*device_options(device), "--trainer.progress_bar=false", "--trainer.threads=1"]
    options.append("--trainer.checkpoint_every=4")
    # Without dropout, which each process would draw for itself.
    model = {"name_or_path": str(llama(tmp_path / "llama")), "kind": "causal"}
    alone = [
        sys.executable,
        "-m",
        "probelight",
        *inoculation(tmp_path / "alone", model=model),
        *options,
    ]
    subprocess.run(alone, check=True, timeout=600, cwd=ROOT)
    shared = [
        *program,
        *inoculation(tmp_path / "shared", model=model),
        *options,
        "--trainer.devices=2",
    ]
    shared.append(f"--trainer.strategy={strategy}")
    process = subprocess.Popen(shared, cwd=ROOT)
    states = "runs/inoculate*/checkpoints/last.ckpt"
    wait_until(lambda: any((tmp_path / "shared" / "out").glob(states)), 600)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 143
    subprocess.run(shared, check=True, timeout=600, cwd=ROOT)
    assert_close(tmp_path / "alone" / "out", tmp_path / "shared" / "out", 1e-2)
