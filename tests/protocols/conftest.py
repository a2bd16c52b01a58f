"""A tiny model, tiny probes in a mirror, and the config of an inoculation on them."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.jobs.job import Job, RunContext, make_run
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
COLOURS = ["red", "green", "blue", "white", "black"]
THINGS = ["grass", "snow", "coal", "blood", "sky", "a", "is", "what", "colour", "the", "."]
NONSENSE = ["blah", "ya", "foo"]
NUMBERED = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT with dropout, whose vocabulary is a list that can be read above."""
    words = [*SPECIAL, *COLOURS, *THINGS, *NUMBERED]
    return write_bert(tmp_path_factory.mktemp("models") / "tiny", words, hidden_size=32, layers=2)


def write_bert(
    folder: Path,
    words: Sequence[str],
    *,
    hidden_size: int,
    layers: int,
    seed: int = 0,
    max_length: int = 32,
    initializer_range: float = 0.02,
) -> Path:
    """Write a random BERT whose vocabulary is a list of words; returns its folder."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    BertTokenizer(str(folder / "vocab.txt"), model_max_length=max_length).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden_size,
        max_position_embeddings=max_length,
        initializer_range=initializer_range,
    )
    torch.manual_seed(seed)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def questions(name: str, num_items: int, seed: int) -> list[Record]:
    """Five-way questions in clusters of two, whose answer is the colour in the stem."""
    rng = random.Random(seed)
    records = []
    for i in range(num_items):
        choices = rng.sample(COLOURS, 5)
        answer = rng.randrange(5)
        stem = f"what w{(i // 2) % 40} is the {choices[answer]} colour {name}"
        meta = {"cluster": f"{name}{seed}-{i // 2}"}
        records.append(Record(f"{name}-{seed}-{i}", stem, tuple(choices), answer, meta))
    return records


@pytest.fixture(scope="session")
def tiny_probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two MC-QA probe configs, `first.yaml` and `second.yaml`, and a mirror with their files."""
    folder = tmp_path_factory.mktemp("probes")
    for name in ("first", "second"):
        for split, num_items, seed in (("train", 80, 1), ("test", 22, 2)):
            path = folder / "mirror" / "tiny" / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_ai2(path, questions(name, num_items, seed))
        files = {split: f"{name}/{split}.jsonl" for split in ("train", "test")}
        write_probe(folder / f"{name}.yaml", {**ASKED, "description": "a test"}, files)
    return folder


ASKED = {"setup": "mc_qa", "num_choices": 5, "chance": 0.2, "group_by": "cluster"}


def write_probe(path: Path, config: dict[str, Any], files: dict[str, str]) -> None:
    """Write the config of a probe whose files are in `mirror/tiny` next to it."""
    place = {"base_url": "https://example.org/", "mirror_folder": "tiny"}
    named = {split: {"path": name} for split, name in files.items()}
    path.write_text(yaml.safe_dump({**config, **place, "files": named}))


@pytest.fixture
def inoculation_config(tiny_model: Path, tiny_probes: Path, tmp_path: Path) -> dict[str, Any]:
    """Two epochs of an original task, three of an inoculation: 16 steps in all."""
    return {
        "model": {"name_or_path": str(tiny_model), "max_length": 32},
        "original": {
            "name": "first",
            "sets": [str(tiny_probes / "first.yaml")],
            "report_sets": [str(tiny_probes / "first.yaml")],
            "selection_share": 0.2,
            "reserved_share": 0.2,
            "epochs": 2,
            "learning_rate": 1.0e-3,
            "batch_size": 16,
        },
        "probe": {"name": str(tiny_probes / "second.yaml"), "selection_items": 20},
        "dose": 24,
        "extra": "none",
        "learning_rate": 1.0e-3,
        "epochs": 3,
        "batch_size": 8,
        "seed": 0,
        "mirror": str(tiny_probes / "mirror"),
        "trainer": {"accelerator": "cpu", "progress_bar": False, "checkpoint_every": 1},
    }


def make_runs(jobs: Sequence[Job], folder: Path, context: RunContext) -> dict[str, RunRecord]:
    """Make the runs of jobs one after another; return their records by key."""
    found = {}
    for job in jobs:
        run = RunFolder(folder / "runs", job.name, json.loads(json.dumps(job.config)))
        assert run.key == job.key
        make_run(job.runner, run, run.config, context)
        record = run.result()
        assert record is not None
        found[job.key] = record
    return found


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must fail in one line; returns that line.

    `refused(arguments, code=cli.USAGE_ERROR)`: the arguments are words, or a line that is split.
    """

    def run(arguments: Sequence[str] | str, code: int = cli.USAGE_ERROR) -> str:
        capsys.readouterr()
        words = shlex.split(arguments) if isinstance(arguments, str) else list(arguments)
        try:
            ended: int | str | None = cli.main(words)
        except SystemExit as stop:  # the parser ends by itself
            ended = stop.code
        errors = capsys.readouterr().err
        assert ended == code, errors
        assert "Traceback" not in errors
        [line] = [line for line in errors.splitlines() if line.startswith("train.py")]
        return line

    return run


@pytest.fixture(scope="session")
def curve_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `tiny_model`, with three nonsense words and the words of `curve_probes`."""
    folder = tmp_path_factory.mktemp("models") / "curvy"
    words = [*SPECIAL, *COLOURS, *THINGS, *NONSENSE, "than", *NUMBERED]
    return write_bert(folder, words, hidden_size=16, layers=1, seed=1)


