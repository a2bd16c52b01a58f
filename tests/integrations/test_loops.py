"""Probes in the loops of transformers' Trainer and of Lightning: the training stays as it was."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

import probelight
from probelight.integrations import lightning, transformers
from probelight.io.errors import ProbelightError, RecordError, UsageError
from probelight.probes.importers.items import items_text
from tests.fixtures.causal import VOCAB_SIZE, causal_tokenizer
from tests.fixtures.checkout import ROOT
from tests.fixtures.tokenizers import t5_tokenizer
from tests.fixtures.wandb_offline import read_offline_run

Weights = Mapping[str, Tensor]
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
ANIMALS = ("cat", "dog", "antelope")
PROBES = ["taxonomy_small:dev", "age_small:dev"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(ROOT / "assets" / "dictionary-lm")


@pytest.fixture(scope="module")
def texts(tokenizer: Any) -> list[dict[str, Tensor]]:
    """Sentences with every third token to be told."""
    examples = []
    for number in range(24):
        ids = tokenizer(f"A dog of {number} years is older than a cat .")["input_ids"]
        labels = [token if index % 3 else -100 for index, token in enumerate(ids)]
        examples.append({"input_ids": torch.tensor(ids), "labels": torch.tensor(labels)})
    return examples


def fresh(tokenizer: Any, kind: type[nn.Module] = BertForMaskedLM, dropout: float = 0.3) -> Any:
    torch.manual_seed(1)
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return kind(BertConfig(vocab_size=len(tokenizer), intermediate_size=16, **SIZES, **rates))


@pytest.fixture
def trained(
    tmp_path: Path, tokenizer: Any, texts: list[dict[str, Tensor]]
) -> Callable[..., tuple[Trainer, Weights]]:
    def train(
        *callbacks: Any,
        resume: bool = False,
        model: tuple[Any, Any] | None = None,
        evaluate: bool = False,
        **options: Any,
    ) -> tuple[Trainer, Weights]:
        network, reader = model or (fresh(tokenizer), tokenizer)
        data = texts
        if model:
            ids = torch.tensor(reader("a cat is smaller than a dog .")["input_ids"])
            data = [{"input_ids": ids, "labels": ids}] * 24
        settings: dict[str, Any] = {"output_dir": str(tmp_path / "out"), "max_steps": 6, **options}
        values = iter(range(9, 0, -1))  # the first evaluation is the best
        evaluation: dict[str, Any] = {}
        if evaluate:
            evaluation = {
                "eval_dataset": data,
                "compute_metrics": lambda _: {"first": next(values)},
            }
        arguments = TrainingArguments(
            per_device_train_batch_size=4,
            learning_rate=1e-2,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            logging_steps=100,
            seed=3,
            **({"save_strategy": "no"} | settings),
        )
        trainer = Trainer(
            network,
            arguments,
            train_dataset=data,  # type: ignore[arg-type]  # anything with a length will do
            processing_class=reader,
            callbacks=[*callbacks],
            **evaluation,
        )
        trainer.train(resume_from_checkpoint=resume)
        state = trainer.model.state_dict()  # type: ignore[union-attr]
        return trainer, {name: value.clone() for name, value in state.items()}

    return train


def assert_equal(first: Weights, second: Weights) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


@pytest.mark.thorough
def test_a_trainer_learns_the_same_weights_and_its_scores_are_those_of_zero_shot(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    _, without = trained()
    seen = list[Mapping[str, float]]()

    def newest(scores: Mapping[str, float]) -> float:
        seen.append(scores)
        return float(len(seen))  # the last one asked for is the best

    watch = transformers.ProbeTrainerCallback(PROBES, every=2, keep=newest)
    trainer, weights = trained(watch)
    assert_equal(weights, without)
    steps = [look.step for look in watch.watch.looks]
    assert steps == [0, 2, 4, 6]
    logged = [line for line in trainer.state.log_history if "probe/age_small" in line]
    assert [line["step"] for line in logged] == steps
    frame = watch.results.frame.query("metric == 'accuracy'").set_index(["model", "probe"])["value"]
    assert len(frame) == 8
    for look, line in zip(watch.watch.looks, logged, strict=True):
        for probe in ("taxonomy_small", "age_small"):
            [value] = [
                v for (m, p), v in frame.items() if m.endswith(f"step{look.step}") and p == probe
            ]
            assert value == look.scores[probe] == line[f"probe/{probe}"]

    # The last state as its own checkpoint, scored by the command.
    trainer.model.save_pretrained(tmp_path / "last")
    trainer.processing_class.save_pretrained(tmp_path / "last")
    reference = probelight.zero_shot(str(tmp_path / "last"), PROBES).items
    ours = watch.results.items
    ours = ours[ours["model"].str.endswith("@step6")]
    merged = ours.merge(reference, on="item")
    assert len(merged) == len(ours) == len(reference)
    assert [*merged["scores_x"]] == [*merged["scores_y"]]
    # Its steps can be compared with each other, and with models that `zero-shot` scored.
    compared = probelight.compare(watch.watch.folder, probes="age_small").frame
    values = sorted(compared.query("metric == 'accuracy'")["value"])
    assert values == sorted(look.scores["age_small"] for look in watch.watch.looks)


@pytest.mark.thorough
def test_the_best_average_is_kept_whole_and_changes_are_counted(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    watch = transformers.ProbeTrainerCallback(
        PROBES[:1],
        original="age_small:dev",
        every=1,
        keep="best_average",
        keep_most=2,
        output_dir=tmp_path / "looks",
    )
    trained(watch)
    averages = {look.step: sum(look.scores.values()) / 2 for look in watch.watch.looks}
    assert [*averages] == [0, 1, 2, 3, 4, 5, 6]
    best = sorted(averages, key=lambda step: (-averages[step], step))[:2]
    names = {path.name for path in (tmp_path / "looks" / "kept").iterdir()}
    assert names == {f"step{step}" for step in best}
    assert watch.best_checkpoint == tmp_path / "looks" / "kept" / f"step{best[0]}"
    again = probelight.zero_shot(str(watch.best_checkpoint), PROBES[0])
    [value] = again.frame.query("metric == 'accuracy'")["value"]
    assert value == watch.watch.looks[best[0]].scores["taxonomy_small"]
    noted = json.loads((watch.best_checkpoint / "scores.json").read_text())
    assert noted == {"step": best[0], **watch.watch.looks[best[0]].scores}

    frame = pd.read_csv(tmp_path / "looks" / "changes.csv")
    pd.testing.assert_frame_equal(frame, watch.changes, check_dtype=False)
    changes = watch.changes.set_index("probe")
    assert [*changes["is_original"]] == [False, True]
    items = watch.results.items
    for probe, row in changes.iterrows():
        sides = [
            items[(items["probe"] == probe) & items["model"].str.endswith(f"@step{step}")]
            for step in (0, 6)
        ]
        merged = sides[0].merge(sides[1], on="item")
        difference = merged["correct_y"] - merged["correct_x"]
        assert row["change"] == pytest.approx(difference.mean())
        assert row["lost"] == pytest.approx(-difference.clip(upper=0).sum())
        assert row["gained"] == pytest.approx(difference.clip(lower=0).sum())
        assert row["ci_low"] <= row["change"] <= row["ci_high"]
        assert 0 < row["could_see"] < 1


@pytest.mark.thorough
def test_a_resumed_training_ends_the_same(trained: Callable[..., Any], tmp_path: Path) -> None:
    unkilled = transformers.ProbeTrainerCallback(
        PROBES, every=2, output_dir=tmp_path / "whole", keep="best_average"
    )
    _, weights = trained(unkilled, output_dir=str(tmp_path / "one"))
    steps = {"output_dir": str(tmp_path / "two"), "save_strategy": "steps", "save_steps": 2}

    class Killed(Exception):
        pass

    class Kill(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 5:
                raise Killed

    folder = tmp_path / "parts"
    options: dict[str, Any] = {"every": 2, "output_dir": folder, "keep": "best_average"}
    with pytest.raises(Killed):
        trained(transformers.ProbeTrainerCallback(PROBES, **options), Kill(), **steps)
    watch = transformers.ProbeTrainerCallback(PROBES, **options)
    _, resumed = trained(watch, resume=True, **steps)
    assert_equal(resumed, weights)
    assert watch.watch.looks == unkilled.watch.looks
    # A training that is resumed at its end makes no look, and knows the best checkpoint.
    again = transformers.ProbeTrainerCallback(PROBES, **options)
    trained(again, resume=True, **steps)
    assert again.best_checkpoint == watch.best_checkpoint
    assert watch.best_checkpoint is not None
    assert unkilled.best_checkpoint is not None
    assert watch.best_checkpoint.name == unkilled.best_checkpoint.name
    calm, ended = ((tmp_path / name / "results.csv").read_text() for name in ("whole", "parts"))
    assert calm == ended


@pytest.mark.thorough
def test_a_resumed_training_makes_later_looks_anew_and_a_missing_checkpoint(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    steps = {"save_strategy": "steps", "save_steps": 2}
    options: dict[str, Any] = {"every": 2, "output_dir": tmp_path / "looks", "keep": step_of}
    watch = transformers.ProbeTrainerCallback(PROBES, **options)
    _, weights = trained(watch, **steps)
    assert watch.best_checkpoint == tmp_path / "looks" / "kept" / "step6"
    frame = watch.results.frame
    # As after a kill between the scores at step 4 and their checkpoint, in a training that goes on
    # from there: what came later is gone, and the checkpoint is that of the weights at step 4.
    shutil.rmtree(tmp_path / "out" / "checkpoint-6")
    again = transformers.ProbeTrainerCallback(PROBES, **options)
    seen = list[tuple[list[int], list[str]]]()

    class Look(transformers.TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            names = sorted(path.name for path in (tmp_path / "looks" / "kept").iterdir())
            seen.append(([look.step for look in again.watch.looks], names))

    _, resumed = trained(again, Look(), resume=True, **steps)
    assert seen[0] == ([0, 2, 4], ["step4"])
    assert_equal(resumed, weights)
    assert again.best_checkpoint == watch.best_checkpoint
    pd.testing.assert_frame_equal(again.results.frame, frame)


def step_of(scores: Mapping[str, float], *, count: list[int] = []) -> float:  # noqa: B006
    """A value that rises with each call: the newest is the best."""
    count.append(1)
    return float(len(count))


@pytest.mark.thorough
def test_a_checkpoint_that_cannot_be_written_leaves_the_others(
    trained: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {0: 0.1, 2: 0.5, 4: 0.6, 6: 0.55}
    watch = transformers.ProbeTrainerCallback(
        PROBES, every=2, output_dir=tmp_path / "looks", keep="best_average"
    )

    def score(network: Any, watched: Any, step: int) -> float:
        return values[step]

    def save(self: Any, folder: Path, original: Any = BertForMaskedLM.save_pretrained) -> None:
        if watch.watch.looks[-1].step == 4:
            raise OSError("no space left on device")
        original(self, folder)

    monkeypatch.setattr(watch.watch, "_score", score)
    monkeypatch.setattr(BertForMaskedLM, "save_pretrained", save)
    with pytest.warns(UserWarning, match="no checkpoint was kept at step 4: no space left"):
        trained(watch)
    assert [look.step for look in watch.watch.looks] == [0, 2, 4, 6]
    assert watch.best_checkpoint == tmp_path / "looks" / "kept" / "step6"
    assert watch.best_checkpoint.is_dir()


@pytest.mark.thorough
def test_looks_of_other_items_are_not_mixed(trained: Callable[..., Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"every": 3, "output_dir": tmp_path / "looks"}
    steps = {"save_strategy": "steps", "save_steps": 3}
    trained(transformers.ProbeTrainerCallback(PROBES[1:], max_items=40, **options), **steps)
    with pytest.raises(ProbelightError, match="max_items"):
        trained(transformers.ProbeTrainerCallback(PROBES[1:], **options), resume=True, **steps)


@pytest.mark.thorough
def test_the_last_look_is_at_the_last_weights_not_at_the_best(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    best = {"load_best_model_at_end": True, "save_strategy": "steps", "eval_strategy": "steps"}
    watch = transformers.ProbeTrainerCallback(PROBES[1:], every=4, output_dir=tmp_path / "looks")
    settings = {**best, "save_steps": 2, "eval_steps": 2, "metric_for_best_model": "eval_first"}
    trainer, _ = trained(watch, evaluate=True, **settings)
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-2")
    assert [look.step for look in watch.watch.looks] == [0, 4, 6]
    reference = probelight.zero_shot(str(tmp_path / "out" / "checkpoint-6"), PROBES[1:]).items
    ours = watch.results.items.query("model.str.endswith('@step6')", engine="python")
    assert [*ours["scores"]] == [*reference["scores"]]


def other_model(kind: str, folder: Path) -> tuple[Any, Any]:
    """A decoder or an encoder-decoder with dropout, and its tokenizer."""
    torch.manual_seed(2)
    if kind == "causal":
        reader = causal_tokenizer("gpt2")
        reader.pad_token = reader.eos_token  # for the batches of the training
        sizes = {"vocab_size": VOCAB_SIZE, "n_embd": 16, "n_layer": 1, "n_head": 2}
        network: Any = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=1))
    else:
        reader = t5_tokenizer()
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
        ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
        network = T5ForConditionalGeneration(T5Config(vocab_size=len(reader), **sizes, **ids))
    return network, reader


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "options", "choices", "text"),
    [
        ("causal", {}, ["much smaller", "larger"], {}),  # of two words and one
        ("seq2seq", {}, ["much smaller", "larger"], {}),
        ("masked", {"bf16": True}, ["smaller", "larger"], {}),
        ("causal", {"bf16": True}, ["smaller", "larger"], {}),
        ("masked", {}, ["unkempt", "larger"], {"multi_token": "pseudo_log_likelihood"}),
    ],
)
def test_every_kind_in_any_precision_is_scored_as_zero_shot_scores_it(
    kind: str,
    options: dict[str, Any],
    choices: list[str],
    text: dict[str, Any],
    tokenizer: Any,
    trained: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """Scores are those of the saved checkpoint, not of the autocast of the training."""

    def model() -> tuple[Any, Any]:
        return (fresh(tokenizer), tokenizer) if kind == "masked" else other_model(kind, tmp_path)

    stems = [f"the {first} is [MASK] than a {second} ." for first in ANIMALS for second in ANIMALS]
    items = [
        {"sentence": stem, "choices": choices, "answer": i % 2} for i, stem in enumerate(stems)
    ]
    path = tmp_path / "animals.jsonl"
    path.write_text(items_text(items), encoding="utf-8")
    _, without = trained(model=model(), **options)
    watch = transformers.ProbeTrainerCallback(
        [str(path)], every=3, output_dir=tmp_path / "looks", text=text
    )
    trainer, weights = trained(watch, model=model(), **options)
    assert_equal(weights, without)
    trainer.model.save_pretrained(tmp_path / "last")
    trainer.processing_class.save_pretrained(tmp_path / "last")
    settings = {"name_or_path": str(tmp_path / "last"), **text}
    reference = probelight.zero_shot(settings if text else str(tmp_path / "last"), path).items
    ours = watch.results.items.query("model.str.endswith('@step6')", engine="python")
    assert [*ours["item"]] == [*reference["item"]]
    assert [*ours["scores"]] == [*reference["scores"]]
    first = watch.results.items.query("model.str.endswith('@step0')", engine="python")
    assert [*first["scores"]] != [*ours["scores"]]


def test_a_model_in_half_precision_is_scored_in_it(tokenizer: Any) -> None:
    network = fresh(tokenizer)
    exact = probelight.score(network, "taxonomy_small:dev", tokenizer=tokenizer).items["scores"]
    half = probelight.score(network.bfloat16(), "taxonomy_small:dev", tokenizer=tokenizer)
    for full, half_row in zip(exact, half.items["scores"], strict=True):
        assert half_row == pytest.approx(full, abs=0.05)
    assert {weight.dtype for weight in network.parameters()} == {torch.bfloat16}


@pytest.mark.thorough
def test_scores_go_to_the_run_of_weights_and_biases_that_is_open(
    trained: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    run = wandb.init(project="own", dir=tmp_path)
    watch = transformers.ProbeTrainerCallback(PROBES, every=3, output_dir=tmp_path / "looks")
    trained(watch)
    run.finish()
    until = time.monotonic() + 60
    while read_offline_run(tmp_path).exit_code is None and time.monotonic() < until:
        time.sleep(0.1)  # W&B's own process writes the file's end after `finish`
    history = read_offline_run(tmp_path).history
    rows = [row for row in history if "probe/age_small" in row]
    assert [row["train/global_step"] for row in rows] == [0, 3, 6]
    for row, look in zip(rows, watch.watch.looks, strict=True):
        assert {name: row[f"probe/{name}"] for name in look.scores} == look.scores


def files_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.thorough
@pytest.mark.parametrize("is_explicit", [False, True])
def test_a_second_training_has_a_folder_with_a_number(
    is_explicit: bool, trained: Callable[..., Any], tmp_path: Path, capsys: Any
) -> None:
    """Of a new callback, of the same one, and with other probes."""
    folder = tmp_path / ("looks" if is_explicit else "out/probes")
    options: dict[str, Any] = {"every": 6, "max_items": 20, "check": True}
    if is_explicit:
        options["output_dir"] = folder
    first = transformers.ProbeTrainerCallback(PROBES[1:], **options)
    trained(first)
    assert "has the scores of this training" not in capsys.readouterr().out
    earlier = files_of(folder)
    again = transformers.ProbeTrainerCallback(PROBES[1:], **options)
    trained(again)
    trained(again, max_steps=12)
    others = transformers.ProbeTrainerCallback(PROBES[0], **options)
    trained(others)
    assert [
        line for line in capsys.readouterr().out.splitlines() if "of this training" in line
    ] == [f"probelight: {folder}-{number} has the scores of this training" for number in (2, 3, 4)]
    assert files_of(folder) == earlier
    steps = [look.step for look in again.watch.looks]
    assert (again.watch.folder, steps) == (Path(f"{folder}-3"), [0, 6, 12])
    assert {*again.results.frame["model"]} == {f"BertForMaskedLM@step{step}" for step in steps}
    assert {*others.results.frame["probe"]} == {*others.changes["probe"]} == {"taxonomy_small"}
    assert [*others.watch.verdicts["set"]] == ["taxonomy_small"]


@pytest.mark.thorough
def test_an_earlier_folder_is_used_again_if_that_is_wanted(
    trained: Callable[..., Any], tokenizer: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"every": 6, "output_dir": tmp_path / "looks", "keep": step_of}
    options["keep_most"] = 2
    trained(transformers.ProbeTrainerCallback(PROBES[1:], **options))
    network = fresh(tokenizer)
    with torch.no_grad():
        network.cls.predictions.bias.add_(torch.randn_like(network.cls.predictions.bias))
    network.save_pretrained(tmp_path / "begin")
    tokenizer.save_pretrained(tmp_path / "begin")
    watch = transformers.ProbeTrainerCallback(PROBES[1:], **options, resume=True)
    trained(watch, model=(network, tokenizer))
    assert not (tmp_path / "looks-2").exists()
    reference = probelight.zero_shot(str(tmp_path / "begin"), PROBES[1:]).items["scores"]
    items = watch.results.items.query("model.str.endswith('@step0')", engine="python")
    assert [*items["scores"]] == [*reference]
    [accuracy] = pd.read_csv(tmp_path / "looks" / "results.csv").query(
        "metric == 'accuracy' and model.str.endswith('@step0')", engine="python"
    )["value"]
    assert accuracy == watch.watch.looks[0].scores["age_small"]
    saved = BertForMaskedLM.from_pretrained(tmp_path / "looks" / "kept" / "step0").state_dict()
    begun = BertForMaskedLM.from_pretrained(tmp_path / "begin").state_dict()
    assert_equal(saved, begun)


@pytest.mark.thorough
def test_a_training_goes_on_in_the_folder_with_its_number(
    trained: Callable[..., Any], tmp_path: Path, capsys: Any
) -> None:
    steps = {"save_strategy": "steps", "save_steps": 2}
    options: dict[str, Any] = {"every": 2, "output_dir": tmp_path / "looks", "max_items": 20}
    trained(transformers.ProbeTrainerCallback(PROBES[1:], **options), **steps)
    second = transformers.ProbeTrainerCallback(PROBES[1:], **options)
    trained(second, **steps)
    expected = files_of(tmp_path / "looks"), (tmp_path / "looks-2" / "results.csv").read_bytes()
    shutil.rmtree(tmp_path / "out" / "checkpoint-6")
    capsys.readouterr()
    again = transformers.ProbeTrainerCallback(PROBES[1:], **options)
    trained(again, resume=True, **steps)
    assert f"probelight: {tmp_path / 'looks-2'} has the scores" in capsys.readouterr().out
    assert again.watch.looks == second.watch.looks
    assert expected == (
        files_of(tmp_path / "looks"),
        (tmp_path / "looks-2" / "results.csv").read_bytes(),
    )
    assert not (tmp_path / "looks-3").exists()


def animals() -> list[dict[str, Any]]:
    stems = [f"the {first} is [MASK] than a {second} ." for first in ANIMALS for second in ANIMALS]
    return [
        {"sentence": stem, "choices": ["smaller", "larger"], "answer": i % 2}
        for i, stem in enumerate(stems)
    ]


@pytest.mark.thorough
def test_items_tables_and_data_sets_are_probes_as_files_are(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    import datasets

    items = animals()
    path = tmp_path / "animals.jsonl"
    path.write_text(items_text(items), encoding="utf-8")
    table, rows = pd.DataFrame(items[:6]), datasets.Dataset.from_list(items[3:])
    loaded = probelight.load_probe(items[:4], name="few")
    probes = [items, str(path), "age_small:dev", table, loaded]
    watch = transformers.ProbeTrainerCallback(probes, original=rows, every=6)
    trained(watch)
    sizes = {"items": 9, "animals": 9, "age_small": 150, "items2": 6, "few": 4, "items3": 6}
    scored = watch.results.items.query("model.str.endswith('@step6')", engine="python")
    assert scored.groupby("probe").size().to_dict() == sizes
    by_probe = {name: [*rows_of["scores"]] for name, rows_of in scored.groupby("probe")}
    assert by_probe["items"] == by_probe["animals"]
    assert by_probe["items2"] == by_probe["animals"][:6]
    assert by_probe["items3"] == by_probe["animals"][3:]
    assert by_probe["few"] == by_probe["animals"][:4]
    changes = watch.changes.set_index("probe")
    assert [*changes.index] == [*sizes]
    assert [*changes.index[changes["is_original"]]] == ["items3"]


@pytest.mark.parametrize("kind", ["items", "table", "rows", "loaded", "name"])
def test_a_probe_need_not_be_in_a_list(kind: str) -> None:
    import datasets

    items = animals()
    alone: dict[str, Any] = {
        "items": items,
        "table": pd.DataFrame(items),
        "rows": datasets.Dataset.from_list(items),
        "loaded": probelight.load_probe(items),
        "name": "age_small",
    }
    for callback in (
        transformers.ProbeTrainerCallback(alone[kind]),
        lightning.ProbeCallback([], original=alone[kind], tokenizer=None),
    ):
        [watched] = callback.watch.sets
        assert watched.name == ("age_small" if kind == "name" else "items")
        assert len(watched.data.records) == (150 if kind == "name" else 9)


def test_what_does_not_fit_is_refused_before_the_first_step(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    items = [{"sentence": "A [MASK].", "choices": ["qqqqzzzz", "dog"], "answer": "dog"}]
    path = tmp_path / "odd.jsonl"
    probelight.load_probe(items)  # well-formed; it is the vocabulary that lacks a word
    row = {
        "question": {
            "stem": "A [MASK].",
            "choices": [{"label": "A", "text": "qqqqzzzz"}, {"label": "B", "text": "dog"}],
        },
        "answerKey": "B",
    }
    path.write_text(json.dumps(row) + "\n")
    steps = list[int]()

    class Count(transformers.TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            steps.append(state.global_step)

    with pytest.raises(RecordError, match="qqqqzzzz"):
        trained(transformers.ProbeTrainerCallback([str(path)]), Count())
    assert steps == []


@pytest.mark.parametrize(
    ("probes", "options", "message"),
    [
        (["age_smal"], {}, "did you mean 'age_small'"),
        ([], {}, "give a probe to watch"),
        (["age_small", "age_small"], {}, "two probes are called 'age_small'"),
        (["age_small"], {"every": 0}, "every=0: give a number of steps, or 'epoch'"),
        (["age_small"], {"every": "epochs"}, "every='epochs': give"),
        (["age_small"], {"every": True}, "every=True: give"),
        (["age_small"], {"max_items": "9"}, "must be 1 or more, not '9'"),
        ([[{"sentence": "A [MASK]."}]], {}, "items:1: no column for the gold"),
        ([7], {}, "probes: int is not a name, a file, a list of dicts, a table or what"),
        (7, {}, "probes: 7 is not a name"),
        (["age_small"], {"original": ["definitions_small", "few"]}, "original: give one task"),
        (["age_small"], {"keep": "best"}, "keep='best': give 'best_average'"),
        (["age_small"], {"keep": True}, "keep=True: give 'best_average'"),
        (["age_small"], {"keep": lambda s: s["age"]}, "keep: KeyError: 'age'; .* age_small by"),
        (["age_small"], {"keep_most": 0}, "must be 1 or more"),
        (["age_small"], {"max_items": 1}, "smaller than a group of age_small, .*; give 2 or more"),
        (["age_small"], {"text": {"max_lenght": 9}}, "text: .max_lenght. .*did you mean"),
    ],
)
def test_mistaken_probes_are_named(
    probes: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProbelightError, match=message):
        transformers.ProbeTrainerCallback(probes, **options)


@pytest.mark.thorough
def test_a_look_that_fails_is_a_warning(
    trained: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, without = trained()
    watch = transformers.ProbeTrainerCallback(PROBES, every=2, output_dir=tmp_path / "looks")

    def fail(network: Any, watched: Any, step: int, score: Any = watch.watch._score) -> float:
        if step == 2:
            raise OSError("no space left on device")
        value: float = score(network, watched, step)
        return value

    monkeypatch.setattr(watch.watch, "_score", fail)
    with pytest.warns(UserWarning, match="scoring at step 2 failed: no space left on device"):
        _, weights = trained(watch)
    assert_equal(weights, without)
    assert [look.step for look in watch.watch.looks] == [0, 4, 6]


@pytest.mark.thorough
def test_a_model_that_says_nan_is_wrong_and_that_is_said(
    trained: Callable[..., Any], tmp_path: Path
) -> None:
    class Spoil(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 6:
                with torch.no_grad():
                    kwargs["model"].bert.embeddings.word_embeddings.weight.fill_(math.nan)

    watch = transformers.ProbeTrainerCallback(PROBES[1:], every=6, output_dir=tmp_path / "looks")
    trained(Spoil(), watch)
    assert watch.watch.looks[-1].scores == {"age_small": 0.0}
    assert any("not a number (NaN) and count as wrong" in line for line in watch.results.notices)


@pytest.mark.thorough
def test_a_part_of_the_items_has_whole_groups(trained: Callable[..., Any], tmp_path: Path) -> None:
    watch = transformers.ProbeTrainerCallback(
        PROBES[1:], every=6, max_items=40, output_dir=tmp_path / "looks"
    )
    trained(watch)
    items = watch.results.items.query("model.str.endswith('@step0')", engine="python")
    assert len(items) == 40
    assert {*items.groupby("interval_group").size()} == {2}  # each pair of ages in both orders
    # 20 of 75 groups: sqrt(75 / 20) = 1.94.
    notice = "40 of 150 items, whole groups drawn with seed 0; expect intervals 1.9 times as wide"
    assert any(notice in line for line in watch.results.notices)


def test_a_multiple_choice_model_answers_with_its_head(tokenizer: Any, tmp_path: Path) -> None:
    network = fresh(tokenizer, BertForMultipleChoice, dropout=0.0)
    network.save_pretrained(tmp_path / "qa")
    tokenizer.save_pretrained(tmp_path / "qa")
    results = probelight.score(network, "hyponymy_small", tokenizer=tokenizer)
    reference = probelight.zero_shot(str(tmp_path / "qa"), "hyponymy_small:dev").items
    assert [*results.items["scores"]] == [*reference["scores"]]
    assert network.training


class Module(pl.LightningModule):
    def __init__(self, tokenizer: Any, texts: list[dict[str, Tensor]]) -> None:
        super().__init__()
        self.model = fresh(tokenizer)
        self.texts = texts

    def train_dataloader(self) -> Any:
        width = max(len(text["input_ids"]) for text in self.texts)

        def pad(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
            filled = {"input_ids": 0, "labels": -100}
            return {
                name: torch.stack(
                    [nn.functional.pad(r[name], (0, width - len(r[name])), value=v) for r in rows]
                )
                for name, v in filled.items()
            }

        return torch.utils.data.DataLoader(self.texts, batch_size=4, collate_fn=pad)  # type: ignore[arg-type]

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        loss: Tensor = self.model(**batch).loss
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


@pytest.mark.thorough
@pytest.mark.parametrize("every", [2, "epoch"])
def test_lightning_learns_the_same_weights_too(
    every: Any,
    tokenizer: Any,
    texts: list[dict[str, Tensor]],
    quiet_trainer: Callable[..., pl.Trainer],
    tmp_path: Path,
) -> None:
    states = []
    for callbacks in (
        [],
        [
            lightning.ProbeCallback(
                PROBES, tokenizer=tokenizer, every=every, output_dir=tmp_path / "looks"
            )
        ],
    ):
        torch.manual_seed(7)
        module = Module(tokenizer, texts)
        trainer = quiet_trainer(max_epochs=2, callbacks=callbacks, limit_val_batches=0)
        trainer.fit(module)
        states.append({name: value.clone() for name, value in module.state_dict().items()})
    assert_equal(*states)
    [watch] = callbacks
    steps = [look.step for look in watch.watch.looks]
    assert steps == ([0, 2, 4, 6, 8, 10, 12] if every == 2 else [0, 6, 12])
    assert len(watch.results.frame.query("metric == 'accuracy'")) == 2 * len(steps)


def test_lightning_trains_twice_and_goes_on_in_the_folder_of_a_checkpoint(
    tokenizer: Any,
    texts: list[dict[str, Tensor]],
    quiet_trainer: Callable[..., pl.Trainer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"tokenizer": tokenizer, "every": 3, "max_items": 20}
    watch = lightning.ProbeCallback(PROBES[1:], **options)
    for name in ("watch", "watch-2"):
        trainer = quiet_trainer(max_steps=3, callbacks=[watch], limit_val_batches=0)
        trainer.fit(Module(tokenizer, texts))
        assert watch.watch.folder == Path("runs") / name
        assert [look.step for look in watch.watch.looks] == [0, 3]
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    again = lightning.ProbeCallback(PROBES[1:], **options)
    trainer = quiet_trainer(max_epochs=2, max_steps=6, callbacks=[again], limit_val_batches=0)
    trainer.fit(Module(tokenizer, texts), ckpt_path=tmp_path / "half.ckpt", weights_only=True)
    assert again.watch.folder == Path("runs/watch-2")
    assert again.watch.looks[:2] == watch.watch.looks
    assert [look.step for look in again.watch.looks] == [0, 3, 6]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"watch", "watch-2"}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["transformers", "lightning"])
def test_two_processes_score_once_and_agree(trainer: str, tmp_path: Path) -> None:
    ended = {}
    for watched in ("", "watched", "watched"):  # the second time with a folder of its own
        folder = tmp_path / (watched or "alone")
        folder.mkdir(exist_ok=True)
        run = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
        script = Path(__file__).with_name("two_processes.py")
        line = [sys.executable, *run, str(script), trainer, str(folder), watched]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            line, env=environment, cwd=folder, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
        ended[watched] = [json.loads((folder / f"ended{i}.json").read_text()) for i in (0, 1)]
    first, second = ended["watched"]
    assert first == second
    assert first["weights"] == ended[""][0]["weights"]
    assert [step for step, _ in first["looks"]] == [0, 2, 4, 6]
    folder = tmp_path / "watched"
    assert first["folder"] == str(folder / "looks-2")
    for looks in ("looks", "looks-2"):  # two probes, four times, once each
        assert len([*(folder / looks / "runs").iterdir()]) == 8
    assert Path(first["best"]).is_dir()
    frame = probelight.zero_shot(str(folder / "last"), PROBES).frame
    scores = frame.query("metric == 'accuracy'").set_index("probe")["value"].to_dict()
    assert scores == first["looks"][-1][1]


@pytest.mark.thorough
def test_a_verdict_per_probe_is_printed_at_the_end(
    trained: Callable[..., tuple[Trainer, Weights]], tmp_path: Path, capsys: Any
) -> None:
    """The verdicts are those of `forgetting` between the runs of the first step and the last."""
    watch = transformers.ProbeTrainerCallback(PROBES, every=6, check=True, margin=20)
    trained(watch)
    printed = capsys.readouterr().out.splitlines()
    names = [line.split("  ")[1].strip() for line in printed if "→" in line]
    assert [line for line in printed if "→" in line and "taxonomy_small" in line]
    assert len(names) == 3  # two probes and their mean
    verdicts = watch.watch.verdicts
    assert [*verdicts.set] == ["taxonomy_small", "age_small"]
    assert {*verdicts.margin} == {0.2}
    for row in verdicts.itertuples():
        folders = [
            next((tmp_path / "out" / "probes" / "runs").glob(f"watch-{row.set}-*-step{step}-*"))
            for step in (0, 6)
        ]
        answers = [
            [json.loads(line)["correct"] for line in (folder / "predictions.jsonl").open()]
            for folder in folders
        ]
        lost = sum(b * (1 - a) for b, a in zip(*answers, strict=True))
        assert row.lost == pytest.approx(lost)
        assert row.accuracy == pytest.approx(sum(answers[1]) / len(answers[1]))
    with pytest.raises(UsageError, match="margin"):
        transformers.ProbeTrainerCallback(PROBES, check=True, margin=0)
