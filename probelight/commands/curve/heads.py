"""MC-MLM points of a curve: a frozen encoder, each distinct text encoded once, heads stacked.

N = 0 of a model whose heads begin with the rows of single words is what its scorer answers: such a
head knows nothing of how likely the model finds a text with a candidate in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from probelight.commands.curve.curve import Curve
from probelight.commands.curve.data import CurveData
from probelight.commands.curve.rows import Measurement, next_size, portions, write_point
from probelight.commands.curve.settings import CurveSettings
from probelight.encoding.encoded_set import EncodedSet, token_budget_batches
from probelight.evaluation.evaluate import evaluate
from probelight.evaluation.scorers import kept_model, loaded_scorer, scorer_for
from probelight.io.errors import RecordError, UsageError
from probelight.io.ranges import HeadMode
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.heads.feature_head import FrozenFeatures
from probelight.lightning_modules.heads.head_training import (
    HeadPlan,
    PlateauPlan,
    sample_of,
    sample_orders,
    train_stack,
)
from probelight.lightning_modules.heads.stacked_heads import CachedItems, HeadRows, StackedHeads
from probelight.models.answering import answer_planned, batch_loader, float32_products, on_cpu
from probelight.models.masked import MaskFeatures
from probelight.models.networks import dtype_name, model_fingerprint
from probelight.models.registry import AUTO, TRANSFORMER, ModelSettings, lacks_word_head
from probelight.models.scorer import Scorer
from probelight.probes.record import Record, Setup
from probelight.results.measured import Predictions
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.settings import TrainerSettings
from probelight.training.modules import module_for
from probelight.training.settings import FitSettings

Frozen = ChoiceModule | FrozenFeatures
RowSetKey = tuple[str, str]  # control and role
ROLES = ("train", "held_out", "evaluation")
NO_WORD_HEAD = (
    "the model has no head over words: heads begin with rows of zeros, and nothing is known of it "
    "before training"
)


def score_untrained(run: RunFolder, curve: Curve) -> RunRecord:
    """Score the measured rows under every control by a model, or by each draw of its weights."""
    settings, random_weights, data = curve.settings, curve.model.random_weights, curve.rows
    measured: list[Measurement] = []
    fingerprints: dict[int, str] = {}
    for seed in settings.seeds if random_weights else settings.seeds[:1]:
        scorer = frozen_scorer(curve, curve.model, seed, curve.data.setup)
        drawn_seed = seed if random_weights else None
        for control in settings.controls:
            rows = replace(data.files[-1], records=tuple(data.under(control)[1]))
            predictions = evaluate(scorer, rows, trainer=curve.context.trainer).predictions
            predictions = replace(predictions, name=f"{control}-seed{drawn_seed or 0}")
            measured.append(Measurement(control, drawn_seed, 0, predictions))
        fingerprints[seed] = scorer.fingerprint()
    return write_point(
        run,
        data,
        curve.model,
        sorted(measured, key=lambda point: settings.controls.index(point.control)),
        mode=scorer.mode,
        size=0,
        dtype=scorer.dtype,
        fingerprints=fingerprints,
        notices=dict.fromkeys(n for point in measured for n in point.predictions.notices),
        with_levels=True,
    )


def train_heads(run: RunFolder, curve: Curve, mode: HeadMode, size: int) -> RunRecord:
    """Train all seeds and controls of a (mode, N) together and measure them; N = 0 trains none."""
    trainer, lacks_head = curve.context.trainer, lacks_word_head(curve.model)
    with float32_products(device_of(trainer), trainer.precision, trainer.matmul_precision):
        probe = encode_curve(curve.context, curve)
        measured = probe.point(mode, size)
    return write_point(
        run,
        curve.rows,
        curve.model,
        measured,
        mode=mode,
        size=size,
        dtype=probe.dtype,
        fingerprints=probe.fingerprints,
        fit=curve.settings.head_fit(mode, curve.model.kind) if size else None,
        notices=[*probe.notices, *([NO_WORD_HEAD] if lacks_head else [])],
        with_levels=size == (curve.rows.sizes[0] if lacks_head else 0),
    )


@cached(most=1)
def encode_curve(context: RunContext, curve: Curve) -> CurveProbe:
    """Encode all texts of a curve, whose points are all trained on the same features."""
    model, settings = curve.model, curve.settings
    device = device_of(context.trainer)
    has_own_rows = model.type.heads or lacks_word_head(model)
    words = candidate_words(curve.rows, settings) if has_own_rows else None

    def draw(seed: int) -> Frozen:
        if words is not None:
            scorer = frozen_scorer(curve, replace(model, scoring=AUTO), seed)
            scorer.network.to(device)
            return FrozenFeatures(scorer, words)
        if seed == settings.seeds[0]:
            return first_module(context, model, seed).to(device)
        return module_for(model, "mc_mlm", mode="mlp", seed=seed).to(device)

    redraw = draw if model.random_weights else None
    module = draw(settings.seeds[0])
    checksum = kept_model(context, model, settings.seeds[0]).fingerprint
    return CurveProbe(module, curve.rows, settings, context.trainer, model.kind, redraw, checksum)


def frozen_scorer(curve: Curve, model: ModelSettings, seed: int, setup: Setup = "mc_mlm") -> Scorer:
    """Return the scorer of a curve's model, with the random weights, if any, of the seed."""
    if lacks_word_head(model):
        read = kept_model(curve.context, replace(model, adapter=None, name=None), seed).read
        return MaskFeatures(replace(model.checkpoint, seed=seed), model.max_length, read)
    # That of the first seed is kept: the model's next probe is read with it too.
    if seed == curve.settings.seeds[0]:
        return loaded_scorer(curve.context, model, setup, seed)
    return scorer_for(model, setup, seed, trainer=curve.context.trainer)


