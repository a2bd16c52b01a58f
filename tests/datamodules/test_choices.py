from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from probelight.callbacks.run_metrics import PredictionWriter
from probelight.datamodules.choices import ChoiceDataModule
from probelight.encoding.encoded_set import PADDING_ITEM, Share
from probelight.probes.record import Record
from tests.datamodules.bag import Bag, records


def test_setup_binds_the_modules_encoder(
    make_module: Callable[..., Bag], tmp_path: Path, quiet_trainer: Callable[..., Any]
) -> None:
    module = make_module()
    sets = {"probe": records(5), "original": records(9, seed=1)}
    data = ChoiceDataModule(records(7), sets, batch_size=3, cache_dir=tmp_path / "cache")
    quiet_trainer().fit(module, datamodule=data)
    assert module.evaluation_names == ["probe", "original"]
    assert module.text.cache_dir == tmp_path / "cache"
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 3
    assert sorted(module.validated) == [(0, i) for i in range(5)] + [(1, i) for i in range(9)]
    assert sorted(i for batch in module.trained for i in batch) == list(range(7))
    assert [len(batch) for batch in module.trained] == [3, 3, 1]


def test_scores_do_not_depend_on_the_batches(
    make_module: Callable[..., Bag], quiet_trainer: Callable[..., Any]
) -> None:
    scores = []
    for budget in (1, 64, 10_000):
        data = ChoiceDataModule(None, {"probe": records(20)}, max_eval_tokens=budget)
        output: Any = quiet_trainer().predict(make_module(), datamodule=data)
        items = torch.cat([batch["item"] for batch in output])
        assert sorted(items.tolist()) == list(range(20))
        scores.append(torch.cat([batch["scores"] for batch in output])[items.argsort()])
    assert len(output) == 1
    for batch_scores in scores[1:]:
        torch.testing.assert_close(batch_scores, scores[0], rtol=1e-6, atol=1e-6)


def test_the_largest_batches_are_those_of_the_fit(
    make_module: Callable[..., Bag], quiet_trainer: Callable[..., Any]
) -> None:
    sizes: list[int] = []

    class Sized(Bag):
        def training_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> torch.Tensor:
            sizes.append(batch["input_ids"].numel())
            return super().training_step(batch, batch_idx)

    sets = {"probe": records(5), "original": records(20, seed=1)}
    data = ChoiceDataModule(records(40), sets, batch_size=3, max_eval_tokens=30, seed=1)
    quiet_trainer(max_epochs=3).fit(Sized(make_module().text.tokenizer), datamodule=data)
    train, measured = data.largest_batches(3)
    assert train["input_ids"].numel() == max(sizes)
    assert measured is not None
    loaded = [batch["input_ids"].numel() for loader in data.val_dataloader() for batch in loader]
    assert measured["input_ids"].numel() == max(loaded) <= 30
    # Of two processes each has a share of a batch.
    data = ChoiceDataModule(records(40), {}, batch_size=8)
    data.encode(make_module().encoder(), Share(1, 2))
    train, measured = data.largest_batches(3)
    assert len(train["labels"]) == 4
    assert measured is None


def _trainer(
    module: Any, world_size: int, rank: int, shards: bool = False, device: str = "cpu"
) -> Any:
    return SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device(device)),
        lightning_module=module,
        world_size=world_size,
        global_rank=rank,
        accumulate_grad_batches=1,
        _accelerator_connector=SimpleNamespace(use_distributed_sampler=shards),
    )


def _loaders(module: Any, world_size: int, rank: int) -> tuple[Any, list[Any]]:
    data = ChoiceDataModule(
        records(14), {"probe": records(13)}, batch_size=6, max_eval_tokens=40, seed=3
    )
    data.trainer = _trainer(module, world_size, rank)
    data.setup("fit")
    return data.train_dataloader(), data.val_dataloader()


