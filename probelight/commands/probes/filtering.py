"""Adversarial filtering of a built probe: items go that models answer without the question.

After Zellers et al. (2018), in one round of cross-validation: each split is answered by choice-only
models that were trained on the others, as right answers come again within a split. Training has one
thread of the CPU, so that machines that compute alike keep the same items.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

from probelight.builders.builder import Probe
from probelight.builders.progress import tracked
from probelight.evaluation.predictions import predict
from probelight.io.errors import UsageError
from probelight.io.ranges import Distinct, NumItems, Seed, Settings, Within
from probelight.models.settings import ModelSettings
from probelight.probes.record import Record, chance_of
from probelight.probes.splits import nested_sample
from probelight.training.settings import FitSettings

if TYPE_CHECKING:
    from probelight.metrics.intervals import Interval

ItemScores = dict[int, list[float]]  # by seed, what each item counts
Answer = Callable[[Sequence[Record], Sequence[Record], int], list[float]]


@dataclass(frozen=True)
class FilterSettings(Settings):
    """How to find items that can be answered without their question.

    Args:
        folds: Number of parts, in whole groups, to divide the items into. By default the splits are
            the parts, or there are 2 if there is only one split.
        seeds: Seeds; one model is trained per seed.
        agree: Leave out an item if at least this many models get it right.
        train_items: Train each model on at most this many items.
        fit: How the models are trained.
        vectors: Their word vectors: "embedded", or a file in GloVe's text format.
    """

    folds: Annotated[int, Within(2, 100)] | None = None
    seeds: Annotated[list[Seed], Distinct(1)] = field(default_factory=lambda: [0, 1, 2])
    agree: Annotated[int, Within(1, 100)] = 2
    train_items: NumItems = 2000
    fit: FitSettings = field(
        default_factory=lambda: FitSettings(
            learning_rate=1e-3, epochs=4, batch_size=32, weight_decay=0.0, max_grad_norm=10.0
        )
    )
    vectors: str = "embedded"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit.patience is not None:
            raise UsageError("filtering.fit.patience: no items are held out for early stopping")
        if self.agree > len(self.seeds):
            raise UsageError(
                f"filtering.agree {self.agree} is more than the {len(self.seeds)} models of "
                "filtering.seeds"
            )


DEFAULT_FILTER = FilterSettings()


class Filtered(NamedTuple):
    """What is left of a probe, by split, and the accuracy of choice-only models before and after.

    The scores are mean accuracies in cross-validation on all items and, trained anew, on those that
    are left; the summary is Markdown for the data card.
    """

    probe: Probe
    scores: tuple[Interval, Interval]
    summary: str


def filtered(
    probe: Probe, groups: Sequence[str], settings: FilterSettings, answer: Answer | None = None
) -> Filtered:
    """Leave out what most models answer from the choices alone.

    `groups` has each item's group, split by split: whole groups go into one part. `answer` trains
    on the first records and returns the scores of the second by a seed; None trains a choice-only
    model.
    """
    answer = answer or choice_only_model(settings)
    records = [record for of_split in probe.values() for record in of_split]
    by_splits = settings.folds is None and len(probe) > 1
    if by_splits:
        part = [place for place, of_split in enumerate(probe.values()) for _ in of_split]
    else:
        part = parts_of(groups, settings.folds or 2)
    scores = cross_validated(records, part, settings, answer)
    right = [sum(of_seed[i] == 1.0 for of_seed in scores.values()) for i in range(len(records))]
    stays = [number < settings.agree for number in right]
    places = iter(stays)
    kept = {
        split: [record for record in of_split if next(places)] for split, of_split in probe.items()
    }
    if lost := [split for split, of_split in kept.items() if not of_split]:
        raise UsageError(
            f"the filter leaves nothing of {' and '.join(lost)}; build more items, or require more "
            "models to agree (--filtering.agree)"
        )
    left, theirs = list(compress(records, stays)), list(compress(groups, stays))
    again = cross_validated(left, list(compress(part, stays)), settings, answer)
    before, after = _mean_accuracy(scores, groups), _mean_accuracy(again, theirs)
    others = "splits" if by_splits else f"parts of {settings.folds or 2}"
    lines = [
        f"Filtered (`--filter true`): an item was left out if at least {settings.agree} of "
        f"{len(settings.seeds)} choice-only models, trained on the other {others}, answered it "
        "correctly. Their accuracy is a mean over seeds, with a 95% interval by groups; for the "
        f"remaining items they were trained again. Chance is {chance_of(records):.1%}."
        + " After filtering they are clearly below chance: choices now point to wrong answers, so "
        "the probe was better without the filter." * (after.high < chance_of(records)),
        "",
        "| | before | after |",
        "|---|---|---|",
        *(
            f"| {split} | {len(of_split):,} | {len(kept[split]):,} |"
            for split, of_split in probe.items()
        ),
    ]
    shown = (f"{s.value:.1%} ({s.low:.1%} to {s.high:.1%})" for s in (before, after))
    lines.append(f"| choice-only | {' | '.join(shown)} |")
    return Filtered(kept, (before, after), "\n".join(lines))


def cross_validated(
    records: Sequence[Record], part: Sequence[int], settings: FilterSettings, answer: Answer
) -> ItemScores:
    """Return each item's scores by models that were trained on other parts than its own."""
    found: ItemScores = {seed: [0.0] * len(records) for seed in settings.seeds}
    plan = [(fold, seed) for fold in sorted(set(part)) for seed in settings.seeds]
    for fold, seed in tracked(plan, "filtering"):
        held_out = [i for i, other in enumerate(part) if other == fold]
        others = [record for record, other in zip(records, part, strict=True) if other != fold]
        sample = nested_sample(others, seed)[: settings.train_items]
        scores = answer(sample, [records[i] for i in held_out], seed)
        for place, value in zip(held_out, scores, strict=True):
            found[seed][place] = value
    return found


