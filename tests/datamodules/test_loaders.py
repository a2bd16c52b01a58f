from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import nn

from probelight.datamodules.choices import ChoiceDataModule
from probelight.datamodules.loaders import (
    EpochBatchSampler,
    ResumableData,
    ResumableLoader,
    WorkerLoader,
)
from probelight.encoding.encoded_set import (
    PADDING_ITEM,
    Share,
    evaluation_batches,
    token_budget_batches,
)
from probelight.probes.splits import Replay
from tests.datamodules.bag import Bag, records
from tests.runs.harness import wait_until


def test_token_budget_by_hand() -> None:
    lengths = [5, 2, 9, 3, 30, 4]
    #                   order 1 3 5 0 | 2 | 4: 4 items x 5 tokens = 20, then 9 x 5 items = 45
    assert token_budget_batches(lengths, 20, [1, 3, 5, 0, 2, 4]) == [[1, 3, 5, 0], [2], [4]]
    assert token_budget_batches(lengths, 1, [0, 1]) == [[0], [1]]
    assert token_budget_batches(lengths, 20, []) == []
    assert evaluation_batches([], 100, share=Share(1, 2)) == []
    # Items of 5 and 2 sequences: 7 x 4 = 28 tokens fit, a further 2 make 9 x 4 = 36.
    assert token_budget_batches([4, 3, 4], 28, [0, 1, 2], [5, 2, 2]) == [[0, 1], [2]]


@pytest.mark.parametrize("max_tokens", [1, 40, 200, 10_000])
@pytest.mark.parametrize("replicas", [1, 2, 3, 7])
def test_processes_measure_the_batches_of_one(max_tokens: int, replicas: int) -> None:
    lengths = np.random.default_rng(0).integers(3, 30, size=53)
    batches = evaluation_batches(lengths, max_tokens)
    shares = [
        evaluation_batches(lengths, max_tokens, share=Share(rank, replicas))
        for rank in range(replicas)
    ]
    assert len({len(share) for share in shares}) == 1
    real = [batch for share in shares for batch in share if batch != [PADDING_ITEM]]
    assert sorted(real) == sorted(batches)
    assert sorted(i for batch in batches for i in batch) == list(range(53))
    sizes = [lengths[batch].max() * len(batch) for batch in batches if len(batch) > 1]
    assert all(size <= max_tokens for size in sizes)
    assert [int(lengths[b].max()) for b in batches] == sorted(
        (int(lengths[b].max()) for b in batches), reverse=True
    )


def test_each_step_has_its_share_of_what_is_replayed() -> None:
    # Half of 4 is 2: 7 items of its own are 4 steps, the last of one; 8 of the 3 that are replayed
    # are drawn, so two of them three times and one twice.
    replay = Replay.of(3, 0.5, 4)
    assert (replay.per_step, replay.steps(7)) == (2, 4)
    sampler = EpochBatchSampler(7, 4, seed=4, replay=replay)
    seen = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        seen.append(batches)
        replays = [[i for i in batch if i < 7] for batch in batches]
        assert [len(items) for items in replays] == [2, 2, 2, 1]
        assert sorted(chain(*replays)) == list(range(7))
        replayed = [i for batch in batches for i in batch if i >= 7]
        assert sorted(replayed.count(i) for i in (7, 8, 9)) == [2, 3, 3]
        assert [len(batch) for batch in batches] == [4, 4, 4, 3]
    assert seen[0] == seen[2] != seen[1]
    # In halves of a step, and by two processes, the same steps.
    halves = list(EpochBatchSampler(7, 2, seed=4, replay=replay))
    assert [a + b for a, b in zip(halves[::2], halves[1::2], strict=True)] == seen[0]
    shares = [
        list(EpochBatchSampler(7, 4, seed=4, replay=replay, share=Share(rank, 2)))
        for rank in range(2)
    ]
    joined = [[i for i in a + b if i != PADDING_ITEM] for a, b in zip(*shares, strict=True)]
    assert joined == seen[0]
    # At least one of each, however small the share.
    assert Replay.of(3, 0.01, 4).per_step == 1
    assert Replay.of(3, 0.99, 4).per_step == 3


