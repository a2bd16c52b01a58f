"""Zero-shot scoring of MC-MLM probes compared with three ways that people use.

    python -m benchmarks.zero_shot [--mirror FOLDER] [--model FOLDER] [--threads 2] [--quick]

All read the same records and score each candidate with the same weights; tokenising is part of
every time. Ours computes the candidates' rows alone, and the last layer at the mask. The peers take
the order of the file: the `fill-mask` pipeline with `targets`, one call per item; batches of 8
through `cloze_distribution` of minicons (left out, with a message, where it is not installed; its
`cloze` is wrong when a candidate also is in the stem); and plain batches of 8 with the logits
of the whole vocabulary. The softmax over the candidates is compared with each of theirs.

The share of GEMM speed is the encoder's number of operations on real tokens, not padding, over its
time, compared with matrix products of the encoder's shapes measured in the same rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import FillMaskPipeline

from benchmarks.arguments import Arguments
from benchmarks.interleaved import clock, interleave, ratios
from benchmarks.random_model import write_random_model
from benchmarks.results import report
from probelight.encoding.candidates import Blank
from probelight.encoding.encoded_set import evaluation_batches
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.probes.record import MASK, Record
from probelight.probes.source import load_probe

PEER_BATCH = 8
EMBEDDED_PROBES = ("age_small", "antonym_small", "multihop_small", "taxonomy_small")
RELEASED_PROBES = (
    "age_comparison",
    "objects_comparison",
    "always_never",
    "antonym_negation",
    "multihop_composition",
)
OURS, PIPELINE, MINICONS, PLAIN = "ours", "fill-mask pipeline", "minicons", "batches of 8"
GEMM = "matrix products"
BLANK = "qblankq"  # one word that no stem holds
Scores = list[Tensor]  # one (K,) an item


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=3, quick="tiny")
    parser.add_argument("--model", help="a folder or name; none: 6 layers of 384, random weights")
    parser.add_argument("--mirror", help="the released files; none: the embedded probes")
    parser.add_argument("--items", type=int, help="only the first so many of each probe")
    parser.add_argument("--max-tokens", type=int, default=1024, help="in a batch of ours")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return items per second of each, ratios, differences and the share of GEMM speed.

    Raises:
        RuntimeError: If a peer's predictions or scores differ, or ours makes logits of the whole
            vocabulary.
    """
    module = _module(chosen)
    records = _records(module, chosen)
    spans: dict[str, list[float]] = {"forward": [], "gemm": []}
    peers: dict[str, Callable[[], Any]] = {
        OURS: _ours(module, records, chosen.max_tokens, spans["forward"]),
        PIPELINE: _pipeline(module, records),
        PLAIN: _plain(module, records),
        GEMM: lambda: spans["gemm"].append(_gemm_speed(module, chosen.max_tokens)),
    }
    if minicons := _minicons(module, records):
        peers[MINICONS] = minicons
    else:
        print("minicons is not installed: pip install minicons, or the extra `benchmarks`")
    seconds, answers = interleave(peers, 1 if chosen.quick else chosen.rounds)
    del seconds[GEMM]
    figures = {f"items a second, {n}": len(records) / median(t) for n, t in seconds.items()}
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    for name in peers.keys() - {OURS, GEMM}:
        figures[f"largest difference, {name}"] = agreement(answers[OURS], answers[name])
    figures |= _shares(module, records, seconds[OURS], spans)
    with no_vocabulary_logits(module.head.weight.shape[0]):
        peers[OURS]()
    report(f"zero-shot, {len(records)} items", figures, chosen)
    return figures


def agreement(ours: Scores, theirs: Scores) -> float:
    """Return the largest difference of a log-probability; refuse 1e-5, or another prediction."""
    largest = 0.0
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = a.double().log_softmax(0), b.double().log_softmax(0)
        largest = max(largest, float((a - b).abs().max()))
        tied = float((b.max() - b[a.argmax()]).abs()) < 1e-6
        if largest > 1e-5 or not (a.argmax() == b.argmax() or tied):
            raise RuntimeError(f"item {index}: scores {a.tolist()} and {b.tolist()}")
    return largest


