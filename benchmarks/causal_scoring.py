"""Scoring of questions with answers by a causal model compared with one request per choice.

    python -m benchmarks.causal_scoring [--mirror FOLDER] [--items 200] [--peer-batch 8] [--quick]

All read the same records and return log P(answer | question) of each answer, with the same weights;
tokenising is part of every time. The model is a GPT-2 of 6 layers of 384 with random weights and a
vocabulary of 50,257, the records are the released hypernymy test, or the shipped small one. Ours
runs a question once for all its answers, and makes logits where a token is scored. The peers run
each answer with its question, in batches of 8 (lm-evaluation-harness itself takes batches of 1 by
default: `--peer-batch 1`): `conditional_score` of minicons, the choices of the file in their order
(left out, with a message, where it is not installed); and requests as lm-evaluation-harness makes
them, the longest first, log-probabilities over the whole vocabulary at every place, and of each
scored token whether it is the likeliest. Every sum is compared with each of theirs. What sharing
can save at most is counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.arguments import Arguments
from benchmarks.interleaved import interleave, ratios
from benchmarks.random_model import random_gpt2
from benchmarks.results import report
from probelight.encoding.encoded_set import evaluation_batches
from probelight.models.causal import CausalScorer
from probelight.probes.record import Record
from probelight.probes.source import load_probe

OURS, MINICONS, REQUESTS = "ours", "minicons", "one request a choice"
Sums = list[list[float]]  # K of an item


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=3, quick="tiny")
    parser.add_argument("--mirror", help="the released files; none: the shipped hypernymy_small")
    parser.add_argument("--items", type=int, help="only the first so many")
    parser.add_argument("--peer-batch", type=int, default=8, help="texts in a batch of a peer")
    parser.add_argument("--max-tokens", type=int, default=8192, help="in a batch of ours")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return items per second of each, ratios and differences.

    Raises:
        RuntimeError: If a peer's log-likelihoods differ.
    """
    name, split = ("hypernymy", "test") if chosen.mirror else ("hypernymy_small", "dev")
    records = load_probe(name, split, mirror=chosen.mirror).records
    records = records[: 6 if chosen.quick else chosen.items]
    scorer = _scorer(records, chosen)
    peers: dict[str, Callable[[], Sums]] = {
        OURS: lambda: ours(scorer, records, chosen.max_tokens),
        REQUESTS: lambda: requests(scorer, records, chosen.peer_batch),
    }
    if minicons := _minicons(scorer, records, chosen.peer_batch):
        peers[MINICONS] = minicons
    else:
        print("minicons is not installed: pip install minicons, or the extra `benchmarks`")
    seconds, answers = interleave(peers, 1 if chosen.quick else chosen.rounds)
    figures = {f"items a second, {n}": len(records) / median(t) for n, t in seconds.items()}
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    figures[f"multiplications, {REQUESTS} / fewest"] = most_saved(scorer, records)
    for name in peers.keys() - {OURS}:
        figures[f"largest difference, {name}"] = agreement(answers[OURS], answers[name])
    report(f"causal scoring, {len(records)} items", figures, chosen)
    return figures


def agreement(ours: Sums, theirs: Sums) -> float:
    """Return the largest difference of a log-likelihood, as a share of it where it is above 1 nat.

    Raises:
        RuntimeError: If one is above 1e-5.
    """
    largest = 0.0
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for our_log, their_log in zip(a, b, strict=True):
            largest = max(largest, abs(our_log - their_log) / max(1.0, abs(their_log)))
        if largest > 1e-5:
            raise RuntimeError(f"item {index}: log-likelihoods {a} and {b}")
    return largest


@torch.no_grad()
def ours(scorer: CausalScorer, records: Sequence[Record], max_tokens: int) -> Sums:
    """Return log-likelihoods by batches as `zero-shot` makes them."""
    question = scorer.log_likelihoods()
    encoded = question.encoder.encode(records)
    sums: Sums = [[] for _ in records]
    batches = evaluation_batches(encoded.lengths, max_tokens, num_sequences=encoded.num_sequences)
    for batch in batches:
        inputs = {k: v.to(scorer.model.device) for k, v in encoded.collate(batch).items()}
        for index, row in zip(batch, question.answer(inputs).tolist(), strict=True):
            sums[index] = row[: len(records[index].choices)]
    return sums


