"""An optimiser step is the same however many batches it is made of, also across a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from probelight.datamodules.loaders import EpochBatchSampler, ResumableData, ResumableLoader
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import Batch
from tests.protocols.engine.test_resuming import Stop, start

NUM_ITEMS, STEP, EPOCHS = 11, 4, 2  # steps of 4, 4 and 3 items


class Linear(ChoiceModule):
    """Scores three choices; plain gradient steps, in which rounding stays rounding."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__(learning_rate=0.5)
        torch.manual_seed(0)
        self.net = nn.Linear(4, 3)
        self.stop_at = stop_at
        self.evaluation_names = ["original"]

    def forward(self, batch: Batch) -> Tensor:
        logits: Tensor = self.net(batch["points"])
        return logits

    def encoder(self) -> Any:
        return None

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        if self.global_step == self.stop_at:
            raise Stop
        return super().training_step(batch, batch_idx)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)

    def save_pretrained(self, folder: Path) -> None:
        torch.save(self.state_dict(), folder / "weights.pt")


class Questions(ResumableData):
    """Points whose class is random, in batches of a size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        generator = torch.Generator().manual_seed(1)
        self.points = torch.randn(NUM_ITEMS, 4, generator=generator)
        self.labels = torch.randint(3, (NUM_ITEMS,), generator=generator)

    def batch(self, items: list[int]) -> Batch:
        chosen = torch.tensor(items)
        return {
            "points": self.points[chosen],
            "labels": self.labels[chosen],
            "weights": torch.ones(len(items)),
            "choice_mask": torch.ones(len(items), 3, dtype=torch.bool),
        }

    def train_dataloader(self) -> ResumableLoader:
        sampler = EpochBatchSampler(NUM_ITEMS, self.size, seed=2)
        items: Any = range(NUM_ITEMS)
        return self.resumable(ResumableLoader(items, sampler, collate_fn=self.batch))

    def val_dataloader(self) -> DataLoader[Any]:
        batches: Any = [self.batch(list(range(NUM_ITEMS)))]
        return DataLoader(batches, batch_size=None)


def train(folder: Path, accumulate: int, stop_at: int | None = None) -> Linear:
    module, data = Linear(stop_at), Questions(STEP // accumulate)
    history = start(folder, module, EPOCHS, data, accumulate=accumulate)
    assert [(scores["epoch"], scores["step"]) for scores in history] == [(1, 3), (2, 6)]
    return module


def assert_close(one: Linear, two: Linear) -> None:
    for name, value in one.state_dict().items():
        torch.testing.assert_close(two.state_dict()[name], value, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Linear:
    return train(tmp_path_factory.mktemp("whole"), accumulate=1)


@pytest.mark.parametrize("accumulate", [2, 4])
def test_each_item_weighs_the_same_however_a_step_is_made(
    accumulate: int, whole: Linear, tmp_path: Path
) -> None:
    assert_close(train(tmp_path, accumulate), whole)


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 4), (4, 2)])
def test_a_run_may_go_on_with_another_accumulate(
    before: int, after: int, whole: Linear, tmp_path: Path
) -> None:
    # Behind each step, and behind both validations.
    for stop_at in range(1, 3 * EPOCHS):
        folder = tmp_path / str(stop_at)
        with pytest.raises(Stop):
            train(folder, before, stop_at)
        assert_close(train(folder, after), whole)
    train(folder, before)  # a finished run
