"""Commands in the processes of srun, by the variables that it sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from probelight import cli

ZERO_SHOT = ["zero-shot", "--probes=age_small"]
CURVE = ["curve", "--probes=age_small", "--grid.sizes=[62]", "--grid.seeds=[0]"]
FIT = ["fit", "--config=configs/experiment/fit_masked_choice.yaml", "--trainer.accelerator=cpu"]
OPTIONS = ["--trainer.accelerator=cpu", "--trainer.threads=1", "--trainer.progress_bar=false"]


def task(number: int) -> dict[str, str]:
    """The variables of one of two tasks on this machine."""
    return {
        "SLURM_JOB_ID": str(20_000 + os.getpid() % 10_000),  # Lightning makes a port of it
        "SLURM_JOB_NAME": "probe",
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_NNODES": "1",
        "SLURM_NODELIST": "localhost",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": str(number),
        "SLURM_LOCALID": str(number),
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", [ZERO_SHOT, CURVE], ids=["zero-shot", "curve"])
def test_two_tasks_print_once_and_leave_what_one_process_leaves(
    command: list[str], tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "probelight"]

    def start(folder: str, *options: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*program, *command, *OPTIONS, f"--output_dir={folder}", *options],
            cwd=tmp_path,
            env={**os.environ, **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    single = start("one")
    expected = single.communicate(timeout=300)[0].replace("one/", "out/")
    tasks = [start("two", "--trainer.devices=2", **task(number)) for number in range(2)]
    printed = []
    for process in tasks:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        printed.append(out.replace("two/", "out/"))
    assert printed == [expected, ""]
    assert "out/results.csv" in expected
    results = [(tmp_path / name / "results.csv").read_text() for name in ("one", "two")]
    assert results[0] == results[1]


@pytest.mark.parametrize("command", [[*ZERO_SHOT, *OPTIONS], FIT], ids=["zero-shot", "fit"])
def test_two_tasks_for_one_device_are_refused(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in task(0).items():
        monkeypatch.setenv(name, value)
    assert cli.main([*command, f"--output_dir={tmp_path / 'out'}"]) == 2
    assert "error: srun started 2 processes, but there must be one " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