@pytest.fixture(scope="session")
def curve_lm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a random "gpt2", "t5" or "bart" that reads `curve_probes`; "green" is 2 pieces."""
    return cache(lambda family: _language_model(tmp_path_factory.mktemp("models") / family))


def _language_model(folder: Path) -> Path:
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "<extra_id_0>", "<extra_id_1>"]
    words = [*special, *COLOURS, "gre", "##en", *THINGS, *NONSENSE, "than", *NUMBERED]
    words.remove("green")
    base = Tokenizer(WordPiece({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    base.pre_tokenizer = WhitespaceSplit()
    shown = {"gpt2": "$A", "t5": "$A </s>", "bart": "<s> $A </s>"}[folder.name]
    ends = [("<s>", 2), ("</s>", 3)]
    base.post_processor = TemplateProcessing(single=shown, pair="$A $B", special_tokens=ends)
    kinds = ("pad_token", "unk_token", "bos_token", "eos_token", "mask_token")
    names: dict[str, Any] = dict(zip(kinds, special, strict=False))
    names["additional_special_tokens"] = special[-2:]
    PreTrainedTokenizerFast(tokenizer_object=base, **names).save_pretrained(folder)
    size = {"vocab_size": len(words), "d_model": 16}
    torch.manual_seed(3)
    model: Any
    if folder.name == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_embd=16, n_layer=1, n_head=2))
    elif folder.name == "t5":
        small = {"d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
        model = T5ForConditionalGeneration(T5Config(**size, **small, decoder_start_token_id=0))
    else:
        parts = ("layers", "attention_heads", "ffn_dim")
        small = {f"{half}_{part}": 2 for half in ("encoder", "decoder") for part in parts}
        ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
        config = BartConfig(**size, **small, **ids, decoder_start_token_id=3)
        model = BartForConditionalGeneration(config)
    with torch.no_grad():  # fresh weights are so small that all features are alike
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return folder


def sentences(num_items: int, first: int) -> list[Record]:
    """Pairs in both orders, a group each: "a w3 is [MASK] than a w4 ." is red if 3 < 4."""
    records = []
    for i in range(num_items):
        pair = [f"w{first + i // 2}", f"w{(first + i // 2 + 1 + i // 40) % 40}"]
        left, right = pair if i % 2 else pair[::-1]
        answer = int(int(left[1:]) > int(right[1:]))
        stem = f"a {left} is [MASK] than a {right} ."
        records.append(Record(f"s{i}", stem, ("red", "green"), answer))
    return records


@pytest.fixture(scope="session")
def curve_probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Probe configs next to a mirror: `pairs` and `later` (MC-MLM, without train file), `asked`."""
    folder = tmp_path_factory.mktemp("curve-probes")
    mirror = folder / "mirror" / "tiny"
    mirror.mkdir(parents=True)
    write_ai2(mirror / "pairs-train.jsonl", sentences(40, 0))
    write_ai2(mirror / "pairs-dev.jsonl", sentences(12, 20))
    write_ai2(mirror / "later-dev.jsonl", sentences(30, 10))
    write_ai2(mirror / "asked-train.jsonl", questions("asked", 40, 1))
    write_ai2(mirror / "asked-dev.jsonl", questions("asked", 12, 2))
    masked = {
        "setup": "mc_mlm",
        "num_choices": 2,
        "chance": 0.5,
        "candidates": ["red", "green"],
        "arguments": r"a (\w+) is \[MASK\] than a (\w+) \.",
        "key_words": ["than"],
        "group_by": "arguments",
    }
    words = {"arguments": r"what (\w+) is the \w+ colour (\w+)", "key_words": ["colour"]}
    for name, config, splits in (
        ("pairs", masked, ("train", "dev")),
        ("later", masked, ("dev",)),
        ("asked", {**ASKED, **words}, ("train", "dev")),
    ):
        files = {split: f"{name}-{split}.jsonl" for split in splits}
        write_probe(folder / f"{name}.yaml", config, files)
    return folder
