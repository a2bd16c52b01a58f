""""""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probelight.io import limits
from probelight.io.errors import RecordError
from probelight.io.limits import Limit, Meter, regular_file


def test_a_file_and_a_link_to_one_have_an_end(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("x")
    link.symlink_to(path)
    assert regular_file(str(path)) == path
    assert regular_file(link) == link


def test_what_is_not_there_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"^{tmp_path}/none: there is no such file$"):
        regular_file(tmp_path / "none")
    with pytest.raises(RecordError, match=rf"^{tmp_path}: a folder, where a file is needed$"):
        regular_file(tmp_path)


@pytest.mark.parametrize("kind", ["device", "pipe", "link to a device"])
def test_what_has_no_end_is_no_file(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "endless.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    with pytest.raises(RecordError, match=rf"{path}: a device or a pipe, where a file on the disk"):
        regular_file(path)


def test_a_meter_lets_through_what_a_kind_may_hold_and_names_the_line_of_the_rest() -> None:
    meter = Meter(Path("a.txt"), Limit("toys", num_bytes=1_000, line_bytes=20))
    meter.count(b"x" * 1_000)
    meter.num_lines = 4
    assert meter.here == "a.txt:5"
    with pytest.raises(
        RecordError, match=r"^a\.txt:5: more than 1,000 bytes, the most of a file of"
    ):
        meter.count(b"x")


def test_a_meter_stops_at_what_no_text_of_that_size_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gz").write_bytes(b"x" * 10)
    limit = Limit("toys", num_bytes=10**6, line_bytes=20)
    Meter(tmp_path / "a.gz", limit).count(b"x" * 5_000)  # as much as any file may hold
    monkeypatch.setattr(limits, "RATIO_FREE", 100)
    meter = Meter(tmp_path / "a.gz", limit)
    meter.count(b"x" * 2_000)  # 200 times its size
    with pytest.raises(RecordError, match=r"a\.gz:1: it unpacks to more than 200 times its size"):
        meter.count(b"x")
