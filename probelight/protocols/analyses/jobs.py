"""Jobs of the analyses, known without torch: one a (model, grid), one a run that is measured."""

from __future__ import annotations

import hashlib
from pathlib import Path

from probelight.build.prediction_grids import PredictionGrid
from probelight.io.artifacts import check_left
from probelight.io.files import sha256_of
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.results.record import RunRecord

GRID, DISTANCE = "grid", "taxonomy_distance"
GRID_RUNNER = "probelight.protocols.analyses.prediction_grid:fill_grid"
DISTANCE_RUNNER = "probelight.protocols.analyses.taxonomy_distance:measure_distances"


def grid_job(model: ModelSettings, grid: PredictionGrid, trainer: TrainerSettings) -> Job:
    """The job that fills a grid with what a model says."""
    config = {
        "protocol": GRID,
        "model": model.config(),
        "grid": grid.name,
        "wording": grid.wording,
        "values": list(grid.values),
        "stems": stems_sha256(grid),
        "precision": trainer.precision,
    }
    return Job(f"grid-{grid.name}-{grid.wording}-{model.label}", config, GRID_RUNNER)


def stems_sha256(grid: PredictionGrid) -> str:
    """The checksum of a grid's sentences."""
    text = "\n".join(record.stem for record in grid.records)
    return hashlib.sha256(text.encode()).hexdigest()


def distance_job(source: Path, answered: RunRecord, database: str) -> Job:
    """The job that holds what a run answered against WordNet.

    Args:
        source: Folder of the run.
        answered: Its record.
        database: Checksum of WordNet.

    Raises:
        ValueError: If the run's predictions have changed since it ended.
    """
    config = {
        "protocol": DISTANCE,
        "run": answered.key,
        "predictions": predictions_sha256(source),
        "wordnet": database,
    }
    name = f"taxonomy-distance-{answered.probe}-{answered.model}"
    return Job(name, config, DISTANCE_RUNNER)


def predictions_sha256(source: Path) -> str:
    """The checksum of what a run answered.

    Raises:
        ValueError: If it has changed since the run ended.
    """
    check_left(source, "predictions.jsonl")
    return sha256_of(source / "predictions.jsonl")
