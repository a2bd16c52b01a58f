"""What commands that train nothing leave in Weights & Biases, in a process that has no key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.wandb_offline import fresh_environment, read_offline_runs

SEND = "to send it to Weights & Biases: wandb sync "


def printed(arguments: str, folder: Path, **variables: str) -> tuple[list[str], list[str]]:
    """The lines on stdout and stderr of a command that may use W&B in the project p."""
    done = subprocess.run(
        [sys.executable, ROOT / "train.py", *arguments.split(), "--wandb.project=p"],
        cwd=folder,
        env=fresh_environment(folder / "home", **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


ZERO_SHOT = "zero-shot --models {} --probes taxonomy_small --limit 10 --output_dir out"


@pytest.mark.thorough
def test_scores_are_an_offline_run_and_the_last_line_sends_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    stdout, stderr = printed(ZERO_SHOT.format("bookshelf-lm"), tmp_path)
    [folder] = out.glob("wandb/offline-run-*")
    assert [line for line in stdout if "sync" in line] == stdout[-1:] == [f"{SEND}{folder}"]
    # One line for each phase, and none of the client's own.
    assert stderr == [
        "loading bookshelf-lm",
        "scoring taxonomy_small with bookshelf-lm: 10 items",
    ]
    [run] = read_offline_runs(out)
    assert (run.id[:14], run.group, run.exit_code) == ("zero-shot-out-", "out", 0)
    rows = read_results(out / "results.csv")
    [accuracy] = [row for row in rows if row["metric"] == "accuracy" and not row["subset"]]
    assert run.summary["accuracy/taxonomy_small/bookshelf-lm"] == float(accuracy["value"])
    assert run.summary["tables/results/nrows"] == len(rows)


@pytest.mark.slow
def test_a_rerun_is_the_same_run_and_a_comparison_has_one_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        printed(ZERO_SHOT.format("bookshelf-lm,dictionary-lm"), tmp_path)
    first, again = read_offline_runs(out)
    assert first.id == again.id
    rows = read_results(out / "results.csv")
    accuracies = {
        f"accuracy/taxonomy_small/{row['model']}": float(row["value"])
        for row in rows
        if row["metric"] == "accuracy" and not row["subset"]
    }
    assert len(accuracies) == 2
    assert accuracies.items() <= first.summary.items()
    stdout, _ = printed("compare out --output_dir compared", tmp_path)
    [run] = read_offline_runs(tmp_path / "compared")
    assert stdout[-1].startswith(f"{SEND}{tmp_path}/compared/wandb/offline-run-")
    assert accuracies.items() <= run.summary.items()
    assert "p_value/taxonomy_small/bookshelf-lm − dictionary-lm" in run.summary
    stdout, _ = printed("compare out --output_dir again", tmp_path, WANDB_MODE="disabled")
    assert not any("sync" in line for line in stdout)
    assert not (tmp_path / "again" / "wandb").exists()
