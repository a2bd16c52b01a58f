"""Scoring by a real decoder, compared with lm-evaluation-harness and minicons.

    python -m benchmarks.real_models [--model smollm2] [--mirror FOLDER] [--items 60]

All peers read the same prompts with the same weights, in float32, and return the log-probability of
each choice; tokenising is part of every time. Cases (`--cases`):

- `words`: a question and each of its answers.
- `letters`: a question that lists its answers, and their letters.
- `few_shot`: five answered questions before each, the same wherever they may be.
- `pairs`: whole sentences, a right one and a wrong one (the shipped `agreement`).
- `calls`: `probelight.zero_shot` with the model in memory, from its checks to its tables, in place
  of a peer, on as many questions.

The questions are those of `--probe`: the shipped `capitals`, or a released set of `--mirror`. Peers
run every choice with its prompt, in batches of `--peer-batches`. Beside the times stand the tokens
that went through the model, padding included, and the fewest that must: each beginning of a text
once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.arguments import Arguments
from benchmarks.interleaved import interleave, ratios
from benchmarks.results import report
from probelight.api.calls import zero_shot
from probelight.api.score import load_model
from probelight.evaluation.sets import drawn_data
from probelight.io.package import shipped_path
from probelight.models.answering import answer
from probelight.models.causal import CausalScorer, load
from probelight.probes.prompts import Prompts, PromptSettings, Templates
from probelight.probes.record import MASK, Record
from probelight.probes.source import load_probe

OURS = "ours"
Sums = list[list[float]]  # K of an item
NUM_SHOTS = 5


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=5)
    parser.add_argument("--model", default="smollm2", help="a config or folder of a causal model")
    parser.add_argument("--probe", default="capitals", help="a set of questions with a train split")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--mirror", help="the released files")
    parser.add_argument("--items", type=int, default=60, help="only the first so many")
    parser.add_argument("--cases", default="words,letters,few_shot,pairs,calls")
    parser.add_argument("--peer-batches", default="8,32", help="texts in a batch of a peer")
    chosen = parser.chosen()
    scorer = scorer_of(chosen.model)
    for case in chosen.cases.split(","):
        (measure_calls if case == "calls" else measure)(case, scorer, chosen)


def scorer_of(name: str) -> CausalScorer:
    """Return the scorer of a real model, which sums over tokens."""
    return load(load_model(name).settings, "mc_mlm")


def records_of(case: str, chosen: argparse.Namespace) -> list[Record]:
    """Return the prompts of a case, and their choices."""
    if case == "pairs":
        return [*load_probe("agreement", "dev", pairs=True).records[: chosen.items]]
    data = load_probe(chosen.probe, chosen.split, mirror=chosen.mirror)
    records = data.records[: chosen.items]
    if case == "words":
        return [*records]
    templates = Templates.read(shipped_path(PromptSettings().file))
    prompts = Prompts(templates, data.config.setup, data.config.group_by)
    if case == "letters":
        return [prompts.letters(record, tuple(range(len(record.choices)))) for record in records]
    train = load_probe(chosen.probe, "train", mirror=chosen.mirror).records
    few_shot = Prompts(
        templates, data.config.setup, data.config.group_by, train=train, num_shots=NUM_SHOTS
    )
    return [few_shot.words(record) for record in records]


def measure(case: str, scorer: CausalScorer, chosen: argparse.Namespace) -> dict[str, float]:
    """Return seconds of each, ratios, tokens and the largest difference.

    Raises:
        RuntimeError: If a peer's log-likelihoods differ.
    """
    records = records_of(case, chosen)
    peers: dict[str, Callable[[], Sums]] = {OURS: lambda: ours(scorer, records)}
    for size in map(int, chosen.peer_batches.split(",")):
        if find_spec("lm_eval"):
            peers[f"lm-evaluation-harness, batches of {size}"] = harness(scorer, records, size)
        if case == "pairs" and find_spec("minicons"):
            peers[f"minicons, batches of {size}"] = minicons(scorer, records, size)
    if len(peers) == 1:
        print("no peer is installed: pip install lm-eval minicons, or the extra `benchmarks`")
    tokens = {}
    for name, peer in peers.items():
        with counted_tokens(scorer.model) as num_tokens:
            peer()
        tokens[name] = sum(num_tokens)
    seconds, answers = interleave(peers, chosen.rounds)
    figures = {f"seconds, {name}": median(times) for name, times in seconds.items()}
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    figures |= {f"tokens, {name}": number for name, number in tokens.items()}
    figures["tokens, fewest"] = fewest_tokens(scorer, records)
    for name in peers.keys() - {OURS}:
        figures[f"largest difference, {name}"] = difference(answers[OURS], answers[name])
    report(f"{chosen.model}, {case}, {len(records)} items", figures, chosen)
    return figures


def measure_calls(case: str, scorer: CausalScorer, chosen: argparse.Namespace) -> dict[str, float]:
    """Return seconds of scoring alone and of whole calls, and how often these take as long."""
    data = load_probe(chosen.probe, chosen.split, mirror=chosen.mirror)
    records = drawn_data(data, chosen.items).records
    call = partial(
        zero_shot,
        (scorer.model, scorer.tokenizer),
        [f"{chosen.probe}:{chosen.split}"],
        mirror=chosen.mirror,
        limit=chosen.items,
    )
    seconds, _ = interleave({OURS: lambda: ours(scorer, records), "call": call}, chosen.rounds)
    figures = {f"seconds, {name}": median(times) for name, times in seconds.items()}
    figures[f"call / {OURS}"] = ratios(seconds, OURS)["call"]
    report(f"{chosen.model}, {case}, {len(records)} items", figures, chosen)
    return figures


def ours(scorer: CausalScorer, records: Sequence[Record]) -> Sums:
    """Return log-likelihoods as every command computes them."""
    scores = answer(scorer, {"items": records}, scorer.log_likelihoods())["items"].scores
    return [scores[item] for item in range(len(records))]


def texts_of(record: Record) -> list[tuple[str, str]]:
    """Return what is given and what is scored, for each choice of an item."""
    context = record.stem.replace(MASK, "").rstrip()
    return [(context, f" {c.strip()}" if context else c.strip()) for c in record.choices]


def harness(scorer: CausalScorer, records: Sequence[Record], size: int) -> Callable[[], Sums]:
    """Return a call of lm-evaluation-harness with a request per choice."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=scorer.model, tokenizer=scorer.tokenizer, batch_size=size)
    requests = [
        Instance("loglikelihood", {}, pair, number)
        for record in records
        for number, pair in enumerate(texts_of(record))
    ]

    def call() -> Sums:
        answers = iter(model.loglikelihood(requests, disable_tqdm=True))
        return [[next(answers)[0] for _ in record.choices] for record in records]

    return call


