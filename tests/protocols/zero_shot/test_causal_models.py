"""Causal models stand in the same tables as masked ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import train
from probes.importers.ai2 import write_ai2
from probes.record import Record
from tests.fixtures.rows import read_results

Folder = Callable[[str], Path]
GPT2 = "model:\n  name_or_path: {folder}\n  kind: causal\n  random_weights: {random}\n"


def test_a_causal_model_and_its_control_answer_sentences(
    causal_folder: Folder, tmp_path: Path
) -> None:
    own = tmp_path / "my.jsonl"
    stems = ["a cat is [MASK] than a dog .", "the dog is [MASK] ."]
    write_ai2(own, [Record(str(i), s, ("smaller", "larger"), i) for i, s in enumerate(stems)])
    models = []
    for random in (False, True):
        models.append(tmp_path / f"random_{random}.yaml")
        models[-1].write_text(GPT2.format(folder=causal_folder("gpt2"), random=str(random).lower()))
    command = ["zero-shot", f"--data.path={own}", "--data.setup=mc_mlm"]
    command += [f"--models={','.join(map(str, models))}", "--trainer.progress_bar=false"]
    assert train.main([*command, f"--output_dir={tmp_path / 'out'}", "--ranks=true"]) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {(r["model"], r["role"], r["kind"], r["mode"]) for r in rows} == {
        ("gpt2", "model", "causal", "causal_likelihood"),
        ("gpt2 (random weights)", "control", "causal", "causal_likelihood"),
    }
    results = [json.loads(p.read_text()) for p in tmp_path.glob("out/runs/*/result.json")]
    assert len({result["model_sha256"] for result in results}) == 2


def test_a_masked_model_is_no_causal_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["zero-shot", "--model.kind=causal", "--probes=age_small", f"--output_dir={tmp_path}"]
    assert train.main(command) == 1
    assert "bert (BertConfig) is a masked language model, and was" in capsys.readouterr().err
