"""The jobs of an audit: one for what is counted, one a baseline (and seed) of each probe."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.build.giveaways.surface import STEMMER, frequency_source
from probelight.probes.controls import CHOICE_ONLY
from probelight.protocols.audit.data import AuditData, checksums
from probelight.protocols.audit.settings import PROTOCOL, AuditSettings
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings
from probelight.protocols.jobs.job import Job

COUNTED = "probelight.protocols.audit.counted:count_giveaways"
ASKED = "probelight.protocols.audit.run:ask_baseline"


def audit_jobs(
    data: AuditData,
    models: Sequence[ModelSettings],
    settings: AuditSettings,
    trainer: TrainerSettings,
) -> list[Job]:
    """The jobs of a probe, those first that take seconds.

    Args:
        data: The probe.
        models: The baselines.
        settings: How they are trained.
        trainer: How they are run; its precision changes numbers.
    """
    name = data.config.name
    common = {
        "protocol": PROTOCOL,
        "probe": name,
        "data": checksums(data),
        "settings": {**settings.config(), "seeds": [0]},
    }
    counted = {**common, "frequency": frequency_source(), "stems": STEMMER}
    jobs = [Job(f"audit-{name}-giveaways", counted, COUNTED)]
    for model in sorted(models, key=is_trained):
        for seed in settings.seeds if is_trained(model) else [None]:
            config = {
                **common,
                "model": model.config(),
                "precision": trainer.precision,
                **({} if seed is None else {"seed": seed}),
                **({"control": CHOICE_ONLY} if sees_choices_alone(model) else {}),
            }
            jobs.append(Job(f"audit-{name}-{model.label}", config, ASKED))
    return jobs


def sees_choices_alone(model: ModelSettings) -> bool:
    """Whether a model that could read whole items is given their choices alone."""
    return is_trained(model) and kind_of(model).has_checkpoint


def is_trained(model: ModelSettings) -> bool:
    """Whether a baseline is trained on the probe; others are asked as they are."""
    return "mc_qa" in kind_of(model).trained
