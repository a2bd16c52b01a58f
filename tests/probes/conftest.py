from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probes.tiny_wordnet import write_wordnet


@pytest.fixture(scope="session")
def tiny_wordnet_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the database files."""
    return write_wordnet(tmp_path_factory.mktemp("wordnet"))


@pytest.fixture(scope="session")
def tiny_wordnet(tiny_wordnet_dir: Path) -> Any:
    """The opened database."""
    from probelight.build.sources.wordnet import open_wordnet

    return open_wordnet(tiny_wordnet_dir)


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a probe's YAML file: `config_file(text, name="mine")` gives its path."""

    def write(text: str, name: str = "mine") -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return write
