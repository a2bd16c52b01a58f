"""N = 0 of models whose curves are heads on a scorer's features: the scorer's own answers.

A head that begins with the rows of single words knows nothing of how likely a model finds a text
with a candidate in it, so what the model says without training is asked of its scorer, as
`zero-shot` asks, and bears the scorer's mode.
"""

from __future__ import annotations

import time

from probelight.models.scorers.base import Scorer
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.rows import Measurement, Point, by_seed, finish_run
from probelight.protocols.curve.settings import PROTOCOL
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.models import scorer_for
from probelight.results.record import CurveFacts, RunRecord
from probelight.results.run_folder import RunFolder


def frozen_scorer(curve: Curve, seed: int) -> Scorer:
    """The scorer that a curve's features are of; its random weights, if any, are of the seed.

    That of the first seed is kept: the model's next probe is read with the same weights.
    """

    def load() -> Scorer:
        return scorer_for(curve.model, "mc_mlm", seed)

    if seed != curve.settings.seeds[0]:
        return load()
    return curve.context.remembered("frozen scorer", (curve.model, seed), load)


def score_untrained(run: RunFolder, curve: Curve) -> None:
    """Asks a model, or each draw of its weights, for the measured rows under every control."""
    start = time.perf_counter()
    settings, drawn, data = curve.settings, curve.model.random_weights, curve.rows
    rows = {control: data.under(control)[1] for control in settings.controls}
    measured: list[Measurement] = []
    notices: dict[str, None] = {}
    fingerprints: dict[int, str] = {}
    for seed in settings.seeds if drawn else settings.seeds[:1]:
        scorer, own = frozen_scorer(curve, seed), seed if drawn else None
        names = {control: f"{control}-seed{own or 0}" for control in rows}
        sets = {names[control]: records for control, records in rows.items()}
        said = predict(scorer, sets, curve.context.trainer)
        measured += [Measurement(control, own, 0, said[name]) for control, name in names.items()]
        notices |= dict.fromkeys(notice for one in said.values() for notice in one.notices)
        fingerprints[seed] = scorer.fingerprint()
    made = RunRecord(
        protocol=PROTOCOL,
        notices=tuple(notices),
        model_sha256=next(iter(fingerprints.values())),
        seconds=round(time.perf_counter() - start, 3),
        curve=CurveFacts(sha256_by_seed=by_seed(fingerprints)),
    )
    where = Point(curve.model, scorer.mode, 0, None, with_levels=True)
    measured.sort(key=lambda one: settings.controls.index(one.control))
    finish_run(run, data, where, measured, made)
