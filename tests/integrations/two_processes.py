"""A training in each of two processes, watched or not; what it ended with is written as JSON.

python -m torch.distributed.run --nproc_per_node 2 two_processes.py TRAINER FOLDER [watched]
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, Trainer, TrainingArguments

from probelight.io.package import PACKAGE

PROBES = ["taxonomy_small:dev", "age_small:dev"]
OPTIONS: dict[str, Any] = {"every": 2, "keep": "best_average"}


def main(trainer: str, folder: Path, is_watched: bool) -> None:
    """Train for six steps and write weights, scores and changes of this process."""
    rank = int(os.environ["RANK"])
    tokenizer = AutoTokenizer.from_pretrained(PACKAGE / "assets" / "dictionary-lm")
    texts = []
    for number in range(24):
        ids = torch.tensor(tokenizer(f"A dog of {number:02} years is old .")["input_ids"][:10])
        texts.append({"input_ids": ids, "labels": ids})
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), intermediate_size=16, **sizes))
    callbacks: list[Any] = []
    if trainer == "lightning":
        import pytorch_lightning as pl

        from probelight.integrations import lightning

        class Module(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.model = network

            def training_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> Any:
                return self.model(**batch).loss

            def configure_optimizers(self) -> Any:
                return torch.optim.AdamW(self.parameters(), lr=1e-2)

        if is_watched:
            options = {**OPTIONS, "output_dir": folder / "looks", "tokenizer": tokenizer}
            callbacks.append(lightning.ProbeCallback(PROBES, **options))
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        module = Module()
        pl.Trainer(
            accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, callbacks=callbacks, **quiet
        ).fit(module, DataLoader(texts, batch_size=4))  # type: ignore[arg-type]
    else:
        from probelight.integrations import transformers

        if is_watched:
            options = {**OPTIONS, "output_dir": folder / "looks"}
            callbacks.append(transformers.ProbeTrainerCallback(PROBES, **options))
        arguments = TrainingArguments(
            str(folder / "out"),
            per_device_train_batch_size=4,
            max_steps=6,
            learning_rate=1e-2,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(
            network,
            arguments,
            train_dataset=texts,  # type: ignore[arg-type]
            processing_class=tokenizer,
            callbacks=callbacks,
        ).train()
    ended: dict[str, Any] = {
        "weights": {name: w.double().sum().item() for name, w in network.named_parameters()}
    }
    if is_watched:
        watch = callbacks[0]  # Lightning adds its own to the list
        ended["looks"] = watch.watch.looks
        ended["folder"] = str(watch.watch.folder)
        ended["best"] = str(watch.best_checkpoint)
        ended["changes"] = watch.changes.to_dict("records")
        if rank == 0:
            network.save_pretrained(folder / "last")
            tokenizer.save_pretrained(folder / "last")
    (folder / f"ended{rank}.json").write_text(json.dumps(ended))
    # Otherwise Gloo's threads may abort the process where Python ends while they hold tensors.
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], Path(sys.argv[2]), "watched" in sys.argv[3:])