def parts_of(groups: Sequence[str], num_parts: int) -> list[int]:
    """Return the part of each item: whole groups, by the hashes of their names, to the smallest."""
    sizes = Counter(groups)
    if len(sizes) < num_parts:
        raise UsageError(
            f"filtering.folds {num_parts}: the items have only {len(sizes)} groups, and each part "
            "needs one"
        )
    filled, part = [0] * num_parts, dict[str, int]()
    for group in sorted(sizes, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        part[group] = filled.index(min(filled))
        filled[part[group]] += sizes[group]
    return [part[group] for group in groups]


def choice_only_model(settings: FilterSettings) -> Answer:
    """Return a function that trains and applies a choice-only model, on one thread of the CPU."""
    # Only now: building a probe without a filter needs no torch.
    from probelight.models.scorer import TrainedScorer
    from probelight.results.run_folder import RunFolder
    from probelight.runs.context import RunContext
    from probelight.runs.settings import TrainerSettings
    from probelight.training.direct import Direct, fit_directly

    trainer = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False)
    context = RunContext(trainer)
    model = ModelSettings(kind="choice_only", vectors=settings.vectors)

    def answer(train: Sequence[Record], asked: Sequence[Record], seed: int) -> list[float]:
        with TemporaryDirectory() as folder:
            run = RunFolder(Path(folder), f"filter-{seed}", {})
            trained = fit_directly(run, Direct(model, settings.fit, seed), train, (), context)
        return predict(TrainedScorer(trained.module), {"part": asked}, trainer)["part"].item_scores

    return answer


def _mean_accuracy(scores: ItemScores, groups: Sequence[str]) -> Interval:
    # Not above: --help needs neither numpy nor scipy.
    import numpy as np

    from probelight.metrics.intervals import Term, sum_interval

    return sum_interval(
        [Term(1.0, {seed: np.array(of_seed) for seed, of_seed in scores.items()})], groups
    )
