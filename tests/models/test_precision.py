"""Weights in half precision: as transformers reads them, and made up for where it cannot decide."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from probelight.io.errors import NoMemoryError, UsageError
from probelight.models import checkpoint_files, loading, networks
from probelight.models.answering import answer, with_pieces
from probelight.models.causal import CausalScorer
from probelight.models.checkpoint_errors import PretrainedError, check_size
from probelight.models.checks import comparable, differ_by_rounding, predict_alike
from probelight.models.kept_model import KeptModel
from probelight.models.loading import CAUSAL_LM, MASKED_LM, load_pretrained
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.models.networks import (
    dtype_name,
    half_dtype,
    is_spread,
    is_too_close,
    model_fingerprint,
    own_dtype,
    upcast,
)
from probelight.models.registry import ModelSettings, weights_bytes
from probelight.probes.record import Record
from tests.fixtures.architectures import ref_of

Folder = Callable[..., Path]
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
    Record("3", "which one is [MASK] ?", ("older", "younger", "best", "blue"), 0),
]
WORDS = "smaller larger older younger red blue green dog cat animal plant best rest size".split()
PAIRS = [
    Record(f"{a} {b}", "a cat is [MASK] than a dog .", (a, b), 0)
    for num, a in enumerate(WORDS)
    for b in WORDS[:num]
]
TEXTS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "not really larger"), 0),
    Record("2", "a cat is [MASK] than a dog .", ("older", "smaller"), 0),
]


def half_folder(folder: Path, to: Path, auto_class: Any, **changes: Any) -> Path:
    """Return a copy of a checkpoint in bfloat16."""
    model = auto_class.from_pretrained(folder, dtype=torch.bfloat16)
    model.save_pretrained(to)
    for path in folder.iterdir():
        if not (to / path.name).exists() and path.suffix != ".safetensors":
            (to / path.name).write_bytes(path.read_bytes())
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**config, **changes}))
    return to


@pytest.mark.parametrize("name", HALVES)
def test_weights_are_those_that_transformers_reads(name: Any, causal_folder: Folder) -> None:
    for family in ("llama", "gpt2"):
        ours, _ = load_pretrained(CAUSAL_LM, ref_of(causal_folder(family)), dtype=name)
        theirs = AutoModelForCausalLM.from_pretrained(causal_folder(family), dtype=HALVES[name])
        expected = {**dict(theirs.named_parameters()), **dict(theirs.named_buffers())}
        tensors = {**dict(ours.named_parameters()), **dict(ours.named_buffers())}
        assert tensors.keys() == expected.keys()
        for weight, tensor in expected.items():
            assert tensors[weight].dtype == tensor.dtype
            assert torch.equal(tensors[weight], tensor)
        assert dtype_name(ours) == name


def test_auto_is_what_the_config_names_or_the_first_tensor_has(
    tmp_path: Path, checkpoint: Folder
) -> None:
    folder = half_folder(checkpoint(), tmp_path / "half", AutoModelForMaskedLM)
    assert dtype_name(load_pretrained(MASKED_LM, ref_of(folder), dtype="auto")[0]) == "bfloat16"
    assert dtype_name(load_pretrained(MASKED_LM, ref_of(folder))[0]) == "float32"
    unnamed = half_folder(checkpoint(), tmp_path / "unnamed", AutoModelForMaskedLM, dtype=None)
    assert AutoConfig.from_pretrained(unnamed).dtype is None
    assert own_dtype(str(unnamed), AutoConfig.from_pretrained(unnamed)) == torch.bfloat16
    assert dtype_name(load_pretrained(MASKED_LM, ref_of(unnamed), dtype="auto")[0]) == "bfloat16"
    config = AutoConfig.from_pretrained(checkpoint())
    config.dtype = torch.float64  # in which nothing is scored
    assert own_dtype(str(checkpoint()), config) == torch.float32


def test_random_weights_are_the_same_draw_rounded(checkpoint: Folder) -> None:
    ref = ref_of(checkpoint(), random_weights=True, seed=3)
    full, _ = load_pretrained(MASKED_LM, ref)
    half, _ = load_pretrained(MASKED_LM, ref, dtype="bfloat16")
    for exact, rounded in zip(full.parameters(), half.parameters(), strict=True):
        assert torch.equal(exact.bfloat16(), rounded)


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "opt", "qwen2"])
def test_causal_scores_in_half_are_those_of_transformers_in_half(
    family: str, causal_folder: Folder
) -> None:
    folder = str(causal_folder(family))
    scorer = CausalScorer(*load_pretrained(CAUSAL_LM, ref_of(folder), dtype="bfloat16"))
    assert scorer.reader.packs == (family != "mistral")  # which looks 5 tokens back
    scores = answer(scorer, {"x": TEXTS})["x"].scores
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    encoded = scorer.likelihood_encoder().encode(TEXTS)
    batch = encoded.collate([0, 1])
    sums = []
    for text in encoded.texts:
        ids = torch.from_numpy(encoded.template.assemble(text.ids)[0])
        with torch.no_grad():
            logits = plain(ids[None]).logits[0].float().log_softmax(-1)
        places = torch.arange(len(ids) - (text.end - text.begin), len(ids))
        sums.append(float(logits[places - 1, ids[places]].sum()))
    for row, item in enumerate(batch["item"].tolist()):
        pairs = batch["pair_index"][row][batch["choice_mask"][row]]
        expected = [sums[int(pair)] for pair in pairs]
        assert scores[item] == pytest.approx(expected, rel=2**-7, abs=0.1)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "mpnet"])
@pytest.mark.parametrize("name", HALVES)
def test_masked_scores_in_half_are_those_of_transformers_in_half(
    name: Any, architecture: str, checkpoint: Folder
) -> None:
    """The last layer is still computed at the mask alone."""
    folder = str(checkpoint(architecture))
    masked = MaskedLM(ref_of(folder), read=partial(load_pretrained, dtype=name))
    assert masked.reader.is_reduced
    batch = masked.encoder().encode(RECORDS).collate([0, 1, 2])
    plain = AutoModelForMaskedLM.from_pretrained(folder, dtype=HALVES[name]).eval()
    inputs = {n: batch[n] for n in ("input_ids", "attention_mask", "token_type_ids")}
    if architecture in ("distilbert", "mpnet"):
        inputs.pop("token_type_ids", None)
    with torch.no_grad():
        logits = plain(**inputs).logits.float()
        ours = masked.choice_logits(masked.features(batch), batch)
    assert ours.dtype == torch.float32
    rows = logits[torch.arange(3), batch["mask_position"]].gather(1, batch["candidate_ids"])
    exists = batch["choice_mask"]
    step = 16 * torch.finfo(HALVES[name]).eps
    assert torch.allclose(ours[exists], rows[exists], rtol=step, atol=step)


def test_two_scores_are_too_close_within_four_steps_of_the_best_one() -> None:
    step = 2.0**-7  # of bfloat16 at 1
    assert is_too_close([-1.0, -1.0 - 4 * step], torch.bfloat16)
    assert not is_too_close([-1.0, -1.0 - 4.001 * step], torch.bfloat16)
    assert is_too_close([3.0, 8.0, 8.0 - 32 * step], torch.bfloat16)
    assert not is_too_close([3.0, 8.0, 8.0 - 32 * step], torch.float16)
    assert is_too_close([0.0, 0.0], torch.float16)
    assert is_too_close([math.nan, 5.0, 1.0], torch.float16)
    assert is_too_close([math.inf, math.inf, 1.0], torch.float16)  # overflowed
    assert not is_too_close([1.0, -math.inf], torch.float16)
    assert not is_too_close([1.0], torch.float16)


def test_weights_are_upcast_and_come_back_as_they_were() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(40).bfloat16())
            self.tied = self.weight
            self.brain = nn.Parameter(torch.tensor([1e-7, 6e4, -0.0]).half())
            self.register_buffer("exact", torch.randn(3))
            self.register_buffer("rounded", torch.randn(3).bfloat16())

    network = Mixed()
    initial = {n: w.clone() for n, w in network.state_dict().items()}
    cache = KeptModel()
    fingerprint = cache.fingerprint(network)
    with upcast(network):
        assert {w.dtype for w in network.state_dict().values()} == {torch.float32}
        assert network.tied is network.weight
        for name, weight in network.state_dict().items():
            assert torch.equal(weight, initial[name].float())
    with pytest.raises(ZeroDivisionError), upcast(network):
        _ = 1 / 0
    for name, weight in network.state_dict().items():
        assert weight.dtype == initial[name].dtype
        assert torch.equal(weight, initial[name])
    assert cache.fingerprint(network) == model_fingerprint(network) == fingerprint


def test_close_items_are_scored_again_in_float32(checkpoint: Folder, tmp_path: Path) -> None:
    """They are those of the same weights in float32, and all others stay as they are."""
    folder = str(half_folder(checkpoint(), tmp_path / "half", AutoModelForMaskedLM))

    def scorer(name: Any) -> MaskedScorer:
        return MaskedScorer(MaskedLM(ref_of(folder), read=partial(load_pretrained, dtype=name)))

    full, half = scorer("float32"), scorer("bfloat16")
    exact = answer(full, {"x": PAIRS})["x"].scores
    raw = answer(half, {"x": PAIRS})["x"].scores
    close = [item for item, row in raw.items() if is_too_close(row, torch.bfloat16)]
    assert 0 < len(close) < len(PAIRS)  # of these random weights
    calls: list[bool] = []

    def answers(question: Any, sets: Any, exactly: bool) -> Any:
        calls.append(exactly)
        return answer(half, sets, question)

    fingerprint = half.fingerprint()
    mixed = with_pieces(half, half.choice_scores(), {"x": PAIRS}, answers)["x"]
    assert calls == [False, True]
    assert half.fingerprint() == fingerprint
    assert half.dtype == "bfloat16"
    assert mixed.num_rescored == len(close)
    assert mixed.notices == (
        f"{len(close)} of {len(PAIRS)} items of x, whose two best scores were too close for "
        "bfloat16, were scored again in float32",
    )
    for item in raw:
        expected = exact[item] if item in close else raw[item]
        assert mixed.scores[item] == pytest.approx(expected, abs=1e-5)


def test_weights_that_were_rounded_are_read_again(
    checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A float32 checkpoint in bfloat16 is decided by its own weights; trained ones by theirs."""
    exact, _ = load_pretrained(MASKED_LM, ref_of(checkpoint()))
    model, _ = load_pretrained(MASKED_LM, ref_of(checkpoint()), dtype="bfloat16", is_scored=True)
    with upcast(model):
        for ours, theirs in zip(model.parameters(), exact.parameters(), strict=True):
            assert torch.equal(ours, theirs)
    weight = next(model.parameters())
    assert weight.dtype == torch.bfloat16
    with torch.no_grad():
        weight.add_(1)
    changed = weight.detach().float()
    with upcast(model):
        assert torch.equal(weight, changed)
    alone, _ = load_pretrained(MASKED_LM, ref_of(checkpoint()), dtype="bfloat16")
    monkeypatch.setattr(networks, "READ_AGAIN", "_nothing")
    with upcast(alone):
        assert torch.equal(next(alone.parameters()), next(exact.parameters()).bfloat16().float())


