"""Causal and encoder-decoder models are trained on original tasks and inoculated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from probelight.probes.source import load_probe
from tests.commands.inoculation.conftest import assert_same, run
from tests.fixtures.faults import TRAINING_STEP, run_with_fault
from tests.fixtures.rows import read_results

Folder = Callable[[str], Path]


def config_of(config: dict[str, Any], folder: Path, kind: str, **model: Any) -> dict[str, Any]:
    settings = {"name_or_path": str(folder), "kind": kind, "max_length": 32, **model}
    return {**config, "model": settings}


def test_an_inoculated_decoder_answers_as_transformers_says(
    inoculation_config: dict[str, Any], curve_lm: Folder, tmp_path: Path
) -> None:
    config = config_of(inoculation_config, curve_lm("gpt2"), "causal")
    assert run(config, tmp_path / "out", tmp_path) == 0
    folder = next(tmp_path.glob("out/runs/inoculate-*"))
    best = folder / "checkpoints" / "best"
    model = AutoModelForCausalLM.from_pretrained(best).eval()
    tokenizer = AutoTokenizer.from_pretrained(best)
    records = load_probe(config["probe"]["name"], "test", mirror=config["mirror"]).records
    num_right = 0.0
    for record in records:
        means = []
        for choice in record.choices:
            stem_ids = tokenizer(record.stem.strip()).input_ids
            ids = tokenizer(f"{record.stem.strip()} {choice.strip()}").input_ids
            with torch.no_grad():
                logs = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            summed = [float(logs[i - 1, ids[i]]) for i in range(len(stem_ids), len(ids))]
            means.append(sum(summed) / len(summed))
        ties = [k for k, mean in enumerate(means) if mean > max(means) - 1e-6]
        num_right += (record.answer in ties) / len(ties)
    rows = read_results(tmp_path / "out" / "results.csv")
    [accuracy] = [
        float(row["value"])
        for row in rows
        if (row["metric"], row["split"], row["subset"]) == ("probe_accuracy", "report", "")
    ]
    assert accuracy == pytest.approx(num_right / len(records))
    # M*_k is the best average of both tasks over the epochs.
    aggregates = {
        int(row["epoch"]): float(row["value"])
        for row in rows
        if (row["metric"], row["split"]) == ("aggregate", "selection") and row["epoch"] != "0"
    }
    assert sorted(aggregates) == [1, 2, 3]
    chosen = json.loads((best / "chosen.json").read_text())
    assert aggregates[chosen["epoch"]] == max(aggregates.values())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("family", "kind", "scoring"), [("t5", "seq2seq", "auto"), ("gpt2", "causal", "last_token")]
)
def test_other_forms_are_inoculated_too(
    family: str,
    kind: str,
    scoring: str,
    inoculation_config: dict[str, Any],
    curve_lm: Folder,
    tmp_path: Path,
) -> None:
    config = {**config_of(inoculation_config, curve_lm(family), kind, scoring=scoring), "epochs": 1}
    assert run(config, tmp_path / "out", tmp_path) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["kind"] for row in rows} == {kind}
    for stage in ("original", "inoculate"):
        [folder] = tmp_path.glob(f"out/runs/{stage}-*/checkpoints/best")
        assert json.loads((folder / "choice_head.json").read_text())["kind"] == kind


def test_a_given_decoder_is_scored_as_the_settings_say(
    inoculation_config: dict[str, Any],
    curve_lm: Folder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def with_checkpoint(folder: Path, **model: Any) -> dict[str, Any]:
        config = config_of(inoculation_config, curve_lm("gpt2"), "causal", **model)
        config["original"] = {**config["original"], "checkpoint": str(folder)}
        return {**config, "epochs": 1}

    assert run(with_checkpoint(curve_lm("gpt2"), scoring="sum"), tmp_path / "out", tmp_path) == 0
    assert not list(tmp_path.glob("out/runs/original-*"))  # it needs no head
    [best] = tmp_path.glob("out/runs/inoculate-*/checkpoints/best")
    saved = json.loads((best / "choice_head.json").read_text())
    assert (saved["scoring"], saved["max_length"]) == ("sum", 32)
    for model, message in (
        ({"scoring": "letter"}, "saved with scoring 'sum', so scoring='letter' does not fit"),
        ({"random_weights": True}, "has trained weights; leave model.random_weights out"),
    ):
        assert run(with_checkpoint(best, **model), tmp_path / "refused", tmp_path) != 0
        assert message in capsys.readouterr().err
        assert not (tmp_path / "refused").exists()


def test_questions_are_not_filled_up_for_a_model_without_a_score_of_nothing(
    inoculation_config: dict[str, Any],
    curve_lm: Folder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = config_of(inoculation_config, curve_lm("gpt2"), "causal")
    config["original"] = {**config["original"], "num_choices": 7}
    assert run(config, tmp_path / "out", tmp_path) == 2
    assert "original.num_choices 7: model.kind causal cannot score the empty choices" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["auto", "last_token"])
def test_kills_at_any_step_change_nothing(
    scoring: str, inoculation_config: dict[str, Any], curve_lm: Folder, tmp_path: Path
) -> None:
    # GPT-2 has dropout, whose draws a resumed run repeats.
    config = config_of(inoculation_config, curve_lm("gpt2"), "causal", scoring=scoring)
    path, reference, killed = tmp_path / "config.yaml", tmp_path / "whole", tmp_path / "killed"
    assert run(config, reference, tmp_path) == 0
    arguments = ["inoculate", f"--config={path}", f"--output_dir={killed}"]
    for call in (2, 3, 5, 4, 3):
        assert run_with_fault(arguments, call, method=TRAINING_STEP).returncode == -9
    assert run(config, killed, tmp_path) == 0
    assert_same(killed, reference)
