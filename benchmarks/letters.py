"""Letters in all cyclic orders compared with the rule `sum` on the same prompts.

    python -m benchmarks.letters [--items 60] [--kind causal|masked] [--threads 2] [--quick]

The records are the shipped hypernymy_small, five choices each, so five prompts an item, with random
weights: a GPT-2 of 6 layers of 384 and a vocabulary of 50,257, or a BERT of 6 layers of 384. Ours
makes the prompts and answers by label, choice and order, as `zero-shot --scoring letter` does; the
peer scores the labels of prompts that are there already by their log-likelihoods, as `sum` does.
The log-probabilities are compared.
"""

from __future__ import annotations

import argparse
import tempfile
from statistics import median

from benchmarks.arguments import Arguments
from benchmarks.causal_scoring import agreement
from benchmarks.interleaved import interleave, ratios
from benchmarks.random_model import random_gpt2, write_random_model
from benchmarks.results import report
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.scorers import ask
from probelight.io.package import shipped_path
from probelight.models.causal import CausalScorer
from probelight.models.masked import load
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Scorer
from probelight.probes.prompts import LABELS, Prompts, PromptSettings, Templates, orders_of
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings

LETTER, SUM = "letters", "sum"


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=3, quick="tiny")
    parser.add_argument("--items", type=int, default=60, help="only the first so many")
    parser.add_argument("--kind", choices=["causal", "masked"], default="causal")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return prompts per second of each, the ratio, and the largest difference.

    Raises:
        RuntimeError: If the log-probabilities differ.
    """
    records = load_probe("hypernymy_small", "dev").records[: 4 if chosen.quick else chosen.items]
    prompts = Prompts(Templates.read(shipped_path(PromptSettings().file)), "mc_qa")
    scorer = _scorer(records, chosen)
    trainer = TrainerSettings(accelerator=chosen.device, progress_bar=False)
    unscored = Predictions("letters", records, [[0.0] * len(record.choices) for record in records])
    prompted_records = [
        prompts.letters(r, order) for r in records for order in orders_of(r, "cyclic")
    ]

    def letters() -> list[list[float]]:
        answered = ask_letters(scorer, unscored, "cyclic", prompts, trainer)
        return [[*order] for item in answered.labels for order in item]

    def by_sum() -> list[list[float]]:
        sets = {"prompts": prompted_records}
        predictions = ask(scorer, scorer.log_likelihoods(), sets, trainer)["prompts"]
        return [[*scores] for scores in predictions.scores]

    peers = {LETTER: letters, SUM: by_sum}
    seconds, answers = interleave(peers, 1 if chosen.quick else chosen.rounds)
    figures = {
        f"prompts a second, {n}": len(prompted_records) / median(t) for n, t in seconds.items()
    }
    figures |= {f"{name} / {LETTER}": ratio for name, ratio in ratios(seconds, LETTER).items()}
    figures["largest difference"] = agreement(answers[LETTER], answers[SUM])
    report(f"letters, {len(prompted_records)} prompts, {chosen.kind}", figures, chosen)
    return figures


def _scorer(records: tuple[Record, ...], chosen: argparse.Namespace) -> Scorer:
    if chosen.kind == "causal":
        sizes = (2, 64, 2000) if chosen.quick else (6, 384, 50257)
        texts = [text for record in records for text in (record.stem, *record.choices)]
        letters = [f"Question: Answer: {letter}." for letter in LABELS]
        model, tokenizer = random_gpt2([*texts, *letters * 3], *sizes)
        return CausalScorer(model.to(chosen.device), tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        name = write_random_model(folder, *((2, 64, 2000) if chosen.quick else (6, 384, 30000)))
        return load(ModelSettings(name, kind="transformer", random_weights=True), "mc_mlm")


if __name__ == "__main__":
    main()
