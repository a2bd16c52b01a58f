"""Damaged, foreign and hostile model folders: one line that names the folder and the cause."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, T5Config

from probelight import cli
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.registry import ModelSettings
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.training.modules import module_for, saved_module

Damage = Callable[[Path], object]
Cases = dict[str, tuple[Damage, str]]  # what is done, and what the line must say of it
Tensors = dict[str, torch.Tensor]
RAN = "somebodys-code-ran"  # a file
WEIGHTS = "model.safetensors"


def edit(name: str, change: Callable[[Any], object]) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return damage


def settings(name: str, **changes: Any) -> Damage:
    return edit(name, lambda content: content.update(changes))


config = partial(settings, "config.json")
head = partial(settings, "choice_head.json")
words = partial(settings, "word_module.json")
tokenizer = partial(edit, "tokenizer.json")


def write(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def without(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink(missing_ok=True) for name in names]


def cut(name: str, keep: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


def replace(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return damage


def link(name: str, target: str) -> Damage:
    return replace(name, lambda path: path.symlink_to(target))


def weights(change: Callable[[Tensors], object], name: str = WEIGHTS) -> Damage:
    def damage(folder: Path) -> None:
        tensors = load_file(folder / name)
        change(tensors)
        save_file(tensors, folder / name, metadata={"format": "pt"})

    return damage


def at_first(change: Callable[[torch.Tensor], torch.Tensor], name: str = WEIGHTS) -> Damage:
    def apply(tensors: Tensors) -> None:
        first = next(n for n in sorted(tensors) if n.endswith("weight") and tensors[n].dim() == 2)
        tensors[first] = change(tensors[first]).contiguous()

    return weights(apply, name)


def index(content: Any) -> Damage:
    def damage(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "shard.safetensors")
        (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(content))

    return damage


def shard(names: dict[str, Any]) -> Damage:
    return index({"weight_map": names, "metadata": {}})


def _code(folder: Path) -> None:
    (folder / "code.py").write_text(f"from pathlib import Path\nPath({RAN!r}).touch()\n")
    names = {"AutoConfig": "code.C", "AutoModel": "code.M", "AutoModelForMaskedLM": "code.M"}
    config(model_type="somebodys", auto_map=names)(folder)


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path(RAN),)


def _pickle(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    torch.save({"x": _Evil(), "y": torch.zeros(10**6)}, folder / "pytorch_model.bin")


def _vocabulary(*words: str) -> Damage:
    text = "\n".join(words) + "\n"
    return replace("tokenizer.json", lambda path: path.with_name("vocab.txt").write_text(text))


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
DEEP = "[" * 100_000
# What is done to the folder, and what the line must say besides the folder.
ANY_MODEL: Cases = {
    "config missing": (without("config.json"), "no config.json"),
    "config empty": (write("config.json", ""), "config.json cannot be read"),
    "config cut": (cut("config.json", 40), "config.json cannot be read"),
    "config a list": (write("config.json", "[1]"), "it has a list instead"),
    "config null": (write("config.json", "null"), "it has a NoneType instead"),
    "config deep": (write("config.json", DEEP), "config.json cannot be read"),
    "config {}": (write("config.json", "{}"), "model_type is None"),
    "config a folder": (replace("config.json", Path.mkdir), "not a regular file"),
    "config a loop": (link("config.json", "config.json"), "not a regular file"),
    "config a device": (link("config.json", "/dev/zero"), "not a regular file"),
    "config a pipe": (replace("config.json", os.mkfifo), "not a regular file"),
    "config large": (write("config.json", " " * (17 << 20)), "too many for a settings file"),
    "kind unknown": (config(model_type="nosuch"), "nosuch"),
    "kind a list": (config(model_type=["bert"]), "model_type is ['bert']"),
    "code": (_code, "Python code that comes with it, which Probelight never runs"),
    "kernel": (config(attn_implementation="some/kernel"), "never run"),
    "GPT-2": (
        lambda f: GPT2Config(vocab_size=60).save_pretrained(f),
        "gpt2 (GPT2Config) is a causal language model, but another kind is expected",
    ),
    "T5": (
        lambda f: T5Config(vocab_size=60).save_pretrained(f),
        "t5 (T5Config) is an encoder-decoder",
    ),
    "size 0": (config(hidden_size=0), "hidden_size is 0"),
    "size text": (config(hidden_size="32"), "hidden_size is '32'"),
    "size true": (config(hidden_size=True), "hidden_size is True"),
    "size list": (config(intermediate_size=[64]), "intermediate_size is [64]"),
    "size odd": (config(hidden_size=33), "33"),
    "size other": (config(hidden_size=64), "has shape"),
    "size huge": (config(hidden_size=1 << 20), "do not belong together"),
    "size beyond": (config(hidden_size=10**18), "hidden_size is 1000"),
    "layers negative": (config(num_hidden_layers=-1), "num_hidden_layers is -1"),
    "layers huge": (config(num_hidden_layers=10**9), "num_hidden_layers is 1000000000"),
    "layers too many": (config(num_hidden_layers=3), "missing"),
    "words huge": (config(vocab_size=60_000_000), "do not belong together"),
    "words more": (config(vocab_size=70), "has shape"),
    "places 0": (config(max_position_embeddings=0), "max_position_embeddings is 0"),
    "labels huge": (config(num_labels=10**9), "num_labels is 1000000000"),
    "activation unknown": (config(hidden_act="nosuch"), "nosuch"),
    "dropout text": (config(hidden_dropout_prob="much"), "much"),
    "quantised": (config(quantization_config={"quant_method": "gptq"}), "GPTQConfig"),
    "weights missing": (without(WEIGHTS), "no weights"),
    "weights empty": (write(WEIGHTS, b""), "header too small"),
    "weights cut late": (cut(WEIGHTS, 5000), "SafetensorError"),
    "weights a page": (write(WEIGHTS, "<html>" * 500), "SafetensorError"),
    "weights a loop": (link(WEIGHTS, WEIGHTS), "are missing"),
    "weights a pipe": (replace(WEIGHTS, os.mkfifo), "are missing"),
    "weights evil": (_pickle, "weights"),
    "weights none in it": (weights(lambda tensors: tensors.clear()), "belong together"),
    "a weight missing": (weights(lambda t: t.pop(min(t))), "missing"),
    "a weight of another shape": (at_first(lambda w: w[:, :-1]), "has shape"),
    "a weight NaN": (at_first(lambda w: w * torch.nan), "NaN or infinite"),
    **{
        f"a weight {dtype}": (at_first(lambda w, d=dtype: w.to(d)), "numbers, not floating-point")  # type: ignore[misc]
        for dtype in (torch.int64, torch.int8, torch.bool, torch.complex64)
    },
    "index no JSON": (index("x"), "it has a str instead"),
    "index empty": (index({"weight_map": {}, "metadata": {}}), "no weight_map"),
    "index a list": (index({"weight_map": ["x"], "metadata": {}}), "no weight_map"),
    "index without metadata": (index({"weight_map": {"x": "x.safetensors"}}), "no metadata"),
    "index missing": (shard({"x": "no.safetensors"}), "no.safetensors are missing"),
    "index outside": (shard({"x": "../x.safetensors"}), "'../x.safetensors'"),
    "index a number": (shard({"x": 3}), "names 3"),
    "index a pickle": (shard({"x": "x.bin"}), "'x.bin'"),
    "tokenizer missing": (
        without("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
        "has no tokenizer",
    ),
    "tokenizer empty": (write("tokenizer.json", ""), "tokenizer"),
    "tokenizer cut": (cut("tokenizer.json", 100), "tokenizer"),
    "tokenizer a list": (write("tokenizer.json", "[]"), "tokenizer"),
    "tokenizer deep": (write("tokenizer.json", DEEP), "tokenizer"),
    "tokenizer {}": (write("tokenizer.json", "{}"), "tokenizer"),
    "tokenizer a pipe": (replace("tokenizer.json", os.mkfifo), "tokenizer"),
    "tokenizer of no kind": (tokenizer(lambda t: t["model"].update(type="No")), "tokenizer"),
    "tokenizer without words": (tokenizer(lambda t: t["model"].update(vocab={})), "tokenizer"),
    "tokenizer config cut": (cut("tokenizer_config.json", 20), "tokenizer"),
    "vocabulary small": (_vocabulary(*SPECIAL, "a", "b"), "do not belong together"),
    "vocabulary large": (_vocabulary(*SPECIAL, *map(str, range(99))), "do not belong together"),
}
# Loading is the same for every command, so for the second one a sample is enough.
SOME = ("config missing", "code", "GPT-2", "size huge", "weights missing", "tokenizer missing")
MASKED: Cases = {
    "tokenizer without mask": (settings("tokenizer_config.json", mask_token=None), "tokenizer"),
    "mask padding": (settings("tokenizer_config.json", mask_token="[PAD]"), "is its pad_token too"),
    "mask unknown": (settings("tokenizer_config.json", mask_token="[UNK]"), "is its unk_token too"),
    "mask a word": (settings("tokenizer_config.json", mask_token="grass"), "'grass' is a word"),
    "no head": (
        weights(lambda t: [t.pop(n) for n in list(t) if n.startswith("cls.")]),
        "missing (cls.predictions",
    ),
}
SENTENCE: Cases = {
    "choice_head.json empty": (write("choice_head.json", ""), "choice_head.json cannot be read"),
    "choice_head.json a list": (write("choice_head.json", "[]"), "choice_head.json cannot be"),
    "format": (head(format=9), "format 9"),
    "head": (head(head="x"), "head 'x'"),
    "head a list": (head(head=[]), "head []"),
    "another head": (head(head="linear"), "dense"),
    "pooler": (head(head="pooler"), "pooler"),
    "length": (head(max_length="x"), "max_length is 'x'"),
    "length 0": (head(max_length=0), "max_length is 0"),
    "choices": (head(num_choices=1), "num_choices is 1"),
    "head missing": (without("head.safetensors"), "head.safetensors"),
    "head cut": (cut("head.safetensors", 30), "SafetensorError"),
    "head NaN": (at_first(lambda w: w * torch.nan, "head.safetensors"), "NaN or infinite"),
    "head int": (at_first(lambda w: w.long(), "head.safetensors"), "not floating-point"),
}
WORD_MODULE: Cases = {
    "settings empty": (write("word_module.json", ""), "word_module.json cannot be read"),
    "settings a list": (write("word_module.json", "[]"), "word_module.json cannot be read"),
    "settings without format": (write("word_module.json", "{}"), "format None"),
    "format": (words(format=9), "format 9"),
    "kind": (words(kind="elmo"), "'elmo'"),
    "a setting more": (words(nosuch=1), "nosuch"),
    "dimension text": (words(dimension="x"), "settings"),
    "dimension other": (words(dimension=7), "7 are needed"),
    "weights missing": (without(WEIGHTS), "weights"),
    "weights of nothing": (weights(lambda t: t.clear()), "do not belong together"),
    "a weight missing": (weights(lambda t: t.pop("words.weight")), "words.weight"),
    "words missing": (weights(lambda t: t.pop("words.spelling")), "words.spelling"),
    "a weight of another shape": (at_first(lambda w: w[:, :-1]), "weights"),
    "a weight NaN": (at_first(lambda w: w * torch.nan), "NaN or infinite"),
    "a weight int": (at_first(lambda w: w.long()), "not floating-point"),
    "words no text": (
        weights(lambda t: t.update({"words.spelling": torch.tensor([255], dtype=torch.uint8)})),
        "weights",
    ),
}
ESIM: Cases = {
    "size huge": (words(hidden_size=10**6), "do not belong together"),
    "size negative": (words(hidden_size=-1), "settings"),
    "size text": (words(hidden_size="x"), "settings"),
    "dropout": (words(dropout=7), "dropout"),
    "length": (words(max_length="x"), "max_length is 'x'"),
    "choices": (words(num_choices=0), "num_choices is 0"),
}
BASELINE: Cases = {
    "settings missing": (without("word_module.json"), "has no saved model"),
    "tokens huge": (words(num_tokens=10**6), "belong together"),
    "tokens negative": (words(num_tokens=-1), "settings"),
    "mode": (words(mode="full"), "mode='full'"),
}


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def folders(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint, and what our own modules were saved in."""
    models = {"checkpoint": tiny_model}
    sentence = ModelSettings(str(tiny_model), max_length=32, kind="transformer")
    for model in (sentence, ModelSettings(kind="esim"), ModelSettings(kind="mlm_baseline")):
        models[model.kind] = tmp_path_factory.mktemp("saved") / model.kind
        setup: Any = "mc_mlm" if model.kind == "mlm_baseline" else "mc_qa"
        module: Any = module_for(model, setup)
        module.save_pretrained(models[model.kind])
    return models


