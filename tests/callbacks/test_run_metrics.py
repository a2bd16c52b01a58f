from __future__ import annotations

from pathlib import Path

import pytest

from callbacks.run_metrics import RunMetrics


def test_values_are_written_one_a_line(tmp_path: Path) -> None:
    metrics = RunMetrics(tmp_path / "metrics.csv")
    metrics.log_metrics({"train/loss": 0.5, "epoch": 0}, 3)
    metrics.save()
    assert (tmp_path / "metrics.csv").read_text() == "step,epoch,metric,value\n3,0,train/loss,0.5\n"


def test_a_resumed_run_leaves_the_file_of_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed = RunMetrics(tmp_path / "a.csv")
    for step in range(4):
        undisturbed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    undisturbed.save()
    killed = RunMetrics(tmp_path / "b.csv")
    for step in range(3):  # the state was saved behind step 1, step 2 is logged and lost
        killed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    killed.save()
    resumed = RunMetrics(tmp_path / "b.csv")
    resumed.resume_from(2)
    for step in (2, 3):
        resumed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    resumed.save()
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_a_damaged_file_is_named_before_it_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,epoch\n")
    with pytest.raises(ValueError, match=r"metrics.csv: its lines .*; remove "):
        RunMetrics(tmp_path / "metrics.csv")
