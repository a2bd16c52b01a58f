"""What only a CUDA device can show: lower precision, its presets, compiling, going on there.

    pytest -m gpu

One device is enough, but for what two devices share. Nothing here needs wandb, datasets or optuna.
"""

from __future__ import annotations

import csv
import gc
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch.profiler import ProfilerActivity, profile
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from probelight import cli
from probelight.io.package import BUNDLED_MODEL
from probelight.io.process import say_once
from probelight.models.answering import float32_products
from probelight.models.checkpoint_files import model_folder
from probelight.models.like_length import LikeLength
from probelight.models.pair_choice import PairChoice
from probelight.probes.record import Record
from tests.fixtures.architectures import ref_of
from tests.fixtures.checkout import ROOT
from tests.runs.harness import wait_until

DEVICE = "gpu"
CONFIGS = ROOT / "configs"
HAS_TENSOR_CORES = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
FITS = ("fit_masked_choice", "fit_sentence_choice", "fit_esim", "fit_mlm_baseline")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def run(*arguments: str) -> None:
    assert cli.main([*arguments, "--trainer.progress_bar=false"]) == 0


def answers(folder: Path) -> dict[tuple[str, str], list[float]]:
    """(run without the hash of its config, item) -> the scores of its choices."""
    return {
        (path.parent.name.rsplit("-", 1)[0], row["id"]): row["scores"]
        for path in folder.glob("runs/*/predictions.jsonl")
        for row in map(json.loads, path.read_text("utf-8").splitlines())
    }


def values(folder: Path, metric: str) -> list[float]:
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        return [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == metric]


def assert_close(folder_a: Path, folder_b: Path, tolerance: float) -> None:
    """Scores within a tolerance, and the same answers where the best two are further apart."""
    first, second = answers(folder_a), answers(folder_b)
    assert first
    assert first.keys() == second.keys()
    for item, scores in first.items():
        assert scores == pytest.approx(second[item], abs=tolerance), item
        best, next_best = sorted(scores, reverse=True)[:2]
        if best - next_best > 2 * tolerance:
            assert scores.index(best) == second[item].index(max(second[item])), item


