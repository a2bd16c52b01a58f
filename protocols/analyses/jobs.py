"""The jobs of the analyses, known without torch: one a model and grid, and so on."""

from __future__ import annotations

import hashlib

from jobs.context import TrainerSettings
from jobs.job import Job
from probes.build.prediction_grids import PredictionGrid
from protocols.engine.settings import ModelSettings

GRID = "grid"
GRID_RUNNER = "protocols.analyses.prediction_grid:fill_grid"


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
