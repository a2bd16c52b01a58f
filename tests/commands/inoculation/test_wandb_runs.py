"""What an inoculation leaves in Weights & Biases: the command in a process of its own, and no key.

Such a process has nothing that tells W&B to be offline: neither a variable that a test sets, nor
settings that an earlier test left in the client.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.wandb_offline import fresh_environment, points_of, read_offline_run
from tests.fixtures.wandb_server import running_server

SEND = "to send it to Weights & Biases: "


def inoculate(config: dict[str, Any], folder: Path, *options: str, **variables: str) -> str:
    """What the command says on 30 items, so that steps are of 16 and 14; it leaves folder/out."""
    config = {**config, "dose": 30, "batch_size": 16}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "train.py", "inoculate"),
            *(f"--config={folder / 'config.yaml'}", f"--output_dir={folder / 'out'}"),
            *("--wandb.project=p", *options),
        ],
        env=fresh_environment(folder / "home", **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def folder_of(out: Path, name: str) -> Path:
    [run] = out.glob(f"runs/{name}-*")
    return run


def assert_recorded(out: Path) -> None:
    """W&B has all that the run's own file has, and nothing is left to be recorded."""
    for name in ("inoculate", "original"):
        folder = folder_of(out, name)
        run = read_offline_run(folder)
        assert (run.id, run.exit_code) == (folder.name, 0)
        points = run.points()
        assert points == points_of(folder / "metrics.csv")
        assert {"train/loss", "lr-AdamW", "val/original_accuracy"} <= {point[1] for point in points}
    assert not list(out.glob("runs/*/wandb/pending.json"))


@pytest.mark.thorough
def test_without_a_key_the_runs_are_recorded_offline_with_config_epochs_and_report(
    inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    printed = inoculate(inoculation_config, tmp_path)
    assert "RuntimeWarning" not in printed, printed
    offline = tmp_path / "out"
    assert "W&B" not in printed
    assert printed.count("wandb sync") == 1
    assert printed.endswith(f"{SEND}wandb sync {offline}/runs/*/wandb/latest-run\n")
    assert_recorded(offline)
    run, original = (
        read_offline_run(folder_of(offline, name)) for name in ("inoculate", "original")
    )
    resolved = yaml.safe_load((folder_of(offline, "inoculate") / "config.yaml").read_text())
    assert {key: run.config[key] for key in resolved} == resolved
    assert original.config["original"]["name"] == "first"
    assert run.logged("learning_curve/num_examples") == [30, 60, 90]
    epochs = [row["epoch"] for row in run.history if "val/aggregate" in row]
    assert epochs == [1, 2, 3]
    assert run.summary["best_epoch"] in epochs
    reported = {
        row["metric"]: float(row["value"])
        for row in read_results(offline / "results.csv")
        if (row["protocol"], row["split"], row["subset"]) == ("inoculation", "report", "")
    }
    # A random model is at chance, so there was nothing to lose: the report prints no cost.
    assert "inoculation_cost" in reported
    assert run.summary["cost_interpretable"] == 0
    assert run.logged("inoculation_cost") == []
    report = {f"report/{k}": v for k, v in reported.items() if k != "inoculation_cost"}
    assert {k: v for k, v in run.summary.items() if k.startswith("report/")} == report
    assert "inoculation_cost" not in run.summary
    assert "report/accuracy" in original.summary


KEY = "0123456789" * 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "online"])
@pytest.mark.parametrize("server", ["closed", "silent"])
def test_with_a_key_and_a_dead_server_the_runs_are_recorded_offline(
    mode: str, server: str, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if server == "closed":
            listening.close()
            address = "http://127.0.0.1:9"
        else:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        printed = inoculate(
            inoculation_config,
            tmp_path,
            f"--wandb.mode={mode}",
            WANDB_API_KEY=KEY,
            WANDB_BASE_URL=address,
        )
    assert f"{address} does not answer" in printed
    assert_recorded(tmp_path / "out")


@pytest.mark.slow
def test_a_server_gets_every_value_at_once_or_from_what_was_written_offline(
    inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    with running_server() as server:
        key = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": server.address}
        printed = inoculate(inoculation_config, tmp_path, **key)
        assert "RuntimeWarning" not in printed, printed
        online = folder_of(tmp_path / "out", "inoculate")
        assert server.points(online.name) == points_of(online / "metrics.csv") != []
    (tmp_path / "off line").mkdir()
    printed = inoculate(inoculation_config, tmp_path / "off line")
    command = printed.splitlines()[-1].removeprefix(SEND)
    with running_server() as server:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": server.address, "PATH": path}
        subprocess.run(
            ["/bin/sh", "-c", command],
            env=fresh_environment(tmp_path / "home", **variables),
            check=True,
        )
        for name in ("inoculate", "original"):
            offline = folder_of(tmp_path / "off line" / "out", name)
            assert server.points(offline.name) == points_of(offline / "metrics.csv") != []