@cached(most=1)
def first_module(context: RunContext, model: ModelSettings, seed: int) -> ChoiceModule:
    """Return the module of the first seed, which reads the model's next probe too."""
    return module_for(model, "mc_mlm", mode="mlp", seed=seed)


def device_of(trainer: TrainerSettings) -> torch.device:
    """Return the device of a frozen encoder and its heads: one GPU if there is one, or the CPU.

    Raises:
        UsageError: If this machine does not have what was asked for.
    """
    if trainer.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available():
        return torch.device("cuda")
    with_mps = {"gpu", "mps"} if torch.backends.mps.is_available() else set()
    if trainer.accelerator not in {"auto", "cpu", *with_mps}:  # MPS lacks what heads need
        raise UsageError(
            f"--trainer.accelerator {trainer.accelerator} is not available on this machine; heads "
            "are trained on a CUDA GPU or on the cpu"
        )
    return torch.device("cpu")


@dataclass(frozen=True)
class Draw:
    """One draw of a model's weights: the heads that its runs begin with, and the encoded items."""

    head: HeadRows  # with a row for each of the words in `sets`
    fresh: Mapping[int, HeadRows]  # by seed, for mode `mlp`, where seeds begin differently
    sets: Mapping[RowSetKey, CachedItems]
    fingerprint: str  # checksum of the weights below the heads

    @classmethod
    def of(
        cls,
        module: Any,
        items: Mapping[RowSetKey, CachedItems],
        seeds: Sequence[int],
        checksum: Callable[[Any], str],
    ) -> Draw:
        """Return a draw with the rows of the items' candidates alone, known by their places."""
        words = torch.unique(torch.cat([cached.candidates.flatten() for cached in items.values()]))
        fresh = seeds if hasattr(module, "fresh_head") else ()
        return cls(
            head=HeadRows.of(module.head, words),
            fresh={seed: HeadRows.of(module.fresh_head(seed), words) for seed in fresh},
            sets={
                key: replace(cached, candidates=torch.searchsorted(words, cached.candidates))
                for key, cached in items.items()
            },
            fingerprint=(
                module.fingerprint()
                if isinstance(module, FrozenFeatures)
                else checksum(getattr(module, "model", module))
            ),
        )


