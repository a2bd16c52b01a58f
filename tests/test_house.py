"""The house, held: which room may use which, no circles, and limits that only ever get stricter."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from pprint import pprint

import pytest

from tests.fixtures.checkout import ROOT

# The limits. Lower them when you can; whoever has to raise one says why in the commit.
# `python -m tests.test_house` prints what they would be now.
ROOMS = {  # of each, the names that say nothing, and the lines
    "api": (3, 1106),
    "builders": (0, 5724),
    "callbacks": (1, 1208),
    "cli": (0, 1469),
    "commands": (1, 11586),
    "datamodules": (0, 668),
    "encoding": (0, 2935),
    "evaluation": (0, 1753),
    "integrations": (0, 1063),
    "io": (0, 2856),
    "lightning_modules": (0, 2310),
    "metrics": (0, 2509),
    "models": (1, 7187),
    "probelight": (0, 140),
    "probes": (0, 4222),
    "reports": (6, 10968),
    "results": (3, 4613),
    "runs": (1, 3158),
    "train": (0, 11),
    "training": (0, 1184),
}
LIMITS = {
    "lines of all rooms": 66_670,
    "lines of tests": 62_212,
    "lines of CONTRIBUTING": 400,
    "lines of CHANGELOG, unreleased": 150,
    "names that only say that they hold something": 373,
    "share of names that say nothing": 0.0006,
    "share of lines that import": 0.085,
}
SHARED_TYPES: dict[str, int] = {}  # how many modules have a type of this name
# Commands that import others: a check is zero-shot of two models, and forgetting between them.
COMMAND_USES: dict[str, set[str]] = {"check": {"forgetting", "zero_shot"}}

# Names that do not say what they hold, and those that say no more than that they hold something.
EMPTY = frozenset(
    "found made given known own one asked kept put said told posed place there here other others "
    "rest whole wanted written shown taken left unfit worded way ways thing things what such part "
    "parts of_one of_all asked_so now before behind beside".split()
)
VAGUE = frozenset("result value item data info res tmp".split())

FACADE = "probelight"
COMMANDS = "probelight.commands"  # what is in it is a command, but for these
NOT_COMMANDS = {"command"}

# Which rooms a room may use directly, and with each of them what that one may use. `io` is of all.
# `probelight` is the facade (and `python -m probelight`): the rooms below do not use it.
USES = {
    "train": {"probelight"},
    "probelight": {"api", "cli"},
    "api": {"commands"},
    "cli": {"commands"},
    "commands": {"builders", "evaluation", "integrations", "reports", "runs", "training"},
    "evaluation": {"models", "training"},
    "training": {"callbacks", "datamodules", "lightning_modules", "runs"},
    "runs": {"callbacks", "reports"},
    "integrations": {"evaluation", "reports"},
    "callbacks": {"models", "results"},
    "datamodules": {"models", "results"},
    "lightning_modules": {"datamodules"},
    "reports": {"results"},
    "models": {"encoding", "metrics"},
    "results": {"metrics", "probes"},
    "encoding": {"probes"},
    "builders": {"probes"},
    "probes": set(),
    "metrics": set(),
    "io": set(),
}
LIGHTNING = {"pytorch_lightning", "lightning", "lightning_fabric"}
WITH_LIGHTNING = {"callbacks", "datamodules", "evaluation", "lightning_modules", "training"}
LIGHTNING_MODULES = {"probelight.cli.lightning", "probelight.integrations.lightning"}
WITHOUT_TRANSFORMERS = {"io", "probes", "metrics", "results", "reports", "builders"}

text = partial(Path.read_text, encoding="utf-8")


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its dotted name; the rooms that are links among them."""
    texts = {"train": text(ROOT / "train.py")}
    for room in sorted((ROOT / FACADE).iterdir()):
        paths = room.rglob("*.py") if room.is_dir() else [room] if room.suffix == ".py" else []
        for path in paths:
            names = path.relative_to(ROOT).with_suffix("").parts
            module = ".".join(names[:-1] if names[-1] == "__init__" else names)
            texts[module] = text(path)
    return texts


def room_of(module: str) -> str:
    names = module.removesuffix(".__main__").split(".")
    return names[1] if len(names) > 1 else names[0]


@cache
def nodes(source: str) -> list[ast.AST]:
    """The module and all that is in it."""
    return [*ast.walk(ast.parse(source))]


def teardown_module() -> None:
    nodes.cache_clear()  # 100 MB


