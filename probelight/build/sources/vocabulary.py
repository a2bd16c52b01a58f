"""Which words a model has as one piece."""

from __future__ import annotations

import json
from pathlib import Path


def read_vocabulary(path: Path) -> frozenset[str]:
    """Reads a model's pieces from vocab.txt or tokenizer.json, or from a folder with one of them.

    Raises:
        FileNotFoundError: If there is neither.
    """
    path = Path(path)
    candidates = [path / "vocab.txt", path / "tokenizer.json"] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.is_file():
            text = candidate.read_text(encoding="utf-8")
            if candidate.suffix == ".json":
                return frozenset(json.loads(text)["model"]["vocab"])
            return frozenset(text.splitlines())
    raise FileNotFoundError(f"{path}: no vocab.txt or tokenizer.json of a model is there")
