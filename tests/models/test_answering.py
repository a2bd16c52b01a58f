"""Answering without Lightning: every record gets its scores, and the scorer stays as it was."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from probelight.io.errors import UsageError
from probelight.io.process import say_once
from probelight.models import answering
from probelight.models.answering import (
    answer,
    answer_batch,
    batch_loader,
    float32_products,
    give_memory_back,
    loader_options,
    say_if_bfloat16_is_slow,
    scores_by_item,
)
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.models.networks import Batch
from probelight.models.scorer import Question
from probelight.probes.record import Record
from tests.fixtures.architectures import ref_of

RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
    Record("3", "the [MASK] is larger than a dog .", ("antelope", "cat"), 0),  # three pieces
]


@pytest.fixture
def scorer(checkpoint: Callable[..., Path]) -> MaskedScorer:
    return MaskedScorer(MaskedLM(ref_of(checkpoint()), multi_token="pseudo_log_likelihood"))


def test_each_record_gets_the_scores_of_its_distinct_choices(scorer: MaskedScorer) -> None:
    answers = answer(scorer, {"a": RECORDS})["a"]
    assert {position: len(scores) for position, scores in answers.scores.items()} == {0: 3, 1: 2}
    assert answers.needs_pll == (2,)
    assert "1 of 3 records have a candidate that is not one vocabulary item" in answers.notices[0]
    batch = scorer.masked.encoder().encode(RECORDS).collate([0, 1])
    with torch.no_grad():
        plain = scorer.choice_scores().answer(batch)
    assert answers.scores[0] == pytest.approx(plain[0].tolist(), abs=1e-6)
    assert answers.scores[1] == pytest.approx(plain[1, :2].tolist(), abs=1e-6)


def test_the_choice_mask_says_which_choices_there_are_not_their_scores() -> None:
    batch = {
        "item": torch.tensor([4, 2, -1]),
        "scores": torch.tensor(
            [[-math.inf, 1.0, -math.inf], [math.nan, 2.0, 3.0], [0.0, 0.0, 0.0]]
        ),
        "choice_mask": torch.tensor([[True, True, False], [True, True, True], [True] * 3]),
    }
    by_item = scores_by_item(batch)
    assert by_item[4] == [-math.inf, 1.0]
    assert by_item[2] == pytest.approx([math.nan, 2.0, 3.0], nan_ok=True)
    assert set(by_item) == {4, 2}


@pytest.mark.parametrize("options", [{"max_tokens": 1}, {"num_workers": 1}, {"progress": True}])
def test_how_batches_are_made_changes_no_score(
    options: dict[str, Any], scorer: MaskedScorer
) -> None:
    at_once = answer(scorer, {"a": RECORDS, "b": RECORDS[:1]})
    state = torch.get_rng_state()
    batched = answer(scorer, {"a": RECORDS, "b": RECORDS[:1]}, **options)
    assert torch.equal(torch.get_rng_state(), state)
    for name, reference in at_once.items():
        for position, scores in reference.scores.items():
            assert batched[name].scores[position] == pytest.approx(scores, abs=1e-5)


def test_lower_precision_changes_numbers_and_none_that_is_not_known(scorer: MaskedScorer) -> None:
    exact = answer(scorer, {"a": RECORDS})["a"].scores[0]
    lower = answer(scorer, {"a": RECORDS}, precision="bf16-mixed")["a"].scores[0]
    assert exact != lower
    assert lower == pytest.approx(exact, abs=0.1)
    with pytest.raises(KeyError, match="64-true"):
        answer(scorer, {"a": RECORDS}, precision="64-true")


def test_the_scorer_is_left_where_it_was_and_in_eval_mode(scorer: MaskedScorer) -> None:
    scorer.network.train()
    initial = {name: value.clone() for name, value in scorer.network.state_dict().items()}
    answer(scorer, {"a": RECORDS}, device="cpu")
    assert not scorer.network.training
    for name, value in scorer.network.state_dict().items():
        assert torch.equal(value, initial[name])
        assert value.device.type == "cpu"


def test_a_set_without_a_record_to_pose_is_refused_by_name(checkpoint: Callable[..., Path]) -> None:
    scorer = MaskedScorer(MaskedLM(ref_of(checkpoint()), multi_token="skip"))
    with pytest.raises(ValueError, match=r"^b: no items to score \(1 were skipped\)"):
        answer(scorer, {"a": RECORDS[:1], "b": RECORDS[2:]})


def test_memory_is_given_back_every_so_many_batches(
    scorer: MaskedScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []
    monkeypatch.setattr(answering, "give_memory_back", lambda: called.append(0))
    monkeypatch.setattr(answering, "_TRIM_EVERY", 2)
    records = [Record(str(i), RECORDS[0].stem, RECORDS[0].choices, 0) for i in range(5)]
    answer(scorer, {"a": records}, max_tokens=1)
    assert called == [0, 0]


MANY = [Record(str(i), "the [MASK] is red ." + " red" * i, ("dog", "cat"), 0) for i in range(11)]


FULL: list[RuntimeError] = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
]


def cramped(
    question: Question, most: int, sizes: list[int], error: RuntimeError = FULL[0]
) -> Question:
    """A network on a device with memory for `most` items, which notes how many it was asked."""

    def read(batch: Batch) -> Tensor:
        sizes.append(len(batch["item"]))
        if sizes[-1] > most:
            raise error
        return question.answer(batch)

    return replace(question, answer=read)


@pytest.mark.parametrize("error", FULL)
def test_a_batch_that_does_not_fit_is_answered_in_halves(
    error: RuntimeError, scorer: MaskedScorer, capsys: pytest.CaptureFixture[str]
) -> None:
    say_once.cache_clear()
    sizes: list[int] = []
    sets = {"a": MANY, "b": MANY[:4]}
    at_once = answer(scorer, sets)
    halved = answer(scorer, sets, cramped(scorer.choice_scores(), 3, sizes, error))
    # 11 are halved to 5 and 6, these to 2 and 3, and to 3 and 3; 4 to 2 and 2.
    assert sizes == [11, 5, 2, 3, 6, 3, 3, 4, 2, 2]
    for name in sets:
        assert halved[name].scores.keys() == at_once[name].scores.keys()
        for position, scores in at_once[name].scores.items():
            assert halved[name].scores[position] == pytest.approx(scores, abs=1e-5)
    assert capsys.readouterr().err == (
        "a batch does not fit into the memory of cpu, so it is divided in two; to save "
        "time, give a lower --trainer.max_eval_tokens\n"
    )


def test_an_item_that_does_not_fit_alone_is_one_error(scorer: MaskedScorer) -> None:
    message = "^item 11 does not fit into the memory of cpu, even alone; use a smaller model"
    with pytest.raises(UsageError, match=message):
        answer(scorer, {"a": MANY}, cramped(scorer.choice_scores(), 0, []))


def test_other_errors_of_a_device_are_not_about_its_memory(scorer: MaskedScorer) -> None:
    sizes: list[int] = []
    error = RuntimeError("CUDA error: device-side assert triggered")
    with pytest.raises(RuntimeError, match="device-side assert"):
        answer(scorer, {"a": MANY}, cramped(scorer.choice_scores(), 3, sizes, error))
    assert sizes == [11]


class Copies(TorchDispatchMode):
    """Stands for a device: copies from "meta", where nothing is computed, give zeros."""

    num_copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        is_copy = func is torch.ops.aten._to_copy.default and args[0].is_meta
        if is_copy and options.get("device") == torch.device("cpu"):
            self.num_copies += 1
            return torch.zeros(args[0].shape, dtype=args[0].dtype)
        return func(*args, **options)


@pytest.mark.parametrize(("held", "num_copies"), [(1000, 2), (5, 14)])
def test_scores_of_many_batches_leave_the_device_by_one_copy(
    held: int, num_copies: int, scorer: MaskedScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 batches of one item with two scores: after the 32nd, or whenever more than 5 wait."""
    monkeypatch.setattr(answering, "moved", lambda *_: nullcontext(torch.device("meta")))
    monkeypatch.setattr(answering, "_MOST_HELD", held)
    records = [replace(MANY[0], id=str(i)) for i in range(40)]
    question = Question(scorer.choice_scores().encoder, lambda batch: batch["choice_mask"].float())
    with Copies() as copies:
        scores = answer(scorer, {"a": records}, question, max_tokens=1)["a"].scores
    assert scores == {position: [0.0, 0.0] for position in range(40)}
    assert copies.num_copies == num_copies