@pytest.fixture
def damaged(folders: dict[str, Path], kind: str, damage: Damage, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(folders[kind], tmp_path / "model"))
    damage(folder)
    return folder


def cases(**tables: Cases) -> pytest.MarkDecorator:
    """The cases of each kind of folder."""
    rows = [
        pytest.param(kind, *case, id=f"{kind}: {name}")
        for kind, table in tables.items()
        for name, case in table.items()
    ]
    return pytest.mark.parametrize(("kind", "damage", "cause"), rows)


def assert_one_line(text: str, folder: Path, cause: str) -> None:
    assert len(text.splitlines()) == 1, text
    assert "Traceback" not in text
    assert str(folder) in text
    assert cause in text, text
    assert not Path(RAN).exists()


Refusal = Callable[[list[str]], str]


@pytest.fixture
def failure(capfd: pytest.CaptureFixture[str]) -> Refusal:
    """Runs a command that must fail; returns all that it says of it."""

    def run(command: list[str]) -> str:
        capfd.readouterr()  # what was said while the folder was made
        code = cli.main([*command, "--output_dir=out"])
        text = capfd.readouterr().err.strip()
        assert code == cli.FAILURE, text
        return text

    return run


def zero_shot(model: str | Path) -> list[str]:
    write_ai2(Path("own.jsonl"), [Record("1", "the grass is [MASK] .", ("red", "green"), 1)])
    data = ["--data.path=own.jsonl", "--data.setup=mc_mlm", "--trainer.progress_bar=false"]
    return ["zero-shot", f"--model.name_or_path={model}", *data]


