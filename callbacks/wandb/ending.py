"""A run in Weights & Biases ends as the run does that it shows: finished, failed or interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks.inoculation_cost import COST
from probelight.io.stop_signals import STOP, TERMINATED
from probelight.callbacks.wandb.guard import WandbGuard
from probelight.callbacks.wandb.settings import WandbSettings
from probelight.results.metrics_file import METRICS_FILE, Logged, read_metrics
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder

FAILED = 1


def follow(
    run: RunFolder, wandb: WandbSettings, before: Sequence[Logged] | None = None
) -> WandbGuard:
    """The logger of a run; it takes the place of one that followed the run until now.

    Args:
        run: The run.
        wandb: Where it appears.
        before: What earlier starts of it have logged; what `metrics.csv` holds unless given.
    """
    if before is None:
        path = run.path / METRICS_FILE
        before = read_metrics(path) if path.exists() else ()
    logger = WandbGuard(wandb, run.key, run.config, run.path, before)
    run.listeners = [partial(_end, logger)]
    return logger


def _end(logger: WandbGuard, end: RunRecord | BaseException) -> None:
    if isinstance(end, RunRecord):
        logger.summarise(report_scores(end))
        logger.close()
    else:
        stopped = isinstance(end, SIGTERMException | KeyboardInterrupt)
        logger.close(STOP.code or (TERMINATED if stopped else FAILED))


def report_scores(record: RunRecord) -> dict[str, float]:
    """What a finished run measured on items that nothing was chosen with, as `report/<metric>`.

    A cost that the report calls not interpretable is left out.
    """
    inoculation = record.inoculation
    unread = inoculation is not None and inoculation.cost_interpretable is False
    return {
        f"report/{row.metric}": row.value
        for row in record.rows
        if row.split != "selection"
        and not row.subset
        and not row.perturbation
        and not (unread and row.metric == COST)
    }