@dataclass(frozen=True)
class Request:
    """A choice with its question, for one call of a model."""

    item: int
    choice: int
    ids: list[int]  # tokens of question and answer
    num_scored: int  # of the answer


@torch.no_grad()
def requests(scorer: CausalScorer, records: Sequence[Record], size: int) -> Sums:
    """Return log-likelihoods by requests, the longest first, with all logits of a padded batch."""
    model: Any = scorer.model
    ordered = sorted(_requests(scorer, records), key=lambda r: (-len(r.ids), r.ids))
    sums: Sums = [[0.0] * len(record.choices) for record in records]
    for start in range(0, len(ordered), size):
        batch = ordered[start : start + size]
        rows = [torch.tensor(request.ids[:-1]) for request in batch]
        inputs = pad_sequence(rows, batch_first=True).to(model.device)
        scores = model(inputs).logits.log_softmax(dim=-1)  # (B, L, V); what is padded is not read
        for request, row in zip(batch, scores, strict=True):
            end = len(request.ids) - 1
            scored_logs = row[end - request.num_scored : end]
            gold = torch.tensor(request.ids[-request.num_scored :], device=scored_logs.device)
            _ = bool((scored_logs.argmax(dim=-1) == gold).all())
            sums[request.item][request.choice] = float(scored_logs.gather(1, gold[:, None]).sum())
    return sums


def most_saved(scorer: CausalScorer, records: Sequence[Record]) -> float:
    """Return how many times fewer multiplications are left if no beginning of texts is run twice.

    Each token that is read costs the layers (attention itself left out), each that is scored the
    logits over the whole vocabulary; one request per choice takes both for every token.
    """
    all_requests = _requests(scorer, records)
    read = {tuple(request.ids[:n]) for request in all_requests for n in range(1, len(request.ids))}
    scored = {
        tuple(request.ids[:n])
        for request in all_requests
        for n in range(len(request.ids) - request.num_scored, len(request.ids))
    }
    sizes: Any = scorer.model.config
    layers, logits = 12 * sizes.n_layer * sizes.n_embd**2, sizes.n_embd * sizes.vocab_size
    all_read = sum(len(request.ids) - 1 for request in all_requests)
    return all_read * (layers + logits) / (len(read) * layers + len(scored) * logits)


def _requests(scorer: CausalScorer, records: Sequence[Record]) -> list[Request]:
    tokenizer = scorer.tokenizer
    places = [(i, k) for i, record in enumerate(records) for k in range(len(record.choices))]
    stems = [records[i].stem.rstrip() for i, _ in places]
    texts = [f"{s} {records[i].choices[k]}" for s, (i, k) in zip(stems, places, strict=True)]
    stem_ids = tokenizer(stems)["input_ids"]
    rows = zip(places, stem_ids, tokenizer(texts)["input_ids"], strict=True)
    return [Request(i, k, ids, len(ids) - len(stem)) for (i, k), stem, ids in rows]


def _minicons(
    scorer: CausalScorer, records: Sequence[Record], size: int
) -> Callable[[], Sums] | None:
    try:
        from minicons.scorer import IncrementalLMScorer
    except ImportError:
        return None
    peer = IncrementalLMScorer(
        scorer.model, device=str(scorer.model.device), tokenizer=scorer.tokenizer
    )
    pairs = [(record.stem.rstrip(), choice) for record in records for choice in record.choices]

    def call() -> Sums:
        scores: list[float] = []
        for start in range(0, len(pairs), size):
            stems, choices = zip(*pairs[start : start + size], strict=True)
            scores += peer.conditional_score(
                list(stems), list(choices), reduction=lambda x: x.sum().item()
            )
        remaining = iter(scores)
        return [[next(remaining) for _ in record.choices] for record in records]

    return call


def _scorer(records: Sequence[Record], chosen: argparse.Namespace) -> CausalScorer:
    sizes = (2, 64, 2000) if chosen.quick else (6, 384, 50257)
    texts = [text for record in records for text in (record.stem, *record.choices)]
    model, tokenizer = random_gpt2(texts, *sizes)
    return CausalScorer(model.to(chosen.device), tokenizer)


if __name__ == "__main__":
    main()
