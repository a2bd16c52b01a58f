"""The learning curve of one probe compared with the loops that one would write first.

    python -m benchmarks.learning_curve [--threads 2] [--quick]

Age comparison with an encoder of random weights: 7 sizes x 6 seeds x 3 controls x 2 modes, batches
of 16, 4 epochs. Ours encodes every text once and runs the whole grid. The peers:

(a) the naive loop: each step encodes its 16 texts again, computes the logits of the whole
    vocabulary and trains the whole decoder with fused AdamW under the masked softmax. Whole runs of
    the smallest size are measured; the time of the grid is EXTRAPOLATED from their steps.
(b) one run after the other on the cached vectors, with the candidates' rows alone. One run of each
    size is measured, and EXTRAPOLATED to the runs of that size; only training and scoring count.

Measured runs are scored on the evaluation rows and must agree with ours.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.arguments import Arguments
from benchmarks.interleaved import clock as now
from benchmarks.random_model import write_random_model
from benchmarks.results import report
from probelight.builders.olmpics.comparisons import AgeSettings, build_ages
from probelight.commands.curve.heads import pose, run_through
from probelight.io.ranges import HeadMode
from probelight.lightning_modules.base import adamw_groups, slanted_triangular
from probelight.lightning_modules.heads.head_training import HeadPlan, sample_orders, train_stack
from probelight.lightning_modules.heads.stacked_heads import CachedItems, HeadRows, StackedHeads
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.models.candidate_head import CandidateHead
from probelight.models.networks import run_encoder
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import draw_substitutes, no_language, perturbed_language
from probelight.probes.record import Record
from probelight.runs.settings import TrainerSettings

MODES: tuple[HeadMode, ...] = ("mlp", "linear")
RATES = {"mlp": 1e-3, "linear": 3e-3}


@dataclass(frozen=True)
class Grid:
    """Sizes of the grid and of its model."""

    sizes: Sequence[int] = (62, 125, 250, 500, 1000, 2000, 4000)
    num_seeds: int = 6
    num_train: int = 4000
    num_evaluation: int = 500
    num_layers: int = 6
    hidden_size: int = 384
    vocab_size: int = 30000
    naive_rounds: int = 3
    dtype: torch.dtype = torch.float32

    def num_steps(self, size: int) -> int:
        """Return the steps of one run."""
        plan = HeadPlan(0.0)
        return plan.epochs * -(-size // plan.batch_size)


# Double precision: what is the same mathematics then also gives the same numbers.
QUICK = Grid((20, 40), 2, 60, 20, 1, 32, 3000, 1, torch.float64)


@dataclass
class Clock:
    """Seconds of each part; of our grid, and measured and extrapolated ones of the peers."""

    num_texts: int = 0  # distinct ones, each of which is encoded once
    encoding: float = 0.0
    rest: float = 0.0  # tokens, orders of the items, and the start of the heads
    heads: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODES, 0.0))
    one_by_one: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODES, 0.0))
    naive_steps: dict[str, list[float]] = field(default_factory=lambda: {m: [] for m in MODES})
    naive_scoring: list[float] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    agreeing: list[bool] = field(default_factory=list)


class Probe:
    """The records under each control, their cached vectors, and the module."""

    def __init__(self, module: MaskedChoice, grid: Grid, max_tokens: int, clock: Clock) -> None:
        self.module, self.grid = module, grid
        self.records = _records(grid)
        sets = [*chain.from_iterable(self.records)]
        settings, features = TrainerSettings(max_eval_tokens=max_tokens), dict[str, Tensor]()
        start = now()
        tokens = [pose(module, records) for records in sets]
        encoding_start = now()
        cached = [
            run_through(module, *posed_set, settings, features)
            for posed_set in zip(tokens, sets, strict=True)
        ]
        encoded = now()
        words = torch.cat([items.candidates for items in cached])
        self.head = HeadRows.of(module.head, vocabulary := torch.unique(words))
        placed = [  # with the candidates as rows of this head
            replace(c, candidates=torch.searchsorted(vocabulary, c.candidates)) for c in cached
        ]
        clock.encoding, clock.rest = (
            encoded - encoding_start,
            encoding_start - start + now() - encoded,
        )
        clock.num_texts = len(features)
        self.cached, self.placed = (  # pairs of train and evaluation rows
            [*zip(items[::2], items[1::2], strict=True)] for items in (cached, placed)
        )

    def order(self, size: int, seed: int) -> np.ndarray:
        """Return item indices (epochs, size) of one run."""
        return sample_orders(self.grid.num_train, size, HeadPlan(0.0).epochs, seed)


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, quick="a tiny grid")
    parser.add_argument("--max-tokens", type=int, default=1024, help="in a batch that is encoded")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return seconds and ratios.

    Raises:
        RuntimeError: If a measured run of a peer disagrees with ours.
    """
    grid, clock = QUICK if chosen.quick else Grid(), Clock()
    with tempfile.TemporaryDirectory() as folder:
        name = write_random_model(folder, grid.num_layers, grid.hidden_size, grid.vocab_size)
        module = MaskedChoice(name, mode="mlp", random_weights=True)
    module = module.to(device=chosen.device, dtype=grid.dtype)
    module.eval()
    _warm_up(module)
    probe = Probe(module, grid, chosen.max_tokens, clock)
    naive_at = {
        grid.sizes[round(i)] for i in np.linspace(0, len(grid.sizes) - 1, grid.naive_rounds)
    }
    for size in grid.sizes:  # in turns, so that what slows the machine slows all of them
        for mode in MODES:
            if size in naive_at:
                _time_naive(probe, mode, clock)
            _time_point(probe, mode, size, clock)
    if not all(clock.agreeing):
        raise RuntimeError(f"a peer's predictions differ: scores by {max(clock.differences):.2g}")
    figures = _figures(grid, clock)
    report("learning curve: " + ("a tiny grid" if chosen.quick else "252 runs"), figures, chosen)
    return figures