@pytest.mark.parametrize(
    ("device", "num_workers", "expected"),
    [("cuda", None, (1, True)), ("cuda", 2, (2, True)), ("cpu", None, (0, False))],
)
def test_batches_for_cuda_are_pinned_and_made_by_a_process_of_their_own(
    device: str,
    num_workers: int | None,
    expected: tuple[int, bool],
    make_module: Callable[..., Bag],
) -> None:
    data = ChoiceDataModule(records(4), {"probe": records(3)}, num_workers=num_workers)
    data.trainer = _trainer(make_module(), 1, 0, device=device)
    data.setup("fit")
    for loader in (data.train_dataloader(), *data.val_dataloader()):
        assert (loader.num_workers, loader.pin_memory) == expected


def test_two_processes_get_the_batches_of_one(make_module: Callable[..., Bag]) -> None:
    train, (evaluation,) = _loaders(make_module(), 1, 0)
    shares = [_loaders(make_module(), 2, rank) for rank in range(2)]
    for single, first, second in zip(train, shares[0][0], shares[1][0], strict=True):
        items = [*first["item"].tolist(), *second["item"].tolist()]
        assert [i for i in items if i != PADDING_ITEM] == single["item"].tolist()
    batches = list(evaluation)
    halves = [list(share[1][0]) for share in shares]
    assert len(halves[0]) == len(halves[1])
    for index, batch in enumerate(batches):
        for name, value in batch.items():
            assert torch.equal(halves[index % 2][index // 2][name], value)
    for extra in halves[1][len(batches) // 2 :]:
        assert extra["weights"].tolist() == [0.0]


@pytest.mark.slow
def test_two_real_processes_give_bit_for_bit_the_same_scores(
    make_module: Callable[..., Bag], tmp_path: Path, quiet_trainer: Callable[..., Any]
) -> None:
    def predict(name: str, **options: Any) -> list[str]:
        data = ChoiceDataModule(None, {"probe": records(13)}, max_eval_tokens=40)  # uneven batches
        trainer = quiet_trainer(callbacks=[PredictionWriter(tmp_path / name)], **options)
        trainer.predict(make_module(), datamodule=data, return_predictions=False)
        return (tmp_path / name).read_text().splitlines()

    scores = predict("two", devices=2, strategy="ddp_fork")
    assert scores == predict("one")
    assert len(scores) == 13


def test_lightning_must_not_shard_again_and_no_set_is_called_train(
    make_module: Callable[..., Bag],
) -> None:
    data = ChoiceDataModule(None, {"probe": records(3)})
    data.trainer = _trainer(make_module(), 2, 0, shards=True)
    with pytest.raises(ValueError, match="use_distributed_sampler=False"):
        data.setup("validate")
    with pytest.raises(ValueError, match="cannot be named 'train'"):
        ChoiceDataModule(None, {"train": []})


def test_skipped_records_are_said_and_named(
    make_module: Callable[..., Bag], quiet_trainer: Callable[..., Any]
) -> None:
    odd = Record("odd", "a [MASK] is larger", ("antelope", "dog"), 0, position=8)
    data = ChoiceDataModule(None, {"probe": [odd, *records(2)]})
    output: Any = quiet_trainer().predict(make_module(multi_token="skip"), datamodule=data)
    assert sorted(i for b in output for i in b["item"].tolist()) == [1, 2]
    assert data.notices("probe")[0].endswith("vocabulary item: odd@8")
    assert data.notices("train") == ()
    with pytest.raises(ValueError, match=r"probe: no items to score \(1 were skipped"):
        quiet_trainer().predict(
            make_module(multi_token="skip"), datamodule=ChoiceDataModule(None, {"probe": [odd]})
        )


def test_items_that_can_only_be_scored_are_not_trained_on(
    make_module: Callable[..., Bag], quiet_trainer: Callable[..., Any]
) -> None:
    odd = Record("odd", "a [MASK] is larger", ("antelope", "dog"), 0)
    module = make_module(multi_token="pseudo_log_likelihood")
    data = ChoiceDataModule(None, {"probe": [odd, *records(2)]})
    quiet_trainer().predict(module, datamodule=data)
    assert data.evaluation_sets["probe"].needs_pll == [0]
    with pytest.raises(ValueError, match="1 training items"):
        quiet_trainer().fit(module, datamodule=ChoiceDataModule([odd, *records(2)], {}))
    with pytest.raises(ValueError, match="no training items"):
        quiet_trainer().fit(module, datamodule=ChoiceDataModule(None, {}))
