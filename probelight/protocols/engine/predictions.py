"""A model's predictions on sets of records, and the rows and notices that are made of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from probelight.io.package import cache_folder
from probelight.io.process import STOP
from probelight.metrics.choices import NEAR, best_of_each, is_near_tie, item_score
from probelight.metrics.intervals import accuracy_interval, num_groups, wilson
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record, chance_of, share_choices
from probelight.protocols.jobs.job import TrainerSettings
from probelight.results.predictions import ItemLine, prediction_lines
from probelight.results.row import Row, Subset

if TYPE_CHECKING:
    import torch

    from probelight.models.answering import ItemScores
    from probelight.models.scorer import Question, Scorer


@dataclass(frozen=True)
class Predictions:
    """A model's predictions on one set."""

    name: str
    records: Sequence[Record]
    scores: Sequence[Sequence[float]]  # for each record a score per choice
    notices: tuple[str, ...] = ()  # what was skipped or cut

    @cached_property
    def best(self) -> list[tuple[int, ...]]:
        """Indices of each record's best choices, several on a tie; none where a score is NaN."""
        return best_of_each(self.scores)

    @property
    def chosen(self) -> list[int | None]:
        """Index of the best choice of each record, the first one on a tie."""
        return [best[0] if best else None for best in self.best]

    @cached_property
    def item_scores(self) -> list[float]:
        """The score of each item: 1 if its gold choice is the best one, 1/n if one of n best."""
        pairs = zip(self.best, self.records, strict=True)
        return [item_score(best, record.answer) for best, record in pairs]

    @property
    def accuracy(self) -> float:
        """Mean score of the items."""
        return math.fsum(self.item_scores) / len(self.item_scores) if self.item_scores else math.nan

    @property
    def chance(self) -> float:
        """Accuracy of guessing evenly among all choices scored, empty ones that pad included."""
        return fmean(1 / len(scores) for scores in self.scores)

    @property
    def floor(self) -> float:
        """Accuracy of guessing evenly among the real choices: what accuracies are compared with."""
        return chance_of(self.records)

    @property
    def num_near_tied(self) -> int:
        """Number of records whose best two scores differ by next to nothing."""
        return sum(map(is_near_tie, self.scores))

    def lines(self, groups: Sequence[Hashable] | None = None) -> list[ItemLine]:
        """Return the lines of predictions.jsonl; `groups` (N,) hold each item's group."""
        return prediction_lines(self.name, self.records, self.scores, groups)


def predict(
    scorer: Scorer, sets: Mapping[str, Sequence[Record]], settings: TrainerSettings
) -> dict[str, Predictions]:
    """Score every record of every set; the same for any batch size and number of processes."""
    return ask(scorer, scorer.choice_scores(), sets, settings)


def ask(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
) -> dict[str, Predictions]:
    """Score every record of every set by a question that gives one number per choice.

    Records that the question cannot take get the log-likelihoods of their choices instead, if they
    are to be scored by their pieces.
    """
    found = {}
    for name, answered in _answers(scorer, question, sets, settings).items():
        records, scores, notices = sets[name], answered.scores, answered.notices
        if answered.needs_pll:
            pieces = {"pieces": [records[i] for i in answered.needs_pll]}
            by_pieces = ask(scorer, scorer.log_likelihoods(), pieces, settings)["pieces"]
            rows = zip(answered.needs_pll, by_pieces.scores, strict=True)
            scores = {**scores, **{i: list(row) for i, row in rows}}
            notices += by_pieces.notices
        kept = sorted(scores)
        found[name] = Predictions(
            name, [records[i] for i in kept], [scores[i] for i in kept], notices
        )
    return found


def ask_about(
    scorer: Scorer, question: Question, records: Sequence[Record], settings: TrainerSettings
) -> tuple[dict[int, list[float]], tuple[str, ...]]:
    """Return a question's numbers for each record, by its index, and the notices.

    Unlike those of `ask` they need not be one per choice.
    """
    contexts = {"contexts": records}
    found = _answers(scorer, question, contexts, settings, per_choice=False)["contexts"]
    return found.scores, found.notices


