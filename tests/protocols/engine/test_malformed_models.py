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
import yaml
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, T5Config, ViTConfig

import train
from lightning_modules.checkpoints.folder import PretrainedError
from probes.importers.ai2 import write_ai2
from probes.record import Record
from protocols.engine.models import module_for, saved_module
from protocols.engine.settings import ModelSettings

Damage = Callable[[Path], object]
RAN = "somebodys-code-ran"


def _config(**changes: Any) -> Damage:
    return lambda folder: _change(folder / "config.json", changes)


def _change(path: Path, changes: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _write(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def _without(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink() for name in names]


def _cut(name: str, keep: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


def _weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    def damage(folder: Path, name: str = "model.safetensors") -> None:
        tensors = load_file(folder / name)
        change(tensors)
        save_file(tensors, folder / name, metadata={"format": "pt"})

    return damage


def _at_first(change: Callable[[torch.Tensor], torch.Tensor], ending: str = "weight") -> Damage:
    def apply(tensors: dict[str, torch.Tensor]) -> None:
        name = next(n for n in sorted(tensors) if n.endswith(ending) and tensors[n].dim() == 2)
        tensors[name] = change(tensors[name]).contiguous()

    return _weights(apply)


def _index(content: Any) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "shard.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(content))

    return damage


def _shard(names: dict[str, Any]) -> Damage:
    return _index({"weight_map": names, "metadata": {}})


def _link(name: str, target: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def _fifo(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return damage


def _folder_for(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def _code(folder: Path) -> None:
    (folder / "code.py").write_text(f"from pathlib import Path\nPath({RAN!r}).touch()\n")
    names = {"AutoConfig": "code.C", "AutoModel": "code.M", "AutoModelForMaskedLM": "code.M"}
    _config(model_type="somebodys", auto_map=names)(folder)


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
ANY_MODEL: dict[str, tuple[Damage, str]] = {
    "config missing": (_without("config.json"), "no config.json"),
    "config empty": (_write("config.json", ""), "config.json cannot be read"),
    "config cut": (_cut("config.json", 40), "config.json cannot be read"),
    "config no text": (_write("config.json", b"\xff\xfe\x00"), "config.json cannot be read"),
    "config no JSON": (_write("config.json", "a: b"), "config.json cannot be read"),
    "config a list": (_write("config.json", "[1]"), "holds a list"),
    "config a string": (_write("config.json", '"bert"'), "holds a str"),
    "config null": (_write("config.json", "null"), "holds a NoneType"),
    "config deep": (_write("config.json", DEEP), "config.json cannot be read"),
    "config {}": (_write("config.json", "{}"), "model_type is None"),
    "config a folder": (_folder_for("config.json"), "no regular file"),
    "config a loop": (_link("config.json", "config.json"), "no regular file"),
    "config a broken link": (_link("config.json", "nowhere"), "no regular file"),
    "config a device": (_link("config.json", "/dev/zero"), "no regular file"),
    "config a pipe": (_fifo("config.json"), "no regular file"),
    "config large": (_write("config.json", " " * (17 << 20)), "too many for settings"),
    "kind unknown": (_config(model_type="nosuch"), "nosuch"),
    "kind a number": (_config(model_type=3), "model_type is 3"),
    "kind a list": (_config(model_type=["bert"]), "model_type is ['bert']"),
    "code": (_code, "custom code"),
    "kernel": (_config(attn_implementation="some/kernel"), "never run"),
    "GPT-2": (
        lambda f: GPT2Config(vocab_size=60).save_pretrained(f),
        "gpt2 (GPT2Config) is a causal language model, a kind that is not supported yet",
    ),
    "T5": (
        lambda f: T5Config(vocab_size=60).save_pretrained(f),
        "t5 (T5Config) is an encoder-decoder model, a kind that is not supported yet",
    ),
    "BART": (_config(model_type="bart"), "encoder-decoder model"),
    "Llama": (_config(model_type="llama"), "causal language model"),
    "ViT": (lambda f: ViTConfig().save_pretrained(f), "not supported yet"),
    "a decoder": (_config(is_decoder=True), "not supported yet"),
    "size 0": (_config(hidden_size=0), "hidden_size is 0"),
    "size negative": (_config(hidden_size=-32), "hidden_size is -32"),
    "size text": (_config(hidden_size="32"), "hidden_size is '32'"),
    "size float": (_config(hidden_size=32.5), "hidden_size is 32.5"),
    "size true": (_config(hidden_size=True), "hidden_size is True"),
    "size list": (_config(intermediate_size=[64]), "intermediate_size is [64]"),
    "size odd": (_config(hidden_size=33), "33"),
    "size other": (_config(hidden_size=64), "is of shape"),
    "size huge": (_config(hidden_size=1 << 20), "do not belong together"),
    "size beyond": (_config(hidden_size=10**18), "hidden_size is 1000"),
    "heads 0": (_config(num_attention_heads=0), "num_attention_heads is 0"),
    "layers negative": (_config(num_hidden_layers=-1), "num_hidden_layers is -1"),
    "layers huge": (_config(num_hidden_layers=10**9), "num_hidden_layers is 1000000000"),
    "layers too many": (_config(num_hidden_layers=3), "missing"),
    "words huge": (_config(vocab_size=60_000_000), "do not belong together"),
    "words more": (_config(vocab_size=70), "is of shape"),
    "words negative": (_config(vocab_size=-1), "vocab_size is -1"),
    "places 0": (_config(max_position_embeddings=0), "max_position_embeddings is 0"),
    "labels huge": (_config(num_labels=10**9), "num_labels is 1000000000"),
    "activation unknown": (_config(hidden_act="nosuch"), "nosuch"),
    "dropout text": (_config(hidden_dropout_prob="much"), "much"),
    "quantised": (_config(quantization_config={"quant_method": "gptq"}), "GPTQConfig"),
    "weights missing": (_without("model.safetensors"), "no weights"),
    "weights empty": (_write("model.safetensors", b""), "header too small"),
    "weights cut early": (_cut("model.safetensors", 7), "SafetensorError"),
    "weights cut late": (_cut("model.safetensors", 5000), "SafetensorError"),
    "weights no safetensors": (_write("model.safetensors", b"PK" * 500), "SafetensorError"),
    "weights a page": (_write("model.safetensors", "<html>" * 500), "SafetensorError"),
    "weights a pointer": (_write("model.safetensors", "version https://git-lfs"), "Safetensor"),
    "weights a folder": (_folder_for("model.safetensors"), "model.safetensors are not there"),
    "weights a loop": (_link("model.safetensors", "model.safetensors"), "are not there"),
    "weights a pipe": (_fifo("model.safetensors"), "are not there"),
    "weights evil": (_pickle, "weights"),
    "weights none in it": (_weights(lambda tensors: tensors.clear()), "belong together"),
    "a weight missing": (_weights(lambda t: t.pop(min(t))), "missing"),
    "a weight of another shape": (_at_first(lambda w: w[:, :-1]), "is of shape"),
    "a weight NaN": (_at_first(lambda w: w * torch.nan), "NaN or infinite"),
    "a weight infinite": (_at_first(lambda w: w / 0), "NaN or infinite"),
    "index no JSON": (_index("x"), "holds a str"),
    "index empty": (_index({"weight_map": {}, "metadata": {}}), "no weight_map"),
    "index a list": (_index({"weight_map": ["x"], "metadata": {}}), "no weight_map"),
    "index without metadata": (_index({"weight_map": {"x": "x.safetensors"}}), "no metadata"),
    "index missing": (_shard({"x": "no.safetensors"}), "no.safetensors are not"),
    "index outside": (_shard({"x": "../x.safetensors"}), "'../x.safetensors'"),
    "index absolute": (_shard({"x": "/x.safetensors"}), "'/x.safetensors'"),
    "index a number": (_shard({"x": 3}), "names 3"),
    "index a pickle": (_shard({"x": "x.bin"}), "'x.bin'"),
    "tokenizer missing": (_no_tokenizer, "has no tokenizer"),
    "tokenizer empty": (_write("tokenizer.json", ""), "tokenizer"),
    "tokenizer cut": (_cut("tokenizer.json", 100), "tokenizer"),
    "tokenizer no JSON": (_write("tokenizer.json", "x"), "tokenizer"),
    "tokenizer null": (_write("tokenizer.json", "null"), "tokenizer"),
    "tokenizer a list": (_write("tokenizer.json", "[]"), "tokenizer"),
    "tokenizer deep": (_write("tokenizer.json", DEEP), "tokenizer"),
    "tokenizer {}": (_write("tokenizer.json", "{}"), "tokenizer"),
    "tokenizer a folder": (_folder_for("tokenizer.json"), "tokenizer"),
    "tokenizer a pipe": (_fifo("tokenizer.json"), "tokenizer"),
    "tokenizer of no kind": (_tokenizer(lambda t: t["model"].update(type="No")), "tokenizer"),
    "tokenizer without words": (_tokenizer(lambda t: t["model"].update(vocab={})), "tokenizer"),
    "tokenizer config a list": (_write("tokenizer_config.json", "[]"), "tokenizer"),
    "tokenizer config cut": (_cut("tokenizer_config.json", 20), "tokenizer"),
    "vocabulary empty": (_vocabulary(), "tokenizer"),
    "vocabulary small": (_vocabulary(*SPECIAL, "a", "b"), "do not belong together"),
    "vocabulary large": (_vocabulary(*SPECIAL, *map(str, range(99))), "do not belong together"),
}
# Loading is the same for every command, so for the second one a sample is enough.
SOME = (
    "config missing",
    "config cut",
    "code",
    "GPT-2",
    "T5",
    "size huge",
    "weights missing",
    "weights cut late",
    "weights evil",
    "a weight NaN",
    "index outside",
    "tokenizer missing",
    "vocabulary large",
)
MASKED: dict[str, tuple[Damage, str]] = {
    "tokenizer without mask": (
        lambda f: _change(f / "tokenizer_config.json", {"mask_token": None}),
        "tokenizer",
    ),
    "no head": (
        _weights(lambda t: [t.pop(n) for n in list(t) if n.startswith("cls.")]),
        "missing (cls.predictions",
    ),
}
SENTENCE: dict[str, tuple[Damage, str]] = {
    "choice_head.json empty": (_write("choice_head.json", ""), "choice_head.json cannot be read"),
    "choice_head.json a list": (_write("choice_head.json", "[]"), "choice_head.json cannot be"),
    "format": (lambda f: _change(f / "choice_head.json", {"format": 9}), "format 9"),
    "head": (lambda f: _change(f / "choice_head.json", {"head": "x"}), "head 'x'"),
    "head a list": (lambda f: _change(f / "choice_head.json", {"head": []}), "head []"),
    "another head": (lambda f: _change(f / "choice_head.json", {"head": "linear"}), "dense"),
    "pooler": (lambda f: _change(f / "choice_head.json", {"head": "pooler"}), "pooler"),
    "length": (lambda f: _change(f / "choice_head.json", {"max_length": "x"}), "max_length is 'x'"),
    "length 0": (lambda f: _change(f / "choice_head.json", {"max_length": 0}), "max_length is 0"),
    "choices": (lambda f: _change(f / "choice_head.json", {"num_choices": 1}), "num_choices is 1"),
    "head missing": (_without("head.safetensors"), "head.safetensors"),
    "head cut": (_cut("head.safetensors", 30), "SafetensorError"),
    "head NaN": (
        lambda f: save_file(
            {n: t * torch.nan for n, t in load_file(f / "head.safetensors").items()},
            f / "head.safetensors",
        ),
        "NaN or infinite",
    ),
}
_WORDS = "word_module.json"
WORD_MODULE: dict[str, tuple[Damage, str]] = {
    "settings empty": (_write(_WORDS, ""), "word_module.json cannot be read"),
    "settings a list": (_write(_WORDS, "[]"), "word_module.json cannot be read"),
    "settings without format": (_write(_WORDS, "{}"), "format None"),
    "format": (lambda f: _change(f / _WORDS, {"format": 9}), "format 9"),
    "kind": (lambda f: _change(f / _WORDS, {"kind": "elmo"}), "'elmo'"),
    "kind a list": (lambda f: _change(f / _WORDS, {"kind": []}), "[]"),
    "a setting more": (lambda f: _change(f / _WORDS, {"nosuch": 1}), "nosuch"),
    "dimension text": (lambda f: _change(f / _WORDS, {"dimension": "x"}), "settings"),
    "dimension other": (lambda f: _change(f / _WORDS, {"dimension": 7}), "7 are wanted"),
    "dimension negative": (lambda f: _change(f / _WORDS, {"dimension": -50}), "settings"),
    "weights missing": (_without("model.safetensors"), "weights"),
    "weights cut": (_cut("model.safetensors", 999), "SafetensorError"),
    "weights of nothing": (_weights(lambda t: t.clear()), "do not belong together"),
    "a weight missing": (_weights(lambda t: t.pop("words.weight")), "words.weight"),
    "words missing": (_weights(lambda t: t.pop("words.spelling")), "words.spelling"),
    "a weight of another shape": (_at_first(lambda w: w[:, :-1]), "weights"),
    "a weight NaN": (_at_first(lambda w: w * torch.nan), "NaN or infinite"),
    "words no text": (
        _weights(lambda t: t.update({"words.spelling": torch.tensor([255], dtype=torch.uint8)})),
        "weights",
    ),
}
ESIM: dict[str, tuple[Damage, str]] = {
    "size huge": (lambda f: _change(f / _WORDS, {"hidden_size": 10**6}), "do not belong together"),
    "size negative": (lambda f: _change(f / _WORDS, {"hidden_size": -1}), "settings"),
    "size text": (lambda f: _change(f / _WORDS, {"hidden_size": "x"}), "settings"),
    "dropout": (lambda f: _change(f / _WORDS, {"dropout": 7}), "dropout"),
    "length": (lambda f: _change(f / _WORDS, {"max_length": "x"}), "max_length is 'x'"),
    "choices": (lambda f: _change(f / _WORDS, {"num_choices": 0}), "num_choices is 0"),
}
BASELINE: dict[str, tuple[Damage, str]] = {
    "tokens huge": (lambda f: _change(f / _WORDS, {"num_tokens": 10**6}), "belong together"),
    "tokens negative": (lambda f: _change(f / _WORDS, {"num_tokens": -1}), "settings"),
    "mode": (lambda f: _change(f / _WORDS, {"mode": "full"}), "mode='full'"),
}


def _cases(*tables: dict[str, tuple[Damage, str]]) -> Any:
    rows = {name: case for table in tables for name, case in table.items()}
    return pytest.mark.parametrize(("damage", "cause"), list(rows.values()), ids=list(rows))


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def saved(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders that our own modules were saved in."""
    root = tmp_path_factory.mktemp("saved")
    made = {
        "sentence": lambda: module_for(ModelSettings(str(tiny_model), max_length=32), "mc_qa"),
        "esim": lambda: module_for(ModelSettings(kind="esim"), "mc_qa"),
        "mlm_baseline": lambda: module_for(ModelSettings(kind="mlm_baseline"), "mc_mlm"),
    }

    def save(kind: str) -> Path:
        if not (root / kind).is_dir():
            made[kind]().save_pretrained(root / kind)
        return root / kind

    return save


def _one_line(
    code: int, folder: Path, cause: str, capfd: pytest.CaptureFixture[str], exit_code: int = 1
) -> None:
    said = capfd.readouterr().err.strip()
    assert code == exit_code, said
    assert len(said.splitlines()) == 1, said
    assert "Traceback" not in said
    assert str(folder) in said
    assert cause in said, said
    assert not Path(RAN).exists()


def _zero_shot(folder: str, tmp_path: Path) -> int:
    own = tmp_path / "own.jsonl"
    write_ai2(own, [Record("1", "the grass is [MASK] .", ("red", "green"), 1)])
    command = ["zero-shot", "--data.path", str(own), "--data.setup", "mc_mlm"]
    command += ["--model.name_or_path", folder, "--output_dir", str(tmp_path / "out")]
    return train.main([*command, "--trainer.progress_bar", "false"])


def _inoculate(folder: Path, config: dict[str, Any], tmp_path: Path) -> int:
    config["original"]["checkpoint"] = str(folder)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    out = ["--output_dir", str(tmp_path / "out")]
    return train.main(["inoculate", "--config", str(tmp_path / "run.yaml"), *out])


@_cases(ANY_MODEL, MASKED)
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
    _one_line(_zero_shot(str(folder), tmp_path), folder, cause, capfd)


@_cases({name: ANY_MODEL[name] for name in SOME}, SENTENCE)
def test_inoculation_of_a_saved_model(
    damage: Damage,
    cause: str,
    saved: Callable[[str], Path],
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = Path(shutil.copytree(saved("sentence"), tmp_path / "model"))
    damage(folder)
    capfd.readouterr()  # what was said while it was made
    _one_line(_inoculate(folder, inoculation_config, tmp_path), folder, cause, capfd)


@_cases(WORD_MODULE, ESIM)
def test_inoculation_of_a_saved_esim(
    damage: Damage,
    cause: str,
    saved: Callable[[str], Path],
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = Path(shutil.copytree(saved("esim"), tmp_path / "model"))
    damage(folder)
    capfd.readouterr()  # what was said while it was made
    inoculation_config["model"]["kind"] = "esim"
    _one_line(_inoculate(folder, inoculation_config, tmp_path), folder, cause, capfd)


@_cases(WORD_MODULE, BASELINE)
def test_a_saved_mlm_baseline(
    damage: Damage, cause: str, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(saved("mlm_baseline"), tmp_path / "model"))
    damage(folder)
    with pytest.raises(PretrainedError) as raised:
        saved_module(folder)
    said = str(raised.value)
    assert len(said.splitlines()) == 1
    assert str(folder) in said
    assert cause in said


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
    _one_line(_zero_shot(str(path), tmp_path), path, "give the folder", capfd)