def _module(chosen: argparse.Namespace) -> MaskedChoice:
    if chosen.model:
        return MaskedChoice(chosen.model, multi_token="skip").eval().to(chosen.device)
    sizes = (2, 64, 2000) if chosen.quick else (6, 384, 30000)
    with tempfile.TemporaryDirectory() as folder:
        name = write_random_model(folder, *sizes)
        module = MaskedChoice(name, multi_token="skip", random_weights=True)
    return module.eval().to(chosen.device)


def _records(module: MaskedChoice, chosen: argparse.Namespace) -> list[Record]:
    """Return the items of all probes that this vocabulary can answer."""
    limit = 12 if chosen.quick else chosen.items
    records: list[Record] = []
    for name in RELEASED_PROBES if chosen.mirror else EMBEDDED_PROBES:
        records += load_probe(name, "dev", mirror=chosen.mirror).records[:limit]
    return [records[index] for index in module.encoder().encode(records).positions]


def _ours(
    module: MaskedChoice, records: Sequence[Record], max_tokens: int, forwards: list[float]
) -> Callable[[], Scores]:
    @torch.no_grad()
    def call() -> Scores:
        forward = 0.0
        encoded = module.encoder().encode(records)
        scores: Scores = [torch.empty(0)] * len(records)
        for batch in evaluation_batches(encoded.lengths, max_tokens):
            inputs = {k: v.to(module.device) for k, v in encoded.collate(batch).items()}
            start = clock()
            rows = module(inputs).cpu()
            forward += clock() - start
            for index, row in zip(batch, rows, strict=True):
                scores[index] = row[: len(records[index].choices)]
        forwards.append(forward)
        return scores

    return call


def _pipeline(module: MaskedChoice, records: Sequence[Record]) -> Callable[[], Scores]:
    tokenizer: Any = module.tokenizer
    fill: Any = FillMaskPipeline(model=module.model, tokenizer=tokenizer, device=module.device)
    texts, candidates = _texts(module, records), _ids(module, records)
    pieces = [module.tokenizer.convert_ids_to_tokens(ids.tolist()) for ids in candidates]

    def call() -> Scores:
        scores: Scores = []
        for text, targets, ids in zip(texts, pieces, candidates, strict=True):
            entries = fill(text, targets=targets, top_k=len(targets))
            by_id = {entry["token"]: entry["score"] for entry in entries}
            scores.append(torch.tensor([by_id[i] for i in ids.tolist()]).double().log())
        return scores

    return call


def _plain(module: MaskedChoice, records: Sequence[Record]) -> Callable[[], Scores]:
    texts, candidates = _texts(module, records), _ids(module, records)

    @torch.no_grad()
    def call() -> Scores:
        scores: Scores = []
        for start in range(0, len(texts), PEER_BATCH):
            span = slice(start, start + PEER_BATCH)
            batch = module.tokenizer(texts[span], return_tensors="pt", padding=True)
            batch = batch.to(module.device)
            logits = module.model(**batch).logits  # (B, L, V)
            mask_index = (batch["input_ids"] == module.tokenizer.mask_token_id).long().argmax(dim=1)
            rows = logits[torch.arange(len(mask_index)), mask_index].cpu()
            scores += [row[ids] for row, ids in zip(rows, candidates[span], strict=True)]
        return scores

    return call


