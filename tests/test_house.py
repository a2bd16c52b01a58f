"""The rooms of the house, drawn from the imports: which room may use which, and no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.fixtures.checkout import ROOT

PACKAGE = ROOT / "probelight"

# Which rooms a room may use directly, and with each of them what that one may use. `io` is of all.
USES = {
    "protocols": {
        "lightning_modules",
        "datamodules",
        "callbacks",
        "reports",
        "integrations",
        "build",
    },
    "callbacks": {"models", "results"},
    "datamodules": {"models", "results"},
    "lightning_modules": {"datamodules"},
    "integrations": {"models", "results"},
    "reports": {"results"},
    "models": {"encoding", "metrics"},
    "results": {"metrics", "probes"},
    "encoding": {"probes"},
    "build": {"probes"},
    "probes": set(),
    "metrics": set(),
    "io": set(),
}
LIGHTNING = {"pytorch_lightning", "lightning", "lightning_fabric"}
WITH_LIGHTNING = {"protocols", "callbacks", "datamodules", "lightning_modules"}
WITHOUT_TRANSFORMERS = {"io", "probes", "metrics", "results", "reports", "build"}
MOST_IMPORTS = 0.1  # of all lines of the package


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its dotted name; the rooms that are links among them."""
    found = {}
    for room in sorted(PACKAGE.iterdir()):
        paths = room.rglob("*.py") if room.is_dir() else [room] if room.suffix == ".py" else []
        for path in paths:
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path.read_text(encoding="utf-8")
    return found


def imported(source: str) -> Iterator[str]:
    """What a module imports anywhere, for type checking alone too, and names in strings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^(probelight(?:\.\w+)+)(?::\w+)?$", node.value)


@cache
def used_by(module: str) -> frozenset[str]:
    """The modules of the package that one imports; a name in a module counts for the module."""
    known, found = sources(), set()
    for name in imported(known[module]):
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name and name not in {module, "probelight"}:
            found.add(name)
    return frozenset(found)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def allowed(room: str) -> set[str]:
    found, new = {room, "io"}, {room}
    while new:
        new = set().union(*(USES[name] for name in new)) - found
        found |= new
    return found


@pytest.mark.parametrize("room", sorted(USES))
def test_a_room_uses_those_that_it_may(room: str) -> None:
    wrong = [
        f"{module} uses {name}"
        for module in sources()
        if room_of(module) == room
        for name in sorted(used_by(module))
        if room_of(name) not in allowed(room)
    ]
    assert wrong == []


def test_every_room_is_drawn() -> None:
    rooms = {room_of(module) for module in sources()} - {"", "__main__"}
    assert rooms <= set(USES)


def test_few_rooms_know_lightning_and_transformers() -> None:
    wrong = []
    for module, source in sources().items():
        top = {name.split(".")[0] for name in imported(source)}
        room = room_of(module)
        if room not in WITH_LIGHTNING and module != "probelight.integrations.lightning":
            wrong += [f"{module} imports {name}" for name in sorted(top & LIGHTNING)]
        if room in WITHOUT_TRANSFORMERS and "transformers" in top:
            wrong.append(f"{module} imports transformers")
    assert wrong == []


def test_nothing_is_imported_by_the_bare_name_of_a_room() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, source in sources().items()
        for name in imported(source)
        if name.split(".")[0] in USES and name.split(".")[0] != "io"
    ]
    assert wrong == []


def test_no_modules_use_each_other_in_a_circle() -> None:
    assert circles({module: used_by(module) for module in sources()}) == []


def circles(uses: dict[str, frozenset[str]]) -> list[str]:
    """The modules that reach themselves by what they use; a package counts by its own module."""
    found = []
    for start in uses:
        reached, new = set(), {*uses[start]}
        while new:
            reached |= new
            new = set().union(*(uses[name] for name in new)) - reached
        if start in reached:
            found.append(start)
    return found


def test_imports_take_few_lines() -> None:
    lines = imports = 0
    for source in sources().values():
        lines += source.count("\n")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
    assert imports / lines < MOST_IMPORTS


def test_imports_inside_functions_for_types_and_in_strings_are_seen() -> None:
    source = '''
import torch.nn
from probelight.probes.record import Record
if TYPE_CHECKING:
    import pandas
def late():
    """See probelight.metrics.choices."""
    from transformers import AutoModel
RUNNER = "probelight.protocols.zero_shot:score_set"
'''
    found = {*imported(source)}
    assert {"torch.nn", "probelight.probes.record", "pandas", "transformers"} <= found
    assert "probelight.protocols.zero_shot" in found
    assert "probelight.metrics.choices" not in found


def test_what_is_allowed_follows_from_the_arrows() -> None:
    assert allowed("probes") == {"probes", "io"}
    assert allowed("reports") == {"reports", "results", "metrics", "probes", "io"}
    assert allowed("protocols") == set(USES)
    assert "callbacks" not in allowed("lightning_modules")


def test_circles_are_found() -> None:
    uses = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles({name: frozenset(used) for name, used in uses.items()}) == ["a", "b", "c"]
