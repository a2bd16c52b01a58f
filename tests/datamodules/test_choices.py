"""The datamodule under a real Trainer: binding, order, shards, exact resume in mid-epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor, nn

from datamodules.choices import ChoiceDataModule
from datamodules.encoding.encoded_set import ChoiceEncoder
from datamodules.encoding.masked import MaskedChoiceEncoder
from datamodules.sampler import PADDING_ITEM
from probes.record import Record

WORDS = ("cat", "dog", "older", "younger", "size", "word", "rest")


def _records(number: int, seed: int = 0) -> list[Record]:
    draw = torch.Generator().manual_seed(seed)
    found = []
    for place in range(number):
        picked = torch.randint(len(WORDS), (1 + place % 7,), generator=draw).tolist()
        stem = " ".join([WORDS[i] for i in picked] + ["[MASK]"])
        answer = int(torch.randint(2, (1,), generator=draw))
        found.append(Record(f"r{place}", stem, ("larger", "smaller"), answer, position=place))
    return found


class Bag(pl.LightningModule):
    """Mean of word vectors against candidate vectors: order of training matters to its weights."""

    def __init__(self, tokenizer: Any, **options: Any) -> None:
        super().__init__()
        self.text = MaskedChoiceEncoder(tokenizer, **options)
        self.words = nn.Embedding(len(tokenizer), 4)
        self.dropout = nn.Dropout(0.0)
        self.evaluation_names: list[str] = []
        self.trained: list[list[int]] = []
        self.validated: list[tuple[int, int]] = []
        self.workers: list[str] = []

    def encoder(self) -> ChoiceEncoder:
        return self.text

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        kept = batch["attention_mask"][..., None]
        text = (self.words(batch["input_ids"]) * kept).sum(1) / kept.sum(1)
        return (self.words(batch["candidate_ids"]) * text[:, None]).sum(-1)

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        self.trained.append(batch["item"].tolist())
        losses = nn.functional.cross_entropy(self(batch), batch["labels"], reduction="none")
        return (losses * batch["weights"]).sum() / batch["weights"].sum()

    def validation_step(
        self, batch: dict[str, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self.validated += [(dataloader_idx, i) for i in batch["item"].tolist()]

    def predict_step(
        self, batch: dict[str, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> dict[str, Tensor]:
        return {"item": batch["item"], "scores": self(batch)}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.1)


class Killed(BaseException):
    """Ends a run as a kill would: nothing gets to tidy up."""


class KillAfter(pl.Callback):
    """Kills the run once a number of steps are done and saved."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.global_step == self.steps:
            raise Killed


def _trainer(folder: Path, **options: Any) -> pl.Trainer:
    defaults: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 1,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "num_sanity_val_steps": 0,
        "use_distributed_sampler": False,
        "default_root_dir": str(folder),
        "max_epochs": 3,
    }
    return pl.Trainer(**{**defaults, **options})


@pytest.fixture
def make_module(make_tokenizer: Callable[..., Any]) -> Callable[..., Bag]:
    """Makes the same freshly initialised module every time."""

    def make(**options: Any) -> Bag:
        torch.manual_seed(0)
        return Bag(make_tokenizer("wordpiece"), **options)

    return make


def test_setup_binds_the_modules_encoder(make_module: Callable[..., Bag], tmp_path: Path) -> None:
    module = make_module()
    sets = {"probe": _records(5), "original": _records(9, seed=1)}
    data = ChoiceDataModule(_records(7), sets, batch_size=3, cache_dir=tmp_path / "cache")
    _trainer(tmp_path, max_epochs=1).fit(module, datamodule=data)
    assert module.evaluation_names == ["probe", "original"]
    assert module.text.cache_dir == tmp_path / "cache"
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 3
    assert sorted(module.validated) == [(0, i) for i in range(5)] + [(1, i) for i in range(9)]
    assert sorted(i for batch in module.trained for i in batch) == list(range(7))
    assert [len(batch) for batch in module.trained] == [3, 3, 1]