class CurveProbe:
    """One probe's texts under all controls, each encoded once, and the points trained on them.

    Args:
        module: A `MaskedChoice`, or a baseline or `FrozenFeatures`, whose `fresh_head` gives each
            seed a head of mode `mlp`; nothing below the head is trained.
        data: The probe's rows.
        settings: The curve.
        trainer: Precision and batch settings of the encoding; heads have single precision.
        kind: The model's type, which says how its head is trained.
        redraw: Makes the same architecture with the random weights of a seed; `module` is that of
            the first seed. None where all seeds read what `module` does.
        checksum: Of the weights below the heads.

    Attributes:
        notices: Notices of the encoding (cuts, unknown words).
        dtype: Precision of the weights below the heads.
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
        checksum: Callable[[Any], str] = model_fingerprint,
    ) -> None:
        self.settings = settings
        self.dtype = dtype_name(module)
        self.sizes = data.sizes or tuple(settings.sizes)
        self.kind = kind
        self.records = _row_sets(data, settings)
        # Tokens are the same for all draws of the weights.
        token_sets = {key: pose(module, rows) for key, rows in self.records.items()}
        self.notices = list(dict.fromkeys(n for t in token_sets.values() for n in t.notices))
        self.shared = redraw is None
        self.one_start = self.shared and not hasattr(module, "fresh_head")
        self.draws: dict[int, Draw] = {}
        for seed in settings.seeds if redraw else [0]:
            draw_module = redraw(seed) if redraw and seed != settings.seeds[0] else module
            draw_module.eval()
            features_by_stem = dict[str, torch.Tensor]()
            items = {
                key: run_through(draw_module, tokens, self.records[key], trainer, features_by_stem)
                for key, tokens in token_sets.items()
            }
            draw_seeds = settings.seeds if self.shared else [seed]
            self.draws[seed] = Draw.of(draw_module, items, draw_seeds, checksum)
        self.fingerprints = {seed: draw.fingerprint for seed, draw in self.draws.items()}

    def point(self, mode: HeadMode, size: int) -> list[Measurement]:
        """Train every control and seed at one N together and measure them; N = 0 trains none."""
        settings = self.settings
        seeds = settings.seeds if size or not self.one_start else [0]
        runs = [(control, seed) for control in settings.controls for seed in seeds]
        draws = [self.draws[0 if self.shared else seed] for _, seed in runs]
        starts = [
            draw.fresh.get(seed, draw.head) if mode == "mlp" else draw.head
            for draw, (_, seed) in zip(draws, runs, strict=True)
        ]
        train, held_out, evaluation = (
            [draw.sets[control, role] for draw, (control, _) in zip(draws, runs, strict=True)]
            for role in ROLES
        )
        heads = StackedHeads(starts, mode)
        epochs = [0] * len(runs)
        if size:
            plan = self._plan(mode)
            orders = np.stack(
                [sample_orders(len(train[0]), size, plan.epochs, seed) for _, seed in runs]
            )
            epochs = train_stack(heads, train, orders, plan, held_out)
        measurements = []
        next_num_train = next_size(self.sizes, size) if size else 0
        samples = [sample_of(len(train[0]), next_num_train, seed) for _, seed in runs]
        added = [
            items.at(torch.from_numpy(sample[size:]))
            for items, sample in zip(train, samples, strict=True)
        ]
        score_tables, added_tables = heads.scores(evaluation), heads.scores(added)
        for index, (control, seed) in enumerate(runs):
            records = self.records[control, "evaluation"]
            scores = scores_of(score_tables[index], records)
            predictions = Predictions(f"{control}-seed{seed}", records, scores)
            sample = [self.records[control, "train"][row] for row in samples[index]]
            added_scores = scores_of(added_tables[index], sample[size:])
            code = portions(self.sizes, size, sample, added_scores)
            drawn, epoch = seed if size or not self.one_start else None, epochs[index]
            measurements.append(Measurement(control, drawn, epoch, predictions, code=code))
        return measurements

    def _plan(self, mode: HeadMode) -> HeadPlan:
        """Return how heads are trained: by epochs, or a baseline's until it stops."""
        fit = self.settings.head_fit(mode, self.kind)
        sizes = fit.learning_rate, fit.epochs, fit.batch_size
        if not isinstance(fit, FitSettings):
            return HeadPlan(*sizes)
        limits = fit.weight_decay, fit.max_grad_norm, fit.patience
        return PlateauPlan(*sizes, *limits)


