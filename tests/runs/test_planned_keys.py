from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.fixtures.checkout import ROOT
from tests.runs.planned_keys import CHANGES, Change

pytestmark = pytest.mark.slow  # a minute

FIXTURES = ROOT / "tests" / "fixtures"
Keys = dict[str, list[str]]  # by the names of commands


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """The keys that all commands plan."""
    inputs = shutil.copytree(FIXTURES / "run_keys", tmp_path_factory.mktemp("keys") / "inputs")
    program = [sys.executable, str(ROOT / "tests" / "runs" / "planned_keys.py"), str(inputs)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    planned: Keys = json.loads(subprocess.check_output(program, env=environment))
    return planned


def test_commands_plan_runs_under_the_keys_that_they_had(keys: Keys) -> None:
    """A folder is resumed only while its runs have their keys.

    What changes them raises `probelight.results.record.FORMAT`, and prints them anew into
    tests/fixtures/run_keys.json with tests/runs/planned_keys.py.
    """
    assert keys == json.loads((FIXTURES / "run_keys.json").read_text("utf-8"))


def test_runs_are_other_runs_where_a_setting_decides_a_number(keys: Keys) -> None:
    """Whatever the keys are: tests/fixtures/run_keys_commands.yaml says which must be the same."""
    assert [change for change in CHANGES if not is_as_expected(change, keys)] == []


def is_as_expected(change: Change, keys: Keys) -> bool:
    before, after = {*keys[change.command]}, {*keys[change.changed]}
    word, *kinds = change.expected.split()
    shared = {key for key in before if key.startswith(tuple(f"{kind}-" for kind in kinds))}
    return {
        "part": not before & after,
        "collide": before == after,
        "add": before < after,
        "share": bool(shared) and before & after == shared and before != after,
    }[word]
