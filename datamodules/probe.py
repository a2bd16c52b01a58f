"""A probe, or your own file, for `train.py fit | validate | test | predict`."""

from __future__ import annotations

from typing import Literal

from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.ranges import BatchSize, NumItems, NumProcesses, NumTokens, Seed
from probelight.probes.source import ProbeData, load_file, load_probe
from probelight.probes.splits import nested_sample

EVALUATION_NAME = "probe"  # logged as val/probe_accuracy


class ProbeDataModule(ChoiceDataModule):
    """One split of a probe to train on and one to measure, or two files of your own.

    Args:
        probe: Name of a probe in configs/probe, or path of such a file. Give this or `path`.
        path: Your own file to measure, in the AI2 format or as a .csv or .tsv table with the
            columns sentence, gold and choices; plain or compressed.
        train_path: Your own file to train on.
        setup: Kind of the items in `path` and `train_path`: mc_mlm (one [MASK] in the text) or
            mc_qa (question and answers).
        train_split: Split of the probe to train on.
        eval_split: Split of the probe to measure.
        num_train: Train on this many items, the first in a seeded order; smaller samples are parts
            of larger ones. Null takes all.
        mirror: Folder or address with copies of the released files.
        offline: Use only files that are already here. Null reads the environment variable
            PROBELIGHT_OFFLINE.
        cache_dir: Folder for downloads and tokens. Null takes PROBELIGHT_CACHE or
            ~/.cache/probelight for downloads, and keeps no tokens.
        batch_size: Training items in a batch, over all processes.
        max_eval_tokens: Padded tokens in an evaluation batch of one process.
        seed: Seed of the choice and the order of the training items.
        num_workers: Processes that make batches; 0 makes them in the training process.
    """

    def __init__(
        self,
        probe: str | None = None,
        path: str | None = None,
        train_path: str | None = None,
        setup: Literal["mc_mlm", "mc_qa"] | None = None,
        train_split: str = "train",
        eval_split: str = "dev",
        num_train: NumItems | None = None,
        mirror: str | None = None,
        offline: bool | None = None,
        cache_dir: str | None = None,
        batch_size: BatchSize = 16,
        max_eval_tokens: NumTokens = 8192,
        seed: Seed = 0,
        num_workers: NumProcesses = 0,
    ) -> None:
        super().__init__(
            train=None,
            evaluation={},
            batch_size=batch_size,
            max_eval_tokens=max_eval_tokens,
            seed=seed,
            num_workers=num_workers,
            cache_dir=cache_dir,
        )
        if (probe is None) == (path is None):
            raise ValueError("give either probe or path (the file to measure)")
        if path is not None and setup is None:
            raise ValueError("path needs setup: give mc_mlm or mc_qa")
        if probe is not None and (train_path or setup):
            raise ValueError("train_path and setup go with path; a probe has its own")
        if num_train is not None and num_train < 1:
            raise ValueError(f"num_train={num_train} must be positive")
        self.probe = probe
        self.path = path
        self.train_path = train_path
        self.kind = setup  # not `setup`, which is a hook
        self.train_split = train_split
        self.eval_split = eval_split
        self.num_train = num_train
        self.mirror = mirror
        self.offline = offline
        self.data: dict[str, ProbeData] = {}

    def prepare_data(self) -> None:
        """Download the files once, before the other processes need them."""
        if self.probe is not None:
            self._load(None, self.eval_split)
            if self.trainer is None or self.trainer.state.fn in (None, "fit"):
                self._load(None, self.train_split)

    def setup(self, stage: str | None = None) -> None:
        """Read the items that the stage needs and tokenise them.

        Raises:
            ValueError: If there is nothing to train on, or fewer than `num_train` items.
        """
        if not self.evaluation:
            self.data["evaluation"] = self._load(self.path, self.eval_split)
            self.evaluation = {EVALUATION_NAME: self.data["evaluation"].records}
        if stage in (None, "fit") and self.train is None:
            if self.path is not None and self.train_path is None:
                raise ValueError("to fit on your own file, give it as train_path")
            self.data["train"] = self._load(self.train_path, self.train_split)
            records = list(self.data["train"].records)
            if self.num_train is not None:
                if self.num_train > len(records):
                    raise ValueError(
                        f"num_train={self.num_train}, but there are {len(records)} items"
                    )
                records = nested_sample(records, self.seed)[: self.num_train]
            self.train = records
        super().setup(stage)

    def _load(self, path: str | None, split: str) -> ProbeData:
        """Read the user's file, or a split of the probe if `path` is None."""
        if path is not None:
            assert self.kind is not None
            return load_file(path, self.kind)
        assert self.probe is not None
        return load_probe(
            self.probe, split, mirror=self.mirror, cache_dir=self.cache_dir, offline=self.offline
        )
