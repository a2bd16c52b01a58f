from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probelight.io.errors import RecordError, UsageError
from probelight.results.importers.hf_trainer import read

LOGITS = np.array([[0.5, -1.0], [2.0, 3.0]], dtype=np.float32)


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "out.npz", **arrays)
    return folder / "out.npz"


def test_predictions_with_their_labels(tmp_path: Path) -> None:
    path = saved(tmp_path, predictions=LOGITS, label_ids=np.array([1, 0]), metrics=np.zeros(1))
    found = read(path)
    assert [one.scores for one in found.answers] == [(0.5, -1.0), (2.0, 3.0)]
    assert [one.gold for one in found.answers] == [1, 0]
    assert found.answers[1].where == f"{path}: row 2"
    assert found.notices == ("arrays that are not read: metrics",)


def test_predictions_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "out.npy", LOGITS)
    found = read(tmp_path / "out.npy")
    assert [one.gold for one in found.answers] == [None, None]
    assert (found.name, found.files[0].num_items) == ("out", 2)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"predictions": LOGITS * np.nan}, "row 1: the score is nan"),
        ({"predictions": LOGITS[0]}, r"the shape \(2,\); a row an item"),
        ({"predictions": LOGITS[:, :1]}, "a logit a choice"),
        ({"predictions": LOGITS, "label_ids": np.array([1])}, "one whole number for each of 2"),
        ({"predictions": LOGITS, "label_ids": np.array([0, 2])}, "row 2: the label 2 is none"),
        ({"arr_0": LOGITS}, "it holds arr_0; write it with np.savez"),
        ({"predictions": np.array([{}], dtype=object)}, "Python objects, which are not read"),
    ],
)
def test_other_arrays_are_refused(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=said):
        read(saved(tmp_path, **arrays))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04cut")
    (tmp_path / "out.npy").write_bytes(b"")
    for name, error, said in (
        ("predict_results_swag.txt", UsageError, "labels or metrics without the scores"),
        ("out.pkl", UsageError, "no file of NumPy"),
        ("out.npz", FileNotFoundError, "there is no such file"),
        ("cut.npz", RecordError, "damaged"),
        ("out.npy", RecordError, r"out\.npy"),
    ):
        with pytest.raises(error, match=said):
            read(tmp_path / name)
