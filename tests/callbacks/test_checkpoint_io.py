from __future__ import annotations

from pathlib import Path

import pytest
import torch

from probelight.callbacks.checkpoint_io import (
    AtomicCheckpointIO,
    UnreadableCheckpointError,
    newest_state,
    previous_of,
    read_state,
)


def state(step: int) -> dict[str, object]:
    return {"state_dict": {"weight": torch.full((3,), float(step))}, "global_step": step}


def test_a_state_comes_back_and_the_one_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "last.ckpt"
    for step in (1, 2, 3):
        AtomicCheckpointIO().save_checkpoint(state(step), path)
    assert read_state(path)["global_step"] == 3
    assert read_state(previous_of(path))["global_step"] == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["last.ckpt", "last.ckpt.previous"]


def test_a_write_that_fails_leaves_the_old_state(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint(state(1), path)
    with pytest.raises((AttributeError, TypeError, RuntimeError)):
        AtomicCheckpointIO().save_checkpoint({"state_dict": (x for x in ())}, path)
    assert newest_state(path) == (path, ())
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty"])
def test_a_damaged_state_is_said_and_the_one_before_is_used(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "last.ckpt"
    for step in (1, 2):
        AtomicCheckpointIO().save_checkpoint(state(step), path)
    whole = path.read_bytes()
    path.write_bytes(
        {"truncated": whole[: len(whole) // 2], "garbage": b"x" * 99, "empty": b""}[damage]
    )
    found, problems = newest_state(path)
    assert found == previous_of(path)
    [problem] = problems
    assert problem.startswith(f"{path}: ")
    assert "\n" not in problem  # torch has much to say


def test_a_damaged_state_never_takes_the_place_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.ckpt"
    for step in (1, 2):
        AtomicCheckpointIO().save_checkpoint(state(step), path)
    path.write_bytes(b"garbage")
    _, [problem] = newest_state(path)
    assert "put away as last.ckpt.unreadable" in problem
    assert newest_state(path) == (previous_of(path), ())
    rename = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise KeyboardInterrupt
        return rename(self, target)

    # Between the two renames of the next save.
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint(state(3), path)
    assert newest_state(path) == (previous_of(path), ())
    assert read_state(previous_of(path))["global_step"] == 1


def test_no_readable_state_is_a_fresh_start(tmp_path: Path) -> None:
    assert newest_state(tmp_path / "last.ckpt") == (None, ())
    (tmp_path / "last.ckpt").write_bytes(b"garbage")
    found, problems = newest_state(tmp_path / "last.ckpt")
    assert found is None
    assert len(problems) == 1


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("pickle was run",))


def test_pickled_objects_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"state_dict": {}, "evil": Evil()}, tmp_path / "last.ckpt")
    with pytest.raises(UnreadableCheckpointError, match=r"last\.ckpt: .*never read\)\. \w[^\n]+$"):
        read_state(tmp_path / "last.ckpt")
    assert "pickle was run" not in capsys.readouterr().out
