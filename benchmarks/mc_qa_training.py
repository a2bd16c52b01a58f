"""A training step of MC-QA against the Hugging Face Trainer and a plain Lightning loop.

    python -m benchmarks.mc_qa_training [--probe hypernymy --mirror FOLDER] [--rounds 12]

All three train the same weights on the same batches of 16 questions with all their choices, read
with `AutoModelForMultipleChoice`'s head (pooler and one layer). A time is the median of the steps
of one call, from the beginning of a step to the beginning of the next; the calls take turns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, SequentialSampler
from transformers import (
    AutoModelForMultipleChoice,
    DataCollatorForMultipleChoice,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.arguments import Arguments
from benchmarks.interleaved import clock as now
from benchmarks.interleaved import interleave, ratios
from benchmarks.random_model import write_random_model
from benchmarks.results import report
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.package import SMALL_MODEL
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_files import resolve
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import make_trainer

BATCH_SIZE = 16
RATE = 1e-5
OURS, BARE = "Probelight", "the same without Lightning"
PLAIN, HUGGING_FACE = "plain Lightning", "Hugging Face Trainer"


class StepClock(pl.Callback):
    """Times from the beginning of a step to the beginning of the next."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_start(self, *_: Any) -> None:
        """Note that a step begins."""
        self.times.append(now())

    def on_train_end(self, *_: Any) -> None:
        """Note the end of the last step."""
        self.times.append(now())


class HuggingFaceClock(TrainerCallback):
    """The same for the Hugging Face Trainer."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Note that a step begins."""
        self.times.append(now())