@cache
def bound(source: str) -> list[str]:
    """Every name that a module binds: variables, parameters, functions, classes."""
    names = []
    for node in nodes(source):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.append(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.append(node.name)
    return names


def num_named(source: str, words: Iterable[str]) -> int:
    """How many of the names that a module binds are one of these words."""
    return sum(name.strip("_") in words for name in bound(source))


@cache
def sizes() -> dict[str, tuple[int, int]]:
    """By room, how many names in it say nothing, and how many lines it has."""
    num_empty, num_lines = Counter[str](), Counter[str]()
    for module, source in sources().items():
        num_empty[room_of(module)] += num_named(source, EMPTY)
        num_lines[room_of(module)] += source.count("\n")
    return {room: (num_empty[room], num_lines[room]) for room in sorted(num_lines)}


def num_import_lines(source: str) -> int:
    imports = (n for n in nodes(source) if isinstance(n, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def shared_types(modules: Mapping[str, str]) -> dict[str, int]:
    """How many modules have a type of the same name, private or not, where several have."""
    counts = Counter[str]()
    for source in modules.values():
        classes = (node for node in nodes(source)[0].body if isinstance(node, ast.ClassDef))
        counts.update({node.name.lstrip("_") for node in classes})
    return {name: count for name, count in sorted(counts.items()) if count > 1}


def test_names_are_counted_wherever_they_are_bound() -> None:
    source = """
from a import found
for place in places: pass
def _given(part, *, known=2): return found.own
class Here:
    made: int
    def __init__(self): self.whole, rest_ = [row for row in (other := rows)], 1
with open(path) as _value: item = found_rows
"""
    names = "place _given part known Here made __init__ self rest_ row other _value item".split()
    assert {*bound(source)} == {*names}
    assert num_named(source, EMPTY) == 7
    assert num_named(source, VAGUE) == 2


def test_types_that_share_a_name_are_counted_once_a_module() -> None:
    source = "class Row: ...\nclass Row: ...\nclass Cell: ..."
    modules = {"a": source, "b": "class _Row:\n    class Cell: ...", "c": "class Point: ..."}
    assert shared_types(modules) == {"Row": 2}


def unreleased(changelog: str) -> str:
    """The lines of a changelog below the heading of what is not released, up to the next one."""
    assert "\n## [Unreleased]\n" in changelog
    return re.split(r"^## .*\n", changelog.partition("\n## [Unreleased]\n")[2], flags=re.M)[0]


@cache
def measured() -> dict[str, float]:
    """What has a limit in `LIMITS`."""
    num_lines = sum(lines for _, lines in sizes().values())
    num_names = sum(len(bound(source)) for source in sources().values())
    num_empty = sum(empty for empty, _ in sizes().values())
    num_vague = sum(num_named(source, VAGUE) for source in sources().values())
    return {
        "lines of all rooms": num_lines,
        "lines of tests": sum(text(path).count("\n") for path in (ROOT / "tests").rglob("*.py")),
        "lines of CONTRIBUTING": text(ROOT / "CONTRIBUTING.md").count("\n"),
        "lines of CHANGELOG, unreleased": unreleased(text(ROOT / "CHANGELOG.md")).count("\n"),
        "names that only say that they hold something": num_vague,
        "share of names that say nothing": num_empty / num_names,
        "share of lines that import": sum(map(num_import_lines, sources().values())) / num_lines,
    }


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_has_more_lines_or_more_names_that_say_nothing(room: str) -> None:
    num_empty, num_lines = sizes()[room]
    most_empty, most_lines = ROOMS[room]
    assert num_empty <= most_empty
    assert num_lines <= most_lines


@pytest.mark.parametrize("subject", LIMITS)
def test_nothing_exceeds_its_limit(subject: str) -> None:
    assert measured()[subject] <= LIMITS[subject]


def test_no_more_types_share_a_name() -> None:
    assert Counter(shared_types(sources())) - Counter(SHARED_TYPES) == {}


def test_unreleased_lines_end_at_the_next_version() -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A\n  b\n\n## [0.1.0]\n\n- C\n"
    assert unreleased(changelog) == "\n### Added\n\n- A\n  b\n\n"


@cache
def imported(source: str) -> list[str]:
    """What a module imports anywhere, for type checking alone too, and names in strings."""
    names = []
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names += [f"{FACADE}.{node.attr}"] if node.value.id == FACADE else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += re.findall(r"^(probelight(?:\.\w+)+)(?::\w+)?$", node.value)
    return names


@cache
def exported(facade: str) -> dict[str, str]:
    """The module of each name that the facade loads when it is first used: its `_MODULES`."""
    assigned = [node for node in nodes(facade) if isinstance(node, ast.Assign)]
    [modules] = [node.value for node in assigned if ast.unparse(node.targets[0]) == "_MODULES"]
    pairs = [(name, key) for key, names in ast.literal_eval(modules).items() for name in names]
    return {f"{FACADE}.{name}": f"{FACADE}.{module}" for name, module in pairs}


def modules_used(user: str, modules: Mapping[str, str]) -> set[str]:
    """The other modules that one imports; with a name of the facade, also where it comes from."""
    exports = exported(modules[FACADE])
    used = set()
    for name in [*imported(modules[user]), *(exports if user == FACADE else ())]:
        used.add(exports.get(name, ""))
        while name and name not in modules:
            name = name.rpartition(".")[0]
        used.add(name)
    return used - {"", user}


@cache
def rooms_used(module: str) -> frozenset[str]:
    return frozenset(modules_used(module, sources()))


def reached(start: Iterable[str], uses: Mapping[str, Iterable[str]]) -> set[str]:
    """The names from which one starts, what they use, what that uses, and so on."""
    names, new = set(), {*start}
    while new:
        names |= new
        new = set().union(*(uses[name] for name in new)) - names
    return names


def allowed(room: str) -> set[str]:
    return reached([room, "io"], USES)


def circles(uses: Mapping[str, Iterable[str]]) -> list[str]:
    """The modules that reach themselves by what they use; a package counts by its own module."""
    return [module for module in uses if module in reached(uses[module], uses)]


def command_of(module: str) -> str:
    """The command that a module belongs to; "" if none."""
    folder, _, path = module.partition(f"{COMMANDS}.")
    name = path.split(".")[0]
    return "" if folder or name in NOT_COMMANDS else name


def command_uses(uses: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """The other commands that each command imports, where it does."""
    pairs = {(command_of(user), command_of(used)) for user in uses for used in uses[user]}
    pairs = {(user, used) for user, used in pairs if user and used and user != used}
    return {command: {used for user, used in pairs if user == command} for command, _ in pairs}


@pytest.mark.parametrize("room", sorted(USES))
def test_a_room_uses_those_that_it_may(room: str) -> None:
    wrong = [
        f"{module} uses {name}"
        for module in sources()
        if room_of(module) == room
        for name in sorted(rooms_used(module))
        if room_of(name) not in allowed(room)
    ]
    assert wrong == []


def test_every_room_is_drawn_and_has_limits() -> None:
    assert {*map(room_of, sources())} == {*USES} == {*ROOMS}


def test_commands_do_not_import_each_other() -> None:
    assert command_uses({module: rooms_used(module) for module in sources()}) == COMMAND_USES


def test_few_rooms_know_lightning_and_transformers() -> None:
    wrong = []
    for module, source in sources().items():
        top = {name.split(".")[0] for name in imported(source)}
        room = room_of(module)
        if room not in WITH_LIGHTNING and module not in LIGHTNING_MODULES:
            wrong += [f"{module} imports {name}" for name in sorted(top & LIGHTNING)]
        if room in WITHOUT_TRANSFORMERS and "transformers" in top:
            wrong.append(f"{module} imports transformers")
    assert wrong == []


def test_nothing_is_imported_by_the_bare_name_of_a_room() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, source in sources().items()
        for name in imported(source)
        if name.split(".")[0] in USES.keys() - {"io", FACADE}
    ]
    assert wrong == []


def test_no_modules_use_each_other_in_a_circle() -> None:
    assert circles({module: rooms_used(module) for module in sources()}) == []


def test_imports_inside_functions_for_types_and_in_strings_are_seen() -> None:
    source = '''
import torch.nn
from probelight.probes.record import Record
if TYPE_CHECKING:
    import pandas
def late():
    """See probelight.metrics.choices."""
    from transformers import AutoModel
RUNNER = "probelight.commands:score_set"
'''
    names = {*imported(source)}
    assert {"torch.nn", "probelight.probes.record", "pandas", "transformers"} <= names
    assert "probelight.commands" in names
    assert "probelight.metrics.choices" not in names


def test_the_facade_is_used_with_what_it_loads() -> None:
    loaded = "probelight.reports.notebook"
    modules = {
        FACADE: '_MODULES = {"reports.notebook": ("Results",)}',
        loaded: "from probelight.reports.notebook import Results",
        "a": "from probelight import Results",
        "b": "import probelight\nprobelight.Results()",
        "c": "import probelight",
    }
    users = {FACADE, loaded}
    uses = {module: modules_used(module, modules) for module in modules}
    assert uses == {FACADE: {loaded}, loaded: set(), "a": users, "b": users, "c": {FACADE}}


def test_commands_that_use_others_are_named() -> None:
    uses = {
        f"{COMMANDS}.curve.rows": [f"{COMMANDS}.curve", f"{COMMANDS}.zero_shot.rows"],
        f"{COMMANDS}.demo": [f"{COMMANDS}.curve", f"{COMMANDS}.command", "probelight.io"],
        f"{COMMANDS}.command": [f"{COMMANDS}.demo", COMMANDS],
        "probelight.reports": [f"{COMMANDS}.demo"],
    }
    assert command_uses(uses) == {"curve": {"zero_shot"}, "demo": {"curve"}}


def test_what_is_allowed_follows_from_the_arrows() -> None:
    assert allowed("probes") == {"probes", "io"}
    assert allowed("reports") == {"reports", "results", "metrics", "probes", "io"}
    assert allowed("train") == set(USES)
    assert "callbacks" not in allowed("lightning_modules")


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


if __name__ == "__main__":
    pprint({"ROOMS": sizes(), "LIMITS": measured(), "SHARED_TYPES": shared_types(sources())})
    pprint(command_uses({module: rooms_used(module) for module in sources()}))
