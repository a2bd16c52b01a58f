"""The jobs of diagnose: one a model and set."""

from __future__ import annotations

from jobs.job import Job
from probes.diagnostics.sets import DiagnosticSet
from results.importers.recorded import Recorded

PROTOCOL = "diagnose"
RECORDED = "recorded"  # in `RunContext.paths`: the folder of the outputs
RUNNER = "protocols.diagnostics.run:measure_recorded"


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
