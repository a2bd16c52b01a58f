from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; who asks for these tests and has none is told so."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("no chromium is on the path; Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    path = os.environ.get("PROBELIGHT_AXE")
    if not path:
        pytest.fail("npm install axe-core, and name its axe.min.js in PROBELIGHT_AXE")
    return Path(path).read_text(encoding="utf-8")
