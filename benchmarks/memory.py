"""The memory that a training is said to take before it starts, and what it takes.

    python -m benchmarks.memory [--models bert-0.5GB,FOLDER] [--tuning lora] [--checkpointing]

Each model is fitted for a few steps by `fit_choices`, as a protocol fits it, in a process of its
own: a decoder's folder, or a model that is made with random weights. The peak is the most memory
that the process ever had (`VmHWM` of Linux), less what it had before the model was made; or, with
`--by pytorch`, that of PyTorch's own record of what was allocated and freed, which knows nothing of
what is not given back to the system.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile
from transformers import AutoTokenizer, GPT2Config

from benchmarks.arguments import Arguments
from benchmarks.random_model import write_random_model
from benchmarks.results import report
from probelight.io.package import SMALL_MODEL
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.causal_choice import CausalChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_files import model_folder
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import FitPlan, choice_data, fit_choices
from probelight.training.memory import Processes, checkpoint_gradients, memory_need, weight_bytes
from probelight.training.settings import Fit

# Layers and hidden size of models of so many bytes in single precision.
MODELS = {
    "tiny": (2, 128),
    "gpt2-tiny": (2, 128),
    "bert-0.5GB": (8, 1024),
    "bert-0.8GB": (14, 1024),
    "bert-1.4GB": (25, 1024),
    "gpt2-0.6GB": (11, 1024),
}


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__)
    parser.add_argument("--models", default=",".join(n for n in MODELS if "GB" in n))
    parser.add_argument("--probe", default="definitions_small")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--by", choices=("process", "pytorch"), default="process")
    parser.add_argument("--tuning", default="full")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--precision", default="32-true")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the GB predicted and measured for each model, and how far apart they are."""
    records = list(load_probe(chosen.probe, "train").records)[: chosen.steps * chosen.batch_size]
    figures: dict[str, float] = {}
    for name in chosen.models.split(","):
        with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(1) as process:
            arguments = (name, records, Path(folder), chosen)
            predicted, measured, weights = process.apply(of_model, arguments)
        figures[f"{name}: GB of weights"] = weights / 1e9
        figures[f"{name}: GB predicted"] = predicted / 1e9
        figures[f"{name}: GB measured"] = measured / 1e9
        figures[f"{name}: predicted / measured"] = predicted / measured
    with_or_not = "with" if chosen.checkpointing else "without"
    title = f"Memory of a training, {chosen.precision}, {with_or_not} gradient checkpointing"
    report(title, figures, chosen)
    return figures


def of_model(
    name: str, records: Sequence[Record], folder: Path, chosen: argparse.Namespace
) -> tuple[int, int, int]:
    """Return the bytes of a model's training, predicted and measured, and those of its weights."""
    start_bytes = resident_bytes("VmRSS")
    module: ChoiceModule
    num_layers, hidden_size = MODELS.get(name, (0, 0))
    if name not in MODELS:
        module = CausalChoice(name, tuning=chosen.tuning)
    elif name.startswith("gpt2"):
        AutoTokenizer.from_pretrained(model_folder(SMALL_MODEL)).save_pretrained(folder / "model")
        heads = {"n_layer": num_layers, "n_embd": hidden_size, "n_head": hidden_size // 64}
        config = GPT2Config(vocab_size=16000, **heads, bos_token_id=0, eos_token_id=0)
        config.save_pretrained(folder / "model")
        module = CausalChoice(str(folder / "model"), random_weights=True)
    else:
        model_dir = write_random_model(folder / "model", num_layers, hidden_size)
        module = SentenceChoice(model_dir, random_weights=True)
    settings = TrainerSettings(
        accelerator="cpu",
        progress_bar=False,
        checkpoint_every=10_000,
        gradient_checkpointing=chosen.checkpointing,
        precision=chosen.precision,
        threads=chosen.threads,
    )
    how, watched = Fit(epochs=1, batch_size=chosen.batch_size), {"watched": records[:4]}
    if chosen.checkpointing:
        checkpoint_gradients(module)
    plan = FitPlan(how, 0, [], name)
    data = choice_data(records, watched, plan, settings)
    data.encode(module.encoder())
    need = memory_need(module, data, 1, settings, Processes("cpu"))
    print(f"{name}: {need.describe()}")
    run = RunFolder(folder / "runs", "memory", {})
    weights, predicted = weight_bytes(module), need.total
    is_recorded = chosen.by == "pytorch"
    activities = [ProfilerActivity.CPU]
    with profile(activities=activities, profile_memory=True) if is_recorded else nullcontext() as p:
        fit_choices(module, records, watched, run, plan, RunContext(settings))
    measured = resident_bytes("VmHWM") - start_bytes
    if is_recorded:
        measured, predicted = peak_bytes(p) + weights, predicted - need.unreturned
    print(f"{name}: {measured / 1e9:.2f} GB measured, {predicted / 1e9:.2f} predicted", flush=True)
    return predicted, measured, weights


def peak_bytes(profiled: profile) -> int:
    """Return the most bytes that were allocated at once beyond those that there were before."""
    results: Any = profiled.profiler
    changes = [
        (event.start_ns(), event.nbytes())
        for event in results.kineto_results.events()
        if event.name() == "[memory]"
    ]
    num_bytes = peak = 0
    for _, change in sorted(changes, key=lambda change: change[0]):
        num_bytes += change
        peak = max(peak, num_bytes)
    return peak


def resident_bytes(line: str) -> int:
    """Return the bytes of main memory that this process has ("VmRSS"), or had at most ("VmHWM")."""
    status = Path("/proc/self/status").read_text()
    kilobytes = re.search(rf"^{line}:\s+(\d+) kB", status, re.MULTILINE)
    assert kilobytes is not None
    return 1024 * int(kilobytes[1])


if __name__ == "__main__":
    main()