def test_scores_do_not_depend_on_the_batches(
    make_module: Callable[..., Bag], tmp_path: Path
) -> None:
    scores = []
    for budget in (1, 64, 10_000):
        data = ChoiceDataModule(None, {"probe": _records(20)}, max_eval_tokens=budget)
        output: Any = _trainer(tmp_path).predict(make_module(), datamodule=data)
        items = torch.cat([batch["item"] for batch in output])
        assert sorted(items.tolist()) == list(range(20))
        scores.append(torch.cat([batch["scores"] for batch in output])[items.argsort()])
    assert len(output) == 1
    for other in scores[1:]:
        torch.testing.assert_close(other, scores[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("num_workers", "val_check_interval", "accumulate"),
    [(0, None, 1), (0, 2, 1), (0, None, 2), (0, 2, 2), (2, None, 1), (2, 2, 1)],
)
def test_a_killed_run_ends_with_the_same_weights(
    make_module: Callable[..., Bag],
    tmp_path: Path,
    num_workers: int,
    val_check_interval: int | None,
    accumulate: int,
) -> None:
    """Every step of two epochs of five batches is a place to die; the third is trained anyway."""

    def data() -> ChoiceDataModule:
        return ChoiceDataModule(
            _records(14), {"probe": _records(4)}, batch_size=3, seed=1, num_workers=num_workers
        )

    options = {
        "val_check_interval": val_check_interval,
        "accumulate_grad_batches": accumulate,
        "enable_checkpointing": True,
    }
    whole = make_module()
    _trainer(tmp_path, **options, callbacks=[_every_step(tmp_path / "whole")]).fit(
        whole, datamodule=data()
    )
    steps_an_epoch = -(-5 // accumulate)
    for steps in range(1, 2 * steps_an_epoch + 1, 1 if num_workers == 0 else 3):
        folder = tmp_path / str(steps)
        killed = make_module()
        with pytest.raises(Killed):
            _trainer(tmp_path, **options, callbacks=[_every_step(folder), KillAfter(steps)]).fit(
                killed, datamodule=data()
            )
        resumed = make_module()
        _trainer(tmp_path, **{**options, "enable_checkpointing": False}).fit(
            resumed, datamodule=data(), ckpt_path=folder / f"step={steps}.ckpt"
        )
        done = len(whole.trained) - len(resumed.trained)
        assert resumed.trained == whole.trained[done:], f"killed after {steps} steps"
        expected = steps // steps_an_epoch * 5 + steps % steps_an_epoch * accumulate
        assert done == expected, f"killed after {steps} steps"
        for name, value in whole.state_dict().items():
            assert torch.equal(resumed.state_dict()[name], value), f"killed after {steps} steps"


class SaveAtEpochEnd(pl.Callback):
    """Saves behind the validation of an epoch and kills the run."""

    def __init__(self, path: Path, epoch: int) -> None:
        self.path, self.epoch = path, epoch

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.current_epoch == self.epoch:
            trainer.save_checkpoint(self.path)
            raise Killed


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_run_killed_between_epochs_repeats_nothing(
    make_module: Callable[..., Bag], tmp_path: Path, epoch: int
) -> None:
    def data() -> ChoiceDataModule:
        return ChoiceDataModule(_records(14), {"probe": _records(4)}, batch_size=3)

    whole, killed, resumed = make_module(), make_module(), make_module()
    _trainer(tmp_path).fit(whole, datamodule=data())
    with pytest.raises(Killed):
        _trainer(tmp_path, callbacks=[SaveAtEpochEnd(tmp_path / "end.ckpt", epoch)]).fit(
            killed, datamodule=data()
        )
    _trainer(tmp_path).fit(resumed, datamodule=data(), ckpt_path=tmp_path / "end.ckpt")
    assert killed.trained + resumed.trained == whole.trained
    assert killed.validated + resumed.validated == whole.validated
    assert torch.equal(resumed.words.weight, whole.words.weight)


def _every_step(folder: Path) -> ModelCheckpoint:
    return ModelCheckpoint(folder, filename="{step}", every_n_train_steps=1, save_top_k=-1)


def test_measuring_does_not_disturb_the_training(
    make_module: Callable[..., Bag], tmp_path: Path
) -> None:
    weights = []
    for interval in (1, 4):
        torch.manual_seed(5)
        module = make_module()
        module.dropout = nn.Dropout(0.5)
        data = ChoiceDataModule(_records(12), {"probe": _records(4)}, batch_size=3)
        _trainer(tmp_path, val_check_interval=interval).fit(module, datamodule=data)
        weights.append((module.words.weight.detach().clone(), torch.get_rng_state()))
    assert torch.equal(weights[0][0], weights[1][0])
    assert torch.equal(weights[0][1], weights[1][1])


class _FakeTrainer:
    """What the datamodule asks of a Trainer, for any number of processes."""

    def __init__(self, module: Any, world_size: int, rank: int, shards: bool = False) -> None:
        self.lightning_module = module
        self.world_size = world_size
        self.global_rank = rank
        self.accumulate_grad_batches = 1
        self._accelerator_connector = type("Connector", (), {"use_distributed_sampler": shards})


def _loaders(module: Any, world_size: int, rank: int) -> tuple[Any, list[Any]]:
    data = ChoiceDataModule(
        _records(14), {"probe": _records(13)}, batch_size=6, max_eval_tokens=40, seed=3
    )
    data.trainer = _FakeTrainer(module, world_size, rank)  # type: ignore[assignment]
    data.setup("fit")
    return data.train_dataloader(), data.val_dataloader()


def test_two_processes_get_the_batches_of_one(make_module: Callable[..., Bag]) -> None:
    train, (evaluation,) = _loaders(make_module(), 1, 0)
    shares = [_loaders(make_module(), 2, rank) for rank in range(2)]
    for single, first, second in zip(train, shares[0][0], shares[1][0], strict=True):
        items = [*first["item"].tolist(), *second["item"].tolist()]
        assert [i for i in items if i != PADDING_ITEM] == single["item"].tolist()
    whole = list(evaluation)
    halves = [list(share[1][0]) for share in shares]
    assert len(halves[0]) == len(halves[1])
    for index, batch in enumerate(whole):
        for name, value in batch.items():
            assert torch.equal(halves[index % 2][index // 2][name], value)
    for extra in halves[1][len(whole) // 2 :]:
        assert extra["weights"].tolist() == [0.0]


@pytest.mark.slow
def test_two_real_processes_give_bit_for_bit_the_same_scores(
    make_module: Callable[..., Bag], tmp_path: Path
) -> None:
    """Thirteen items in batches of uneven size, by one process and by two."""

    def predict(name: str, **options: Any) -> dict[int, list[float]]:
        module, folder = make_module(), tmp_path / name
        data = ChoiceDataModule(None, {"probe": _records(13)}, max_eval_tokens=40)
        trainer = _trainer(tmp_path, callbacks=[SavePredictions(folder)], **options)
        trainer.predict(module, datamodule=data, return_predictions=False)
        rows = [row for path in sorted(folder.iterdir()) for row in torch.load(path)]
        assert len(rows) == 13
        return dict(rows)

    assert predict("two", devices=2, strategy="ddp_fork") == predict("one")


class SavePredictions(pl.Callback):
    """Each process writes the scores of its real items."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[tuple[int, list[float]]] = []

    def on_predict_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *_: Any
    ) -> None:
        pairs = zip(outputs["item"].tolist(), outputs["scores"].tolist(), strict=True)
        self.rows += [pair for pair in pairs if pair[0] != PADDING_ITEM]

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.folder.mkdir(exist_ok=True)
        torch.save(self.rows, self.folder / f"{trainer.global_rank}.pt")


def test_lightning_must_not_shard_again(make_module: Callable[..., Bag]) -> None:
    data = ChoiceDataModule(None, {"probe": _records(3)})
    data.trainer = _FakeTrainer(make_module(), 2, 0, shards=True)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="use_distributed_sampler=False"):
        data.setup("validate")


def test_skipped_records_are_said_and_named(
    make_module: Callable[..., Bag], tmp_path: Path
) -> None:
    odd = Record("odd", "a [MASK] is larger", ("antelope", "dog"), 0, position=8)
    data = ChoiceDataModule(None, {"probe": [odd, *_records(2)]})
    output: Any = _trainer(tmp_path).predict(make_module(multi_token="skip"), datamodule=data)
    assert sorted(i for b in output for i in b["item"].tolist()) == [1, 2]
    assert data.notices("probe")[0].endswith("vocabulary item: odd@8")
    assert data.notices("train") == ()
    with pytest.raises(ValueError, match=r"probe: no records to batch \(1 were skipped"):
        _trainer(tmp_path).predict(
            make_module(multi_token="skip"), datamodule=ChoiceDataModule(None, {"probe": [odd]})
        )


def test_items_that_can_only_be_scored_are_not_trained_on(
    make_module: Callable[..., Bag], tmp_path: Path
) -> None:
    odd = Record("odd", "a [MASK] is larger", ("antelope", "dog"), 0)
    module = make_module(multi_token="pseudo_log_likelihood")
    data = ChoiceDataModule(None, {"probe": [odd, *_records(2)]})
    _trainer(tmp_path).predict(module, datamodule=data)
    assert data.evaluation_sets["probe"].needs_pll == [0]
    with pytest.raises(ValueError, match="1 training records"):
        _trainer(tmp_path).fit(module, datamodule=ChoiceDataModule([odd, *_records(2)], {}))


def test_nothing_to_train_on(make_module: Callable[..., Bag], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no training records"):
        _trainer(tmp_path).fit(make_module(), datamodule=ChoiceDataModule(None, {}))


def test_an_evaluation_set_is_not_called_train() -> None:
    with pytest.raises(ValueError, match="can't be named 'train'"):
        ChoiceDataModule(None, {"train": []})
