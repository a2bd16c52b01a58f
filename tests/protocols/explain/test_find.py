from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.probes.importers.ai2 import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import load_file
from probelight.protocols.explain.find import find_item
from probelight.protocols.zero_shot.data import LoadedSet


def loaded(folder: Path, name: str, *ids: str) -> LoadedSet:
    path = folder / f"{name}.jsonl"
    write_ai2(path, [Record(i, f"a [MASK] {i} .", ("red", "green"), 0) for i in ids])
    return LoadedSet(name, "", load_file(path, "mc_mlm"), is_own=True)


def test_an_item_is_found_by_id_by_id_and_line_or_by_line(tmp_path: Path) -> None:
    sets = [loaded(tmp_path, "colours", "7", "sky", "grün", "a@b")]
    found = {asked: find_item(sets, asked)[1].position for asked in ("sky", " sky ", "sky@2", "@2")}
    assert set(found.values()) == {2}
    assert find_item(sets, "7")[1].position == 1  # an id, and no line
    assert find_item(sets, "grün")[1].position == 3
    assert find_item(sets, "a@b")[1].position == 4


def test_what_is_not_there_is_answered_with_what_is_near(tmp_path: Path) -> None:
    sets = [loaded(tmp_path, "colours", "dev-1", "dev-2", "test-1")]
    with pytest.raises(UsageError, match=r"--item dve-1: no item of colours.*did you mean dev-1"):
        find_item(sets, "dve-1")
    with pytest.raises(UsageError, match=r"the first are dev-1, dev-2, test-1.*given as @3"):
        find_item(sets, "3")
    with pytest.raises(UsageError, match=r"stands on that line; the last is on @3"):
        find_item(sets, "@4")
    with pytest.raises(UsageError, match="no item"):
        find_item(sets, "")


def test_two_items_of_one_name_are_told_apart_by_set(tmp_path: Path) -> None:
    sets = [loaded(tmp_path, "one", "1", "2"), loaded(tmp_path, "other", "1")]
    assert find_item(sets, "2")[0].name == "one"
    with pytest.raises(
        UsageError, match=r"2 items.*1@1 of one, 1@1 of other; give one of the sets"
    ):
        find_item(sets, "1")