def _minicons(module: MaskedChoice, records: Sequence[Record]) -> Callable[[], Scores] | None:
    try:
        from minicons.scorer import MaskedLMScorer
    except ImportError:
        return None
    scorer = MaskedLMScorer(module.model, device=str(module.device), tokenizer=module.tokenizer)
    texts = [record.stem.replace(MASK, BLANK) for record in records]
    candidates = _ids(module, records)

    def call() -> Scores:
        scores: Scores = []
        for start in range(0, len(texts), PEER_BATCH):
            span = slice(start, start + PEER_BATCH)
            rows = scorer.cloze_distribution([(text, BLANK) for text in texts[span]])
            scores += [row[ids] for row, ids in zip(rows, candidates[span], strict=True)]
        return scores

    return call


def _texts(module: MaskedChoice, records: Sequence[Record]) -> list[str]:
    return [Blank.of(record.stem, module.tokenizer.mask_token).text for record in records]


def _ids(module: MaskedChoice, records: Sequence[Record]) -> Scores:
    batch = module.encoder().encode(records).collate(range(len(records)))
    pairs = zip(batch["candidate_ids"], batch["choice_mask"], strict=True)
    return [ids[exists] for ids, exists in pairs]


def _gemm_speed(module: MaskedChoice, num_tokens: int) -> float:
    """Return the operations per second of products of the encoder's shapes.

    A layer has 4 products (tokens, H) x (H, H), and one each of x (H, 4H) and of (4H, H).
    """
    config: Any = module.head.encoder.config
    size, wide = config.hidden_size, getattr(config, "intermediate_size", 4 * config.hidden_size)
    shapes = [(size, size)] * 4 + [(size, wide), (wide, size)]
    inputs = {n: torch.randn(num_tokens, n, device=module.device) for n in {size, wide}}
    weights = [torch.randn(m, n, device=module.device) for n, m in shapes]
    start, rounds = clock(), 5
    for _ in range(rounds):
        for (n, _m), weight in zip(shapes, weights, strict=True):
            F.linear(inputs[n], weight)
    seconds = clock() - start
    products = sum(n * m for n, m in shapes)
    return float(rounds * 2 * num_tokens * products / seconds)


def num_operations(module: MaskedChoice, lengths: Sequence[int]) -> float:
    """Return our encoder's operations on sequences of these lengths; its last layer at the mask."""
    config: Any = module.head.encoder.config
    size, wide = config.hidden_size, getattr(config, "intermediate_size", 4 * config.hidden_size)
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    total = 0.0
    for tokens in lengths:
        per_token = 2 * (4 * size * size + 2 * size * wide) + 4 * tokens * size
        last = tokens * per_token
        if module.masked.reader.is_reduced:
            last = 2 * (4 * size * size + 2 * size * wide) + 4 * tokens * heads * size
        total += (layers - 1) * tokens * per_token + last
    return total


@torch.no_grad()
def _shares(
    module: MaskedChoice,
    records: Sequence[Record],
    seconds: Sequence[float],
    spans: dict[str, list[float]],
) -> dict[str, float]:
    operations = num_operations(module, module.encoder().encode(records).lengths.tolist())
    forward, gemm = spans["forward"][-len(seconds) :], spans["gemm"][-len(seconds) :]
    pairs = list(zip(forward, seconds, gemm, strict=True))
    return {
        "GEMM speed, GFLOP/s": median(gemm) / 1e9,
        "share of it, forward": median(operations / f / speed for f, _, speed in pairs),
        "share of it, with tokenising": median(operations / s / speed for _, s, speed in pairs),
    }


@contextmanager
def no_vocabulary_logits(vocab_size: int) -> Iterator[None]:
    """Fail where an operation makes scores of the whole vocabulary, for one place or many."""
    with _Watch(vocab_size):
        yield


class _Watch(TorchDispatchMode):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.vocab_size = vocab_size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        # The decoder's weight, seen the other way round, is no new tensor and not contiguous.
        is_new_tensor = isinstance(output, Tensor) and output.dim() and output.is_contiguous()
        if is_new_tensor and output.shape[-1] == self.vocab_size:
            raise RuntimeError(f"{func} made a tensor {tuple(output.shape)}")
        return output


if __name__ == "__main__":
    main()
