"""`train.py inoculate` on a config, and what of its folder must not depend on an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from probelight.protocols import cli


def run(config: dict[str, Any], output_dir: Path, tmp_path: Path) -> int:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return cli.main(["inoculate", "--config", str(path), "--output_dir", str(output_dir)])


def assert_same(one: Path, two: Path) -> None:
    first, second = outcome(one), outcome(two)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on an interruption."""
    found: dict[str, Any] = {"results": (folder / "results.csv").read_bytes()}
    for path in sorted(folder.glob("runs/*/**/*")):
        if path.name in {
            "model.safetensors",
            "head.safetensors",
            "predictions.jsonl",
            "metrics.csv",
        }:
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
