from __future__ import annotations

from pathlib import Path

import pytest

from probes.importers.ai2 import write_ai2
from probes.record import Record
from protocols.engine.settings import FileSettings
from protocols.zero_shot.data import checksums, load_sets
from storage.errors import UsageError

NONE = FileSettings()


def test_each_probe_has_its_own_split_that_of_all_or_dev() -> None:
    found = load_sets("age_small, taxonomy_small:test", NONE, None, None)
    assert [(name, split) for name, split, _ in found] == [
        ("age_small", "dev"),
        ("taxonomy_small", "test"),
    ]
    [(_, split, _)] = load_sets(["age_small"], NONE, "train", None)
    assert split == "train"


def test_a_file_of_ones_own_is_called_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "whales.jsonl.gz"
    write_ai2(path, [Record("1", "a whale is [MASK] than a mouse .", ("larger", "smaller"), 0)])
    [(name, split, data)] = load_sets("", FileSettings(str(path), "mc_mlm"), None, None)
    assert (name, split, len(data.records)) == ("whales", "", 1)
    assert checksums(data) == [data.files[0].sha256]


@pytest.mark.parametrize(
    ("probes", "data", "said"),
    [
        ("", NONE, "give either --probes a,b,c or --data.path FILE"),
        ("age_small", FileSettings("a.jsonl", "mc_qa"), "give either --probes a,b,c or"),
        ("", FileSettings("a.jsonl"), "--data.path needs --data.setup mc_mlm or"),
    ],
)
def test_neither_and_both_are_refused(probes: str, data: FileSettings, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_sets(probes, data, None, None)
