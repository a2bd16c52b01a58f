from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.lightning_modules.baselines.words import WORDS


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    rows = torch.randn(len(WORDS), 8, generator=torch.Generator().manual_seed(0)).tolist()
    lines = [f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WORDS, rows, strict=True)]
    (tmp_path / "v.txt").write_text("".join(lines))
    return str(tmp_path / "v.txt")
