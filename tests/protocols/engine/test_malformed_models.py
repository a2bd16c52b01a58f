"""Damaged, foreign and hostile model folders: one line that names the folder and the cause."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, T5Config, ViTConfig

from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import ModelSettings
from tests.protocols.engine.model_damage import (
    RAN,
    Cases,
    Damage,
    at_first,
    cases,
    change,
    config,
    cut,
    fifo,
    folder_for,
    index,
    inoculate,
    link,
    one_line,
    shard,
    weights,
    without,
    write,
)


def _code(folder: Path) -> None:
    (folder / "code.py").write_text(f"from pathlib import Path\nPath({RAN!r}).touch()\n")
    names = {"AutoConfig": "code.C", "AutoModel": "code.M", "AutoModelForMaskedLM": "code.M"}
    config(model_type="somebodys", auto_map=names)(folder)


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path(RAN),)


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"x": _Evil(), "y": torch.zeros(10**6)}, folder / "pytorch_model.bin")


def _no_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)


def _vocabulary(*words: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")

    return damage


def _tokenizer(change: Callable[[Any], object]) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return damage


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
DEEP = "[" * 100_000
# What is done to the folder, and what the line must say besides the folder.
ANY_MODEL: Cases = {
    "config missing": (without("config.json"), "no config.json"),
    "config empty": (write("config.json", ""), "config.json cannot be read"),
    "config cut": (cut("config.json", 40), "config.json cannot be read"),
    "config a list": (write("config.json", "[1]"), "holds a list"),
    "config null": (write("config.json", "null"), "holds a NoneType"),
    "config deep": (write("config.json", DEEP), "config.json cannot be read"),
    "config {}": (write("config.json", "{}"), "model_type is None"),
    "config a folder": (folder_for("config.json"), "no regular file"),
    "config a loop": (link("config.json", "config.json"), "no regular file"),
    "config a device": (link("config.json", "/dev/zero"), "no regular file"),
    "config a pipe": (fifo("config.json"), "no regular file"),
    "config large": (write("config.json", " " * (17 << 20)), "too many for settings"),
    "kind unknown": (config(model_type="nosuch"), "nosuch"),
    "kind a list": (config(model_type=["bert"]), "model_type is ['bert']"),
    "code": (_code, "custom code"),
    "kernel": (config(attn_implementation="some/kernel"), "never run"),
    "GPT-2": (
        lambda f: GPT2Config(vocab_size=60).save_pretrained(f),
        "gpt2 (GPT2Config) is a causal language model, and was to be read as another kind",
    ),
    "T5": (
        lambda f: T5Config(vocab_size=60).save_pretrained(f),
        "t5 (T5Config) is an encoder-decoder",
    ),
    "BART": (config(model_type="bart"), "encoder-decoder model"),
    "Llama": (config(model_type="llama"), "causal language model"),
    "ViT": (lambda f: ViTConfig().save_pretrained(f), "vit (ViTConfig) is "),
    "a decoder": (config(is_decoder=True), "is a causal language model"),
    "size 0": (config(hidden_size=0), "hidden_size is 0"),
    "size text": (config(hidden_size="32"), "hidden_size is '32'"),
    "size true": (config(hidden_size=True), "hidden_size is True"),
    "size list": (config(intermediate_size=[64]), "intermediate_size is [64]"),
    "size odd": (config(hidden_size=33), "33"),
    "size other": (config(hidden_size=64), "is of shape"),
    "size huge": (config(hidden_size=1 << 20), "do not belong together"),
    "size beyond": (config(hidden_size=10**18), "hidden_size is 1000"),
    "layers negative": (config(num_hidden_layers=-1), "num_hidden_layers is -1"),
    "layers huge": (config(num_hidden_layers=10**9), "num_hidden_layers is 1000000000"),
    "layers too many": (config(num_hidden_layers=3), "missing"),
    "words huge": (config(vocab_size=60_000_000), "do not belong together"),
    "words more": (config(vocab_size=70), "is of shape"),
    "places 0": (config(max_position_embeddings=0), "max_position_embeddings is 0"),
    "labels huge": (config(num_labels=10**9), "num_labels is 1000000000"),
    "activation unknown": (config(hidden_act="nosuch"), "nosuch"),
    "dropout text": (config(hidden_dropout_prob="much"), "much"),
    "quantised": (config(quantization_config={"quant_method": "gptq"}), "GPTQConfig"),
    "weights missing": (without("model.safetensors"), "no weights"),
    "weights empty": (write("model.safetensors", b""), "header too small"),
    "weights cut late": (cut("model.safetensors", 5000), "SafetensorError"),
    "weights a page": (write("model.safetensors", "<html>" * 500), "SafetensorError"),
    "weights a loop": (link("model.safetensors", "model.safetensors"), "are not there"),
    "weights a pipe": (fifo("model.safetensors"), "are not there"),
    "weights evil": (_pickle, "weights"),
    "weights none in it": (weights(lambda tensors: tensors.clear()), "belong together"),
    "a weight missing": (weights(lambda t: t.pop(min(t))), "missing"),
    "a weight of another shape": (at_first(lambda w: w[:, :-1]), "is of shape"),
    "a weight NaN": (at_first(lambda w: w * torch.nan), "NaN or infinite"),
    "index no JSON": (index("x"), "holds a str"),
    "index empty": (index({"weight_map": {}, "metadata": {}}), "no weight_map"),
    "index a list": (index({"weight_map": ["x"], "metadata": {}}), "no weight_map"),
    "index without metadata": (index({"weight_map": {"x": "x.safetensors"}}), "no metadata"),
    "index missing": (shard({"x": "no.safetensors"}), "no.safetensors are not"),
    "index outside": (shard({"x": "../x.safetensors"}), "'../x.safetensors'"),
    "index a number": (shard({"x": 3}), "names 3"),
    "index a pickle": (shard({"x": "x.bin"}), "'x.bin'"),
    "tokenizer missing": (_no_tokenizer, "has no tokenizer"),
    "tokenizer empty": (write("tokenizer.json", ""), "tokenizer"),
    "tokenizer cut": (cut("tokenizer.json", 100), "tokenizer"),
    "tokenizer a list": (write("tokenizer.json", "[]"), "tokenizer"),
    "tokenizer deep": (write("tokenizer.json", DEEP), "tokenizer"),
    "tokenizer {}": (write("tokenizer.json", "{}"), "tokenizer"),
    "tokenizer a pipe": (fifo("tokenizer.json"), "tokenizer"),
    "tokenizer of no kind": (_tokenizer(lambda t: t["model"].update(type="No")), "tokenizer"),
    "tokenizer without words": (_tokenizer(lambda t: t["model"].update(vocab={})), "tokenizer"),
    "tokenizer config cut": (cut("tokenizer_config.json", 20), "tokenizer"),
    "vocabulary small": (_vocabulary(*SPECIAL, "a", "b"), "do not belong together"),
    "vocabulary large": (_vocabulary(*SPECIAL, *map(str, range(99))), "do not belong together"),
}
# Loading is the same for every command, so for the second one a sample is enough.
SOME = ("config missing", "code", "GPT-2", "size huge", "weights missing", "tokenizer missing")
MASKED: Cases = {
    "tokenizer without mask": (
        lambda f: change(f / "tokenizer_config.json", {"mask_token": None}),
        "tokenizer",
    ),
    "no head": (
        weights(lambda t: [t.pop(n) for n in list(t) if n.startswith("cls.")]),
        "missing (cls.predictions",
    ),
}
SENTENCE: Cases = {
    "choice_head.json empty": (write("choice_head.json", ""), "choice_head.json cannot be read"),
    "choice_head.json a list": (write("choice_head.json", "[]"), "choice_head.json cannot be"),
    "format": (lambda f: change(f / "choice_head.json", {"format": 9}), "format 9"),
    "head": (lambda f: change(f / "choice_head.json", {"head": "x"}), "head 'x'"),
    "head a list": (lambda f: change(f / "choice_head.json", {"head": []}), "head []"),
    "another head": (lambda f: change(f / "choice_head.json", {"head": "linear"}), "dense"),
    "pooler": (lambda f: change(f / "choice_head.json", {"head": "pooler"}), "pooler"),
    "length": (lambda f: change(f / "choice_head.json", {"max_length": "x"}), "max_length is 'x'"),
    "length 0": (lambda f: change(f / "choice_head.json", {"max_length": 0}), "max_length is 0"),
    "choices": (lambda f: change(f / "choice_head.json", {"num_choices": 1}), "num_choices is 1"),
    "head missing": (without("head.safetensors"), "head.safetensors"),
    "head cut": (cut("head.safetensors", 30), "SafetensorError"),
    "head NaN": (
        lambda f: save_file(
            {n: t * torch.nan for n, t in load_file(f / "head.safetensors").items()},
            f / "head.safetensors",
        ),
        "NaN or infinite",
    ),
}


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def saved(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that our own module was saved in."""
    folder = tmp_path_factory.mktemp("saved") / "sentence"
    module_for(ModelSettings(str(tiny_model), max_length=32), "mc_qa").save_pretrained(folder)
    return folder


