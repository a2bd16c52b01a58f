from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.commands.unigrams import accuracies, unigram_rows
from probelight.probes.words import CorpusFit
from probelight.results.load import Run, RunSet
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.results import write_run
from tests.fixtures.rows import read_results


def row(probe: str, model: str, value: float, **columns: Any) -> Row:
    columns = {"protocol": "curve", "mode": "mlp", "control": "standard", **columns}
    return Row(value=value, metric="accuracy", probe=probe, model=model, **columns)


def results(*rows: Row) -> RunSet:
    return RunSet("r", (Run(path="p", key="k", protocol="curve", rows=rows),))


def test_max_is_the_best_mean_over_seeds_without_n_0_controls_and_parts() -> None:
    measured = results(
        row("age", "m", 0.99, num_train=0),
        row("age", "m", 0.01, num_train=0, protocol="zero_shot", scoring="pmi"),
        row("age", "m", 0.5, num_train=62, seed=1),
        row("age", "m", 0.7, num_train=62, seed=2),
        row("age", "m", 0.4, num_train=125, seed=1),
        row("age", "m", 0.9, num_train=125, seed=2, control="no_language"),
        row("age", "m", 0.95, num_train=125, seed=2, mode="linear"),
        row("age", "m", 1.0, num_train=125, seed=2, subset=subsets.template("x")),
        row("qa", "m", 0.3, num_train=62, seed=1, mode="full"),
    )
    assert accuracies(measured, "max") == {
        "age": {"m": pytest.approx(0.6)},
        "qa": {"m": pytest.approx(0.3)},
    }
    assert accuracies(measured, "zero_shot") == {"age": {"m": 0.99}}


def test_rows_worked_out_by_hand() -> None:
    scores = {"p": {"a": 0.9, "b": 0.5}, "q": {"a": 0.5, "b": 0.6}, "r": {"a": 0.7, "b": 0.6}}
    fits = {
        "p": (CorpusFit(-9.0, 10, 0), CorpusFit(-8.0, 10, 0)),
        "q": (CorpusFit(-8.5, 10, 0), CorpusFit(-8.0, 10, 0)),
        "r": (CorpusFit(-7.0, 10, 0), CorpusFit(-8.0, 10, 1)),
    }
    rows = unigram_rows(scores, fits, ("a", "b"))
    values = {(r.metric, r.probe, r.subset_text): r.value for r in rows}
    assert values["accuracy_difference", "p", ""] == pytest.approx(0.4)
    assert values["log_probability_difference", "p", ""] == pytest.approx(-1.0)
    assert values["mean_log_probability", "r", "a"] == -7.0
    # Ranks of the differences: accuracy 3 1 2, log probability 1 2 3.
    assert values["spearman", "", ""] == pytest.approx(-0.5)
    assert values["spearman_p", "", ""] == pytest.approx(1.0)  # every order has |rho| >= 0.5


def test_the_command_fits_accuracies_to_counts_of_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Callable[..., str]
) -> None:
    probes = ("age_small", "antonym_small", "taxonomy_small")
    for model, values in (("a", (0.9, 0.4, 0.5)), ("b", (0.6, 0.5, 0.5))):
        for probe, value in zip(probes, values, strict=True):
            fields = {"protocol": "zero_shot", "model": model, "probe": probe, "split": "dev"}
            measured = {**fields, "metric": "accuracy", "value": value, "num_train": 0}
            write_run(tmp_path / "in", f"{probe}-{model}", [measured])
    (tmp_path / "a.txt").write_text("older\t50\nyear\t40\nperson\t10\n")
    (tmp_path / "b.txt").write_text("older\t1\nreally\t40\nanimal\t59\n")
    command = ["unigrams", "--results", str(tmp_path / "in"), "--model_a", "a", "--model_b", "b"]
    command += ["--counts_a", str(tmp_path / "a.txt"), "--counts_b", str(tmp_path / "b.txt")]
    command += ["--output_dir", str(tmp_path / "out")]
    assert cli.main([*command, "--measure", "zero_shot"]) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    values = {(r["metric"], r["probe"], r["subset"]): float(r["value"]) for r in rows}
    assert values["accuracy_difference", "age_small", ""] == pytest.approx(0.3)
    # "A 21 year old person is [MASK] than me in age, If I am a 35 year old person", both answers:
    # 21 year old person age 35 year old person younger older, 11 content words; the corpus of a
    # has older, year (twice) and person (twice) of them, in 100 tokens of 3 types.
    seen = math.log(51) + 2 * math.log(41) + 2 * math.log(11)
    assert values["mean_log_probability", "age_small", "a"] == pytest.approx(
        seen / 11 - math.log(104)
    )
    assert -1 <= values["spearman", "", ""] <= 1
    assert "0.22" in capsys.readouterr().out
    none = tmp_path / "none"
    line = refused([*command[:-1], str(none)])
    assert "fewer than two probes have results of both a and b" in line
    assert "--measure max (you can also try zero_shot) there are results of no model" in line
    line = refused([*command[:-1], str(none), "--measure=zero_shot", "--model_b=c"])
    assert "results of both a and c" in line
    assert "results of a, b" in line
    assert not none.exists()