def _time_point(probe: Probe, mode: HeadMode, size: int, clock: Clock) -> None:
    """Time one point of the grid by us, and one run of it by peer (b)."""
    seeds = range(1, probe.grid.num_seeds + 1)
    cells = [(pair, seed) for pair in probe.placed for seed in seeds]
    plan = HeadPlan(RATES[mode])
    start = now()
    heads = StackedHeads([probe.head] * len(cells), mode)
    orders = np.stack([probe.order(size, seed) for _, seed in cells])
    clock.rest += now() - start
    start = now()
    train_stack(heads, [train for (train, _), _ in cells], orders, plan)
    scores = heads.scores([evaluation for (_, evaluation), _ in cells])
    clock.heads[mode] += now() - start
    start = now()
    alone = _one_run(probe.module.head, *probe.cached[0], orders[0], plan, mode)
    clock.one_by_one[mode] += (now() - start) * len(cells)
    _compare(scores[0], alone, clock)


def _one_run(
    head: CandidateHead,
    train: CachedItems,
    evaluation: CachedItems,
    order: np.ndarray,
    plan: HeadPlan,
    mode: HeadMode,
) -> Tensor:
    """Return scores (M, K) of one run by peer (b), with the rows of its two candidates."""
    device = head.weight.device
    words = train.candidates[0].sort().values.to(device)
    steps: list[Any] = [copy.deepcopy(step) for step in head.transform_steps()]
    decoder = nn.Linear(head.weight.shape[1], len(words), device=device, dtype=head.weight.dtype)
    assert head.bias is not None
    decoder.weight.data.copy_(head.weight.data[words])
    decoder.bias.data.copy_(head.bias.data[words])
    model = nn.Sequential(*steps, decoder).train(False)
    model.requires_grad_(mode == "mlp")
    decoder.requires_grad_(True)
    groups = adamw_groups(model, plan.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98), fused=True)
    scheduler = _scheduler(optimizer, order, plan)
    features, gold = (
        train.features.to(device),
        train.candidates.gather(1, train.labels[:, None])[:, 0],
    )
    gold = torch.searchsorted(words, gold.to(device))
    for chosen in _batches(order, plan):
        loss = F.cross_entropy(model(features[chosen]), gold[chosen])
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    with torch.no_grad():
        rows = torch.searchsorted(words, evaluation.candidates.to(device))
        scores: Tensor = model(evaluation.features.to(device)).gather(1, rows).cpu()
    return scores


def _time_naive(probe: Probe, mode: HeadMode, clock: Clock) -> None:
    """Time a whole run of the smallest size by peer (a), and compare its scores."""
    size, plan = probe.grid.sizes[0], HeadPlan(RATES[mode])
    train, evaluation = probe.records[0]
    order = probe.order(size, 1)
    module = copy.deepcopy(probe.module)
    for parameter in module.head.transform_parameters():
        parameter.requires_grad_(mode == "mlp")
    encoder = module.encoder()
    encoded, measured = encoder.encode(train), encoder.encode(evaluation)
    groups = adamw_groups(module.model, plan.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98), fused=True)
    scheduler = _scheduler(optimizer, order, plan)
    for chosen in _batches(order, plan):
        start = now()
        batch = {k: v.to(module.device) for k, v in encoded.collate(chosen.tolist()).items()}
        loss = F.cross_entropy(*_masked(_naive_logits(module, batch), batch))
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        clock.naive_steps[mode].append(now() - start)
    start = now()
    scores = []
    with torch.no_grad():
        for first in range(0, len(measured), 16):
            items = range(first, min(first + 16, len(measured)))
            batch = {k: v.to(module.device) for k, v in measured.collate(items).items()}
            scores.append(_naive_logits(module, batch).gather(1, batch["candidate_ids"]).cpu())
    clock.naive_scoring.append(now() - start)
    heads = StackedHeads([probe.head], mode)
    train_stack(heads, [probe.placed[0][0]], order[None], plan)
    _compare(heads.scores([probe.placed[0][1]])[0], torch.cat(scores), clock)


