"""MC-MLM points of a curve: a frozen encoder, each distinct text encoded once, heads stacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.batches import token_budget_batches
from probelight.encoding.encoded_set import EncodedSet
from probelight.io.errors import RecordError
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.heads.cached_heads import HeadRows, StackedHeads, sample_orders
from probelight.lightning_modules.heads.feature_head import FrozenFeatures
from probelight.lightning_modules.heads.plans import CachedItems, HeadPlan, PlateauPlan
from probelight.lightning_modules.modes import HeadMode
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.probes.record import Record
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.rows import Measurement
from probelight.protocols.curve.settings import CurveSettings
from probelight.protocols.engine.kinds import KINDS, TRANSFORMER
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.jobs.context import TrainerSettings

Frozen = ChoiceModule | FrozenFeatures
Place = tuple[str, str]  # control and part
PARTS = ("train", "held_out", "evaluation")


@dataclass(frozen=True)
class Draw:
    """One draw of a model's weights: the heads that its runs begin with, and what it read.

    Attributes:
        head: The head, with a row for each word of `CurveProbe.num_words`.
        sets: Encoded items by control and part: "train", "held_out" or "evaluation".
        fresh: By seed the head of mode `mlp`, where each seed has first weights of its own.
    """

    head: HeadRows
    sets: Mapping[Place, CachedItems]
    fresh: Mapping[int, HeadRows]

    def start(self, mode: HeadMode, seed: int) -> HeadRows:
        """What a run begins with."""
        return self.fresh.get(seed, self.head) if mode == "mlp" else self.head


class CurveProbe:
    """One probe's texts under every control, each encoded once, and the points trained on them.

    Args:
        module: A `MaskedChoice`, or a baseline or `FrozenFeatures` with `fresh_head`; nothing below
            the head is trained.
        data: The probe's rows.
        settings: The curve.
        trainer: Batch settings of the encoding.
        kind: The model's kind, which says how its head is trained.
        redraw: Makes the same architecture with the random weights of a seed; `module` is that of
            the first seed. None where all seeds read what `module` does; a module with
            `fresh_head` has a head of mode `mlp` for each seed without it.

    Attributes:
        notices: What the encoding has to say (cuts, unknown words).
        shared: Whether all seeds read the same features.
        one_start: Whether all seeds begin with the same weights; then N = 0 is one measurement.
        fingerprints: Checksums of the weights below the heads by seed; by 0 where seeds share them.
    """

    def __init__(
        self,
        module: Frozen,
        data: CurveData,
        settings: CurveSettings,
        trainer: TrainerSettings,
        kind: str = TRANSFORMER,
        redraw: Callable[[int], Frozen] | None = None,
    ) -> None:
        self.settings = settings
        self.kind = kind
        self.records = _rows(data, settings)
        # Tokens are the same for all draws of the weights.
        posed = {place: pose(module, rows) for place, rows in self.records.items()}
        self.notices = list(dict.fromkeys(n for part in posed.values() for n in part.notices))
        fresh = hasattr(module, "fresh_head")
        self.shared = redraw is None
        self.one_start = self.shared and not fresh
        self.fingerprints: dict[int, str] = {}
        self.draws: dict[int, Draw] = {}
        for seed in settings.seeds if redraw else [0]:
            own = redraw(seed) if redraw and seed != settings.seeds[0] else module
            own.eval()
            read = {
                place: run_through(own, tokens, self.records[place], trainer.max_eval_tokens)
                for place, tokens in posed.items()
            }
            words, sets = _numbered(read)
            self.num_words = len(words)
            self.fingerprints[seed] = _fingerprint(own)
            begin = settings.seeds if self.shared else [seed]
            first = {n: HeadRows(cast(Any, own).fresh_head(n), words) for n in begin if fresh}
            self.draws[seed] = Draw(HeadRows(cast(Any, own.head), words), sets, first)

    def point(self, mode: HeadMode, size: int) -> list[Measurement]:
        """Trains every control and seed at one N together and measures them; N = 0 trains none."""
        settings = self.settings
        seeds = settings.seeds if size or not self.one_start else [0]
        cells = [(control, seed) for control in settings.controls for seed in seeds]
        draws = [self.draws[0 if self.shared else seed] for _, seed in cells]
        starts = [draw.start(mode, seed) for draw, (_, seed) in zip(draws, cells, strict=True)]
        train, held_out, evaluation = (
            [draw.sets[control, part] for draw, (control, _) in zip(draws, cells, strict=True)]
            for part in PARTS
        )
        words = torch.arange(self.num_words)
        heads = StackedHeads(starts, words, len(cells), mode)
        epochs = [0] * len(cells)
        if size:
            plan = self._plan(mode)
            orders = np.stack(
                [sample_orders(len(train[0]), size, plan.epochs, seed) for _, seed in cells]
            )
            epochs = heads.train(train, orders, plan, held_out)
        scores = heads.scores(evaluation)
        return [
            Measurement(
                control,
                seed if size or not self.one_start else None,
                epoch,
                self._predictions(control, seed, table),
            )
            for (control, seed), epoch, table in zip(cells, epochs, scores, strict=True)
        ]

    def _plan(self, mode: HeadMode) -> HeadPlan:
        settings = self.settings
        if KINDS[self.kind].is_pretrained:
            head = settings.head_fit(mode)
            return HeadPlan(mode, head.learning_rate, head.epochs, head.batch_size)
        fit = settings.fit_of(self.kind)
        return PlateauPlan(
            mode,
            fit.learning_rate,
            fit.epochs,
            fit.batch_size,
            fit.weight_decay,
            fit.max_grad_norm,
            fit.patience,
        )

    def _predictions(self, control: str, seed: int, table: torch.Tensor) -> Predictions:
        records = self.records[control, "evaluation"]
        scores = [
            row[: len(record.choices)].tolist() for row, record in zip(table, records, strict=True)
        ]
        return Predictions(f"{control}-seed{seed}", records, scores)


def candidate_words(data: CurveData, settings: CurveSettings) -> list[str]:
    """All candidates of a probe's rows under every control, each once."""
    rows = [record for part in _rows(data, settings).values() for record in part]
    return sorted({choice.strip() for record in rows for choice in record.choices})


