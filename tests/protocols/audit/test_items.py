from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from probelight.io.errors import UsageError
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols.audit.items import AuditSettings, config_of, load_audit

SETTINGS = AuditSettings()


def items(first: int, number: int, stem: str = "what is it?") -> list[Record]:
    places = range(first, first + number)
    return [
        Record(f"{n}", f"{stem} {n}", ("a", "b"), n % 2, {"cluster": f"c{n // 4}"}) for n in places
    ]


def test_a_file_is_divided_by_groups(tmp_path: Path) -> None:
    write_ai2(tmp_path / "whales.jsonl.gz", items(0, 80))
    config = config_of(str(tmp_path / "whales.jsonl.gz"))
    assert (config.name, config.setup, config.group_by) == ("whales", "mc_qa", "cluster")
    data = load_audit(config, SETTINGS, None)
    assert list(data.measured) == ["part of whales"]
    sides = [data.train, data.held_out, data.measured["part of whales"]]
    assert [len(side) for side in sides] == [48, 8, 24]
    clusters = [{r.meta["cluster"] for r in side} for side in sides]
    assert sum(map(len, clusters)) == len(set().union(*clusters)) == 20
    assert data.untouched(sides[2]) == [True] * 24
    assert data.notices == ("whales: 56 of the items of whales are trained on",)


def test_a_folder_of_split_files_is_taken_as_it_is(tmp_path: Path) -> None:
    (folder := tmp_path / "own").mkdir()
    for split, first in {"train": 0, "dev": 40, "test": 38}.items():
        write_ai2(folder / f"{split}.jsonl", items(first, 40 if split == "train" else 24, "[MASK]"))
    config = config_of(str(folder))
    assert (config.name, config.setup, config.splits) == ("own", "mc_mlm", ("train", "dev", "test"))
    data = load_audit(config, SETTINGS, None)
    assert {split: len(own) for split, own in data.measured.items()} == {"dev": 24, "test": 24}
    assert len(data.train) + len(data.held_out) == 40
    assert data.untouched(data.measured["test"]) == [False] * 2 + [True] * 22
    (folder / "train.jsonl").unlink()
    data = load_audit(config_of(str(folder)), SETTINGS, None)
    assert list(data.measured) == ["test"]
    assert data.notices == ("own has no train file: its dev items are trained on",)


def test_a_folder_with_a_config_goes_by_it(tmp_path: Path) -> None:
    write_ai2(tmp_path / "train.jsonl", items(0, 40))
    config = {"setup": "mc_qa", "num_choices": 2, "chance": 0.5, "base_url": "."}
    config |= {"group_by": "cluster", "files": {"train": {"path": "train.jsonl"}}}
    (tmp_path / "built.yaml").write_text(yaml.safe_dump(config))
    assert config_of(str(tmp_path)).name == "built"


def test_what_is_no_probe(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.jsonl"):
        config_of(str(tmp_path / "nothing.jsonl"))
    write_ai2(tmp_path / "one.jsonl", items(0, 4))
    with pytest.raises(UsageError, match=r"one: its items cannot be divided .*1 group"):
        load_audit(config_of(str(tmp_path / "one.jsonl")), SETTINGS, None)