def test_a_state_of_other_replay_is_refused() -> None:
    def loader_of(replay: Replay | None) -> ResumableLoader:
        sampler = EpochBatchSampler(7, 4, seed=4, replay=replay)
        return ResumableLoader(list(range(10)), sampler)  # type: ignore[arg-type]

    state = loader_of(Replay.of(3, 0.5, 4)).state_dict()
    loader_of(Replay.of(3, 0.5, 4)).load_state_dict(state)
    for replay in (None, Replay.of(3, 0.25, 4), Replay.of(2, 0.5, 4)):
        with pytest.raises(ValueError, match="resume with the same data"):
            loader_of(replay).load_state_dict(state)


def test_epochs_are_permutations_fixed_by_seed_and_epoch() -> None:
    sampler = EpochBatchSampler(11, 3, seed=4)
    seen = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        seen.append(list(sampler))
        assert sorted(i for batch in seen[-1] for i in batch) == list(range(11))
        assert [len(b) for b in seen[-1]] == [3, 3, 3, 2]
    assert seen[0] == seen[2] != seen[1]
    assert list(EpochBatchSampler(11, 3, seed=5)) != seen[0]


@pytest.mark.parametrize("replicas", [2, 3])
def test_shares_make_the_same_global_batches(replicas: int) -> None:
    single = EpochBatchSampler(31, 6, seed=2)
    many = [
        EpochBatchSampler(31, 6, seed=2, share=Share(rank, replicas)) for rank in range(replicas)
    ]
    for sampler in (single, *many):
        sampler.set_epoch(3)
    shares = [list(sampler) for sampler in many]
    for index, batch in enumerate(single):
        joined = [i for share in shares for i in share[index]]
        assert [i for i in joined if i != PADDING_ITEM] == batch
        assert len({len(share[index]) for share in shares}) == 1


def test_a_batch_smaller_than_the_processes_leaves_some_only_padding() -> None:
    shares = [list(EpochBatchSampler(5, 4, share=Share(r, 4))) for r in range(4)]
    [last] = list(EpochBatchSampler(5, 4))[1]
    assert [s[1] for s in shares] == [[last], [PADDING_ITEM], [PADDING_ITEM], [PADDING_ITEM]]


def test_what_can_not_be_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size=6 is not a multiple of the 4 processes"):
        EpochBatchSampler(10, 6, share=Share(0, 4))
    with pytest.raises(ValueError, match="positive"):
        EpochBatchSampler(10, 0)


def test_the_number_of_processes_may_change_on_resume() -> None:
    state = EpochBatchSampler(12, 4, share=Share(0, 2)).plan
    assert EpochBatchSampler(12, 4).plan == state


NUMBERS: Any = range(12)


def start_a_thread() -> None:
    if starts_threads:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


starts_threads = False
os.register_at_fork(after_in_child=start_a_thread)


@pytest.fixture(params=[False, True], ids=["", "threads begun in workers"])
def workers_begin_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """As the W&B client begins some."""
    global starts_threads
    starts_threads = request.param
    yield
    starts_threads = False


@pytest.mark.usefixtures("workers_begin_threads")
def test_a_loader_outlives_a_signal_to_the_whole_run() -> None:
    loader = WorkerLoader(NUMBERS, batch_size=2, num_workers=2)
    batches: Any = iter(loader)
    numbers = next(batches).tolist() + next(batches).tolist()  # one of each: both have begun
    for worker in batches._workers:
        # From a program of its own, as a scheduler sends it: not from the parent.
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
    time.sleep(0.2)
    assert all(worker.is_alive() for worker in batches._workers)
    assert sum((batch.tolist() for batch in batches), numbers) == list(NUMBERS)