def scores_of(table: torch.Tensor, records: Sequence[Record]) -> list[list[float]]:
    """Return the scores (N, K) of records without those of choices that do not exist."""
    return [row[: len(record.choices)].tolist() for row, record in zip(table, records, strict=True)]


def candidate_words(data: CurveData, settings: CurveSettings) -> list[str]:
    """Return all candidates of a probe's rows under every control, each once."""
    rows = [record for records in _row_sets(data, settings).values() for record in records]
    return sorted({choice.strip() for record in rows for choice in record.choices})


def _row_sets(data: CurveData, settings: CurveSettings) -> dict[RowSetKey, list[Record]]:
    """Return the rows of every role under every control."""
    row_sets: dict[RowSetKey, list[Record]] = {}
    for control in settings.controls:
        train, evaluation = data.under(control)
        held_out = data.controlled(control, data.held_out, data.train_config)
        for role, records in zip(ROLES, (train, held_out, evaluation), strict=True):
            row_sets[control, role] = records
    return row_sets


def pose(module: Frozen, records: Sequence[Record]) -> EncodedSet:
    """Return the tokens of records, all of which must be posed: controls compare the same rows."""
    encoded = module.encoder().encode(records)
    refuse_unposed(records, encoded.positions)
    return encoded


def refuse_unposed(records: Sequence[Record], posed_indices: Sequence[int]) -> None:
    """Raise RecordError unless `kept`, the indices of rows that a model can be posed, are all."""
    if unposed := sorted(set(range(len(records))) - set(posed_indices)):
        raise RecordError(
            f"{len(unposed)} of {len(records)} items do not fit this model, such as "
            f"{records[unposed[0]].where}; a curve compares the same rows under all controls: "
            "--model.multi_token skip leaves such rows out for all models, and counts them"
        )


def run_through(
    module: Frozen,
    encoded: EncodedSet,
    records: Sequence[Record],
    trainer: TrainerSettings,
    features_by_stem: dict[str, torch.Tensor],
) -> CachedItems:
    """Return posed records with their features, each distinct text through the encoder once.

    Texts of `features_by_stem` were read already, of another control or role; the others are added.
    """
    if not records:
        nothing = torch.empty(0, dtype=torch.long)
        return CachedItems(torch.empty(0, 0), nothing[:, None], nothing[:, None].bool(), nothing)
    first_rows: dict[str, int] = {}
    for index, record in enumerate(records):
        if record.stem not in features_by_stem:
            first_rows.setdefault(record.stem, index)
    distinct = sorted(first_rows.values(), key=lambda index: int(encoded.lengths[index]))
    batches = token_budget_batches(encoded.lengths, trainer.max_eval_tokens, distinct)
    loader = batch_loader(encoded, batches, trainer.num_workers, module.device)
    read: Any = module.features
    features: list[torch.Tensor] = []
    for number, batch in enumerate(loader):
        outputs = answer_planned(read, loader, number, batch, module.device, trainer.precision)
        features += [h.to(torch.promote_types(h.dtype, torch.float32)) for _, h in outputs]
    if features:  # not all texts were read before
        stems = (records[index].stem for index in distinct)
        features_by_stem |= zip(stems, chain.from_iterable(on_cpu(features)), strict=True)
    collated = encoded.collate(range(len(records)))
    h = torch.stack([features_by_stem[record.stem] for record in records])
    return CachedItems(h, collated["candidate_ids"], collated["choice_mask"], collated["labels"])
