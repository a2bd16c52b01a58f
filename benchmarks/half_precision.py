"""Zero-shot scoring in half precision compared with float32, and whether the answers are the same.

    python -m benchmarks.half_precision [--dtype bfloat16] [--mirror FOLDER] [--threads 2] [--quick]

Items per second of a masked and of a causal model, large enough for products of matrices to be
most of the work: the same records, the same calls, the same weights up to rounding. The masked one
is the bundled model with sixteen times its neurons, of which the added ones do nothing, so that its
answers are a trained model's. The causal one has random weights, so nearly all its items are too
close for half precision. Items that half precision cannot decide are scored again in float32, for
which the weights are read again; that is part of the time, and the time without it is measured too.
The answers are compared on probes that are shipped, by the bundled model.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.arguments import Arguments
from benchmarks.interleaved import interleave, ratios
from benchmarks.random_model import random_gpt2, write_wide_model
from benchmarks.results import report
from probelight.evaluation.scorers import predict, scorer_for
from probelight.models.answering import answer
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Scorer
from probelight.probes.record import Record, Setup
from probelight.probes.source import load_entry
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings

FLOAT32 = "float32"
_SHARPER = 8.0  # of the rows of words
MASKED_PROBES, CAUSAL_PROBE = ("age_small", "antonym_small"), "hypernymy_small"
RELEASED = ("age_comparison", "antonym_negation")
SHIPPED = (
    *("age_small", "antonym_small", "multihop_small", "taxonomy_small", "wordsense_small"),
    *("definitions_small", "definitions_large", "hypernymy_small", "hyponymy_small"),
)


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=3, quick="tiny models")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16"])
    parser.add_argument(
        "--mirror", help="of released files, for the masked model; none: small ones"
    )
    parser.add_argument("--items", type=int, default=48, help="of each probe that is timed")
    parser.add_argument("--compared", type=int, default=60, help="of each probe that is shipped")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return items per second, ratios, shares scored again, and the answers that differ."""
    trainer = TrainerSettings(accelerator=chosen.device, progress_bar=False)
    rounds = 1 if chosen.quick else chosen.rounds
    layers, size = (2, 64) if chosen.quick else (12, 768)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        masked, causal = Path(folder) / "masked", Path(folder) / "causal"
        write_wide_model(masked, 2048 if chosen.quick else 16384)
        texts = _records(CAUSAL_PROBE, chosen.items)
        every = _records(CAUSAL_PROBE, None)
        words = [f"{record.stem} {choice}" for record in every for choice in record.choices]
        model, tokenizer = random_gpt2(words, layers + 4, size, 8000)
        with torch.no_grad():  # else all answers are about as likely
            model.get_input_embeddings().weight.mul_(_SHARPER)
        model.save_pretrained(causal)
        tokenizer.save_pretrained(causal)
        del model
        wide = ModelSettings(str(masked), kind="transformer", multi_token="skip")
        kinds: dict[str, tuple[ModelSettings, Setup, list[Record]]] = {
            f"masked, {probe}": (
                wide,
                "mc_mlm",
                _records(probe, 12 if chosen.quick else None, chosen.mirror),
            )
            for probe in (RELEASED if chosen.mirror else MASKED_PROBES)
        }
        kinds["causal"] = (ModelSettings(str(causal), kind="causal"), "mc_qa", texts)
        for kind, (settings, setup, records) in kinds.items():
            figures |= _speed(kind, settings, setup, records, trainer, chosen.dtype, rounds)
    figures |= _agreement(chosen, trainer)
    report(f"zero-shot in {chosen.dtype} and in float32", figures, chosen)
    return figures


def _speed(
    kind: str,
    settings: ModelSettings,
    setup: Setup,
    records: list[Record],
    trainer: TrainerSettings,
    dtype: Any,
    rounds: int,
) -> dict[str, float]:
    scorers = {
        name: scorer_for(replace(settings, dtype=name), setup, trainer=trainer)
        for name in (FLOAT32, dtype)
    }
    device = torch.device(trainer.accelerator)
    for scorer in scorers.values():
        scorer.network.to(device)

    def scored(scorer: Scorer) -> Callable[[], Predictions]:
        return lambda: predict(scorer, {kind: records}, trainer)[kind]

    once = f"{dtype}, each item once"
    peers: dict[str, Callable[[], Any]] = {name: scored(s) for name, s in scorers.items()}
    peers[once] = lambda: answer(scorers[dtype], {kind: records})
    seconds, predictions = interleave(peers, rounds)
    num_items = len(predictions[dtype].records)
    figures = {f"{kind}, items a second, {n}": num_items / median(t) for n, t in seconds.items()}
    for name in (dtype, once):
        ratio = ratios({FLOAT32: seconds[FLOAT32], name: seconds[name]}, name)[FLOAT32]
        figures[f"{kind}, {FLOAT32} / {name}"] = ratio
    figures[f"{kind}, share scored again"] = predictions[dtype].num_rescored / num_items
    figures[f"{kind}, answers that differ"] = _num_different(
        predictions[dtype], predictions[FLOAT32]
    )
    return figures


def _agreement(chosen: argparse.Namespace, trainer: TrainerSettings) -> dict[str, float]:
    num_items = num_rescored = num_different = 0
    for name in SHIPPED[:2] if chosen.quick else SHIPPED:
        data, _ = load_entry(name, None)
        sets = {name: data.records[: chosen.compared]}
        settings = ModelSettings(kind="transformer", multi_token="skip")
        ours, exact = (
            predict(
                scorer_for(replace(settings, dtype=dtype), data.config.setup, trainer=trainer),
                sets,
                trainer,
            )[name]
            for dtype in (chosen.dtype, FLOAT32)
        )
        num_items += len(ours.records)
        num_rescored += ours.num_rescored
        num_different += _num_different(ours, exact)
    return {
        "shipped probes, items": num_items,
        "shipped probes, share scored again": num_rescored / num_items,
        "shipped probes, answers that differ": num_different,
    }


def _num_different(ours: Predictions, theirs: Predictions) -> int:
    return sum(a != b for a, b in zip(ours.best, theirs.best, strict=True))


def _records(probe: str, most: int | None, mirror: str | None = None) -> list[Record]:
    return list(load_entry(probe, None, mirror=mirror)[0].records[:most])


if __name__ == "__main__":
    main()
