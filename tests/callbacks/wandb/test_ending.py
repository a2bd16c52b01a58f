"""How a run in Weights & Biases ends, by how the run ended that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.io.stop_signals import STOP
from probelight.callbacks.wandb import ending
from probelight.callbacks.wandb.settings import WandbSettings
from probelight.results.metrics_file import METRICS_FILE, write_metrics
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

WANDB = WandbSettings(project="p")


class Guard:
    """What `WandbGuard` is told."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.summary: dict[str, Any] = {}
        self.codes: list[int] = []

    def summarise(self, values: dict[str, Any]) -> None:
        self.summary |= values

    def close(self, exit_code: int = 0) -> None:
        self.codes.append(exit_code)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(ending, "WandbGuard", Guard)
    return RunFolder(tmp_path, "run", {"dose": 3})


def follow(run: RunFolder, *before: Any) -> Any:
    return ending.follow(run, WANDB, *before)


def test_a_finished_run_shows_what_it_reports(run: RunFolder) -> None:
    rows = (
        Row(protocol="x", metric="accuracy", value=0.5, split="report"),
        Row(protocol="x", metric="accuracy", value=0.9, split="selection"),
    )
    replaced, logger = follow(run), follow(run)
    run.finish(RunRecord(protocol="x", rows=rows))
    run.tell(ValueError("after the end"))
    assert (logger.summary, logger.codes) == ({"report/accuracy": 0.5}, [0])
    assert (replaced.summary, replaced.codes) == ({}, [])


@pytest.mark.parametrize(
    ("end", "noted", "code"),
    [
        (ValueError("no"), None, 1),
        (SystemExit(2), None, 1),
        (SIGTERMException(), None, 143),
        # A library made another exception of the signal.
        (RuntimeError("process ended"), 130, 130),
    ],
)
def test_what_failed_has_failed_and_what_was_stopped_was_stopped(
    end: BaseException,
    noted: int | None,
    code: int,
    run: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(STOP, "code", noted)
    logger = follow(run)
    run.tell(end)
    assert logger.codes == [code]


def test_a_logger_is_told_what_was_logged_before(run: RunFolder) -> None:
    assert follow(run).arguments == (WANDB, run.key, {"dose": 3}, run.path, ())
    rows = [(0, "0", "loss", 1.0)]
    write_metrics(run.path / METRICS_FILE, rows)
    assert follow(run).arguments[-1] == rows
    assert follow(run, rows[:0]).arguments[-1] == []