@pytest.fixture
def free_memory() -> Iterator[Callable[[int], None]]:
    """Leaves so many MB of the device to torch, beyond what it holds, until the test's end."""

    def leave(megabytes: int) -> None:
        gc.collect()
        torch.cuda.empty_cache()
        say_once.cache_clear()
        held, (_, total) = torch.cuda.memory_reserved(), torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction((held + megabytes * 2**20) / total)

    yield leave
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.fixture(scope="module")
def zero_shot(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The folder of a zero-shot run of the bundled model on a device, at a precision."""
    folders: dict[tuple[str, str], Path] = {}

    def make(device: str, precision: str) -> Path:
        if (device, precision) not in folders:
            folder = tmp_path_factory.mktemp("zero-shot")
            how = (f"--trainer.accelerator={device}", f"--trainer.precision={precision}")
            run("zero-shot", "--probes=taxonomy_small", f"--output_dir={folder}", *how)
            folders[device, precision] = folder
        return folders[device, precision]

    return make


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("32-true", 1e-3), ("16-mixed", 0.05), ("bf16-mixed", 0.3)]
)
def test_scores_on_the_device_are_those_of_the_cpu(
    zero_shot: Callable[[str, str], Path], precision: str, tolerance: float
) -> None:
    assert_close(zero_shot("cpu", "32-true"), zero_shot(DEVICE, precision), tolerance)


@pytest.mark.skipif(not HAS_TENSOR_CORES, reason="there are no tensor cores for TF32")
@pytest.mark.parametrize("matmul", ["highest", "high"])
def test_idle_tensor_cores_are_said_once_and_their_use_is_a_run_of_its_own(
    matmul: str,
    zero_shot: Callable[[str, str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_once.cache_clear()
    how = (f"--trainer.accelerator={DEVICE}", f"--trainer.matmul_precision={matmul}")
    run("zero-shot", "--probes=taxonomy_small,age_small", f"--output_dir={tmp_path}", *how)
    printed = capsys.readouterr()
    notices = [line for line in printed.err.splitlines() if "tensor cores" in line.lower()]
    assert len(notices) == (matmul == "highest")
    single = zero_shot(DEVICE, "32-true")
    exact = {path.parent.name for path in single.glob("runs/*/result.json")}
    names = {path.parent.name for path in tmp_path.glob("runs/*taxonomy*/result.json")}
    assert (names == exact) == (matmul == "highest")
    expected, scores = answers(single), answers(tmp_path)
    for item, exactly in expected.items():
        assert scores[item] == pytest.approx(exactly, abs=0.05), item


def test_products_of_tf32_are_several_times_faster() -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("measured on H100 and H200")
    matrix = torch.randn(8192, 8192, device="cuda")

    def milliseconds(matmul: str) -> float:
        with float32_products(torch.device("cuda"), "32-true", matmul):
            _ = matrix @ matrix
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(10):
                _ = matrix @ matrix
            end.record()
            end.synchronize()
        return start.elapsed_time(end)

    assert milliseconds("highest") > 2 * milliseconds("high")


def test_batches_that_do_not_fit_are_answered_in_halves(
    free_memory: Callable[[int], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 1200 sentences, which take 260 MB at once, and 24 of weights.
    arguments = ["--probes=taxonomy_small:train", f"--trainer.accelerator={DEVICE}"]
    run("zero-shot", *arguments, f"--output_dir={tmp_path / 'roomy'}")
    free_memory(100)
    arguments += [f"--output_dir={tmp_path / 'tight'}", "--trainer.max_eval_tokens=1000000"]
    run("zero-shot", *arguments)
    assert capsys.readouterr().err.count("so it is divided in two") == 1
    assert_close(tmp_path / "roomy", tmp_path / "tight", 1e-3)


def test_features_that_do_not_fit_are_made_in_halves(
    free_memory: Callable[[int], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = frozen_curve(tmp_path / "roomy", DEVICE)
    free_memory(100)
    scores = frozen_curve(tmp_path / "tight", DEVICE, "--trainer.max_eval_tokens=1000000")
    assert capsys.readouterr().err.count("so it is divided in two") == 1
    assert scores == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("command", "megabytes", "message"),
    [
        ("inoculate", 200, "error: training in batches of 16 (batch_size 16) needs more memory"),
        ("zero-shot", 1, "error: CUDA out of memory"),  # the model itself
    ],
)
def test_what_does_not_fit_at_all_is_one_line(
    command: str,
    megabytes: int,
    message: str,
    free_memory: Callable[[int], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = inoculation(tmp_path)
    if command == "zero-shot":
        arguments = ["zero-shot", "--probes=taxonomy_small", f"--output_dir={tmp_path}"]
    free_memory(megabytes)
    assert cli.main([*arguments, f"--trainer.accelerator={DEVICE}"]) == cli.USAGE_ERROR
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors


def test_scores_come_from_the_device_by_few_copies_and_batches_go_there_pinned(
    tmp_path: Path,
) -> None:
    def copies(max_tokens: int) -> tuple[int, int]:
        folder = tmp_path / str(max_tokens)
        arguments = ["--probes=taxonomy_small", f"--trainer.max_eval_tokens={max_tokens}"]
        arguments += [f"--output_dir={folder}", f"--trainer.accelerator={DEVICE}"]
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            run("zero-shot", *arguments)
        counts = {event.key: event.count for event in profiled.key_averages()}
        back = sum(n for key, n in counts.items() if key.startswith("Memcpy DtoH"))
        return back, counts.get("Memcpy HtoD (Pinned -> Device)", 0)

    few, many = copies(100_000), copies(256)  # some batches, and some dozens of them
    assert many[1] > 4 * few[1] > 0
    # Both bring the network's weights back at the end.
    assert many[0] - few[0] < (many[1] - few[1]) / 16


def test_frozen_features_of_lower_precision_are_near_those_of_single(tmp_path: Path) -> None:
    exact = frozen_curve(tmp_path / "32", DEVICE)
    lower = frozen_curve(tmp_path / "bf16", DEVICE, "--trainer.precision=bf16-mixed")
    assert lower == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("name", FITS)
def test_a_module_takes_a_step(name: str, tmp_path: Path) -> None:
    arguments = [f"--config={CONFIGS / 'experiment' / f'{name}.yaml'}", "--trainer.max_epochs=1"]
    limits = ["--trainer.limit_train_batches=2", "--trainer.limit_val_batches=2"]
    arguments += [f"--trainer.accelerator={DEVICE}", *limits]
    assert cli.main(["fit", *arguments, f"--output_dir={tmp_path}"]) == 0
    state = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert state["global_step"] == 2
    weights = [value for value in state["state_dict"].values() if value.is_floating_point()]
    assert all(bool(value.isfinite().all()) for value in weights)


def inoculation(folder: Path, **more: Any) -> list[str]:
    """The arguments of an inoculation of a minute on a CPU."""
    config = {
        "original": {
            "name": "definitions_small",
            "sets": ["definitions_small"],
            "report_sets": ["definitions_small"],
            "train_items": 96,
            "selection_items": 32,
            "report_items": 64,
            "selection_share": 0.2,
            "epochs": 1,
            "batch_size": 16,
        },
        "model": {"head": "pooler", "max_length": 48},
        "probe": {"name": "hypernymy_small", "selection_items": 32, "report_items": 64},
        "dose": 64,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 1e-4,
        **more,
    }
    folder.mkdir(exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return ["inoculate", f"--config={path}", f"--output_dir={folder / 'out'}"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an inoculation on the device in single precision."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(*inoculation(folder), f"--trainer.accelerator={DEVICE}", "--trainer.checkpoint_every=1")
    return folder / "out"


def test_a_decoder_is_inoculated_on_the_device(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model_folder(BUNDLED_MODEL))
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    torch.manual_seed(0)
    folder = tmp_path / "llama"
    network = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), num_attention_heads=2, **sizes)
    )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = {"name_or_path": str(folder), "kind": "causal"}
    aggregates = {}
    for device in ("cpu", DEVICE):
        arguments = inoculation(tmp_path / device, model=model)
        run(*arguments, f"--trainer.accelerator={device}")
        with (tmp_path / device / "out" / "results.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        aggregates[device] = [float(row["value"]) for row in rows if row["metric"] == "aggregate"]
    assert aggregates[DEVICE] == pytest.approx(aggregates["cpu"], abs=0.05)


@pytest.mark.parametrize("preset", ["ddp", "fsdp", "one_gpu"])
def test_a_preset_trains_on_one_device(preset: str, undisturbed: Path, tmp_path: Path) -> None:
    # A process of its own: what FSDP and DDP set up in one stays there.
    preset_path = CONFIGS / "trainer" / f"{preset}.yaml"
    command = [*inoculation(tmp_path), f"--config={preset_path}", "--trainer.devices=1"]
    subprocess.run([sys.executable, ROOT / "train.py", *command], check=True, timeout=900)
    for metric in ("probe_accuracy", "original_accuracy_after"):
        [value] = values(tmp_path / "out", metric)[-1:]
        assert 0 <= value <= 1
    # Before anything is trained, the preset is another precision only.
    assert values(tmp_path / "out", "probe_accuracy_before") == pytest.approx(
        values(undisturbed, "probe_accuracy_before"), abs=0.1
    )


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices")
def test_what_two_devices_share_of_a_curve_is_gathered(tmp_path: Path) -> None:
    config = {
        "probes": ["hypernymy_small"],
        "first_stage": "definitions_small:dev",
        "random_weights": False,
        "grid": {
            "sizes": [16],
            "seeds": [1],
            "controls": ["standard"],
            "full": {"epochs": 1, "batch_size": 16, "learning_rate": 1e-50},
        },
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    fingerprints = []
    for name, more in (
        ("one", [f"--trainer.accelerator={DEVICE}"]),
        ("two", [f"--config={CONFIGS / 'trainer' / 'fsdp.yaml'}", "--trainer.devices=2"]),
    ):
        command = ["curve", f"--config={path}", *more, "--trainer.precision=32-true"]
        arguments = [*command, f"--output_dir={tmp_path / name}", "--trainer.progress_bar=false"]
        subprocess.run([sys.executable, ROOT / "train.py", *arguments], check=True, timeout=900)
        results = [json.loads(p.read_text()) for p in (tmp_path / name).glob("runs/*/result.json")]
        fingerprints.append({result["protocol"]: result["model_sha256"] for result in results})
        assert len(results) == 2
    # The rate is 0 in single precision: every weight is the pre-trained one, or drawn from the
    # seed, whole or not.
    assert fingerprints[0] == fingerprints[1]
    assert len({*fingerprints[0].values()}) == 1


def test_a_run_that_was_stopped_goes_on_to_the_same_end(undisturbed: Path, tmp_path: Path) -> None:
    more = [f"--trainer.accelerator={DEVICE}", "--trainer.checkpoint_every=1"]
    command = [sys.executable, str(ROOT / "train.py"), *inoculation(tmp_path), *more]
    process = subprocess.Popen([*command, "--trainer.progress_bar=false"])
    states = "runs/inoculate*/checkpoints/last.ckpt"
    wait_until(lambda: any((tmp_path / "out").glob(states)), 600)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 143
    subprocess.run([*command, "--trainer.progress_bar=false"], check=True, timeout=900)
    assert_close(undisturbed, tmp_path / "out", 1e-2)


def frozen_curve(folder: Path, device: str, *more: str) -> list[float]:
    arguments = ["--probes=taxonomy_small", "--grid.sizes=[16, 62]", "--grid.epochs=2"]
    arguments += ["--grid.seeds=[1, 2]", "--random_weights=false", *more]
    run("curve", *arguments, f"--output_dir={folder}", f"--trainer.accelerator={device}")
    return values(folder, "accuracy")


def test_stacked_heads_learn_what_they_learn_on_the_cpu(tmp_path: Path) -> None:
    scores = frozen_curve(tmp_path / "gpu", DEVICE)
    assert scores == pytest.approx(frozen_curve(tmp_path / "cpu", "cpu"), abs=0.02)


def test_the_stack_of_heads_is_planned_by_the_memory_that_is_free(tmp_path: Path) -> None:
    expected = frozen_curve(tmp_path / "roomy", DEVICE)
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    block = torch.empty(max(0, free - (1 << 30)), dtype=torch.uint8, device="cuda")
    assert frozen_curve(tmp_path / "tight", DEVICE) == pytest.approx(expected, abs=0.02)
    assert block.numel() > 0


@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_in_groups_of_like_length_have_the_scores_of_the_cpu(
    grouped: bool, checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = PairChoice(ref_of(checkpoint()))
    pairs.network.eval()
    stems = [f"{i} " + " ".join(["cat"] * (1 + 5 * (i % 6))) for i in range(8)]
    records = [Record(stem, stem, ("a", "the dog", "1"), 0) for stem in stems]
    batch = pairs.encoder().encode(records).collate(range(8))
    expected = pairs(batch)
    monkeypatch.setattr(LikeLength, "_call_tokens", lambda *_: 0.0 if grouped else float("inf"))
    pairs.network.to("cuda")
    logits = pairs({name: value.to("cuda") for name, value in batch.items()})
    torch.testing.assert_close(logits.cpu(), expected, rtol=0, atol=1e-3)
