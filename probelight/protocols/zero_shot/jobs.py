"""The jobs of zero-shot: one a model and set, known without torch."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.probes.catalog import DOMAIN_STEMS
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.protocols.zero_shot.data import LoadedSet, checksums

PROTOCOL = "zero_shot"
RUNNER = "probelight.protocols.zero_shot.run:score_set"


def zero_shot_job(
    model: ModelSettings,
    one: LoadedSet,
    trainer: TrainerSettings,
    ranks: bool = False,
    scoring: Sequence[str] = (),
) -> Job:
    """The job that scores a set with a model.

    Args:
        model: The model.
        one: The set.
        trainer: How it is run; its precision changes numbers.
        ranks: Also the rank of MC-MLM candidates in the whole vocabulary.
        scoring: Rules by which the choices are scored as well.
    """
    data = one.data.config
    domain_stem = data.domain_stem or DOMAIN_STEMS.get(data.setup, "")
    config = {
        "protocol": PROTOCOL,
        "model": model.config(),
        "probe": one.name,
        "split": one.split,
        "data": checksums(one.data),
        "precision": trainer.precision,
        **({"ranks": True} if ranks else {}),
        **({"scoring": list(scoring)} if scoring else {}),
        **({"domain_stem": domain_stem} if "pmi" in scoring else {}),
    }
    return Job(f"zero-shot-{one.name}-{model.label}", config, RUNNER)