@pytest.mark.parametrize(
    ("device", "num_workers", "expected"),
    [("cuda", None, (1, True)), ("cuda", 0, (0, True)), ("cpu", None, (0, False))],
)
def test_batches_for_cuda_are_pinned_and_made_by_a_process_of_their_own(
    device: str, num_workers: int | None, expected: tuple[int, bool], scorer: MaskedScorer
) -> None:
    where = torch.device(device)
    options = loader_options(num_workers, where)
    assert (options["num_workers"], options["pin_memory"]) == expected
    encoded = scorer.choice_scores().encoder.encode(MANY)
    several = batch_loader(encoded, [[0, 1], [2]], num_workers, where)
    assert (several.num_workers, several.pin_memory) == expected
    assert batch_loader(encoded, [[0, 1, 2]], num_workers, where).num_workers == 0  # one batch


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_only_copies_to_cuda_are_not_waited_for(device: str) -> None:
    class Moved:
        def to(self, target: torch.device, non_blocking: bool) -> Tensor:
            assert target.type == device
            assert non_blocking == (device == "cuda")
            return torch.ones(2)

    batch: Any = {"item": Moved()}
    assert answer_batch(lambda texts: texts["item"], batch, torch.device(device)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("device", "capability", "precision", "matmul", "is_said"),
    [
        ("cuda", (9, 0), "32-true", "highest", True),
        ("cuda", (8, 0), "32-true", "highest", True),
        ("cuda", (7, 5), "32-true", "highest", False),
        ("cuda", (9, 0), "32-true", "high", False),
        ("cuda", (9, 0), "bf16-mixed", "highest", False),
        ("cpu", (9, 0), "32-true", "highest", False),
    ],
)
def test_slow_products_of_single_precision_are_said_once_and_the_setting_holds_inside(
    device: str,
    capability: tuple[int, int],
    precision: str,
    matmul: str,
    is_said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_once.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)

    def interrupted() -> None:
        with float32_products(torch.device(device), precision, matmul):
            assert torch.get_float32_matmul_precision() == matmul
            raise KeyError

    torch.set_float32_matmul_precision("medium")
    try:
        for _ in range(2):
            with pytest.raises(KeyError):
                interrupted()
            assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert capsys.readouterr().err.count("with matmul_precision highest") == is_said


