"""Weights & Biases as the second logger: it may fail, be slow or be absent, the run goes on."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities import rank_zero_only

from callbacks.wandb_settings import WandbSettings


class WandbGuard(Logger):
    """A `WandbLogger` whose failures become one warning; the local files are the truth.

    Args:
        settings: Project and mode.
        run_id: Fixed id, so that a resumed run goes on in the same W&B run.
        config: The run's resolved config.
        save_dir: Where offline runs are written.
        make: Makes the inner logger; a parameter for tests.
    """

    def __init__(
        self,
        settings: WandbSettings,
        run_id: str,
        config: Mapping[str, Any],
        save_dir: Path,
        make: Callable[..., Any] = WandbLogger,
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self._inner: Any = None
        self._failed = False
        self._config = dict(config)
        offline = settings.offline()
        arguments = {
            "project": settings.project,
            "entity": settings.entity,
            "group": settings.group,
            "tags": list(settings.tags),
            "name": run_id,
            "id": run_id,
            "save_dir": str(save_dir),
            "offline": offline,
            "log_model": False,
            # An offline run cannot be resumed: a second start writes a second file.
            "resume": None if offline else "allow",
        }

        def start() -> None:
            self._inner = make(**arguments)

        self._attempt(start)

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
        """Logs values of one step."""
        self._attempt(lambda: self._inner.log_metrics(dict(metrics), step))

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Logs the resolved config of the run in place of the module's arguments."""
        self._attempt(lambda: self._inner.log_hyperparams(self._config))

    @rank_zero_only
    def summarise(self, values: Mapping[str, Any]) -> None:
        """Puts final values into the run's summary."""
        self._attempt(lambda: self._inner.experiment.summary.update(dict(values)))

    @rank_zero_only
    def close(self, exit_code: int = 0) -> None:
        """Ends the W&B run."""
        self._attempt(lambda: self._inner.experiment.finish(exit_code=exit_code))

    def _attempt(self, act: Callable[[], Any]) -> None:
        if self._failed:
            return
        try:
            act()
        except Exception as error:
            self._failed = True
            warnings.warn(
                f"Weights & Biases failed and is left out of this run: {error}. "
                "metrics.csv and result.json hold everything",
                RuntimeWarning,
                stacklevel=3,
            )
