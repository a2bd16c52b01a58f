"""Weights & Biases as the second logger: it may fail, be slow or be absent, the run goes on."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities import rank_zero_only

from callbacks.stop_signals import SENTENCES
from callbacks.wandb.courier import Courier, shared_courier
from callbacks.wandb.settings import FINISH_SECONDS, WandbSettings, client_settings, wandb_id
from results.metrics_file import Logged

CURVE = "learning_curve"


class WandbGuard(Logger):
    """A `WandbLogger` on a thread of its own, whose failures become one warning.

    The local files are the truth. No method waits for W&B but `close`, and that one not for long:
    what is not sent by then lies in `save_dir` for `wandb sync`.

    Args:
        settings: Project and mode.
        run_id: Fixed id, so that a resumed run goes on in the same W&B run.
        config: The run's resolved config.
        save_dir: Where offline runs are written.
        before: What earlier starts of the run have logged. Online W&B has it; offline, where a run
            cannot be resumed, it is logged again, so that the newest folder holds all of it.
        make: Makes the inner logger; a parameter for tests.
        courier: The thread that talks to W&B; the process has one.

    Attributes:
        patience: Seconds that `close` waits.
    """

    def __init__(
        self,
        settings: WandbSettings,
        run_id: str,
        config: Mapping[str, Any],
        save_dir: Path,
        before: Sequence[Logged] = (),
        make: Callable[..., Any] = WandbLogger,
        courier: Courier | None = None,
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self._settings = settings
        self._config = dict(config)
        self._dir = save_dir
        self._before = before
        self._make = make
        self._courier = courier or shared_courier()
        self.patience = FINISH_SECONDS
        self._inner: Any = None
        self._problem: Exception | None = None
        self._started = self._warned = False
        self._num_lost = 0

    @property
    def name(self) -> str:
        """Lightning's name of the logger."""
        return "wandb"

    @property
    def version(self) -> str:
        """The fixed run id."""
        return self.run_id

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Logs values of one step; epochs count from 1, as `best_epoch` and result rows do."""
        values = dict(metrics)
        if "epoch" in values:
            values["epoch"] += 1
        self._send(lambda: self._inner.log_metrics(values, step))

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Nothing: the resolved config of the run, which holds them, is there from the start."""

    @rank_zero_only
    def summarise(self, values: Mapping[str, Any]) -> None:
        """Puts final values into the run's summary."""
        final = dict(values)
        self._send(lambda: self._inner.experiment.summary.update(final))

    @rank_zero_only
    def close(self, exit_code: int = 0) -> None:
        """Ends the W&B run, and says what went wrong with it.

        Args:
            exit_code: 0 for a finished run. One that was interrupted goes on later: W&B is told so,
                unless it was told nothing yet. With any other the run has failed.
        """
        if exit_code in SENTENCES and not self._started:
            return
        self._send(lambda: self._finish(exit_code))
        finished = self._courier.wait(self.patience)
        self._warn()
        if not finished and not self._warned:
            _warn(f"Weights & Biases has not ended after {self.patience:g} s; not waited for")
        elif self._num_lost:
            _warn(f"Weights & Biases was too slow: {self._num_lost:,} calls were left out")

    def _send(self, act: Callable[[], Any]) -> None:
        self._warn()
        if self._problem is not None:
            return
        if not self._started:
            self._started = True
            self._courier.send(lambda: self._attempt(self._start))
        self._num_lost += not self._courier.send(lambda: self._attempt(act))

    def _start(self) -> None:
        """Makes the inner logger; on the courier's thread, as importing wandb alone takes time."""
        settings = self._settings
        offline = settings.offline()
        self._inner = self._make(
            project=settings.project,
            entity=settings.entity,
            group=settings.group,
            job_type=self._config.get("protocol"),
            tags=list(settings.tags),
            name=self.run_id,
            id=wandb_id(self.run_id),
            save_dir=str(self._dir),
            offline=offline,
            log_model=False,
            # An offline run cannot be resumed: a second start writes a second file.
            resume=None if offline else "allow",
            settings=client_settings(),
        )
        # Lightning asks for hyper-parameters of modules that saved some alone.
        self._inner.log_hyperparams(self._config)
        # Everything else has `trainer/global_step` as its x axis, which WandbLogger sees to.
        run = self._inner.experiment
        run.define_metric(f"{CURVE}/num_examples")
        run.define_metric(f"{CURVE}/*", step_metric=f"{CURVE}/num_examples")
        for (step, epoch), rows in groupby(self._before if offline else (), key=lambda row: row[:2]):
            counted = {"epoch": int(epoch) + 1} if epoch else {}
            self._inner.log_metrics({name: value for *_, name, value in rows} | counted, step)

    def _finish(self, exit_code: int) -> None:
        run = self._inner.experiment
        if exit_code in SENTENCES:
            run.mark_preempting()
        run.finish(exit_code=exit_code)

    def _attempt(self, act: Callable[[], Any]) -> None:
        if self._problem is None:
            try:
                act()
            except Exception as error:
                self._problem = error

    def _warn(self) -> None:
        """Warns once, on the run's own thread, of what failed on the other one."""
        if self._problem is not None and not self._warned:
            self._warned = True
            _warn(f"Weights & Biases failed and is left out of this run: {self._problem}")


def _warn(message: str) -> None:
    warnings.warn(
        f"{message}. metrics.csv and result.json hold everything", RuntimeWarning, stacklevel=2
    )
