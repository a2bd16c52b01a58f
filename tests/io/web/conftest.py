from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from probelight.io import download
from tests.io.web.server import Server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with Server(tmp_path) as running:
        thread = Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
