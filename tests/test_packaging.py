from __future__ import annotations

import dataclasses
import re
import subprocess
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from probelight.models.registry import ModelSettings
from probelight.probes.prompts import Templates
from tests.fixtures.checkout import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Where a machine or an index would show: home and work folders, drive letters, index hosts, and
# wheels given by file. Written so that this file does not match itself.
STRAY = {
    "a machine's path": re.compile(
        r"(?<![\w.])/(?:home|Users|root|work|mnt|opt|workspace|scratch)/(?!\.\.\.)\w|\b[A-Z]:\\\\?\w"
    ),
    "a package index": re.compile(
        r"(?:pypi|pythonhosted|download\.pytorch|nvidia|anaconda|artifactory|jfrog)"
        r"(?:\.[\w-]+)*\.(?:org|com|io|net)\b"
        r"|(?:--|_)(?:extra[-_])?index[-_]url[= ]\S*//|[/.]simple/\w",
        re.IGNORECASE,
    ),
    "a local wheel": re.compile(r"file:///\S+|@\s*\S+\.whl\b"),
}
# `file:///` is a legitimate mirror address in tests and how-tos of the mirror setting.
STRAY_ALLOWED = {"a local wheel": re.compile(r"^(?:tests|docs|probes)/")}

MODEL_KEYS = {field.name for field in dataclasses.fields(ModelSettings)}

# Each folder of configs/ with what makes a file of it valid. A new folder adds its line here.
Check = Callable[[dict[str, Any]], bool]
CONFIG_KINDS: dict[str, Check] = {
    "model": lambda c: set(c) == {"model"} and set(c["model"]) <= MODEL_KEYS,
    "debug": lambda c: set(c) == {"trainer"},
    "trainer": lambda c: set(c) == {"trainer"},
    "wandb": lambda c: set(c) == {"name", "sections"},
    "probe": lambda c: {"setup", "citation"} <= set(c),
    "experiment": lambda c: bool(c),
    "sweep": lambda c: bool(c),
    "prompt": lambda c: set(c) <= {field.name for field in dataclasses.fields(Templates)},
}


@cache
def tracked_files() -> tuple[Path, ...]:
    """The files that a clone would have: tracked, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = result.stdout.decode().split("\0")
    return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())


def rooms() -> list[str]:
    return sorted(path.name for path in (ROOT / "probelight").iterdir() if path.is_dir())


def test_every_folder_with_modules_is_a_package() -> None:
    bare = [
        path.relative_to(ROOT)
        for name in rooms()
        for path in (ROOT / "probelight" / name).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert bare == []


def test_the_package_imports_nothing_that_is_in_a_checkout_alone() -> None:
    outside = re.compile(r"^\s*(?:from|import) (?:tools|tests|benchmarks|train)\b", re.MULTILINE)
    wrong = [
        path.relative_to(ROOT)
        for name in rooms()
        for path in (ROOT / "probelight" / name).rglob("*.py")
        if outside.search(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_no_package_hides_an_installed_library() -> None:
    # An import of `datasets` would find ours, not the library's.
    assert direct_dependencies().isdisjoint({"probelight", *rooms()})


def test_no_file_names_a_machine_or_an_index() -> None:
    stray = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # weights, images, packed data
        name = path.relative_to(ROOT).as_posix()
        for kind, pattern in STRAY.items():
            allowed = STRAY_ALLOWED.get(kind)
            if path == Path(__file__) or (allowed and allowed.match(name)):
                continue
            stray += [f"{name}: {kind}: {match.group()}" for match in pattern.finditer(text)]
    assert stray == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a machine's path", 'open("/home/ann/data.jsonl")'),
        ("a machine's path", "see /opt/wheels"),
        ("a package index", "pip install torch --index-url https://example.com/cpu"),
        ("a package index", "registry = https://pypi" + ".org/simple"),
        ("a local wheel", "torch @ torch-2.13.0-cp311.whl"),
    ],
)
def test_stray_patterns_find_what_they_are_for(kind: str, text: str) -> None:
    assert STRAY[kind].search(text)


def test_stray_patterns_leave_ordinary_text_alone() -> None:
    text = "datasets/home/x, ./work/y, see docs/work.md, https://example.com/a, a simple/plain text"
    assert not any(pattern.search(text) for pattern in STRAY.values())


def test_no_lock_file_is_tracked() -> None:
    assert [path for path in tracked_files() if path.suffix == ".lock"] == []


def direct_dependencies() -> set[str]:
    lines = PYPROJECT["project"]["dependencies"]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_constraints_pin_every_direct_dependency_by_public_version() -> None:
    assert direct_dependencies() - set(constraint_pins()) == set()


def constraint_pins() -> dict[str, str]:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)", line)  # no +local, no address
        assert match, line
        pins[match[1]] = match[2]
    return pins


def test_the_tested_versions_lie_within_the_declared_bounds() -> None:
    pins = constraint_pins()
    extras = PYPROJECT["project"]["optional-dependencies"]
    declared = [
        *PYPROJECT["project"]["dependencies"],
        *PYPROJECT["tool"]["uv"]["constraint-dependencies"],
        *(line for lines in extras.values() for line in lines),
    ]
    outside = []
    for requirement in map(Requirement, declared):
        pinned = pins.get(canonicalize_name(requirement.name))
        if pinned and not requirement.specifier.contains(pinned, prereleases=True):
            outside.append(f"{requirement} excludes {pinned}")
    assert outside == []


def test_every_config_parses_and_is_of_a_known_kind() -> None:
    for path in (ROOT / "configs").rglob("*.yaml"):
        kind = path.relative_to(ROOT / "configs").parts[0]
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert isinstance(config, dict), path
        assert CONFIG_KINDS[kind](config), path


def test_readme_names_the_commands_that_the_check_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    check = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("uv run train.py demo", "uv run pytest -n auto"):
        assert re.search(rf"^(?:.*&& )?{re.escape(command)}$", readme, re.MULTILINE), command
        assert command.replace(".", r"\.") in check, command


def test_the_slow_tests_that_the_check_names_are_there() -> None:
    check = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    named = re.findall(r"tests/[\w/]+(?:\.py)?", check)
    assert len(named) >= 7
    for name in named:
        paths = [path for path in tracked_files() if path.is_relative_to(ROOT / name)]
        assert any("mark.slow" in path.read_text(encoding="utf-8") for path in paths), name


def test_links_in_the_documentation_lead_somewhere() -> None:
    broken = []
    for path in tracked_files():
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert broken == []
