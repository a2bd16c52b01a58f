"""Prints, as JSON, the keys of the runs that commands plan; nothing is run.

    python tests/runs/planned_keys.py FOLDER > tests/fixtures/run_keys.json

The commands are in tests/fixtures/run_keys_commands.yaml. FOLDER is a copy of
tests/fixtures/run_keys, what they read; they leave their folders in it. A process of its own, as
`run_jobs` is replaced before the commands import it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from string import Template
from typing import NamedTuple, NoReturn

import numpy as np
import yaml
from safetensors.numpy import load_file, save_file

from probelight.cli import main, parsing
from probelight.runs import run as jobs_run
from probelight.runs.spec import Job

ROOT = Path(__file__).parents[2]
TABLE = yaml.safe_load((ROOT / "tests/fixtures/run_keys_commands.yaml").read_text("utf-8"))


class Change(NamedTuple):
    """What the runs of a command must be under changed settings, or of another command."""

    command: str  # names of commands
    changed: str
    expected: str  # "part", "collide", "add", or "share" with beginnings of keys


def command_and_changes() -> tuple[dict[str, str], list[Change]]:
    """Return all commands by their names, those with changed settings too, and the changes."""
    commands, changes = {}, []
    for name, entry in TABLE["commands"].items():
        commands[name] = entry.pop("command")
        for expected, settings in entry.items():
            for setting in settings:
                changed = f"{name}, {setting}" if setting[0] in "-'$" else setting
                if changed != setting:
                    commands[changed] = f"{commands[name]} {setting}"
                changes.append(Change(name, changed, expected))
    return {n: Template(text).substitute(TABLE["words"]) for n, text in commands.items()}, changes


COMMANDS, CHANGES = command_and_changes()


class PlannedError(Exception):
    """A command has planned, and would begin."""


def planned_keys(folder: Path) -> dict[str, list[str]]:
    """Return the keys that each command plans, in the order of its jobs."""
    keys: list[str] = []

    def note(plan: Sequence[Job], *_: object) -> NoReturn:
        keys.extend(job.key for job in plan)
        raise PlannedError

    jobs_run.run_jobs = note  # type: ignore[assignment]
    # Half of the time would go into parsers, and a tenth into what only a crash could lose.
    parsing.command_parser = cache(parsing.command_parser)  # type: ignore[assignment]
    os.fsync = lambda fd: None
    # An optional package, which the counts of an audit say whether they had.
    sys.modules["wordfreq"] = None  # type: ignore[assignment]
    add_inputs(folder)
    os.chdir(folder)
    keys_by_command = {}
    for number, (name, command) in enumerate(COMMANDS.items()):
        keys.clear()
        code = main([*shlex.split(command), f"--output_dir=out{number}"])
        if name.startswith("sweep"):
            assert code == 0, name
            keys.extend(sorted(path.name for path in Path(f"out{number}/runs").iterdir()))
        assert keys, name
        keys_by_command[name] = [*keys]
    return keys_by_command


def add_inputs(folder: Path) -> None:
    """Add weights to the models, other models and another WordNet, and all of it at other paths."""
    weights = {"weights": np.zeros((1024, 4), np.float32)}
    for path in (*folder.glob("*/config.json"), *folder.glob("*/adapter_config.json")):
        save_file(weights, str(path).replace("config.json", "model.safetensors"))
    head = shutil.copytree(ROOT / "assets/bookshelf-qa", folder / "retrained") / "head.safetensors"
    save_file({name: tensor + 1 for name, tensor in load_file(head).items()}, head)
    nouns = shutil.copytree(folder / "wordnet", folder / "larger_wordnet") / "data.noun"
    nouns.write_text(nouns.read_text("utf-8") + "  \n", "utf-8")
    shutil.copytree(folder, folder / "copy", ignore=shutil.ignore_patterns("copy"))


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        all_keys = planned_keys(Path(sys.argv[1]))
    print(json.dumps(all_keys, indent=1))
