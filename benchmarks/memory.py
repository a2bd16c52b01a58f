"""The memory that a training is said to take before it starts, and what it takes.

    python -m benchmarks.memory [--models bert-0.5GB,gpt2-0.6GB] [--checkpointing]

Each model is made with random weights and fitted for a few steps by `fit_choices`, as a protocol
fits it; the peak is that of PyTorch's own record of what was allocated and freed.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Sequence
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
from probelight.protocols.engine.memory import (
    Processes,
    checkpoint_gradients,
    memory_need,
    weight_bytes,
)
from probelight.protocols.engine.settings import Fit
from probelight.protocols.engine.training import FitPlan, choice_data, fit_choices
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.run_folder import RunFolder

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
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--precision", default="32-true")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the GB predicted and measured for each model, and how far apart they are."""
    records = list(load_probe(chosen.probe, "train").records)[: chosen.steps * chosen.batch_size]
    figures: dict[str, float] = {}
    for name in chosen.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            predicted, measured, weights = of_model(name, records, Path(folder), chosen)
        gc.collect()
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
    num_layers, hidden_size = MODELS[name]
    module: ChoiceModule
    if name.startswith("gpt2"):
        AutoTokenizer.from_pretrained(model_folder(SMALL_MODEL)).save_pretrained(folder / "model")
        heads = {"n_layer": num_layers, "n_embd": hidden_size, "n_head": hidden_size // 64}
        config = GPT2Config(vocab_size=16000, **heads, bos_token_id=0, eos_token_id=0)
        config.save_pretrained(folder / "model")
        module = CausalChoice(str(folder / "model"), random_weights=True)
    else:
        written = write_random_model(folder / "model", num_layers, hidden_size)
        module = SentenceChoice(written, random_weights=True)
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
    print(f"{name}: {need.shown()}")
    run = RunFolder(folder / "runs", "memory", {})
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        fit_choices(module, records, watched, run, plan, RunContext(settings))
    measured = peak_bytes(profiled) + weight_bytes(module)
    print(f"{name}: {measured / 1e9:.2f} GB measured, {need.total / 1e9:.2f} predicted", flush=True)
    return need.total, measured, weight_bytes(module)


def peak_bytes(profiled: profile) -> int:
    """Return the most bytes that were allocated at once beyond those that there were before."""
    results: Any = profiled.profiler
    changes = [
        (event.start_ns(), event.nbytes())
        for event in results.kineto_results.events()
        if event.name() == "[memory]"
    ]
    now = peak = 0
    for _, change in sorted(changes, key=lambda found: found[0]):
        now += change
        peak = max(peak, now)
    return peak


if __name__ == "__main__":
    main()
