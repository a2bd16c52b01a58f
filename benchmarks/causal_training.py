"""A training step of a causal model that chooses among continuations, against plain loops.

    python -m benchmarks.causal_training [--mirror FOLDER] [--layers 6] [--hidden 384] [--rounds 5]
    python -m benchmarks.causal_training --model smollm2 --tuning lora [--probe capitals]

All make the same step: 16 questions, log P(answer | question) per token of each answer, softmax and
cross-entropy over the answers, backward, AdamW. The model is a GPT-2 with random weights and a
vocabulary of 16,000, or that of `--model`; all of it is trained, or an adapter; there is no
dropout. Ours reads a question once for all its answers, in one pass, and makes logits where a token
is scored. The peers read each choice with its question: one call per choice, and one call of all
texts of the step, padded. Before anything is timed, the gradients of all weights are compared.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.arguments import Arguments
from benchmarks.interleaved import interleave, ratios
from benchmarks.random_model import random_gpt2
from benchmarks.results import report
from probelight.api.score import load_model
from probelight.lightning_modules.causal_choice import CausalChoice
from probelight.probes.record import Record
from probelight.probes.source import load_probe

BATCH_SIZE = 16
OURS, APART, PADDED = "ours", "one call a choice", "one call of all texts, padded"
Scores = Callable[[Sequence[Record]], Tensor]


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=5, quick="tiny")
    parser.add_argument("--mirror", help="the released files")
    parser.add_argument("--probe", help="with a train split; none: hypernymy, or hypernymy_small")
    parser.add_argument("--model", help="a config or folder of a causal model; none: a random one")
    parser.add_argument("--tuning", default="full", choices=["full", "lora"])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return seconds per step, ratios, and the largest difference of a gradient.

    Raises:
        RuntimeError: If a peer's gradients differ.
    """
    probe = chosen.probe or ("hypernymy" if chosen.mirror else "hypernymy_small")
    records = load_probe(probe, "train", mirror=chosen.mirror).records
    records = records[: 3 if chosen.quick else 4 * BATCH_SIZE]
    module = _module(records, chosen).to(chosen.device).train()
    raw, tokenizer = copy.deepcopy(module.model), module.tokenizer
    scores: dict[str, Scores] = {
        OURS: lambda batch: _ours(module, batch),
        APART: lambda batch: _apart(raw, tokenizer, batch),
        PADDED: lambda batch: _padded(raw, tokenizer, batch),
    }
    difference = max(
        _difference(scores[OURS], scores[name], module, raw, records) for name in (APART, PADDED)
    )
    steps = {
        name: _step(score, module.model if name == OURS else raw, _batches(records))
        for name, score in scores.items()
    }
    seconds, _ = interleave(steps, 1 if chosen.quick else chosen.rounds)
    figures = {f"seconds a step, {n}": median(times) for n, times in seconds.items()}
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    figures["largest relative difference of a gradient"] = difference
    report(
        f"causal training, {probe}, {chosen.tuning}, {BATCH_SIZE} questions a step", figures, chosen
    )
    return figures


def _module(records: Sequence[Record], chosen: argparse.Namespace) -> CausalChoice:
    """Return what is trained, without dropout, which no two ways of reading draw alike."""
    if chosen.model:
        name = str(load_model(chosen.model).settings.name_or_path)
        module = CausalChoice(name, scoring="mean_token", tuning=chosen.tuning)
    else:
        texts = [f"{r.stem} {choice}" for r in records for choice in r.choices]
        sizes = (2, 64, 2000) if chosen.quick else (chosen.layers, chosen.hidden, 16000)
        model, tokenizer = random_gpt2(texts, *sizes)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            module = CausalChoice(folder, tuning=chosen.tuning)
    for layer in module.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    return module


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    while True:
        for start in range(0, len(records), BATCH_SIZE):
            yield records[start : start + BATCH_SIZE]


def _loss(scores: Tensor, records: Sequence[Record]) -> Tensor:
    labels = torch.tensor([record.answer for record in records], device=scores.device)
    return torch.nn.functional.cross_entropy(scores, labels)


def _step(scores: Scores, model: Any, batches: Iterator[Sequence[Record]]) -> Callable[[], None]:
    """Return a function that trains a model by one step; tokenising is a part of it."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5)

    def train() -> None:
        batch = next(batches)
        optimizer.zero_grad()
        _loss(scores(batch), batch).backward()
        optimizer.step()

    return train


def _ours(module: CausalChoice, records: Sequence[Record]) -> Tensor:
    batch = module.encoder().encode(records).collate(range(len(records)))
    choice_scores: Tensor = module({name: value.to(module.device) for name, value in batch.items()})
    return choice_scores


def _rows(tokenizer: Any, record: Record) -> Iterator[tuple[Tensor, int]]:
    """Yield the tokens of each choice with its question, and how many are the question's."""
    first = len(tokenizer(record.stem).input_ids)
    for choice in record.choices:
        yield torch.tensor(tokenizer(f"{record.stem} {choice}").input_ids), first


def _apart(model: Any, tokenizer: Any, records: Sequence[Record]) -> Tensor:
    rows = []
    for record in records:
        scores = []
        for ids, first in _rows(tokenizer, record):
            labels = ids.clone()
            labels[:first] = -100
            # The library's loss is the mean over the labels.
            output = model(ids[None].to(model.device), labels=labels[None].to(model.device))
            scores.append(-output.loss)
        rows.append(torch.stack(scores))
    return pad_sequence(rows, batch_first=True, padding_value=-torch.inf)


def _padded(model: Any, tokenizer: Any, records: Sequence[Record]) -> Tensor:
    texts = [row for record in records for row in _rows(tokenizer, record)]
    ids = pad_sequence([row for row, _ in texts], batch_first=True)
    mask = torch.zeros_like(ids)
    scored = torch.zeros_like(ids, dtype=torch.bool)
    for index, (row, first) in enumerate(texts):
        mask[index, : len(row)] = 1
        scored[index, first : len(row)] = True
    ids, mask, scored = (tensor.to(model.device) for tensor in (ids, mask, scored))
    logs = model(ids, attention_mask=mask).logits[:, :-1].log_softmax(dim=-1)
    log_likelihoods = logs.gather(2, ids[:, 1:, None])[:, :, 0] * scored[:, 1:]
    means = log_likelihoods.sum(dim=1) / scored.sum(dim=1)
    question_means = torch.split(means, [len(record.choices) for record in records])
    return pad_sequence(list(question_means), batch_first=True, padding_value=-torch.inf)


def _difference(
    ours: Scores, theirs: Scores, module: CausalChoice, raw: Any, records: Sequence[Record]
) -> float:
    """Return the largest difference of a gradient, as a share of the largest gradient.

    Raises:
        RuntimeError: If it is above 1e-4.
    """
    batch = records[:BATCH_SIZE]
    _loss(ours(batch), batch).backward()
    our_gradients = _gradients(module.model)
    module.zero_grad()
    _loss(theirs(batch), batch).backward()
    expected = _gradients(raw)
    raw.zero_grad()
    largest = max(float(grad.abs().max()) for grad in expected.values())
    gaps = (float((our_gradients[name] - grad).abs().max()) for name, grad in expected.items())
    if (difference := max(gaps) / largest) > 1e-4:
        raise RuntimeError(f"the gradients of a peer differ by {difference:.1e} of the largest")
    return difference


def _gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


if __name__ == "__main__":
    main()
