from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fixtures.checkout import ROOT


def test_commands_plan_runs_under_the_keys_that_they_had(tmp_path: Path) -> None:
    """A folder is resumed only while its runs have their keys.

    What changes them raises `probelight.results.record.FORMAT`, and prints them anew into
    tests/fixtures/run_keys.json with tests/runs/planned_keys.py.
    """
    fixtures = ROOT / "tests" / "fixtures"
    shutil.copytree(fixtures / "run_keys", tmp_path / "inputs")
    program = [sys.executable, ROOT / "tests" / "runs" / "planned_keys.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*program, tmp_path / "inputs"], env=environment, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads((fixtures / "run_keys.json").read_text("utf-8"))
