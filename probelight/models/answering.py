"""Scores of every record of some sets, with or without Lightning around it.

`answer` is the whole loop for one process: encode, batch by tokens, run, and sort the scores by
record. `answer_planned` is its middle, which a LightningModule calls where several processes
answer. Scores are the same for any size of batches and number of processes, up to rounding.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from probelight.encoding.encoded_set import EncodedSet, evaluation_batches
from probelight.io.errors import NoMemoryError, is_out_of_device_memory
from probelight.io.escaping import listed
from probelight.io.process import leave_stop_to_parent, say_once
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.networks import Batch, half_dtype, is_spread, is_too_close, upcast
from probelight.models.scorer import Question, Scorer
from probelight.probes.record import Record

# What `answer` knows of Lightning's names of precisions.
BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "avx10_2", "avx_ne_convert")  # of x86
PRECISIONS = {"32-true": None, "16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}
_TRIM_EVERY = 32  # batches
_MOST_HELD = 4_000_000  # numbers that wait on the device


@dataclass(frozen=True)
class ItemScores:
    """Scores of the records of a set, which are known by their positions in it."""

    scores: dict[int, list[float]]  # one for each choice, or the answer to another question
    notices: tuple[str, ...]  # what the encoding has to say (cuts, skips), readable
    needs_pll: tuple[int, ...] = ()  # records without scores, to be scored by pieces
    num_rescored: int = 0  # of those that half precision could not decide, in float32


Sets = Mapping[str, Sequence[Record]]
# Answers a question about sets, such as `answer`; the flag asks for float32 whatever was set.
Answering = Callable[[Question, Sets, bool], dict[str, ItemScores]]


def with_pieces(
    scorer: Scorer, question: Question, sets: Sets, answers: Answering
) -> dict[str, ItemScores]:
    """Answer a question that gives one number per choice, as exactly as choices need it.

    Records that are to be scored by their pieces are, by log-likelihoods; those that half precision
    cannot decide are answered again in float32.
    """
    scores_by_set = {}
    for name, scored in _decided(scorer, question, sets, answers).items():
        if scored.needs_pll:
            pieces = {name: [sets[name][i] for i in scored.needs_pll]}
            by_pieces = _decided(scorer, scorer.log_likelihoods(), pieces, answers)[name]
            rows = {scored.needs_pll[i]: row for i, row in by_pieces.scores.items()}
            scored = ItemScores(
                {**scored.scores, **rows},
                scored.notices + by_pieces.notices,
                num_rescored=scored.num_rescored + by_pieces.num_rescored,
            )
        scores_by_set[name] = replace(scored, notices=(*scored.notices, *scorer.notices))
    return scores_by_set


def _decided(
    scorer: Scorer, question: Question, sets: Sets, answers: Answering
) -> dict[str, ItemScores]:
    """Answer a question, in float32 where the two best scores are too close for half precision."""
    dtype = half_dtype(scorer.network)  # before Lightning makes it what its own precision says
    scores_by_set = answers(question, sets, False)
    if dtype is None:
        return scores_by_set
    doubtful_items = {
        name: [item for item, row in sorted(scored.scores.items()) if is_too_close(row, dtype)]
        for name, scored in scores_by_set.items()
    }
    doubtful_items = {name: items for name, items in doubtful_items.items() if items}
    if not doubtful_items:
        return scores_by_set
    doubtful_sets = {
        name: [sets[name][item] for item in items] for name, items in doubtful_items.items()
    }
    exact: dict[str, ItemScores] = {}
    outcome = "were scored again in float32"
    try:
        with upcast(scorer.network):
            exact = answers(question, doubtful_sets, True)
    # A checkpoint that was read before may not be there any more, or not fit into main memory.
    except (NoMemoryError, PretrainedError) as error:
        outcome = f"could not be scored again in float32: {error}"
    for name, items in doubtful_items.items():
        scored = scores_by_set[name]
        rows = {items[i]: row for i, row in exact[name].scores.items()} if exact else {}
        notice = (
            f"{len(items)} of {len(scored.scores)} items of {name}, whose two best scores were too "
            f"close for {str(dtype).removeprefix('torch.')}, {outcome}"
        )
        scores_by_set[name] = replace(
            scored,
            scores={**scored.scores, **rows},
            notices=(*scored.notices, notice),
            num_rescored=len(rows),
        )
    return scores_by_set


def answer(
    scorer: Scorer,
    sets: Mapping[str, Sequence[Record]],
    question: Question | None = None,
    *,
    per_choice: bool = True,
    device: torch.device | str | None = None,
    precision: str = "32-true",
    max_tokens: int = 8192,
    num_workers: int | None = None,
    cache_dir: str | Path | None = None,
    progress: bool = False,
) -> dict[str, ItemScores]:
    """Answer a question about every record of every set, in this process.

    Args:
        scorer: The model. It is moved to the device, and back when all is answered.
        sets: Records, by the name of their set.
        question: One of the scorer's own; None asks for the scores of choices.
        per_choice: Whether the answer is (B, K), of which each record gets those of its choices.
        device: Where to run; None leaves the scorer where it is.
        precision: One of `PRECISIONS`.
        max_tokens: Padded tokens in a batch.
        num_workers: Processes that make batches; 0 makes them here, None takes one for CUDA.
        cache_dir: Folder in which tokens are kept between runs; None keeps the encoder's own.
        progress: Show how far it is.

    Raises:
        RecordError: If the scorer cannot pose a record.
        UsageError: If one record does not fit into the device's memory.
        ValueError: If a set has no record that can be posed.
    """
    from probelight.io.progress import progress_of  # not above: --help is quick

    question = question or scorer.choice_scores()
    if cache_dir is not None:
        question.encoder.cache_dir = cache_dir
    encoded = {
        name: refuse_empty(name, question.encoder.encode(records)) for name, records in sets.items()
    }
    batches = {
        name: evaluation_batches(
            encoded_set.lengths, max_tokens, num_sequences=encoded_set.num_sequences
        )
        for name, encoded_set in encoded.items()
    }
    scores_by_set = {
        name: ItemScores({}, encoded_set.notices, tuple(encoded_set.needs_pll))
        for name, encoded_set in encoded.items()
    }
    with (
        moved(scorer.network, device) as target,
        progress_of(enabled=progress) as bar,
    ):
        all_batches, num_done = [*chain(*batches.values())], 0
        title = f"scoring {listed([*sets])}" + (f" with {scorer.label}" if scorer.label else "")
        num_items = sum(map(len, all_batches))
        items: dict[str, Any] = {"unit": "item", "num_units": num_items, "num_done": num_done}
        task = bar.add_task("Answering", total=len(all_batches), title=title, **items)
        for name, encoded_set in encoded.items():
            loader = batch_loader(encoded_set, batches[name], num_workers, target)
            answers = Answers(per_choice)
            for index, batch in enumerate(loader):
                answers.add(
                    answer_planned(question.answer, loader, index, batch, target, precision)
                )
                num_done += len(batches[name][index])
                bar.update(task, advance=1, num_done=num_done)
            scores_by_set[name].scores.update(answers.by_item())
    return scores_by_set


def answer_planned(
    read: Callable[[Batch], Tensor],
    loader: DataLoader[Batch],
    index: int,
    batch: Batch,
    device: torch.device,
    precision: str = "32-true",
) -> list[tuple[Batch, Tensor]]:
    """Return the batch `index` of a loader with its scores, in parts if it does not fit at once.

    UsageError if an item alone needs more than the device's memory.
    """
    plan: Any = loader.dataset
    scored: list[tuple[Batch, Tensor]] = []
    pending: list[tuple[list[int], Batch]] = [(plan[index], batch)]
    while pending:
        items, piece = pending.pop()
        try:
            scored.append((piece, answer_batch(read, piece, device, precision)))
            continue
        except RuntimeError as error:
            if not is_out_of_device_memory(error):
                raise
        # Out here nothing holds what was computed until then; CUDA's libraries need some of it.
        torch.cuda.empty_cache()
        if len(items) == 1:
            raise NoMemoryError(
                f"item {int(piece['item'][0]) + 1} does not fit into the memory of {device}, even "
                "alone; use a smaller model, a lower --model.max_length, "
                "--trainer.precision bf16-mixed, or --trainer.accelerator cpu"
            )
        say_once(
            f"a batch does not fit into the memory of {device}, so it is divided in two; to save "
            "time, give a lower --trainer.max_eval_tokens"
        )
        for half in (items[len(items) // 2 :], items[: len(items) // 2]):
            inputs = loader.collate_fn(half)
            pending.append((half, {n: value.to(batch[n].device) for n, value in inputs.items()}))
    return scored


def answer_batch(
    read: Callable[[Batch], Tensor], batch: Batch, device: torch.device, precision: str = "32-true"
) -> Tensor:
    """Return what a network makes of a batch (B, ...), on the device.

    `precision` is one of `PRECISIONS`; "32-true" leaves that of a surrounding autocast as it is.
    """
    # Copies of pinned memory overlap with what the device computes.
    is_cuda = device.type == "cuda"
    inputs = {name: value.to(device, non_blocking=is_cuda) for name, value in batch.items()}
    dtype = PRECISIONS[precision]
    autocast: AbstractContextManager[Any] = nullcontext()
    if dtype is not None:
        autocast = torch.autocast(device.type, dtype=dtype, cache_enabled=False)
    with torch.inference_mode(), autocast:
        return read(inputs)


class Answers:
    """Scores of a set's items, see `scores_by_item`; many batches' come to the CPU by one copy."""

    def __init__(self, per_choice: bool = True) -> None:
        self.per_choice = per_choice
        self._scores: dict[int, list[float]] = {}
        self._held: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, scored: Sequence[tuple[Batch, Tensor]]) -> None:
        """Add a batch with its scores, in parts."""
        self._held += [
            (batch["item"], scores.float(), batch["choice_mask"]) for batch, scores in scored
        ]
        num_held = sum(scores.numel() for _, scores, _ in self._held)
        if len(self._held) >= _TRIM_EVERY or num_held > _MOST_HELD:
            self.by_item()
            give_memory_back()

    def by_item(self) -> dict[int, list[float]]:
        """Return the scores of all items so far, by the positions of their records."""
        columns = map(on_cpu, zip(*self._held, strict=True))
        for item, scores, mask in zip(*columns, strict=True):
            batch = {"item": item, "scores": scores, "choice_mask": mask}
            self._scores |= scores_by_item(batch, per_choice=self.per_choice)
        self._held.clear()
        return self._scores


def on_cpu(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors of one type on the CPU, brought there by one copy."""
    joined = torch.cat([tensor.flatten() for tensor in tensors]).cpu()
    pieces = torch.split(joined, [tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]


def scores_by_item(batch: Batch, *, per_choice: bool = True) -> dict[int, list[float]]:
    """Return the scores of each item by the position of its record, without padding items.

    Scores `per_choice` are those of the choices in `choice_mask`: -inf and NaN are scores too, and
    an empty choice that pads a question is a choice.
    """
    rows = zip(*(batch[name].tolist() for name in ("item", "scores", "choice_mask")), strict=True)
    return {
        item: list(compress(scores, exists)) if per_choice else scores
        for item, scores, exists in rows
        if item >= 0
    }


def refuse_empty(name: str, encoded: EncodedSet) -> EncodedSet:
    """Return a set; raise ValueError where no record of it can be posed or scored by pieces."""
    if len(encoded) == 0 and not encoded.needs_pll:
        raise ValueError(f"{name}: no items to score ({len(encoded.skipped)} were skipped)")
    return encoded


def batch_loader(
    encoded: EncodedSet, batches: list[list[int]], num_workers: int | None, device: torch.device
) -> DataLoader[Batch]:
    """Return a loader of planned batches; `num_workers` as `loader_options` takes it."""
    return DataLoader(
        batches,  # type: ignore[arg-type]  # anything with a length and places will do
        batch_size=None,
        collate_fn=encoded.collate,
        generator=torch.Generator(),  # the caller's random state stays as it is
        **loader_options(num_workers if len(batches) > 1 else 0, device),
    )


def loader_options(num_workers: int | None, device: torch.device) -> dict[str, Any]:
    """Return a DataLoader's options; None makes batches here, or by one process for CUDA."""
    is_cuda = device.type == "cuda"
    num_workers = int(is_cuda) if num_workers is None else num_workers
    if num_workers:
        # Workers do not tokenise; this only stops the library's warning about forks.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    options = {"num_workers": num_workers, "pin_memory": is_cuda}
    return options | ({"worker_init_fn": leave_stop_to_parent} if num_workers else {})


def say_if_bfloat16_is_slow(device: torch.device) -> None:
    """Say so on a CPU of which torch knows that it has no instructions for bfloat16."""
    # Older versions of torch have no list of them, and that of another architecture not these.
    capabilities = getattr(torch.cpu, "get_capabilities", dict[str, bool])()
    has_list = device.type == "cpu" and "avx512_bf16" in capabilities
    if has_list and not any(map(capabilities.get, BFLOAT16_INSTRUCTIONS)):
        say_once(
            "this CPU has no instructions for bfloat16 (avx512_bf16, AMX), so it takes several "
            "times as long as float32; give --model.dtype float32 and --trainer.precision 32-true"
        )


@contextmanager
def float32_products(device: torch.device, precision: str, matmul: str) -> Iterator[None]:
    """Multiply matrices of single precision as torch's `matmul` says; say where that is slow."""
    if "bf16" in precision:
        say_if_bfloat16_is_slow(device)
    is_slow = device.type == "cuda" and (precision, matmul) == ("32-true", "highest")
    if is_slow and torch.cuda.get_device_capability(device) >= (8, 0):
        say_once(
            "single precision with matmul_precision highest does not use this GPU's tensor cores; "
            "matmul_precision high (TF32) and precision bf16-mixed are several times faster, but "
            "change results, so they make new runs"
        )
    previous_precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(matmul)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(previous_precision)


@contextmanager
def moved(network: nn.Module, device: torch.device | str | None) -> Iterator[torch.device]:
    """Keep a network in eval mode on a device, and bring it back afterwards."""
    tensors = (*network.parameters(), *network.buffers())
    devices = [tensor.device for tensor in tensors] or [torch.device("cpu")]
    # Of a model on several devices, parts that are not in memory are "meta".
    own_device = next((d for d in devices if d.type != "meta"), devices[0])
    if device is None or is_spread(network):
        network.eval()
        yield own_device
        return
    target = torch.device(device)
    network.eval().to(target)
    try:
        yield target
    finally:
        network.to(own_device)


def give_memory_back() -> None:
    """Let the C library give free memory back to the system.

    The scores of each batch are kept, and glibc puts them between the large blocks of two batches.
    As no two batches are of one shape, the holes are seldom filled: twelve thousand minimal pairs
    left 4.5 GB of them.
    """
    # Other C libraries have no such function, and Windows has no library without a name.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def batch_scores(batch: Batch, scores: Tensor) -> Batch:
    """Return `item` (B,), `scores` (B, ...) in single precision, `choice_mask` (B, K) on the CPU.

    A score does not say whether there is such a choice: it may be -inf or NaN.
    """
    columns = {"item": batch["item"], "scores": scores.float(), "choice_mask": batch["choice_mask"]}
    return {name: value.cpu() for name, value in columns.items()}


def gather_scores(scores: dict[int, list[float]]) -> dict[int, list[float]]:
    """Return the scores of all processes, in every process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return scores
    shards: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(shards, scores)
    return {item: row for shard in shards for item, row in shard.items()}