def is_pending(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.usefixtures("workers_begin_threads")
@pytest.mark.parametrize("signalled", [False, True])
def test_a_loader_ends_when_its_parent_says_so(signalled: bool) -> None:
    loader = WorkerLoader(NUMBERS, num_workers=1)
    batches: Any = iter(loader)
    next(batches)
    [worker] = batches._workers
    if signalled:
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
        # Two signals of one number that are pending together are one, whoever sent the second.
        wait_until(lambda: not is_pending(worker.pid, signal.SIGTERM))
    worker.terminate()
    worker.join(timeout=10)
    assert worker.exitcode == 0


def _loader(size: int = 11, workers: int = 0, **options: Any) -> ResumableLoader:
    sampler = EpochBatchSampler(size, 3, **{"seed": 4, **options})
    return ResumableLoader(range(size), sampler, collate_fn=list, num_workers=workers)


def _epoch(loader: ResumableLoader, epoch: int) -> list[list[int]]:
    loader.epoch_sampler.set_epoch(epoch)
    return list(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_goes_on_behind_the_batches_handed_out(workers: int) -> None:
    batches = _epoch(_loader(workers=workers), 1)
    for done in range(1, len(batches)):
        loader = _loader(workers=workers)
        loader.epoch_sampler.set_epoch(1)
        iterator = iter(loader)
        assert [next(iterator) for _ in range(done)] == batches[:done]
        state = loader.state_dict()
        assert (state["epoch"], state["items_done"]) == (1, min(3 * done, 11))
        resumed = _loader(workers=workers)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        assert len(resumed) == len(batches)
        assert list(resumed) == batches[done:]


def test_only_the_first_epoch_after_a_resume_starts_in_the_middle() -> None:
    batches, following = _epoch(_loader(), 1), _epoch(_loader(), 2)
    loader = _loader()
    loader.load_state_dict({"epoch": 1, "items_done": 6, "plan": loader.plan})
    iterator = iter(loader)
    # As Lightning does it: the last batch is taken, the end of the iterator never is.
    assert [next(iterator) for _ in range(len(batches) - 2)] == batches[2:]
    assert _epoch(loader, 2) == following


def test_an_unused_iterator_does_not_use_up_the_start() -> None:
    batches = _epoch(_loader(), 1)
    loader = _loader()
    loader.load_state_dict({"epoch": 1, "items_done": 6, "plan": loader.plan})
    iter(loader)
    assert list(loader) == batches[2:]


def test_a_state_from_the_end_or_the_beginning_of_an_epoch() -> None:
    loader = _loader()
    batches = _epoch(loader, 0)
    state = loader.state_dict()
    assert state["items_done"] == sum(map(len, batches))
    loader.epoch_sampler.set_epoch(1)  # begun, but nothing taken yet
    assert loader.state_dict()["items_done"] == 0
    resumed = _loader()
    resumed.load_state_dict(state)
    assert _epoch(resumed, 1) == _epoch(_loader(), 1)


@pytest.mark.parametrize("changed", [{"size": 12}, {"seed": 5}])
def test_a_state_of_other_batches_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="resume with the same data"):
        _loader(**changed).load_state_dict(_loader().state_dict())


def _split(size: int, accumulate: int) -> ResumableLoader:
    """Steps of 4 of 10 items in batches of `size`."""
    loader = ResumableLoader(range(10), EpochBatchSampler(10, size, seed=4), collate_fn=list)
    loader.accumulate = accumulate
    return loader


@pytest.mark.parametrize(("size", "accumulate"), [(4, 1), (2, 2), (1, 4)])
@pytest.mark.parametrize(("other_size", "other_accumulate"), [(4, 1), (2, 2), (1, 4)])
def test_a_step_may_be_made_of_other_batches_on_resume(
    size: int, accumulate: int, other_size: int, other_accumulate: int
) -> None:
    order = [i for batch in _epoch(_split(size, accumulate), 1) for i in batch]
    for items in (4, 8):
        loader = _split(size, accumulate)
        loader.epoch_sampler.set_epoch(1)
        iterator = iter(loader)
        for _ in range(items // size):
            next(iterator)
        resumed = _split(other_size, other_accumulate)
        resumed.load_state_dict(loader.state_dict())
        assert [i for batch in resumed for i in batch] == order[items:]


def test_a_state_where_no_batch_ends_is_refused() -> None:
    state = {"epoch": 1, "items_done": 2, "plan": _split(4, 1).plan}
    with pytest.raises(ValueError, match="after 2 items of an epoch, where no batch of 4 ends"):
        _split(4, 1).load_state_dict(state)
    with pytest.raises(ValueError, match="same data and batch size"):
        _split(4, 2).load_state_dict(state)


def test_items_of_a_step() -> None:
    assert [_split(2, 2).step_items(i) for i in range(5)] == [4, 4, 4, 4, 2]
    assert [_split(4, 1).step_items(i) for i in range(3)] == [4, 4, 2]
    assert [_split(3, 3).step_items(i) for i in range(4)] == [9, 9, 9, 1]


@pytest.mark.parametrize("workers", [0, 1])
def test_iterating_leaves_the_global_random_state_alone(workers: int) -> None:
    state = torch.get_rng_state()
    list(_loader(workers=workers))
    assert torch.equal(torch.get_rng_state(), state)


def test_workers_that_stay_are_refused() -> None:
    with pytest.raises(ValueError, match="persistent_workers"):
        ResumableLoader(range(3), EpochBatchSampler(3, 1), num_workers=1, persistent_workers=True)


def test_a_data_module_gives_the_state_to_the_loader_that_is_made_next() -> None:
    stopped = ResumableData()
    assert stopped.state_dict() == {}
    assert stopped.step_items(0) is None
    iterator = iter(stopped.resumable(_loader()))
    first_batches = [next(iterator) for _ in range(2)]
    resumed = ResumableData()
    resumed.load_state_dict(stopped.state_dict())
    assert first_batches + list(resumed.resumable(_loader())) == list(_loader())
    assert list(resumed.resumable(_loader())) == list(_loader())  # it is used once


def test_a_data_module_tells_its_loader_how_many_batches_make_a_step() -> None:
    data = ResumableData()
    data.trainer = SimpleNamespace(accumulate_grad_batches=2)  # type: ignore[assignment]
    assert data.resumable(_loader()).accumulate == 2
    assert [data.step_items(batch) for batch in range(4)] == [6, 6, 5, 5]  # 3 + 3 and 3 + 2


class Killed(BaseException):
    """Ends a run as a kill would: nothing gets to tidy up."""


class KillAfter(pl.Callback):
    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.global_step == self.steps:
            raise Killed


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("num_workers", "val_check_interval", "accumulate"),
    [(0, None, 1), (0, 2, 1), (0, None, 2), (0, 2, 2), (2, 2, 1)],
)
def test_a_killed_run_ends_with_the_same_weights(
    make_module: Callable[..., Bag],
    tmp_path: Path,
    quiet_trainer: Callable[..., Any],
    num_workers: int,
    val_check_interval: int | None,
    accumulate: int,
) -> None:
    """Every step of two epochs of five batches is a place to die; the third is trained anyway."""

    def data() -> ChoiceDataModule:
        return ChoiceDataModule(
            records(14), {"probe": records(4)}, batch_size=3, seed=1, num_workers=num_workers
        )

    options = {
        "max_epochs": 3,
        "val_check_interval": val_check_interval,
        "accumulate_grad_batches": accumulate,
        "enable_checkpointing": True,
    }
    reference = make_module()
    quiet_trainer(**options, callbacks=[_every_step(tmp_path / "whole")]).fit(
        reference, datamodule=data()
    )
    steps_an_epoch = -(-5 // accumulate)
    for steps in range(1, 2 * steps_an_epoch + 1, 1 if num_workers == 0 else 6):
        folder = tmp_path / str(steps)
        killed = make_module()
        with pytest.raises(Killed):
            quiet_trainer(**options, callbacks=[_every_step(folder), KillAfter(steps)]).fit(
                killed, datamodule=data()
            )
        resumed = make_module()
        quiet_trainer(**{**options, "enable_checkpointing": False}).fit(
            resumed, datamodule=data(), ckpt_path=folder / f"step={steps}.ckpt"
        )
        done = len(reference.trained) - len(resumed.trained)
        assert resumed.trained == reference.trained[done:], f"killed after {steps} steps"
        expected = steps // steps_an_epoch * 5 + steps % steps_an_epoch * accumulate
        assert done == expected, f"killed after {steps} steps"
        for name, value in reference.state_dict().items():
            assert torch.equal(resumed.state_dict()[name], value), f"killed after {steps} steps"


def _every_step(folder: Path) -> ModelCheckpoint:
    return ModelCheckpoint(folder, filename="{step}", every_n_train_steps=1, save_top_k=-1)


def test_measuring_does_not_disturb_the_training(
    make_module: Callable[..., Bag], quiet_trainer: Callable[..., Any]
) -> None:
    weights = []
    for interval in (1, 4):
        torch.manual_seed(5)
        module = make_module()
        module.dropout = nn.Dropout(0.5)
        data = ChoiceDataModule(records(12), {"probe": records(4)}, batch_size=3)
        quiet_trainer(max_epochs=3, val_check_interval=interval).fit(module, datamodule=data)
        weights.append((module.words.weight.detach().clone(), torch.get_rng_state()))
    assert torch.equal(weights[0][0], weights[1][0])
    assert torch.equal(weights[0][1], weights[1][1])
