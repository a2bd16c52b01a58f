"""Adapters over one base scored in one command, which reads the base once, and in one command each.

    python -m benchmarks.adapters --threads 2

The commands are processes of their own, in turns. They score the same shipped probes, and the
answers, rows and sums of weights must be the same to the bit. Target: at least 3 times with eight.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peft
import torch
from transformers import AutoModelForMaskedLM

from benchmarks.arguments import Arguments
from benchmarks.results import report
from probelight.models.checkpoint_files import model_folder
from probelight.models.registry import DEFAULT_MODEL

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Parse the command line, measure and report."""
    parser = Arguments(__doc__, rounds=2, quick="two adapters of a small model")
    parser.add_argument("--model", default=DEFAULT_MODEL.name_or_path)
    parser.add_argument("--probes", default="age_small", help="by commas")
    parser.add_argument("--adapters", type=int, default=8)
    arguments = parser.chosen()
    if arguments.quick:
        arguments.model, arguments.adapters, arguments.rounds = "dictionary-lm", 2, 1
    title = f"{arguments.adapters} adapters over {arguments.model}, {arguments.probes}"
    report(title, measure(arguments), arguments)


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Return seconds of one command and of one each, and their ratio, medians over rounds."""
    seconds_by_command: dict[str, list[float]] = {"one command": [], "one command each": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [
            f"{arguments.model}+{write_adapter(arguments.model, folder / f'a{seed}', seed)}"
            for seed in range(arguments.adapters)
        ]
        for turn in range(arguments.rounds):
            start = time.perf_counter()
            together = scored(folder / f"all-{turn}", models, arguments)
            middle = time.perf_counter()
            alone: dict[Any, Any] = {}
            for index, model in enumerate(models):
                alone |= scored(folder / f"{index}-{turn}", [model], arguments)
            end = time.perf_counter()
            if together != alone or len({record[0] for record in alone.values()}) != len(models):
                raise AssertionError("the records of the one command are not those of each")
            seconds_by_command["one command"].append(middle - start)
            seconds_by_command["one command each"].append(end - middle)
    medians = {f"{name}, s": statistics.median(times) for name, times in seconds_by_command.items()}
    single, each = medians.values()
    return {**medians, "times as long": each / single}


def write_adapter(model: str, folder: Path, seed: int) -> Path:
    """Write an adapter with random weights as a user of plain peft does; return its folder."""
    torch.manual_seed(seed)
    base: Any = AutoModelForMaskedLM.from_pretrained(model_folder(model))
    wrapped = peft.get_peft_model(base, peft.LoraConfig(r=8))
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.05)
    wrapped.save_pretrained(folder)
    return folder


def scored(
    folder: Path, models: Sequence[str], arguments: argparse.Namespace
) -> dict[tuple[str, str], tuple[str, list[Any], bytes]]:
    """Score models in a process; return weights' sum, rows and answers by model and probe."""
    threads = str(arguments.threads)
    command = [
        *(sys.executable, "-m", "probelight", "zero-shot", "--models", ",".join(models)),
        *("--probes", arguments.probes, "--output_dir", str(folder)),
        *("--trainer.accelerator", "gpu" if arguments.device == "cuda" else "cpu"),
        *("--trainer.threads", threads, "--trainer.progress_bar", "false"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    records_by_key = {}
    for path in folder.glob("runs/*/result.json"):
        record = json.loads(path.read_text())
        answers = (path.parent / "predictions.jsonl").read_bytes()
        key = record["model"], record["probe"]
        records_by_key[key] = record["model_sha256"], record["rows"], answers
    return records_by_key


if __name__ == "__main__":
    main()