def test_what_does_not_fit_in_float32_stays_as_it_is(
    checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked = MaskedLM(ref_of(checkpoint()), read=partial(load_pretrained, dtype="bfloat16"))
    half = MaskedScorer(masked)

    def too_large(self: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no memory")

    fingerprint = half.fingerprint()
    monkeypatch.setattr(torch.Tensor, "float", too_large)
    with pytest.raises(NoMemoryError, match="in float32 do not fit into the memory of cpu"):
        upcast(half.network).__enter__()
    with comparable(half.network) as tolerance:
        assert tolerance == 16 * 2.0**-7
    monkeypatch.undo()
    assert half.fingerprint() == fingerprint

    def answers(question: Any, sets: Any, exactly: bool) -> Any:
        if exactly:
            raise NoMemoryError("item 1 does not fit")
        return answer(half, sets, question)

    answered = with_pieces(half, half.choice_scores(), {"x": PAIRS}, answers)["x"]
    assert answered.scores == answer(half, {"x": PAIRS})["x"].scores
    assert answered.num_rescored == 0
    assert answered.notices[0].endswith("could not be scored again in float32: item 1 does not fit")


def test_scores_are_kept_where_the_checkpoint_cannot_be_read_again(checkpoint: Folder) -> None:
    """Too little main memory for float32, or a folder that was moved while all was scored."""
    read = partial(load_pretrained, dtype="bfloat16", is_scored=True)
    half = MaskedScorer(MaskedLM(ref_of(checkpoint()), read=read))
    [model] = [m for m in half.network.modules() if hasattr(m, networks.READ_AGAIN)]

    def refuse() -> Any:
        raise PretrainedError("x: 400 bytes in single precision, but this machine has only 300")

    setattr(model, networks.READ_AGAIN, refuse)
    fingerprint, expected = half.fingerprint(), answer(half, {"x": PAIRS})["x"].scores
    answered = with_pieces(
        half, half.choice_scores(), {"x": PAIRS}, lambda question, sets, _: answer(half, sets)
    )["x"]
    assert answered.scores == expected
    assert answered.num_rescored == 0
    assert answered.notices[0].endswith(
        "could not be scored again in float32: x: 400 bytes in single precision, but this machine "
        "has only 300"
    )
    assert half.fingerprint() == fingerprint


def test_weights_of_eight_bits_are_checked_counted_and_not_trained(
    causal_folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eight = torch.tensor([1.0, -448.0, 0.5]).to(torch.float8_e4m3fn)
    networks.check_numbers("x", [("w", eight)])
    with pytest.raises(PretrainedError, match="x: the weight w contains NaN"):
        networks.check_numbers("x", [("w", torch.tensor([1.0, torch.nan]).to(eight.dtype))])
    # A GPU keeps them as they are, and computes with them.
    folder = shutil.copytree(causal_folder("llama"), tmp_path / "eight")
    weights = load_file(folder / "model.safetensors")
    num_weights = sum(weight.numel() for weight in weights.values())
    projections = {name for name in weights if name.endswith("proj.weight")}
    num_eight = sum(weights[name].numel() for name in projections)
    saved = {n: w.to(eight.dtype) if n in projections else w for n, w in weights.items()}
    save_file(saved, folder / "model.safetensors", metadata={"format": "pt"})
    model = ModelSettings(str(folder), kind="causal")
    assert weights_bytes(model) == num_eight + 4 * (num_weights - num_eight)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8"}
    (folder / "config.json").write_text(json.dumps(config))
    sizes: list[int] = []
    monkeypatch.setattr(loading, "check_size", lambda *arguments: sizes.append(arguments[-1]))
    for has_gpu in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)  # noqa: B023
        loading.describe(CAUSAL_LM, ref_of(folder))
    assert sizes == [1, 4]
    network = nn.Linear(2, 2).to(eight.dtype)
    monkeypatch.setattr(loading, "load_pretrained", lambda *_, **__: (network, None))
    with pytest.raises(UsageError, match="eight bits each, which can be scored and not trained"):
        loading.trained_reader(None, "auto")(CAUSAL_LM, ref_of(folder))


@pytest.mark.parametrize("family", ["masked", "causal"])
def test_weights_in_several_files_are_read(
    family: str, tmp_path: Path, checkpoint: Folder, causal_folder: Folder
) -> None:
    form, auto_class, folder = (
        (MASKED_LM, AutoModelForMaskedLM, checkpoint())
        if family == "masked"
        else (CAUSAL_LM, AutoModelForCausalLM, causal_folder("llama"))
    )
    model = auto_class.from_pretrained(folder, dtype=torch.float32)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    for path in folder.iterdir():
        if "token" in path.name or path.name.startswith("vocab"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    assert loading.check_pretrained(form, ref_of(tmp_path)).dtype == torch.float32
    assert own_dtype(str(tmp_path), AutoConfig.from_pretrained(tmp_path)) == torch.float32
    sharded, _ = load_pretrained(form, ref_of(tmp_path))
    for ours, theirs in zip(sharded.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    next(tmp_path.glob("model-00002*")).unlink()
    with pytest.raises(PretrainedError, match="its weights model-00002-of"):
        load_pretrained(form, ref_of(tmp_path))


def test_a_device_map_is_passed_on(
    causal_folder: Folder, checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(causal_folder("llama"))
    for places in ("cpu", "auto"):
        model, _ = load_pretrained(CAUSAL_LM, ref_of(folder), device_map=places)
        assert not is_spread(model)
        assert model.device.type == "cpu"
    spread: Any = nn.Linear(2, 2)
    spread.hf_device_map = {"a": 0, "b": "cpu"}
    assert is_spread(nn.ModuleDict({"model": spread}))
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    with pytest.raises(PretrainedError, match="device_map auto needs the package accelerate"):
        load_pretrained(CAUSAL_LM, ref_of(folder), device_map="auto")
    monkeypatch.undo()
    monkeypatch.setattr(loading, "is_spread", lambda _: True)
    with pytest.raises(
        PretrainedError, match="several devices, but only causal and encoder-decoder"
    ):
        load_pretrained(MASKED_LM, ref_of(checkpoint()), device_map="auto")


def test_weights_are_measured_in_their_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 300}
    monkeypatch.setattr(checkpoint_files.os, "sysconf", memory.__getitem__)
    check_size("x", 100, None, 2)
    with pytest.raises(PretrainedError, match="400 bytes in single precision"):
        check_size("x", 100, None, 4)
    with pytest.raises(PretrainedError, match="402 bytes in half precision"):
        check_size("x", 201, None, 2)


def test_a_network_without_weights_has_single_precision(tmp_path: Path) -> None:
    assert dtype_name(nn.Identity()) == "float32"
    assert half_dtype(nn.Linear(1, 1)) is None
    save_file({"a": torch.zeros(1).half()}, tmp_path / "model.safetensors")
    assert own_dtype(str(tmp_path), AutoConfig.for_model("bert")) == torch.float16


def test_weights_that_were_upcast_in_inference_mode_can_be_trained() -> None:
    network = nn.Linear(3, 2).to(torch.bfloat16)
    with torch.inference_mode(), upcast(network):
        assert network.weight.dtype == torch.float32
    assert network.weight.dtype == torch.bfloat16
    network(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
    assert network.weight.grad is not None


def test_a_comparison_of_ways_to_compute_reads_no_checkpoint_again() -> None:
    network = nn.Linear(3, 2).to(torch.bfloat16)

    def read_again() -> Any:
        raise AssertionError("gigabytes for a few tokens")

    setattr(network, networks.READ_AGAIN, read_again)
    with comparable(network) as tolerance:
        assert network.weight.dtype == torch.float32
    assert tolerance == 3e-5


def test_rounding_is_measured_by_the_largest_logit_that_was_summed() -> None:
    logits = torch.tensor([[60.0, 0.0, -30.0], [1.0, 2.0, 3.0]])
    for size, apart in ((60, 1.7e-3), (30, 8e-4)):  # 3e-5 of the largest logit is allowed
        expected = logits * size / 60
        moved = expected + torch.tensor([[0.0, apart, 0.0], [0.0, 0.0, 0.0]])
        assert predict_alike(expected, moved, 3e-5)
        assert predict_alike(expected, moved + 5, 3e-5)  # the same log-probabilities
        moved[0, 1] += apart
        assert not predict_alike(expected, moved, 3e-5)
        # A likely token's log-probability is next to 0, and as far off as the others'.
        near_zero = torch.tensor([-1e-6])
        assert differ_by_rounding(near_zero, near_zero - apart, 3e-5, expected)
    hidden = torch.tensor([100.0, 0.001])
    assert differ_by_rounding(hidden, hidden + 0.002, 3e-5)
    assert not differ_by_rounding(hidden, hidden + 0.004, 3e-5)
    assert not differ_by_rounding(hidden, hidden[:1], 3e-5)
    nothing = torch.tensor([torch.nan, -torch.inf, 1.0])
    assert differ_by_rounding(nothing, nothing.clone(), 3e-5)
    assert not differ_by_rounding(nothing, hidden.new_tensor([torch.nan, 0.0, 1.0]), 3e-5)