class PlainModule(pl.LightningModule):
    """The module that one writes first: the library's model, its loss, AdamW."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        """Return the library's loss."""
        loss: Tensor = self.model(**batch).loss
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW as it is by default."""
        return torch.optim.AdamW(self.parameters(), lr=RATE, weight_decay=0.1)


class InOrder(Trainer):
    """The Hugging Face Trainer on the items in their order, as the others have them."""

    def _get_train_sampler(self, *_: Any) -> SequentialSampler:
        assert self.train_dataset is not None
        return SequentialSampler(self.train_dataset)


def main() -> None:
    """Measure and print."""
    parser = Arguments(__doc__, rounds=12)
    parser.add_argument("--model", default=SMALL_MODEL)
    parser.add_argument("--probe", default="hypernymy_small")
    parser.add_argument("--mirror")
    parser.add_argument("--steps", type=int, default=8, help="steps of each call")
    measure(parser.chosen())


def measure(chosen: argparse.Namespace) -> dict[str, float]:
    """Return seconds per step, ratios and the largest difference of a gradient."""
    records = list(load_probe(chosen.probe, "train", mirror=chosen.mirror).records)
    records = records[: chosen.steps * BATCH_SIZE]
    ours = SentenceChoice(chosen.model, head="pooler", learning_rate=RATE, weight_decay=0.1)
    peer = peer_of(ours, chosen.model)
    difference = gradient_difference(ours, peer, records[:BATCH_SIZE])
    with tempfile.TemporaryDirectory() as folder:
        peers = {
            OURS: _probelight(ours, records, chosen.device),
            BARE: _bare(ours, records, chosen.device),
            PLAIN: _plain(peer, ours, records, chosen.device),
            HUGGING_FACE: _hugging_face(peer, ours, records, folder, chosen.device),
        }
        seconds, _ = interleave(peers, chosen.rounds)
    figures = {f"seconds a step, {name}": median(times) for name, times in seconds.items()}
    figures |= {f"{name} / {OURS}": ratio for name, ratio in ratios(seconds, OURS).items()}
    figures |= {
        "Lightning's overhead, ms a step": 1000 * overhead(records, chosen.rounds, chosen.device)
    }
    figures |= {"largest relative difference of a gradient": difference}
    report(f"MC-QA training, {chosen.probe}, {BATCH_SIZE} questions a step", figures, chosen)
    return figures


def overhead(records: list[Record], rounds: int, device: str) -> float:
    """Return the seconds that Lightning adds to a step, whatever the model.

    They stand out with a tiny model: a large one's steps differ by more.
    """
    with tempfile.TemporaryDirectory() as folder:
        name = write_random_model(folder, num_layers=1, hidden_size=64)
        tiny = SentenceChoice(name, head="pooler", random_weights=True, max_length=16)
        pair = {OURS: _probelight(tiny, records, device), BARE: _bare(tiny, records, device)}
        seconds, _ = interleave(pair, 2 * rounds)
    return median(a - b for a, b in zip(seconds[OURS], seconds[BARE], strict=True))


def peer_of(ours: SentenceChoice, name: str) -> Any:
    """Return `AutoModelForMultipleChoice` with the weights of our module."""
    peer = AutoModelForMultipleChoice.from_pretrained(resolve(name), dtype=torch.float32)
    with torch.no_grad():
        for our_weight, peer_weight in zip(
            ours.head.score.parameters(), peer.classifier.parameters(), strict=True
        ):
            peer_weight.copy_(our_weight)
    return peer


def gradient_difference(ours: SentenceChoice, peer: Any, records: Sequence[Record]) -> float:
    """Return the largest difference of a gradient, relative to the largest gradient."""
    ours.eval()
    peer.eval()
    batch = ours.encoder().encode(records).collate(range(len(records)))
    ours.zero_grad()
    torch.nn.functional.cross_entropy(ours(batch), batch["labels"]).backward()
    items = features_of(ours, records)
    peer.zero_grad()
    peer(**DataCollatorForMultipleChoice(ours.tokenizer)(items)).loss.backward()
    base = dict(peer.base_model.named_parameters())
    pairs = [(p.grad, base[n].grad) for n, p in ours.transformer.named_parameters()]
    pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    largest = max(float(b.abs().max()) for _, b in pairs)
    return max(float((a - b).abs().max()) for a, b in pairs) / largest


def _probelight(module: SentenceChoice, records: list[Record], device: str) -> Callable[[], float]:
    data = ChoiceDataModule(train=records, evaluation={"probe": records[:1]}, batch_size=BATCH_SIZE)

    def call() -> float:
        clock = StepClock()
        settings = TrainerSettings(accelerator=accelerator_of(device), progress_bar=False)
        trainer = make_trainer(
            settings,
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            callbacks=[clock],
            limit_val_batches=0,
        )
        trainer.fit(module, datamodule=data)
        return _step(clock.times)

    return call


def _bare(module: SentenceChoice, records: list[Record], device: str) -> Callable[[], float]:
    encoded = module.encoder().encode(records)
    starts = range(0, len(records), BATCH_SIZE)

    def call() -> float:
        module.train().to(device)  # a Lightning fit leaves it on the CPU
        optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=0.1, fused=True)
        times = []
        for start in starts:
            times.append(now())
            batch = encoded.collate(range(start, min(start + BATCH_SIZE, len(records))))
            batch = {name: value.to(device) for name, value in batch.items()}
            loss = torch.nn.functional.cross_entropy(module(batch), batch["labels"])
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        times.append(now())
        return _step(times)

    return call


def _plain(
    model: Any, ours: SentenceChoice, records: list[Record], device: str
) -> Callable[[], float]:
    collate = DataCollatorForMultipleChoice(ours.tokenizer)
    loader = DataLoader(features_of(ours, records), BATCH_SIZE, collate_fn=collate)  # type: ignore[arg-type]

    def call() -> float:
        clock = StepClock()
        trainer = pl.Trainer(
            accelerator=accelerator_of(device),
            devices=1,
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[clock],
        )
        model.train()
        trainer.fit(PlainModule(model), loader)
        return _step(clock.times)

    return call


def _hugging_face(
    model: Any, ours: SentenceChoice, records: list[Record], folder: str, device: str
) -> Callable[[], float]:
    items = features_of(ours, records)

    def call() -> float:
        clock = HuggingFaceClock()
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=BATCH_SIZE,
            num_train_epochs=1,
            learning_rate=RATE,
            weight_decay=0.1,
            use_cpu=device == "cpu",
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_pin_memory=False,
        )
        trainer = InOrder(
            model,
            arguments,
            train_dataset=items,
            callbacks=[clock],  # type: ignore[arg-type]
            data_collator=DataCollatorForMultipleChoice(ours.tokenizer),
        )
        trainer.train()
        return _step([*clock.times, now()])

    return call


def accelerator_of(device: str) -> str:
    """Return Lightning's name of a device."""
    return "gpu" if device == "cuda" else "cpu"


def features_of(ours: SentenceChoice, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return items for the library's collator: tokens made beforehand, padded in the batch."""
    features = []
    for record in records:
        pairs = ours.tokenizer(
            [record.stem] * len(record.choices),
            list(record.choices),
            truncation=True,
            max_length=ours.max_length,
        )
        features.append({**pairs, "label": record.answer})
    return features


def _step(times: Sequence[float]) -> float:
    # The first step also pays for what is set up once, the last one for what is taken down.
    return median(end - start for start, end in pairwise(times[1:-1]))


if __name__ == "__main__":
    main()