def minicons(scorer: CausalScorer, records: Sequence[Record], size: int) -> Callable[[], Sums]:
    """Return a call of minicons with whole sentences."""
    from minicons.scorer import IncrementalLMScorer

    peer = IncrementalLMScorer(scorer.model, device="cpu", tokenizer=scorer.tokenizer)
    sentences = [choice for record in records for choice in record.choices]

    def call() -> Sums:
        sums: list[float] = []
        for start in range(0, len(sentences), size):
            batch = sentences[start : start + size]
            sums += peer.sequence_score(
                batch, reduction=lambda logs: logs.sum().item(), bos_token=True
            )
        remaining = iter(sums)
        return [[next(remaining) for _ in record.choices] for record in records]

    return call


@contextmanager
def counted_tokens(model: Any) -> Any:
    """Yield a list that gets the number of tokens, padding included, of each call of a model."""
    numbers: list[int] = []
    words = model.get_input_embeddings()
    hook = words.register_forward_pre_hook(lambda _, inputs: numbers.append(inputs[0].numel()))
    try:
        yield numbers
    finally:
        hook.remove()


def fewest_tokens(scorer: CausalScorer, records: Sequence[Record]) -> int:
    """Return how many tokens must be read if no beginning of a text is read twice."""
    read = set()
    for text in scorer.likelihood_encoder().encode(records).texts:
        ids = text.ids.tolist()  # of these the last is only predicted
        read |= {tuple(ids[:size]) for size in range(1, len(ids))}
    return len(read)


def difference(ours: Sums, theirs: Sums) -> float:
    """Return the largest difference of two log-likelihoods, in nats.

    Raises:
        RuntimeError: If it is over 1e-3.
    """
    pairs = zip(ours, theirs, strict=True)
    largest = max(abs(a - b) for x, y in pairs for a, b in zip(x, y, strict=True))
    if largest > 1e-3:
        raise RuntimeError(f"a peer's log-likelihoods differ by {largest:.2g}")
    return largest


if __name__ == "__main__":
    main()
