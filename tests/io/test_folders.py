from __future__ import annotations

import os
from pathlib import Path

import pytest

from probelight.io.folders import mend_folder, whole_folder


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def killed_half_way() -> None:
        with whole_folder(tmp_path / "out") as fresh:
            (fresh / "half").touch()
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        killed_half_way()
    assert names(tmp_path) == []
    with whole_folder(tmp_path / "out") as fresh:
        (fresh / "all").touch()
    assert names(tmp_path) == ["out", "out/all"]
    with pytest.raises(RuntimeError, match="killed"):
        killed_half_way()
    assert names(tmp_path) == ["out", "out/all"]


def test_a_folder_may_be_written_whole_inside_another(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with whole_folder(tmp_path / "out") as outer:
            with whole_folder(outer) as inner:
                (inner / "all").write_text(text)
            (outer / "more").touch()
        assert names(tmp_path) == ["out", "out/all", "out/more"]
    assert (tmp_path / "out" / "all").read_text() == "second"


def test_the_old_folder_stays_if_the_new_one_can_not_take_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(OSError, match="no"), whole_folder(tmp_path / "out") as fresh:
        (fresh / "new").touch()
    assert names(tmp_path) == ["out", "out/old"]


def test_everything_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_folder(tmp_path / "out") as fresh:
        (fresh / "part").mkdir()
        (fresh / "part" / "file").touch()
    fresh_names = [fresh / "part", fresh / "part" / "file", fresh, tmp_path]
    assert synced == [str(path) for path in fresh_names]


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt.12.tmp").touch()
    (tmp_path / "best.12.tmp" / "deep.34.tmp").mkdir(parents=True)
    (tmp_path / "best.12.old" / "weights").mkdir(parents=True)
    (tmp_path / "best" / "part.56.tmp").mkdir(parents=True)
    (tmp_path / "notes.old").touch()
    mend_folder(tmp_path)
    assert names(tmp_path) == ["best", "notes.old"]
    mend_folder(tmp_path / "missing")


def test_a_folder_that_was_being_replaced_gets_its_name_back(tmp_path: Path) -> None:
    for age, name in ((100, "best.7.old"), (50, "best.12.old")):
        (tmp_path / name).mkdir()
        (tmp_path / name / str(age)).touch()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    (tmp_path / "best.12.tmp").mkdir()
    mend_folder(tmp_path)
    assert names(tmp_path) == ["best", "best/50"]
