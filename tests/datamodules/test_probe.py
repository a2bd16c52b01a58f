from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from probelight.datamodules.probe import ProbeDataModule
from probelight.encoding.masked import MaskedChoiceEncoder


def _write(path: Path, ids: Sequence[str]) -> str:
    rows = [
        {
            "id": name,
            "question": {
                "stem": f"the {'dog' if i % 2 else 'cat'} is [MASK]" + " a" * i,
                "choices": [{"label": a, "text": b} for a, b in (("A", "older"), ("B", "younger"))],
            },
            "answerKey": "AB"[i % 2],
        }
        for i, name in enumerate(ids)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _attach(data: ProbeDataModule, tokenizer: Any, stage: str) -> ProbeDataModule:
    module = SimpleNamespace(encoder=lambda: MaskedChoiceEncoder(tokenizer))
    state = SimpleNamespace(fn=stage)
    trainer: Any = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device("cpu")),
        lightning_module=module,
        world_size=1,
        global_rank=0,
        state=state,
    )
    data.trainer = trainer
    data.prepare_data()
    data.setup(stage)
    return data


@pytest.fixture
def tokenizer(make_tokenizer: Callable[..., Any]) -> Any:
    return make_tokenizer("wordpiece")


def test_files_of_a_user_are_a_probe(tmp_path: Path, tokenizer: Any) -> None:
    evaluated = _write(tmp_path / "mine.jsonl", ["a", "b", "c"])
    trained = _write(tmp_path / "train.jsonl", ["d", "e"])
    data = ProbeDataModule(path=evaluated, train_path=trained, setup="mc_mlm")
    _attach(data, tokenizer, "fit")
    assert [r.id for r in data.evaluation["probe"]] == ["a", "b", "c"]
    assert data.train_set is not None
    assert len(data.train_set) == 2
    assert data.data["evaluation"].config.name == "mine"


def test_measuring_needs_no_training_file(tmp_path: Path, tokenizer: Any) -> None:
    evaluated = _write(tmp_path / "mine.jsonl", ["a", "b"])
    data = _attach(ProbeDataModule(path=evaluated, setup="mc_mlm"), tokenizer, "validate")
    assert data.train_set is None
    (loader,) = data.val_dataloader()
    assert sorted(i for batch in loader for i in batch["item"].tolist()) == [0, 1]
    with pytest.raises(ValueError, match="train_path"):
        _attach(ProbeDataModule(path=evaluated, setup="mc_mlm"), tokenizer, "fit")


@pytest.fixture
def probe(tmp_path: Path) -> tuple[str, str]:
    """A probe config of our own and a mirror with its files."""
    _write(tmp_path / "mirror" / "ours" / "train.jsonl", [f"t{i}" for i in range(8)])
    _write(tmp_path / "mirror" / "ours" / "dev.jsonl", ["d0", "d1", "d2"])
    config = tmp_path / "ours.yaml"
    config.write_text(
        "name: ours\nsetup: mc_mlm\nnum_choices: 2\nchance: 0.5\nmirror_folder: ours\n"
        "description: for a test\ncitation: none\nlicence: none\n"
        "files:\n  train: {path: train.jsonl}\n  dev: {path: dev.jsonl}\n"
    )
    return str(config), str(tmp_path / "mirror")


def test_a_probe_from_a_mirror_whose_training_split_only_a_fit_reads(
    probe: tuple[str, str], tokenizer: Any
) -> None:
    config, mirror = probe
    data = _attach(ProbeDataModule(probe=config, mirror=mirror), tokenizer, "fit")
    assert data.train is not None
    assert [r.id for r in data.train] == [f"t{i}" for i in range(8)]
    assert [r.id for r in data.evaluation["probe"]] == ["d0", "d1", "d2"]
    (Path(mirror) / "ours" / "train.jsonl").unlink()
    again = _attach(ProbeDataModule(probe=config, mirror=mirror), tokenizer, "validate")
    assert len(again.evaluation_sets["probe"]) == 3


def test_smaller_samples_are_part_of_larger_ones(probe: tuple[str, str], tokenizer: Any) -> None:
    config, mirror = probe

    def sample(number: int, seed: int) -> list[str]:
        data = ProbeDataModule(probe=config, mirror=mirror, num_train=number, seed=seed)
        train = _attach(data, tokenizer, "fit").train
        assert train is not None
        return [record.id for record in train]

    assert sample(3, 1) == sample(6, 1)[:3]
    assert len(set(sample(6, 1))) == 6
    assert sample(6, 1) != sample(6, 2)
    with pytest.raises(ValueError, match=r"num_train=9, but there are 8"):
        sample(9, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either probe or path"),
        ({"probe": "p", "path": "f"}, "either probe or path"),
        ({"path": "f"}, "path needs setup"),
        ({"probe": "p", "setup": "mc_qa"}, "go with path"),
        ({"probe": "p", "num_train": 0}, "must be positive"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProbeDataModule(**options)
