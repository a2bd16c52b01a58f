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

from probelight.builders.builder import Probe, tracked
from probelight.evaluation.scorers import predict
from probelight.io.errors import UsageError
from probelight.io.ranges import Distinct, NumItems, Seed, Within
from probelight.io.settings import Settings
from probelight.models.registry import ModelSettings
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


class FilteredProbe(NamedTuple):
    """What is left of a probe, by split, and the accuracy of choice-only models before and after.

    The scores are mean accuracies in cross-validation on all items and, trained anew, on those that
    are left; the summary is Markdown for the data card.
    """

    probe: Probe
    scores: tuple[Interval, Interval]
    summary: str


def filter_probe(
    probe: Probe, groups: Sequence[str], settings: FilterSettings, answer: Answer | None = None
) -> FilteredProbe:
    """Leave out what most models answer from the choices alone.

    `groups` has each item's group, split by split: whole groups go into one part. `answer` trains
    on the first records and returns the scores of the second by a seed; None trains a choice-only
    model.
    """
    answer = answer or choice_only_model(settings)
    records = [record for split_records in probe.values() for record in split_records]
    by_splits = settings.folds is None and len(probe) > 1
    if by_splits:
        folds = [fold for fold, split_records in enumerate(probe.values()) for _ in split_records]
    else:
        folds = fold_of_items(groups, settings.folds or 2)
    scores = cross_validated_scores(records, folds, settings, answer)
    scores_by_item = zip(*scores.values(), strict=True)
    is_kept = [seed_scores.count(1.0) < settings.agree for seed_scores in scores_by_item]
    kept_flags = iter(is_kept)
    kept_probe = {
        split: [record for record in split_records if next(kept_flags)]
        for split, split_records in probe.items()
    }
    if empty_splits := [split for split, split_records in kept_probe.items() if not split_records]:
        raise UsageError(
            f"the filter leaves nothing of {' and '.join(empty_splits)}; build more items, or "
            "require more models to agree (--filtering.agree)"
        )
    kept_records, kept_groups = list(compress(records, is_kept)), list(compress(groups, is_kept))
    kept_folds = list(compress(folds, is_kept))
    kept_scores = cross_validated_scores(kept_records, kept_folds, settings, answer)
    unfiltered = _mean_accuracy(scores, groups)
    accuracy = _mean_accuracy(kept_scores, kept_groups)
    other_folds = "splits" if by_splits else f"parts of {settings.folds or 2}"
    lines = [
        f"Filtered (`--filter true`): an item was left out if at least {settings.agree} of "
        f"{len(settings.seeds)} choice-only models, trained on the other {other_folds}, answered "
        "it correctly. Their accuracy is a mean over seeds, with a 95% interval by groups; for the "
        f"remaining items they were trained again. Chance is {chance_of(records):.1%}."
        + " After filtering they are clearly below chance: choices now point to wrong answers, so "
        "the probe was better without the filter." * (accuracy.high < chance_of(records)),
        "",
        "| | before | after |",
        "|---|---|---|",
        *(
            f"| {split} | {len(split_records):,} | {len(kept_probe[split]):,} |"
            for split, split_records in probe.items()
        ),
    ]
    intervals = (f"{s.value:.1%} ({s.low:.1%} to {s.high:.1%})" for s in (unfiltered, accuracy))
    lines.append(f"| choice-only | {' | '.join(intervals)} |")
    return FilteredProbe(kept_probe, (unfiltered, accuracy), "\n".join(lines))


def cross_validated_scores(
    records: Sequence[Record], folds: Sequence[int], settings: FilterSettings, answer: Answer
) -> ItemScores:
    """Return each item's scores by models that were trained on other parts than its own."""
    scores_by_seed: ItemScores = {seed: [0.0] * len(records) for seed in settings.seeds}
    plan = [(fold, seed) for fold in sorted(set(folds)) for seed in settings.seeds]
    for fold, seed in tracked(plan, "filtering"):
        held_out = [i for i, item_fold in enumerate(folds) if item_fold == fold]
        train = list(compress(records, (item_fold != fold for item_fold in folds)))
        sample = nested_sample(train, seed)[: settings.train_items]
        scores = answer(sample, [records[i] for i in held_out], seed)
        for index, score in zip(held_out, scores, strict=True):
            scores_by_seed[seed][index] = score
    return scores_by_seed


def fold_of_items(groups: Sequence[str], num_folds: int) -> list[int]:
    """Return the fold of each item: whole groups, by the hashes of their names, to the smallest."""
    sizes = Counter(groups)
    if len(sizes) < num_folds:
        raise UsageError(
            f"filtering.folds {num_folds}: the items have only {len(sizes)} groups, and each part "
            "needs one"
        )
    filled, fold_by_group = [0] * num_folds, dict[str, int]()
    for group in sorted(sizes, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        fold_by_group[group] = filled.index(min(filled))
        filled[fold_by_group[group]] += sizes[group]
    return [fold_by_group[group] for group in groups]


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

    def answer(train: Sequence[Record], held_out: Sequence[Record], seed: int) -> list[float]:
        with TemporaryDirectory() as folder:
            run = RunFolder(Path(folder), f"filter-{seed}", {})
            trained = fit_directly(run, Direct(model, settings.fit, seed), train, (), context)
        return predict(TrainedScorer(trained.module), {"part": held_out}, trainer)[
            "part"
        ].item_scores

    return answer


def _mean_accuracy(scores: ItemScores, groups: Sequence[str]) -> Interval:
    # Not above: --help needs neither numpy nor scipy.
    import numpy as np

    from probelight.metrics.intervals import Term, sum_interval

    return sum_interval(
        [Term(1.0, {seed: np.array(seed_scores) for seed, seed_scores in scores.items()})], groups
    )
