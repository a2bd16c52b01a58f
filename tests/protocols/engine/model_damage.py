"""What is done to model folders, and what a command says of a damaged one: one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from probelight.protocols import cli

Damage = Callable[[Path], object]
Cases = dict[str, tuple[Damage, str]]  # what is done, and what the line must say of it
RAN = "somebodys-code-ran"  # a file


def config(**changes: Any) -> Damage:
    return lambda folder: change(folder / "config.json", changes)


def change(path: Path, changes: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def write(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def without(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink() for name in names]


def cut(name: str, keep: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    def damage(folder: Path, name: str = "model.safetensors") -> None:
        tensors = load_file(folder / name)
        change(tensors)
        save_file(tensors, folder / name, metadata={"format": "pt"})

    return damage


def at_first(change: Callable[[torch.Tensor], torch.Tensor], ending: str = "weight") -> Damage:
    def apply(tensors: dict[str, torch.Tensor]) -> None:
        name = next(n for n in sorted(tensors) if n.endswith(ending) and tensors[n].dim() == 2)
        tensors[name] = change(tensors[name]).contiguous()

    return weights(apply)


def index(content: Any) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "shard.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(content))

    return damage


def shard(names: dict[str, Any]) -> Damage:
    return index({"weight_map": names, "metadata": {}})


def link(name: str, target: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def fifo(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return damage


def folder_for(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def cases(*tables: Cases) -> Any:
    rows = {name: case for table in tables for name, case in table.items()}
    return pytest.mark.parametrize(("damage", "cause"), list(rows.values()), ids=list(rows))


def one_line(
    code: int, folder: Path, cause: str, capfd: pytest.CaptureFixture[str], exit_code: int = 1
) -> None:
    said = capfd.readouterr().err.strip()
    assert code == exit_code, said
    assert len(said.splitlines()) == 1, said
    assert "Traceback" not in said
    assert str(folder) in said
    assert cause in said, said
    assert not Path(RAN).exists()


def inoculate(folder: Path, config: dict[str, Any], tmp_path: Path) -> int:
    config["original"]["checkpoint"] = str(folder)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    out = ["--output_dir", str(tmp_path / "out")]
    return cli.main(["inoculate", "--config", str(tmp_path / "run.yaml"), *out])