def _naive_logits(module: MaskedChoice, batch: dict[str, Tensor]) -> Tensor:
    """Return logits (B, V): the frozen encoder's output at the mask through the whole head."""
    with torch.no_grad():
        hidden = run_encoder(module.head.encoder, batch).last_hidden_state
    rows = torch.arange(len(hidden), device=hidden.device)
    return module.head.full_logits(hidden[rows, batch["mask_position"]])


def _masked(logits: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    mask = torch.full_like(logits, float("-inf"))
    mask.scatter_(1, batch["candidate_ids"], 0.0)
    gold = batch["candidate_ids"].gather(1, batch["labels"][:, None])[:, 0]
    return logits + mask, gold


def _scheduler(
    optimizer: torch.optim.Optimizer, order: np.ndarray, plan: HeadPlan
) -> torch.optim.lr_scheduler.LambdaLR:
    factor = slanted_triangular(sum(1 for _ in _batches(order, plan)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _batches(order: np.ndarray, plan: HeadPlan) -> list[Tensor]:
    return [batch for epoch in torch.from_numpy(order) for batch in epoch.split(plan.batch_size)]


def _compare(ours: Tensor, theirs: Tensor, clock: Clock) -> None:
    """Note the largest difference; only beyond rounding does a prediction count as another one."""
    difference = float((ours - theirs).abs().max())
    clock.differences.append(difference)
    differs = ours.argmax(dim=1) != theirs.argmax(dim=1)
    top = theirs.topk(2, dim=1).values
    clock.agreeing.append(not bool((differs & (top[:, 0] - top[:, 1] > 1e-3)).any()))


def _records(grid: Grid) -> list[tuple[list[Record], list[Record]]]:
    """Return train and evaluation rows under standard, no_language and perturbed_language."""
    config = load_probe_config("age_small")
    built = build_ages(
        AgeSettings(num_train=grid.num_train, num_dev=grid.num_evaluation, wording="paper")
    )
    standard = (built["train"], built["dev"])
    substitutes = draw_substitutes(config, 0)
    changes: list[Callable[[Record], Record]] = [
        lambda record: record,
        lambda record: no_language(record, config, config.nonsense),
        lambda record: perturbed_language(record, config, substitutes),
    ]
    return [tuple([change(r) for r in split] for split in standard) for change in changes]  # type: ignore[misc]


def _warm_up(module: MaskedChoice) -> None:
    records = _records(QUICK)[0][1]
    run_through(module, pose(module, records), records, TrainerSettings(max_eval_tokens=512), {})


def _figures(grid: Grid, clock: Clock) -> dict[str, float]:
    runs = 3 * grid.num_seeds
    steps = runs * sum(grid.num_steps(size) for size in grid.sizes)  # of one mode
    ours = clock.encoding + sum(clock.heads.values()) + clock.rest
    scoring = median(clock.naive_scoring)
    naive = sum(
        steps * median(clock.naive_steps[mode]) + runs * len(grid.sizes) * scoring for mode in MODES
    )
    figures: dict[str, float] = {
        "runs": runs * len(grid.sizes) * len(MODES),
        "steps": steps * len(MODES),
        "texts encoded": clock.num_texts,
        "ours, s": ours,
    }
    split = {"encoding": clock.encoding, **{f"{m} heads": clock.heads[m] for m in MODES}}
    for name, seconds in {**split, "the rest": clock.rest}.items():
        figures |= {f"ours, {name}, s": seconds, f"ours, {name}, share": seconds / ours}
    for mode in MODES:
        figures[f"(a) naive, {mode}, ms a step"] = 1000 * median(clock.naive_steps[mode])
    figures["(a) naive, whole grid, s, extrapolated"] = naive
    figures["(a) / ours"] = naive / ours
    for mode in MODES:
        figures[f"(b) one by one, {mode} heads, s, extrapolated"] = clock.one_by_one[mode]
        figures[f"(b) / ours, {mode} heads"] = clock.one_by_one[mode] / clock.heads[mode]
    figures["largest difference of a score"] = max(clock.differences)
    return figures


if __name__ == "__main__":
    main()
