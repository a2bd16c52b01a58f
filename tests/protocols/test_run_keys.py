"""Runs that are finished are found again: the keys of a command's runs stay what they were."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fixtures.checkout import ROOT

INPUTS = ROOT / "tests" / "fixtures" / "run_keys"
EXPECTED = ROOT / "tests" / "fixtures" / "run_keys.json"


def test_commands_plan_runs_under_the_keys_that_they_had(tmp_path: Path) -> None:
    """Computed by the code of 07ea6b0 on the probes that are shipped since.

    The counts of an audit (`giveaways`) alone are those of later code: they came to find a word of
    the question in an answer by its stem, and their key says so.
    """
    shutil.copytree(INPUTS, tmp_path / "inputs")
    made = subprocess.run(
        [sys.executable, ROOT / "tests" / "protocols" / "planned_keys.py", tmp_path / "inputs"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    found, expected = json.loads(made.stdout), json.loads(EXPECTED.read_text("utf-8"))
    assert found.keys() == expected.keys()
    for command, keys in expected.items():
        assert found[command] == keys, command
