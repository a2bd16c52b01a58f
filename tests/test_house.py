"""The rooms of the house, drawn from the imports: each uses the floors below it, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# From the ground up. A room may use the rooms of lower floors, never one of its own or above.
FLOORS = (
    {"storage"},
    {"probes", "metrics", "results"},
    {"datamodules", "callbacks"},
    {"lightning_modules", "jobs", "reports"},
    {"protocols"},
    {"train"},
)
ROOMS = set().union(*FLOORS)
LIGHTNING = {"pytorch_lightning", "lightning", "lightning_fabric", "transformers"}
WITHOUT_LIGHTNING = {"storage", "probes", "metrics", "results", "reports"}


def modules(room: str) -> list[Path]:
    folder = ROOT / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{room}.py"]


def imported(source: str) -> Iterator[str]:
    """The top-level names that a module imports anywhere, for type checking alone too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def forbidden(room: str) -> set[str]:
    [floor] = [number for number, rooms in enumerate(FLOORS) if room in rooms]
    above = set().union(*FLOORS[floor:]) - {room}
    return above | (LIGHTNING if room in WITHOUT_LIGHTNING else set())


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_uses_the_floors_below_it(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in sorted(set(imported(path.read_text("utf-8"))) & forbidden(room))
    ]
    assert wrong == []


def test_every_room_is_on_a_floor() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders - {"tests", "benchmarks"} == ROOMS - {"train"}


def test_imports_inside_functions_and_for_types_are_seen() -> None:
    source = """
import torch.nn
from probes.record import Record
from . import neighbour
if TYPE_CHECKING:
    import pandas
def late():
    from transformers import AutoModel
"""
    assert set(imported(source)) == {"torch", "probes", "pandas", "transformers"}


def test_what_is_forbidden_follows_from_the_floors() -> None:
    assert "results" in forbidden("probes")
    assert {"protocols", "jobs", "pytorch_lightning"} <= forbidden("reports")
    assert forbidden("jobs") == {"lightning_modules", "reports", "protocols", "train"}