@pytest.mark.thorough
@cases(checkpoint=ANY_MODEL | MASKED)
def test_zero_shot_names_a_malformed_model(damaged: Path, cause: str, failure: Refusal) -> None:
    assert_one_line(failure([*zero_shot(damaged), "--model.kind=transformer"]), damaged, cause)


@cases(transformer={name: ANY_MODEL[name] for name in SOME} | SENTENCE, esim=WORD_MODULE | ESIM)
def test_inoculation_of_a_saved_model(
    kind: str, damaged: Path, cause: str, inoculation_config: dict[str, Any], failure: Refusal
) -> None:
    inoculation_config["original"]["checkpoint"] = str(damaged)
    if kind == "esim":
        inoculation_config["model"] = {"kind": kind}
    Path("run.yaml").write_text(yaml.safe_dump(inoculation_config))
    assert_one_line(failure(["inoculate", "--config=run.yaml"]), damaged, cause)


@cases(mlm_baseline=BASELINE)
def test_a_saved_mlm_baseline(damaged: Path, cause: str) -> None:
    with pytest.raises(PretrainedError) as raised:
        saved_module(damaged)
    assert_one_line(str(raised.value), damaged, cause)


@pytest.mark.parametrize(
    "name", ["/no/such", "./here", "no-such-model", "a/b", "~nobody-here/x", "a\x00b", "x" * 300]
)
def test_names_of_nothing(name: str, failure: Refusal) -> None:
    [line] = failure(zero_shot(name)).splitlines()
    assert name[:40] in line or repr(name)[1:-1] in line


PLACES: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_text("x"),
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path),
    "broken link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", PLACES.values(), ids=list(PLACES))
def test_something_else_in_the_place_of_a_folder(
    make: Callable[[Path], object], tmp_path: Path, failure: Refusal
) -> None:
    path = tmp_path / "model"
    make(path)
    assert_one_line(failure(zero_shot(path)), path, "give the folder")