def _zero_shot(folder: str, tmp_path: Path) -> int:
    own = tmp_path / "own.jsonl"
    write_ai2(own, [Record("1", "the grass is [MASK] .", ("red", "green"), 1)])
    command = ["zero-shot", "--data.path", str(own), "--data.setup", "mc_mlm"]
    command += ["--model.name_or_path", folder, "--output_dir", str(tmp_path / "out")]
    return cli.main([*command, "--trainer.progress_bar", "false"])


@cases(ANY_MODEL, MASKED)
def test_zero_shot(
    damage: Damage,
    cause: str,
    tiny_model: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    damage(folder)
    capfd.readouterr()  # what was said while it was made
    one_line(_zero_shot(str(folder), tmp_path), folder, cause, capfd)


@cases({name: ANY_MODEL[name] for name in SOME}, SENTENCE)
def test_inoculation_of_a_saved_model(
    damage: Damage,
    cause: str,
    saved: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    damage(folder)
    capfd.readouterr()  # what was said while it was made
    one_line(inoculate(folder, inoculation_config, tmp_path), folder, cause, capfd)


@pytest.mark.parametrize(
    "name", ["/no/such", "./here", "no-such-model", "a/b", "~nobody-here/x", "a\x00b", "x" * 300]
)
def test_names_of_nothing(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = _zero_shot(name, tmp_path)
    said = capfd.readouterr().err.strip()
    assert code == 1
    assert len(said.splitlines()) == 1, said
    assert name[:40] in said or repr(name)[1:-1] in said


@pytest.mark.parametrize("kind", ["file", "pipe", "loop", "broken link"])
def test_something_else_in_the_place_of_a_folder(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model"
    {
        "file": lambda: path.write_text("x"),
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path),
        "broken link": lambda: path.symlink_to("nowhere"),
    }[kind]()
    one_line(_zero_shot(str(path), tmp_path), path, "give the folder", capfd)
