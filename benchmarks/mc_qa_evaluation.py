"""Evaluation of MC-QA against plain batches of 8 questions.

    python -m benchmarks.mc_qa_evaluation [--probe hypernymy:test --mirror FOLDER] [--items 500]

Both read records and give a score for each choice, with the same weights; tokenising is part of
both times. The peer reads the questions in the order of the file, eight at a time, all pairs padded
to the longest of the batch. Predictions must be identical, or the benchmark fails. Beside the times
stand the tokens that went through the model, padding included, and those of the pairs alone: a peer
that read no padding could be no faster than their ratio allows, but that ours saves a layer too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from transformers import DataCollatorForMultipleChoice

from benchmarks.arguments import Arguments
from benchmarks.interleaved import interleave, ratios
from benchmarks.mc_qa_training import accelerator_of, features_of, peer_of
from benchmarks.real_models import counted_tokens
from benchmarks.results import report
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.package import SMALL_MODEL
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.answering import scores_by_item
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import make_trainer

PEER_BATCH = 8
OURS, PEER = "Probelight", "batches of 8"
Scores = list[list[float]]  # (K,) per item


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=5)
    parser.add_argument("--model", default=SMALL_MODEL)
    parser.add_argument("--probe", default="hypernymy_small:test", help="name:split")
    parser.add_argument("--mirror")
    parser.add_argument("--items", type=int, help="only the first so many")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the questions per second of both, and the ratio.

    Raises:
        RuntimeError: If the two disagree about a prediction.
    """
    name, _, split = chosen.probe.partition(":")
    records = list(load_probe(name, split or "test", mirror=chosen.mirror).records[: chosen.items])
    ours = SentenceChoice(chosen.model, head="pooler").eval()
    peer = peer_of(ours, chosen.model).to(chosen.device)
    peers = {
        OURS: _probelight(ours, records, chosen.device),
        PEER: _plain(ours, peer, records),
    }
    seconds, answers = interleave(peers, chosen.rounds)
    difference = agreement(answers[OURS], answers[PEER])
    figures_of_tokens = {}
    for name, encoder in ((OURS, ours.transformer), (PEER, peer)):
        with counted_tokens(encoder) as num_tokens:
            peers[name]()
        figures_of_tokens[f"tokens, {name}"] = sum(num_tokens)
    encoded = ours.encoder().encode(records)
    pairs = [encoded.collate([item])["attention_mask"].sum() for item in range(len(encoded))]
    figures_of_tokens["tokens, no padding"] = int(sum(pairs))
    figures = {
        f"questions a second, {name}": len(records) / median(times)
        for name, times in seconds.items()
    }
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    figures |= figures_of_tokens
    figures["largest difference of a score"] = difference
    report(f"MC-QA evaluation, {chosen.probe}, {len(records)} questions", figures, chosen)
    return figures


def agreement(ours: Sequence[Sequence[float]], peer: Sequence[Sequence[float]]) -> float:
    """Return the largest difference of a score; refuse predictions that differ."""
    largest = 0.0
    for index, (a, b) in enumerate(zip(ours, peer, strict=True)):
        largest = max(largest, *(abs(x - y) for x, y in zip(a, b, strict=True)))
        if max(range(len(a)), key=a.__getitem__) != max(range(len(b)), key=b.__getitem__):
            raise RuntimeError(f"item {index}: predictions differ, scores {a} and {b}")
    return largest


def _probelight(module: SentenceChoice, records: list[Record], device: str) -> Callable[[], Scores]:
    def call() -> Scores:
        data = ChoiceDataModule(train=None, evaluation={"probe": records})
        settings = TrainerSettings(accelerator=accelerator_of(device), progress_bar=False)
        trainer = make_trainer(settings, logger=False, enable_checkpointing=False)
        output: Any = trainer.predict(module, datamodule=data)
        scores = {i: row for batch in output for i, row in scores_by_item(batch).items()}
        return [scores[index] for index in range(len(records))]

    return call


def _plain(ours: SentenceChoice, peer: Any, records: list[Record]) -> Callable[[], Scores]:
    model = peer.eval()
    collate = DataCollatorForMultipleChoice(ours.tokenizer)

    @torch.no_grad()
    def call() -> Scores:
        rows: Scores = []
        for start in range(0, len(records), PEER_BATCH):
            batch = collate(features_of(ours, records[start : start + PEER_BATCH]))
            batch = {name: value.to(model.device) for name, value in batch.items()}
            rows += model(**batch).logits.tolist()
        return rows

    return call


if __name__ == "__main__":
    main()
