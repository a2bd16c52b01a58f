from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a probe's YAML file: `config_file(text, name="mine")` gives its path."""

    def write(text: str, name: str = "mine") -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return write
