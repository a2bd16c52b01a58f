"""What is used of Lightning's private parts is there, in a release that it was read in."""

from __future__ import annotations

import ast
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl

from probelight.callbacks.last_state import (
    READ_IN,
    AgreedStop,
    end_by_sigterm,
    recount_batches,
)
from probelight.io.process import STOP
from tests.callbacks.line import Line, batches

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = ("_signal_connector", "_should_accumulate", "batch_progress", "_SignalConnector")


def test_the_installed_release_is_one_that_they_were_read_in() -> None:
    assert pl.__version__.startswith(READ_IN), (
        f"Lightning {pl.__version__}: read again what callbacks/last_state.py uses of it "
        f"(it was read in {', '.join(READ_IN)}), then add the release there"
    )


@pytest.mark.parametrize("room", ["callbacks", "datamodules", "lightning_modules", "protocols"])
def test_no_other_module_uses_them(room: str) -> None:
    users = {
        path.name
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute | ast.alias)
        and (node.attr if isinstance(node, ast.Attribute) else node.name) in PRIVATE
    }
    assert users <= {"last_state.py"}


def test_a_step_is_known_from_a_batch_that_accumulates(quiet_trainer: Callable[..., Any]) -> None:
    module = Line()
    quiet_trainer(accumulate_grad_batches=2).fit(module, batches(5))
    assert module.steps == [False, True, False, True, True]  # the last batch ends the epoch


def test_a_fit_told_to_end_raises_where_lightning_looks(quiet_trainer: Callable[..., Any]) -> None:
    class Told(Line):
        def on_train_batch_end(self, *_: object) -> None:
            super().on_train_batch_end()
            end_by_sigterm(self.trainer)

    module = Told()
    with pytest.raises(SystemExit):
        quiet_trainer().fit(module, batches(3))
    assert module.steps == [True]


def test_lightning_leaves_sigterm_to_who_had_it(
    quiet_trainer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []
    monkeypatch.setattr(STOP, "hold", lambda: None)
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(True))

    class Sent(Line):
        def on_train_start(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    try:
        module = Sent()
        quiet_trainer(callbacks=[AgreedStop()]).fit(module, batches(2))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [True]
    assert module.steps == [True, True]


def test_batches_are_counted_as_if_the_same_steps_had_been_made_of_them(
    quiet_trainer: Callable[..., Any],
) -> None:
    trainer = quiet_trainer(accumulate_grad_batches=4)
    trainer.fit(Line(), batches(20))
    progress = trainer.fit_loop.epoch_loop.batch_progress
    for counts in (progress.current, progress.total):
        for name in ("ready", "started", "processed", "completed"):
            setattr(counts, name, 3)  # three steps of one batch each
    recount_batches(trainer, accumulated=1)
    assert progress.current.ready == progress.total.completed == 12