def _fingerprint(module: Frozen) -> str:
    if isinstance(module, FrozenFeatures):
        return module.fingerprint()
    return model_fingerprint(cast(Any, getattr(module, "model", module)))


def _rows(data: CurveData, settings: CurveSettings) -> dict[Place, list[Record]]:
    """The records of every part under every control."""
    found: dict[Place, list[Record]] = {}
    for control in settings.controls:
        train, evaluation = data.under(control)
        held_out = data.controlled(control, data.held_out, data.train_config)
        rows = (train, held_out, evaluation)
        found |= {(control, part): own for part, own in zip(PARTS, rows, strict=True)}
    return found


def _numbered(sets: Mapping[Place, CachedItems]) -> tuple[Tensor, dict[Place, CachedItems]]:
    """The candidate words of all sets (U,), and the sets with the words' places for them."""
    words = torch.unique(torch.cat([items.candidates.flatten() for items in sets.values()]))
    return words, {
        place: replace(items, candidates=torch.searchsorted(words, items.candidates))
        for place, items in sets.items()
    }


def encode(module: Frozen, records: Sequence[Record], max_tokens: int) -> CachedItems:
    """h, candidates and labels of records, each distinct text through the encoder once.

    Raises:
        RecordError: If a record cannot be posed to the model.
    """
    return run_through(module, pose(module, records), records, max_tokens)


def pose(module: Frozen, records: Sequence[Record]) -> EncodedSet:
    """The tokens of records.

    Raises:
        RecordError: If a record was skipped: samples of all controls must have the same rows.
    """
    encoded = module.encoder().encode(records)
    refuse_unposed(records, encoded.kept)
    return encoded


def refuse_unposed(records: Sequence[Record], kept: Sequence[int]) -> None:
    """Refuses rows of which some cannot be posed to a model.

    Raises:
        RecordError: If `kept`, the places of those that can, are not all.
    """
    if missing := sorted(set(range(len(records))) - set(kept)):
        raise RecordError(
            f"{len(missing)} of {len(records)} items cannot be posed to this model, such as "
            f"{records[missing[0]].where}; a curve compares the same rows under all controls: with "
            "--model.multi_token skip such rows are left out of all models, and counted"
        )


@torch.no_grad()
def run_through(
    module: Frozen, encoded: EncodedSet, records: Sequence[Record], max_tokens: int
) -> CachedItems:
    """H of posed records, each distinct text through the encoder once."""
    if not records:
        nothing = torch.empty(0, dtype=torch.long)
        return CachedItems(torch.empty(0, 0), nothing[:, None], nothing[:, None].bool(), nothing)
    first: dict[str, int] = {}
    for index, record in enumerate(records):
        first.setdefault(record.stem, index)
    distinct = sorted(first.values(), key=lambda index: int(encoded.lengths[index]))
    place = {index: row for row, index in enumerate(distinct)}
    features = []
    for batch in token_budget_batches(encoded.lengths, max_tokens, distinct):
        inputs = _to(module, encoded.collate(batch))
        features.append(module.features(inputs).cpu())  # type: ignore[operator]
    rows = torch.tensor([place[first[record.stem]] for record in records])
    whole = encoded.collate(range(len(records)))
    return CachedItems(
        torch.cat(features)[rows],
        whole["candidate_ids"],
        whole["choice_mask"],
        whole["labels"],
    )


def _to(module: Frozen, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.to(module.device) for name, tensor in batch.items()}
