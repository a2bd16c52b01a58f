"""Adapters of plain peft users are read, scored and named; wrong ones are refused in one line."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
)

from probelight import cli
from probelight.commands.inoculation.settings import OriginalTask
from probelight.evaluation.scorers import scorer_for
from probelight.io.bounded import Bounded
from probelight.io.errors import UsageError
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models import adapters, loading
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.chosen_models import chosen_models, with_model_type
from probelight.models.kept_model import KeptModel
from probelight.models.loading import CAUSAL_LM, MASKED_LM, load_pretrained
from probelight.models.networks import model_fingerprint, upcast
from probelight.models.registry import ModelSettings
from probelight.models.tuning import Tuning
from probelight.probes.record import Record
from probelight.training.modules import module_for
from tests.fixtures.answers import answers
from tests.fixtures.architectures import byte_bpe, ref_of
from tests.fixtures.causal import causal_folder
from tests.fixtures.checkout import ROOT
from tests.fixtures.seq2seq import seq2seq

__all__ = ["byte_bpe", "causal_folder", "seq2seq"]
Folder = Callable[[str], Path]
MASKED = Record("1", "the colour of grass is [MASK] .", ("red", "green", "blue"), 1)


def plain_adapter(auto_class: Any, base: Path, folder: Path, seed: int = 0) -> Path:
    """The adapter that a user of plain peft has: no head, no tokenizer."""
    torch.manual_seed(seed)
    model = peft.get_peft_model(auto_class.from_pretrained(base), peft.LoraConfig(r=4))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.5)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def masked_adapters(tiny_model: Path, tmp_path: Path) -> list[Path]:
    return [
        plain_adapter(AutoModelForMaskedLM, tiny_model, tmp_path / name, seed)
        for seed, name in enumerate("ab")
    ]


def plain_peft(auto_class: Any, base: Path, adapter: Path) -> Any:
    return peft.PeftModel.from_pretrained(auto_class.from_pretrained(base), adapter).eval()


def test_a_masked_model_with_an_adapter_scores_as_peft_does(
    tiny_model: Path, masked_adapters: list[Path]
) -> None:
    adapter = masked_adapters[0]
    model = plain_peft(AutoModelForMaskedLM, tiny_model, adapter)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    text = tokenizer(MASKED.stem, return_tensors="pt")
    mask = text.input_ids[0].tolist().index(tokenizer.mask_token_id)
    with torch.no_grad():
        logits = model(**text).logits[0, mask]
    expected = logits[tokenizer.convert_tokens_to_ids(list(MASKED.choices))]
    plain = answers(
        scorer_for(ModelSettings(str(tiny_model), kind="transformer"), "mc_mlm").choice_scores(),
        MASKED,
    )
    assert not torch.allclose(plain[0], expected, atol=1e-3)
    apart = ModelSettings(str(tiny_model), adapter=str(adapter), kind="transformer")
    for settings in (
        apart,
        ModelSettings(str(adapter), kind="transformer"),
        ModelSettings(f"{tiny_model}+{adapter}", kind="transformer"),
    ):
        scores = answers(scorer_for(settings, "mc_mlm").choice_scores(), MASKED)[0]
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart"])
def test_language_models_with_an_adapter_score_as_peft_does(
    family: str, causal_folder: Folder, seq2seq: Folder, tmp_path: Path
) -> None:
    is_causal = family in ("gpt2", "llama")
    auto_class = AutoModelForCausalLM if is_causal else AutoModelForSeq2SeqLM
    base = (causal_folder if is_causal else seq2seq)(family)
    adapter = plain_adapter(auto_class, base, tmp_path / "a")
    model = plain_peft(auto_class, base, adapter)
    settings = with_model_type(ModelSettings(str(base), kind="auto", adapter=str(adapter)))
    assert settings.kind == ("causal" if is_causal else "seq2seq")
    scorer = scorer_for(settings, "mc_qa")
    record = Record("1", "what is the largest ?", ("a cat", "the dog"), 0)
    scores = answers(scorer.log_likelihoods(), record)[0]
    plain = scorer_for(replace(settings, adapter=None), "mc_qa")
    assert not torch.allclose(answers(plain.log_likelihoods(), record)[0], scores, atol=1e-3)
    if is_causal:
        tokenizer = AutoTokenizer.from_pretrained(base)
        for choice, score in zip(record.choices, scores, strict=True):
            first = len(tokenizer(record.stem).input_ids)
            ids = tokenizer(f"{record.stem} {choice}").input_ids
            with torch.no_grad():
                logs = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            expected = sum(float(logs[i - 1, ids[i]]) for i in range(first, len(ids)))
            assert float(score) == pytest.approx(expected, abs=1e-4)
    else:  # the same scorer over peft's own model
        merged = scorer_for(replace(settings, adapter=None), "mc_qa")
        inner: Any = merged.network
        inner.load_state_dict(model.merge_and_unload().state_dict())
        expected = answers(merged.log_likelihoods(), record)[0]
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-4)


def test_a_kept_base_gives_each_adapter_what_it_gives_alone(
    tiny_model: Path, masked_adapters: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (f"{tiny_model}+{adapter}" for adapter in masked_adapters)
    alone = {
        n: model_fingerprint(load_pretrained(MASKED_LM, ref_of(n))[0]) for n in (first, second)
    }
    alone[str(tiny_model)] = model_fingerprint(load_pretrained(MASKED_LM, ref_of(tiny_model))[0])
    loads: list[str] = []
    load = loading._trained_model
    monkeypatch.setattr(
        loading, "_trained_model", lambda files, *a: loads.append(files.source) or load(files, *a)
    )
    cache = KeptModel()
    for name in (str(tiny_model), first, second, second, first, str(tiny_model), second):
        model, tokenizer = cache.read(MASKED_LM, ref_of(name))
        assert model_fingerprint(model) == alone[name]
        assert cache.fingerprint(model) == alone[name]
        assert tokenizer.model_max_length == 32
    assert loads == [str(tiny_model)]


def test_an_adapter_over_an_adapter_beside_its_model_is_read_by_its_folder(
    tiny_model: Path, masked_adapters: list[Path], tmp_path: Path
) -> None:
    below = f"{tiny_model}+{masked_adapters[0]}"
    trained = SentenceChoice(below, tuning=Tuning("lora", rank=2))
    trained.save_pretrained(tmp_path / "upper")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for name in (str(tmp_path / "upper"), f"{below}+{tmp_path / 'upper'}"):
            encoder = load_pretrained(loading.ENCODER, ref_of(name))[0]
            assert model_fingerprint(encoder) == model_fingerprint(trained.transformer)
    with pytest.warns(RuntimeWarning, match="together they are a different model"):
        load_pretrained(loading.ENCODER, ref_of(f"{tiny_model}+{tmp_path / 'upper'}"))


def test_a_folder_that_is_spelled_in_two_ways_is_put_in_once(
    tiny_model: Path, masked_adapters: list[Path]
) -> None:
    [first, second] = masked_adapters
    cache, hashes = KeptModel(), []
    for name in (f"{second}", f"{second}/", f"{second.parent}/../{tail(second)}", f"{first}"):
        model, _ = cache.read(MASKED_LM, ref_of(f"{tiny_model}+{name}"))
        alone, _ = load_pretrained(MASKED_LM, ref_of(f"{tiny_model}+{name}"))
        assert model_fingerprint(model) == model_fingerprint(alone)
        hashes.append(model_fingerprint(model))
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def tail(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def test_the_fingerprint_knows_by_how_much_an_adapter_counts(
    tiny_model: Path, masked_adapters: list[Path]
) -> None:
    path = masked_adapters[0] / "adapter_config.json"
    settings, hashes = json.loads(path.read_text()), set()
    for changed in ({}, {"lora_alpha": 64}, {"base_model_name_or_path": str(tiny_model / ".")}):
        path.write_text(json.dumps({**settings, **changed}))
        model, _ = load_pretrained(MASKED_LM, ref_of(f"{tiny_model}+{masked_adapters[0]}"))
        hashes.add(model_fingerprint(model))
    assert len(hashes) == 2


def test_an_adapter_is_written_with_the_same_bytes_each_time(
    tiny_model: Path, tmp_path: Path
) -> None:
    names = ["value", "query", "key", "dense"]  # of which peft makes a set, in no order
    tuning = Tuning("lora", target_modules=names)
    SentenceChoice(str(tiny_model), tuning=tuning).save_pretrained(tmp_path / "a")
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(names)


def test_random_weights_have_no_adapter(tiny_model: Path, masked_adapters: list[Path]) -> None:
    names = [f"{tiny_model}+{folder}" for folder in masked_adapters]
    models = chosen_models(names, ModelSettings(), random_weights=True)
    assert [(m.random_weights, m.adapter is None) for m in models] == [
        (False, False), (False, False), (True, True),
    ]  # fmt: skip
    with pytest.raises(
        UsageError, match="random_weights draws fresh ones; leave one of the two out"
    ):
        ModelSettings(
            str(tiny_model),
            adapter=str(masked_adapters[0]),
            random_weights=True,
            kind="transformer",
        )


def test_an_adapter_that_changes_the_base_is_not_swapped_on_it(
    tiny_model: Path, tmp_path: Path
) -> None:
    model = AutoModelForMaskedLM.from_pretrained(tiny_model)
    config = peft.LoraConfig(r=2, bias="all")
    wrapped = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if name.endswith("bias"):
                weight.add_(1.0)
    wrapped.save_pretrained(tmp_path / "a")
    cache, plain = KeptModel(), model_fingerprint(load_pretrained(MASKED_LM, ref_of(tiny_model))[0])
    changed = model_fingerprint(cache.read(MASKED_LM, ref_of(f"{tiny_model}+{tmp_path / 'a'}"))[0])
    assert changed == model_fingerprint(load_pretrained(MASKED_LM, ref_of(tmp_path / "a"))[0])
    assert model_fingerprint(cache.read(MASKED_LM, ref_of(tiny_model))[0]) == plain


def command(output_dir: Path, models: str, items: Path) -> list[str]:
    return [
        *("zero-shot", "--models", models, "--data.path", str(items), "--data.setup", "mc_mlm"),
        *("--output_dir", str(output_dir), "--trainer.accelerator", "cpu"),
        *("--trainer.threads", "1", "--trainer.progress_bar", "false"),
    ]


@pytest.mark.slow
def test_several_adapters_in_one_command_have_the_records_of_their_own_commands(
    tiny_model: Path, masked_adapters: list[Path], tmp_path: Path
) -> None:
    items = tmp_path / "items.jsonl"
    rows = [
        {
            "id": str(i),
            "question": {
                "stem": f"the {noun} is [MASK] .",
                "choices": [{"label": x, "text": t} for x, t in (("A", "red"), ("B", "green"))],
            },
            "answerKey": "A",
        }
        for i, noun in enumerate(("grass", "snow", "coal", "sky"))
    ]
    items.write_text("\n".join(map(json.dumps, rows)) + "\n")
    names = [str(tiny_model), *(f"{tiny_model}+{adapter}" for adapter in masked_adapters)]

    def records(folder: Path) -> dict[str, Any]:
        by_model = {}
        for path in folder.glob("runs/*/result.json"):
            record = json.loads(path.read_text())
            lines = (path.parent / "predictions.jsonl").read_bytes()
            by_model[record["model"]] = record["model_sha256"], record["rows"], lines
        return by_model

    assert cli.main(command(tmp_path / "all", ",".join(names), items)) == 0
    together = records(tmp_path / "all")
    assert list(together) == sorted(together, key=list(together).index)
    assert set(together) == {"tiny", "tiny+a", "tiny+b"}
    assert len({sha for sha, *_ in together.values()}) == 3
    for i, name in enumerate(names):
        arguments = command(tmp_path / str(i), name, items)
        subprocess.run([sys.executable, "train.py", *arguments], cwd=ROOT, check=True)
        [(model, alone)] = records(tmp_path / str(i)).items()
        assert together[model] == alone


def test_namesakes_are_told_apart(tiny_model: Path, tmp_path: Path) -> None:
    names = []
    for owner in ("one", "two"):
        folder = tmp_path / owner / "checkpoints" / "best"
        names.append(f"{tiny_model}+{plain_adapter(AutoModelForMaskedLM, tiny_model, folder)}")
    models = chosen_models([str(tiny_model), *names], ModelSettings(), random_weights=False)
    assert [model.label for model in models] == [
        "tiny",
        "tiny+one/checkpoints/best",
        "tiny+two/checkpoints/best",
    ]
    assert [model.name_or_path for model in models] == 3 * [str(tiny_model)]


def test_half_precision_is_made_up_for_with_the_adapter(
    tiny_model: Path, masked_adapters: list[Path]
) -> None:
    exact = load_pretrained(MASKED_LM, ref_of(masked_adapters[0]))[0]
    read = partial(load_pretrained, dtype="bfloat16", is_scored=True)
    half, cache = read(MASKED_LM, ref_of(masked_adapters[0]))[0], KeptModel(read)
    cache.read(MASKED_LM, ref_of(tiny_model))
    swapped = cache.read(MASKED_LM, ref_of(f"{tiny_model}+{masked_adapters[0]}"))[0]
    ids = torch.tensor([[2, 5, 6, 4, 3]])
    for model in (half, swapped):
        with torch.no_grad(), upcast(model):
            assert model(ids).logits.equal(exact(ids).logits)
        with torch.no_grad():
            assert not model(ids).logits.float().equal(exact(ids).logits)


def test_an_adapter_of_the_encoder_alone_is_read_with_its_head(
    tiny_model: Path, tmp_path: Path
) -> None:
    module = SentenceChoice(str(tiny_model), tuning="lora")
    module.save_pretrained(tmp_path / "a")
    inner = load_pretrained(MASKED_LM, ref_of(tmp_path / "a"))[0]
    names = [name for name, _ in inner.named_parameters() if "lora" in name]
    assert all(name.startswith("bert.") for name in names)
    assert len(names) == 8


@pytest.mark.thorough
def test_wrong_adapters_are_refused(
    tiny_model: Path,
    masked_adapters: list[Path],
    causal_folder: Folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = masked_adapters[0]

    def changed(name: str, **settings: Any) -> Path:
        folder = shutil.copytree(good, tmp_path / name)
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
        return folder

    names = ("cut", "cropped", "extra", "nan", "whole")
    cut, cropped, extra, nan, integer = (changed(name) for name in names)
    (cut / "adapter_model.safetensors").write_bytes(b"no")
    weights = load_file(good / "adapter_model.safetensors")
    [name, *_] = weights
    save_file(
        {n: w for n, w in weights.items() if n != name}, cropped / "adapter_model.safetensors"
    )
    save_file(
        {**weights, "base_model.model.x.lora_A.weight": weights[name].clone()},
        extra / "adapter_model.safetensors",
    )
    save_file({**weights, name: weights[name] * torch.nan}, nan / "adapter_model.safetensors")
    save_file({**weights, name: weights[name].long()}, integer / "adapter_model.safetensors")
    empty = changed("none")
    (empty / "adapter_model.safetensors").unlink()
    torch.manual_seed(0)
    misfit = tmp_path / "other"
    sizes: dict[str, int] = {"vocab_size": 66, "hidden_size": 64, "intermediate_size": 64}
    config = BertConfig(**sizes, num_hidden_layers=2, num_attention_heads=2)
    BertForMaskedLM(config).save_pretrained(misfit)
    for path in tiny_model.glob("*token*"):
        shutil.copy(path, misfit)
    away = changed("away", base_model_name_or_path=str(tmp_path / "gone"))
    itself = changed("itself", base_model_name_or_path=str(tmp_path / "itself"))
    cases = {
        str(cut): "cannot load the adapter of folder .*cut",
        str(cropped): "1 of its weights are missing",
        str(extra): "1 of its weights are for other layers",
        str(nan): "contains NaN",
        str(integer): "torch.int64 numbers, not floating-point ones",
        str(empty): "has no weights .adapter_model.safetensors",
        str(away): "names the model .*gone, which does not exist; give MODEL.",
        str(itself): "names itself as its model",
        str(changed("nobody", base_model_name_or_path=None)): "names no model; give MODEL.",
        str(changed("kind", peft_type="XLORA")): "XLORA does more than change layers in place|fit",
        str(changed("alien", peft_type="NOVEL")): "`peft_type` is 'NOVEL'; Probelight can use",
        f"{misfit}+{good}": "does not fit",
        f"{tiny_model}+{tmp_path / 'missing'}": "missing does not exist",
    }
    endless = r"(([a-z_.0-9])+)+\$"
    settings = {
        "r": {2_000_000: "2000000: give a number from 0 to 65536", "4": "a whole number, not '4'"},
        "lora_alpha": {math.nan: "nan: give a number", 1e30: "1e.30: give a number from -1000000"},
        "lora_dropout": {"x": "must be a number, not 'x'"},
        "use_dora": {3: "must be true or false, not 3"},
        "exclude_modules": {endless: "it takes more than 1 seconds", "(((": "missing ."},
    }
    monkeypatch.setattr(adapters, "_matches", Bounded("probelight.io.bounded:matches", seconds=1))
    for key, values in settings.items():
        for number, (value, problem) in enumerate(values.items()):
            case = changed(f"{key}{number}", **{key: value})
            cases[str(case)] = rf"{case.name}/adapter_config\.json: `{key}` .*{problem}"
    cases[str(changed("large", r=65_536))] = (
        r"does not fit .*: the weight base_model\..* in adapter_model\.safetensors is 4 x 32, but "
        r"with the settings in adapter_config\.json .* needs 65536 x 32"
    )
    large = {"rank_pattern": {"query": 2_000_000}}
    cases[str(changed("pattern", **large))] = "`rank_pattern.query` is 2000000: give a number"
    cases[str(changed("twice", layer_replication=[[0, 2], [0, 2]]))] = "does more than change"
    for name, message in cases.items():
        with pytest.raises(PretrainedError, match=message):
            load_pretrained(MASKED_LM, ref_of(name))
    gpt2 = causal_folder("gpt2")
    with pytest.raises(PretrainedError, match=r"does not fit .*gpt2"):
        load_pretrained(CAUSAL_LM, ref_of(f"{gpt2}+{good}"))


def test_an_adapter_of_another_model_of_the_same_form_is_warned_of(
    tiny_model: Path, masked_adapters: list[Path], tmp_path: Path
) -> None:
    sibling = shutil.copytree(tiny_model, tmp_path / "other")
    with pytest.warns(
        RuntimeWarning, match="was trained with .*tiny, but is now used with .*other"
    ):
        load_pretrained(MASKED_LM, ref_of(f"{sibling}+{masked_adapters[0]}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        load_pretrained(MASKED_LM, ref_of(f"{tiny_model}+{masked_adapters[0]}"))


def test_sums_of_a_checkpoint_change_with_the_model_below(tiny_model: Path, tmp_path: Path) -> None:
    base = shutil.copytree(tiny_model, tmp_path / "base")
    SentenceChoice(str(base), tuning="lora").save_pretrained(tmp_path / "a")
    task = OriginalTask("x", ["x"], checkpoint=str(tmp_path / "a"))
    sums = task.checkpoint_sums()
    assert sums is not None
    assert set(sums) == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "head.safetensors",
        "below-0/model.safetensors",
    }
    weights = load_file(base / "model.safetensors")
    [name, *_] = weights
    save_file({**weights, name: weights[name] + 1}, base / "model.safetensors", {"format": "pt"})
    new_sums = task.checkpoint_sums()
    assert new_sums is not None
    assert {name for name in sums if sums[name] != new_sums[name]} == {"below-0/model.safetensors"}
    # What multiplies the adapter is in its settings; who wrote them changes no answer.
    path = tmp_path / "a" / "adapter_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "peft_version": "of another day"}))
    assert task.checkpoint_sums() == new_sums
    path.write_text(json.dumps({**settings, "lora_alpha": 3}))
    scaled = task.checkpoint_sums()
    assert scaled is not None
    assert {n for n in new_sums if new_sums[n] != scaled[n]} == {"adapter_config.json"}


def test_baselines_have_no_adapters() -> None:
    esim = ModelSettings(kind="esim")
    module_for(esim, "mc_qa", tuning=Tuning())
    with pytest.raises(UsageError, match="kind esim has none"):
        module_for(esim, "mc_qa", tuning=Tuning("lora"))
    with pytest.raises(UsageError, match="adapter a is only for models with a checkpoint"):
        ModelSettings(kind="esim", adapter="a")


def test_a_merged_folder_answers_as_its_adapter_does(
    tiny_model: Path, masked_adapters: list[Path], tmp_path: Path
) -> None:
    module = SentenceChoice(str(tiny_model), tuning="lora", num_choices=4)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.5)
    module.save_pretrained(tmp_path / "q")
    question = Record("1", "what colour is grass ?", ("red", "green"), 1)
    for adapter, setup, record in (
        (masked_adapters[0], "mc_mlm", MASKED),
        (tmp_path / "q", "mc_qa", question),
    ):
        merged = tmp_path / f"merged-{setup}"
        assert (
            cli.main(["export", str(adapter), "--merge", "true", "--output_dir", str(merged)]) == 0
        )
        assert (merged / "model.safetensors").is_file()
        assert not (merged / "adapter_config.json").exists()
        scores, expected = (
            answers(
                scorer_for(ModelSettings(str(f), kind="transformer"), setup).choice_scores(), record
            )  # type: ignore[arg-type]
            for f in (merged, adapter)
        )
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)
    assert SentenceChoice.from_folder(tmp_path / "merged-mc_qa").num_choices == 4


def test_export_says_that_there_is_nothing_to_merge(
    tiny_model: Path, refused: Callable[..., str]
) -> None:
    line = refused(f"export {tiny_model} --merge true --output_dir never")
    assert "has no adapter to merge" in line
