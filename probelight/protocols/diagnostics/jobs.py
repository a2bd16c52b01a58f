"""The jobs of diagnose: one a model and set."""

from __future__ import annotations

from probelight.probes.diagnostics.perturbations import perturbations_of
from probelight.probes.diagnostics.sets import DiagnosticSet
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.results.importers.recorded import Recorded

PROTOCOL = "diagnose"
RECORDED = "recorded"  # in `RunContext.paths`: the folder of the outputs
RUNNER = "probelight.protocols.diagnostics.run:measure_recorded"
SHUFFLES = "shuffles"  # in the config of a job
MODEL_RUNNER = "probelight.protocols.diagnostics.run:measure_model"


def model_job(
    data: DiagnosticSet, model: ModelSettings, trainer: TrainerSettings, shuffles: int
) -> Job:
    """The job that asks a model.

    Args:
        data: The set.
        model: The model.
        trainer: How it is run; its precision changes numbers.
        shuffles: How often the words of sentences are put in another order.
    """
    config = {
        "protocol": PROTOCOL,
        "model": model.config(),
        "probe": data.source.name,
        "data": [file.sha256 for file in data.files],
        "precision": trainer.precision,
        **({SHUFFLES: shuffles} if any(one.is_drawn for one in perturbations_of(data)) else {}),
    }
    return Job(f"diagnose-{data.source.name}-{model.label}", config, MODEL_RUNNER)


def label_of(job: Job) -> str:
    """What tables call the model of a job."""
    model = job.config["model"]
    return model if isinstance(model, str) else ModelSettings(**model).label


def recorded_job(data: DiagnosticSet, one: Recorded) -> Job:
    """The job that measures recorded outputs.

    Args:
        data: The set.
        one: The outputs of a model on it.
    """
    config = {
        "protocol": PROTOCOL,
        "probe": data.source.name,
        "model": one.model,
        "data": [file.sha256 for file in data.files],
        "recorded": [file.sha256 for file in one.files],
    }
    return Job(f"diagnose-{data.source.name}-{one.model}", config, RUNNER)