def _answers(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
    *,
    per_choice: bool = True,
) -> dict[str, ItemScores]:
    import torch

    from probelight.models.answering import answer, float32_products

    if settings.strategy.startswith("fsdp"):
        # Without an optimiser the model fits on a device. FSDP would leave a part of it behind.
        settings = replace(settings, strategy="auto")
    device = single_device(settings)
    if device is None:
        return _answers_of_processes(scorer, question, sets, settings, per_choice)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if scorer.kept is not None:  # for the next job
        scorer.network.to(device)
    precisions = settings.precision, settings.matmul_precision
    with STOP.during_command(), float32_products(device, *precisions):
        return answer(
            scorer,
            sets,
            question,
            per_choice=per_choice,
            device=None if scorer.kept is not None else device,
            precision=settings.precision,
            max_tokens=settings.max_eval_tokens,
            num_workers=settings.num_workers,
            cache_dir=cache_folder(),
            progress=settings.progress_bar,
        )


def single_device(settings: TrainerSettings) -> torch.device | None:
    """Return the device on which this process answers alone; None where Lightning is needed.

    Lightning is for several processes, for other strategies and precisions, and to refuse what this
    machine does not have.
    """
    import torch

    from probelight.models.answering import PRECISIONS

    is_plain = settings.devices == 1 and settings.strategy == "auto"
    if not is_plain or settings.precision not in PRECISIONS:
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None
    if settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available():
        return torch.device("cuda", 0)
    if settings.accelerator in {"auto", "gpu", "mps"} and torch.backends.mps.is_available():
        return torch.device("mps", 0) if PRECISIONS[settings.precision] is None else None
    return torch.device("cpu") if settings.accelerator in {"auto", "cpu"} else None


def _answers_of_processes(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
    per_choice: bool,
) -> dict[str, ItemScores]:
    """Answer by Lightning's predict loop; every process gets the scores of all."""
    from probelight.callbacks.last_state import stoppable
    from probelight.datamodules.choices import ChoiceDataModule
    from probelight.lightning_modules.scoring import ScorerModule
    from probelight.models.answering import ItemScores, float32_products, gather_scores
    from probelight.protocols.engine.training import make_trainer

    data = ChoiceDataModule(
        train=None,
        evaluation=dict(sets),
        max_eval_tokens=settings.max_eval_tokens,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
    )
    trainer = make_trainer(settings, logger=False, enable_checkpointing=False)
    module = ScorerModule(scorer, question, per_choice)
    precisions = settings.precision, settings.matmul_precision
    with stoppable(), float32_products(trainer.strategy.root_device, *precisions):
        trainer.predict(module, datamodule=data)
    found = {}
    for place, name in enumerate(sets):
        scores = gather_scores(module.answers[place].by_item())
        encoded = data.evaluation_sets[name]
        found[name] = ItemScores(scores, encoded.notices, tuple(encoded.needs_pll))
    return found


def score_notices(*sets: Predictions) -> list[str]:
    """Return notices of ties and of scores that are not numbers, for all sets together."""
    best = [choices for predictions in sets for choices in predictions.best]
    of_all = f"of {len(best)} items of {sets[0].name}"
    if len(sets) > 1:
        of_all = f"of {len(best)} answers in {len(sets)} sets"
    notices = []
    if num_tied := sum(len(choices) > 1 for choices in best):
        notices.append(
            f"{num_tied} {of_all} are ties: n choices share the best score, which counts 1/n if "
            "the right one is among them"
        )
    if num_lost := sum(not choices for choices in best):
        notices.append(
            f"{num_lost} {of_all} have a score that is not a number (NaN) and count as wrong"
        )
    return notices


def accuracy_row(predictions: Predictions, groups: Sequence[Hashable], row: Row) -> Row:
    """Return the accuracy with its interval over the items' `groups` (N,)."""
    return grouped_row(predictions.item_scores, groups, replace(row, metric="accuracy"))


