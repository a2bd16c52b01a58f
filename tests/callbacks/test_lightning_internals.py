from __future__ import annotations

import ast
import logging
import signal
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from lightning_fabric.accelerators.cuda import _check_cuda_matmul_precision
from lightning_utilities.core.rank_zero import log

from probelight.callbacks.last_state import READ_IN, AgreedStop
from probelight.io.process import STOP
from probelight.training.fit import quiet_lightning
from tests.callbacks.line import Line, batches
from tests.fixtures.checkout import ROOT

PRIVATE = (
    "_signal_connector",
    "_should_accumulate",
    "batch_progress",
    "_SignalConnector",
    "_broadcast_sigterm_tensor",
)


def test_the_installed_release_is_one_that_they_were_read_in() -> None:
    assert pl.__version__.startswith(READ_IN), (
        f"Lightning {pl.__version__}: read again what callbacks/last_state.py uses of it "
        f"(it was read in {', '.join(READ_IN)}), then add the release there"
    )


@pytest.mark.parametrize("room", ["callbacks", "datamodules", "lightning_modules", "training"])
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
    handler = signal.signal(signal.SIGTERM, lambda *_: heard.append(True))

    class Sent(Line):
        def on_train_start(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    try:
        module = Sent()
        quiet_trainer(callbacks=[AgreedStop()]).fit(module, batches(2))
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert heard == [True]
    assert module.steps == [True, True]


def test_lightning_does_not_say_too_that_tensor_cores_are_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "H200")
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(log.name.split(".")[0])
    logger.addHandler(handler)
    try:
        level = logger.level
        logger.setLevel(logging.INFO)
        _check_cuda_matmul_precision.__wrapped__(torch.device("cuda"))
        quiet_lightning()
        _check_cuda_matmul_precision.__wrapped__(torch.device("cuda"))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert len(messages) == 1
