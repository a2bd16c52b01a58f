"""`--model.dtype` and `--model.device_map` in commands: what is loaded, said and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import probelight
from probelight import cli
from probelight.evaluation import scorers
from probelight.evaluation.scorers import is_on_gpu, predict, reader_for, scorer_for
from probelight.io.errors import UsageError
from probelight.io.settings import RangeError
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.networks import is_too_close
from probelight.models.registry import MODEL_TYPES, ModelSettings, weights_bytes
from probelight.probes.source import load_entry
from probelight.runs.settings import TrainerSettings
from probelight.training import modules as models
from probelight.training.modules import check_module, module_for, saved_module, trained_for

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
MODEL = ModelSettings(multi_token="skip", kind="transformer")
BFLOAT16 = replace(MODEL, dtype="bfloat16")
ON_CPU = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]


def test_the_config_of_a_run_gives_its_model_back() -> None:
    assert ModelSettings(**BFLOAT16.config()) == BFLOAT16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "bfloat"}, "ModelSettings.dtype bfloat: give 'auto', 'float32'"),
        ({"device_map": "atuo"}, "model.device_map atuo: give auto, balanced, .*cuda:0"),
        ({"device_map": "auto", "random_weights": True}, "random weights are drawn; leave it out"),
        ({"kind": "esim", "dtype": "bfloat16"}, "model.dtype bfloat16 .*kind esim has none"),
        ({"kind": "vec_similarity", "device_map": "cpu"}, "model.device_map cpu .*has none"),
    ],
)
def test_what_can_not_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, RangeError), match=message):
        replace(MODEL, **changes)


def test_auto_is_the_checkpoints_own_on_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled model is in float16."""
    assert reader_for(MODEL, TRAINER).keywords["dtype"] == "float32"  # type: ignore[attr-defined]
    assert scorer_for(MODEL, "mc_mlm", trainer=TRAINER).dtype == "float32"
    gpu = torch.device("cuda", 0)
    monkeypatch.setattr(scorers, "single_device", lambda _: gpu)
    options = reader_for(MODEL, TrainerSettings()).keywords  # type: ignore[attr-defined]
    assert (options["dtype"], options["device"]) == ("auto", gpu)
    monkeypatch.setattr(scorers, "single_device", lambda _: None)  # several processes
    assert not is_on_gpu(TRAINER)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert is_on_gpu(TrainerSettings())
    assert not is_on_gpu(TRAINER)
    with pytest.raises(
        UsageError, match="device_map auto spreads a model over the devices of a single"
    ):
        reader_for(replace(MODEL, device_map="auto"), TrainerSettings(devices=2))


