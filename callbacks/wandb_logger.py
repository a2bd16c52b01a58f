"""Weights & Biases as a second logger; if it fails, is slow or missing, the run continues."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities import rank_zero_only
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks.run_metrics import COST
from probelight.io.atomic import write_text_atomic
from probelight.io.escaping import json_text
from probelight.io.process import SENTENCES, STOP, TERMINATED
from probelight.io.wandb import (
    FINISH_SECONDS,
    OFFLINE_SECONDS,
    PENDING,
    Courier,
    WandbSettings,
    not_online,
    open_run,
    process_courier,
    wandb_client,
    wandb_id,
)
from probelight.results.details import InoculationDetails
from probelight.results.predictions import DOSE
from probelight.results.record import RunRecord
from probelight.results.run_folder import METRICS_FILE, Logged, RunFolder, read_metrics

CURVE = "learning_curve"
STEP = "trainer/global_step"


def follow(
    run: RunFolder, wandb: WandbSettings, earlier_metrics: Sequence[Logged] | None = None
) -> WandbGuard:
    """Return the W&B logger of a run, instead of any earlier one.

    The run in W&B ends as the run itself does: finished, failed or interrupted. By default
    `earlier_metrics`, what earlier starts logged, are read from `metrics.csv`.
    """
    if earlier_metrics is None:
        path = run.path / METRICS_FILE
        earlier_metrics = read_metrics(path) if path.exists() else ()
    logger = WandbGuard(wandb, run.key, run.config, run.path, earlier_metrics)

    def end(how: RunRecord | BaseException) -> None:
        if isinstance(how, RunRecord):
            logger.summarise(report_scores(how))
            logger.close()
        else:
            stopped = isinstance(how, SIGTERMException | KeyboardInterrupt)
            logger.close(STOP.code or (TERMINATED if stopped else 1))

    run.listeners = [end]
    return logger


def report_scores(record: RunRecord) -> dict[str, float]:
    """Return the scores of a finished run on items not used for selection, as `report/<metric>`.

    A cost that the report calls not interpretable is left out.
    """
    inoculation = record.detail(InoculationDetails)
    no_cost = inoculation is not None and inoculation.cost_interpretable is False
    return {
        f"report/{row.metric}": row.value
        for row in record.rows
        if row.split not in ("selection", DOSE)
        and not row.subset
        and not row.perturbation
        and not (no_cost and row.metric == COST)
    }


class WandbGuard(Logger):
    """Logs a run to W&B from a separate thread; failures become a single warning.

    The local files are what counts. Only `close` waits for W&B, and not for long. Until W&B has the
    whole run, its folder has `wandb/pending.json` with the summary so far; together with
    `metrics.csv` and `result.json` the run can be logged again.

    The id is fixed, so a resumed run continues the same W&B run. `earlier_metrics`, what earlier
    starts logged, are logged again if W&B does not have them: offline, where a run cannot be
    resumed, and online if no earlier start reached W&B. `client` and `courier` are for tests.
    """

    def __init__(
        self,
        settings: WandbSettings,
        run_id: str,
        config: Mapping[str, Any],
        save_dir: Path,
        earlier_metrics: Sequence[Logged] = (),
        client: Callable[[], Any] | None = None,
        courier: Courier | None = None,
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self._settings = settings
        self._config = dict(config)
        self._dir = save_dir
        self._logged = tuple(earlier_metrics)
        self._client = client or wandb_client
        self._courier = courier or process_courier()
        self._run: Any = None
        self._summary: dict[str, Any] = {}
        self._problem: Exception | None = None  # nothing more is sent
        self._not_online: Exception | None = None  # it is written to disk instead
        self._is_online = self._started = self._warned = False
        self._num_lost = 0

    @property
    def name(self) -> str:
        return "wandb"

    @property
    def version(self) -> str:
        return self.run_id

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log the values of a step; epochs count from 1, as in `best_epoch` and result rows."""
        values = dict(metrics)
        if "epoch" in values:
            values["epoch"] += 1
        self._send(lambda: self._log(values, step))

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Do nothing: the run has its resolved config from the start."""

    @rank_zero_only
    def summarise(self, values: Mapping[str, Any]) -> None:
        """Put final values into the run's summary."""
        final = dict(values)
        self._summary |= final
        self._send(lambda: self._run.summary.update(final))
        self._note_pending()

    @rank_zero_only
    def close(self, exit_code: int = 0) -> None:
        """End the W&B run, and warn if something went wrong with it.

        It waits longer for a run that is only written to disk, because nothing else would write it;
        but not after an interruption, because the run resumes later and time is short.

        Args:
            exit_code: 0 for a finished run. After an interruption, W&B is told that the run resumes
                later, unless nothing was sent yet. Any other code means that the run failed.
        """
        interrupted = exit_code in SENTENCES
        if interrupted and not self._started:
            return
        self._send(lambda: self._finish(exit_code))
        waited = FINISH_SECONDS
        finished = self._courier.wait(waited)
        if not finished and not interrupted and not self._is_online:
            waited = OFFLINE_SECONDS
            finished = self._courier.wait(waited - FINISH_SECONDS)
        self._warn()
        if self._problem is not None:
            return
        if not finished:
            _warn(f"Weights & Biases did not finish within {waited:g} s. {_AGAIN}")
        elif self._num_lost:
            _warn(f"Weights & Biases was too slow: {self._num_lost:,} calls were dropped. {_AGAIN}")

    def _send(self, act: Callable[[], Any]) -> None:
        self._warn()
        if self._problem is not None:
            return
        if not self._started:
            self._started = True
            self._note_pending()
            self._courier.send(lambda: self._attempt(self._start))
        self._num_lost += not self._courier.send(lambda: self._attempt(act))

    def _note_pending(self) -> None:
        """Write what a later start needs to log the run again, before anything is sent to W&B."""
        if self._settings.disabled:
            return
        try:
            text = json_text({"summary": self._summary}, indent=1) + "\n"
            write_text_atomic(self._dir / PENDING, text)
        except (OSError, TypeError, ValueError) as error:
            self._problem = self._problem or error

    def _start(self) -> None:
        """Begin the run; on the courier's thread, as importing wandb alone takes time."""
        wandb = self._client()
        self._is_online = not self._settings.offline()
        self._run, self._not_online = open_run(
            self._settings,
            wandb,
            offline=not self._is_online,
            group=self._settings.group,
            job_type=self._config.get("protocol"),
            name=self.run_id,
            id=wandb_id(self.run_id),
            dir=str(self._dir),
            config=self._config,
        )
        self._is_online = not self._run.offline
        self._run.define_metric(STEP)
        self._run.define_metric("*", step_metric=STEP, step_sync=True)
        self._run.define_metric(f"{CURVE}/num_examples")
        self._run.define_metric(f"{CURVE}/*", step_metric=f"{CURVE}/num_examples")
        is_there = self._is_online and self._run.resumed
        for (step, epoch), rows in groupby(() if is_there else self._logged, lambda row: row[:2]):
            counted = {"epoch": int(epoch) + 1} if epoch else {}
            self._log({name: value for *_, name, value in rows} | counted, step)

    def _log(self, values: Mapping[str, float], step: int | None) -> None:
        self._run.log({**values, STEP: step})

    def _finish(self, exit_code: int) -> None:
        if exit_code in SENTENCES:
            self._run.mark_preempting()
        self._run.finish(exit_code=exit_code)
        if not self._num_lost and not self._settings.disabled:
            (self._dir / PENDING).unlink(missing_ok=True)

    def _attempt(self, act: Callable[[], Any]) -> None:
        if self._problem is None:
            try:
                act()
            except Exception as error:
                self._problem = error
                if self._run is not None:  # else the next run of this process would go on in it
                    with suppress(Exception):
                        self._run.finish(exit_code=1)

    def _warn(self) -> None:
        """Warn once, in the main thread, of each failure on the courier's thread."""
        if self._not_online is not None:
            _warn(not_online("run", self._dir, self._not_online))
            self._not_online = None
        if self._problem is not None and not self._warned:
            self._warned = True
            _warn(f"Weights & Biases failed and is left out of this run: {self._problem}. {_AGAIN}")


_AGAIN = "metrics.csv and result.json have everything; rerun the command to log the run to W&B"


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