def chance_rows(predictions: Predictions, row: Row, part: str = "") -> list[Row]:
    """Return chance and, where empty choices lower it, the floor: that of the real choices alone.

    `part` is the end of the metrics' names, such as "_probe".
    """
    chance, floor = predictions.chance, predictions.floor
    levels = {"chance": chance} if chance == floor else {"chance": chance, "floor": floor}
    return [replace(row, metric=name + part, value=value) for name, value in levels.items()]


def tied_row(predictions: Predictions, row: Row, metric: str = "tied_share") -> Row:
    """Return the share of items whose best score several choices share."""
    num_items, num_tied = len(predictions.best), sum(len(best) > 1 for best in predictions.best)
    return replace(row, metric=metric, value=num_tied / num_items, num_items=num_items)


def near_tied_row(predictions: Predictions, row: Row) -> Row:
    """Return the share of items that are near-ties."""
    num_items, value = len(predictions.records), predictions.num_near_tied
    return replace(row, metric="near_tied_share", value=value / num_items, num_items=num_items)


def near_tie_notices(predictions: Predictions) -> list[str]:
    """Return a notice of near-ties, if there are any."""
    if not (num_near := predictions.num_near_tied):
        return []
    return [
        f"{num_near} of {len(predictions.records)} items of {predictions.name} are near-ties: the "
        f"best score is less than {NEAR:g} above the second, which another batch, device or "
        "precision can turn"
    ]


def proportion_row(total: float, num_items: int, row: Row) -> Row:
    """Return a proportion of independent items with Wilson's interval; `total` is their sum."""
    low, high = wilson(total, num_items)
    value = total / num_items
    return replace(row, value=value, ci_low=low, ci_high=high, num_items=num_items)


def grouped_row(item_scores: Sequence[float], groups: Sequence[Hashable], row: Row) -> Row:
    """Return the mean of (N,) scores with an interval that takes the items of a group for alike.

    See `probelight.metrics.intervals`: Wilson's where every item is a group of its own.
    """
    value, low, high = accuracy_interval(item_scores, groups)
    found = replace(row, value=value, ci_low=low, ci_high=high, num_items=len(item_scores))
    return replace(found, num_groups=num_groups(groups))


def subset_rows(
    predictions: Predictions, groups: Sequence[Hashable], subsets: Sequence[Subset | None], row: Row
) -> list[Row]:
    """Return a row for each part of a set, with its accuracy; part None is left out."""
    scores = predictions.item_scores
    return [
        grouped_row([scores[i] for i in part], [groups[i] for i in part], replace(row, subset=name))
        for name, part in members(subsets).items()
    ]


def members(subsets: Sequence[Subset | None]) -> dict[Subset, list[int]]:
    """Return the indices of each part's items, sorted by the part's text; part None is left out."""
    parts = sorted({subset for subset in subsets if subset}, key=lambda subset: subset.text)
    return {part: [i for i, subset in enumerate(subsets) if subset == part] for part in parts}


def classes_are_positions(config: ProbeConfig, records: Sequence[Record]) -> bool:
    """Return whether the items' choices differ, so that only positions can be answer classes."""
    return not config.candidates and not share_choices(records)


def untouched_of(clean: Sequence[bool]) -> list[Subset | None]:
    """Return the subset of the `clean` items (N,), those with no relative in the train files.

    It is None for every item where all or none are clean.
    """
    differ = any(clean) and not all(clean)
    untouched = Subset("untouched", "group not in train")
    return [untouched if differ and is_clean else None for is_clean in clean]


def templates_of(records: Sequence[Record]) -> list[Subset | None]:
    """Return the subset of each item's template, if there are several."""
    names = [record.meta.get("template") for record in records]
    several = len({name for name in names if name}) > 1
    return [
        Subset.of("template", f"template={name}", name=str(name)) if several and name else None
        for name in names
    ]