@pytest.mark.parametrize(
    ("device", "capabilities", "is_said"),
    [
        ("cpu", {"avx512_bf16": False, "amx_bf16": False}, True),
        ("cpu", {"avx512_bf16": True, "amx_bf16": False}, False),
        ("cpu", {"avx512_bf16": False, "amx_bf16": True}, False),
        ("cpu", {"neon": True, "bf16": False}, False),  # ARM: nobody measured it
        ("cpu", None, False),  # a torch that does not tell
        ("cuda", {"avx512_bf16": False, "amx_bf16": False}, False),
    ],
)
def test_bfloat16_without_instructions_for_it_is_said_once(
    device: str,
    capabilities: dict[str, bool] | None,
    is_said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_once.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 0))
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    if capabilities is not None:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    said = []
    for precision in ("32-true", "bf16-mixed", "bf16-mixed"):
        with float32_products(torch.device(device), precision, "highest"):
            said.append("no instructions for bfloat16" in capsys.readouterr().err)
    assert said == [False, is_said, False]
    say_once.cache_clear()
    say_if_bfloat16_is_slow(torch.device(device))  # as for weights in bfloat16
    assert ("no instructions for bfloat16" in capsys.readouterr().err) == is_said


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    give_memory_back()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_holes_between_what_is_kept_go_back_to_the_system() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("no glibc")
    give_memory_back()  # so that all of it comes anew from the system
    start = _resident()
    survivors, holes = [], []
    for _ in range(2_000):  # 200 MB in blocks that are too small for a mapping of their own
        holes.append(torch.ones(25_000))
        survivors.append(torch.ones(8))
    assert _resident() - start > 150 << 20
    holes.clear()
    give_memory_back()
    assert _resident() - start < 50 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