@pytest.mark.thorough
@pytest.mark.parametrize("by_lightning", [False, True])
def test_bfloat16_gives_the_answers_of_float32(
    by_lightning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = load_entry("antonym_small", None)
    sets = {"antonyms": data.records[:60]}
    exact = predict(scorer_for(MODEL, "mc_mlm"), sets, TRAINER)["antonyms"]
    scorer = scorer_for(BFLOAT16, "mc_mlm", trainer=TRAINER)
    fingerprint = scorer.fingerprint()
    if by_lightning:
        monkeypatch.setattr(scorers, "single_device", lambda _: None)
    half = predict(scorer, sets, TRAINER)["antonyms"]
    assert half.best == exact.best
    assert 0 < half.num_rescored < len(half.records)
    assert f"{half.num_rescored} of 60 items of antonyms" in half.notices[-1]
    same = [
        index
        for index, (ours, theirs) in enumerate(zip(half.scores, exact.scores, strict=True))
        if ours == pytest.approx(theirs, abs=1e-5)
    ]
    assert len(same) >= half.num_rescored
    different = [row for index, row in enumerate(half.scores) if index not in same]
    assert not any(is_too_close(row, torch.bfloat16) for row in different)
    assert scorer.fingerprint() == fingerprint


def test_record_and_table_name_the_precision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "items.csv"
    lines = ["sentence,gold,choices"]
    lines += [f"a cat is [MASK] than a {a} .,larger,larger;smaller" for a in ("dog", "mouse")]
    path.write_text("\n".join(lines) + "\n")
    for dtype in ("auto", "bfloat16"):
        folder = tmp_path / dtype
        arguments = ["zero-shot", f"--probes={path}", f"--output_dir={folder}", *ON_CPU]
        assert cli.main([*arguments, f"--model.dtype={dtype}"]) == 0
        printed = capsys.readouterr().out
        [result] = folder.glob("runs/*/result.json")
        record = json.loads(result.read_text())
        assert record.get("dtype") == {"auto": None, "bfloat16": "bfloat16"}[dtype]
        assert ("dtype" in printed) == (dtype == "bfloat16")
        assert (folder / "results.csv").read_text().count("dtype") == 0
    with pytest.raises(SystemExit):
        cli.main(["zero-shot", f"--probes={path}", "--output_dir=x", "--model.dtype=half"])
    assert "--model.dtype half: give" in capsys.readouterr().err


def test_a_model_in_several_files_is_scored_by_commands(
    tmp_path: Path, causal_folder: Callable[[str], Path]
) -> None:
    single, sharded = causal_folder("llama"), tmp_path / "parts"
    AutoModelForCausalLM.from_pretrained(single).save_pretrained(sharded, max_shard_size="20KB")
    for path in single.glob("token*"):
        (sharded / path.name).write_bytes(path.read_bytes())
    assert weights_bytes(ModelSettings(str(sharded), kind="transformer")) == weights_bytes(
        ModelSettings(str(single), kind="transformer")
    )
    items = [{"sentence": "a cat is [MASK] .", "choices": ["red", "old"], "gold": "red"}]
    probe = probelight.load_probe(items)
    scores = []
    for folder, settings in ((single, {}), (sharded, {}), (sharded, {"device_map": "cpu"})):
        model = probelight.load_model(folder, **settings)
        results = probelight.score(model, probe, trainer={"accelerator": "cpu"})
        scores.append(results.items.scores.tolist())
    assert scores[0] == scores[1] == scores[2]
    path = tmp_path / "items.csv"
    path.write_text("sentence,gold,choices\na cat is [MASK] .,red,red;old\n")
    options = [f"--model.name_or_path={sharded}", "--model.kind=auto", f"--probes={path}", *ON_CPU]
    assert cli.main(["zero-shot", f"--output_dir={tmp_path / 'out'}", *options]) == 0


def test_float16_weights_and_spread_models_are_not_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for make in (MaskedChoice, SentenceChoice):
        with pytest.raises(UsageError, match="dtype float16: AdamW overflows"):
            make(dtype="float16")
    half, spread = replace(MODEL, dtype="float16"), replace(MODEL, device_map="auto")
    with pytest.raises(UsageError, match="dtype float16"):
        trained_for(half, "mc_qa")
    with pytest.raises(UsageError, match="device_map auto is only for models that are not trained"):
        check_module(spread, "mc_qa")
    for name, value in (("device_map", "auto"), ("dtype", "float16")):
        arguments = ["curve", "--probes=age_small", f"--output_dir={tmp_path}", *ON_CPU]
        assert cli.main([*arguments, f"--model.{name}={value}"]) != 0
        assert f"{name} {value}" in capsys.readouterr().err


def test_bfloat16_weights_are_trained_and_kept_where_asked_for(tmp_path: Path) -> None:
    assert all("dtype" in trained.reads for trained in MODEL_TYPES["transformer"].trained.values())
    module = module_for(BFLOAT16, "mc_qa")
    assert {weight.dtype for weight in module.parameters()} == {torch.bfloat16}
    assert {w.dtype for w in module_for(MODEL, "mc_qa").parameters()} == {torch.float32}
    module.save_pretrained(tmp_path / "kept")
    again = saved_module(tmp_path / "kept", dtype="bfloat16")
    for ours, theirs in zip(again.parameters(), module.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        assert ours.dtype == torch.bfloat16
    assert {w.dtype for w in saved_module(tmp_path / "kept").parameters()} == {torch.float32}
    model = ModelSettings(kind="transformer")
    models.weights_bytes.cache_clear()
    assert 2 * weights_bytes(replace(model, dtype="bfloat16")) == weights_bytes(model)
