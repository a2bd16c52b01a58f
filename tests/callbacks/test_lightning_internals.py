from __future__ import annotations

import ast
import signal
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as pl

from probelight.callbacks.last_state import READ_IN, AgreedStop
from probelight.io.process import STOP
from tests.callbacks.line import Line, batches
from tests.fixtures.checkout import ROOT

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
        for path in (ROOT / "probelight" / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute | ast.alias)
        and (node.attr if isinstance(node, ast.Attribute) else node.name) in PRIVATE
    }
    assert users == ({"last_state.py"} if room == "callbacks" else set())


def test_a_step_is_known_from_a_batch_that_accumulates(quiet_trainer: Callable[..., Any]) -> None:
    module = Line()
    quiet_trainer(accumulate_grad_batches=2).fit(module, batches(5))
    assert module.steps == [False, True, False, True, True]  # the last batch ends the epoch


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
