"""Predictions of Hugging Face's Trainer on a multiple-choice set, as NumPy writes them.

Of `out = trainer.predict(dataset)`, with a row for each item and a column for each choice:

    np.savez("predictions.npz", predictions=out.predictions, label_ids=out.label_ids)

or the predictions alone, `np.save("predictions.npy", out.predictions)`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.io.errors import RecordError, UsageError
from probelight.io.files import MAX_ITEMS, open_content, regular_file, sha256_of
from probelight.results.importers.answers import Imported, imported

if TYPE_CHECKING:
    import numpy as np

PREDICTIONS, LABELS = "predictions", "label_ids"
MAX_SCORES = 5 * MAX_ITEMS  # of all items together: as Python's numbers they take gigabytes
_WRITTEN = "np.savez(PATH, predictions=out.predictions, label_ids=out.label_ids)"


def read(path: Path) -> Imported:
    """Read one file.

    Raises:
        UsageError: If its name is not that of a NumPy file.
        RecordError: If it is damaged, or holds something else.
    """
    import pandas as pd  # not above: --help is quick

    if path.suffix not in (".npy", ".npz"):
        problem = "its name is not that of a NumPy file"
        if path.name.startswith(("predict_results", "eval_results", "all_results")):
            problem = "labels or metrics without the scores"
        raise UsageError(f"{path}: {problem}; write the predictions with {_WRITTEN}")
    names = _names(regular_file(path))
    if PREDICTIONS not in names:
        raise RecordError(
            f"{path}: it contains {', '.join(names) or 'no array'}; write it with {_WRITTEN}"
        )
    logits = _array(path, PREDICTIONS, None)
    num_items, num_choices = logits.shape
    rows = pd.DataFrame({"score": logits.tolist()})
    rows.index = pd.Index([f"{path}: row {row}" for row in range(1, num_items + 1)])
    if LABELS in names:
        labels = _array(path, LABELS, num_items)
        for where, label in zip(rows.index, labels.tolist(), strict=True):
            if not 0 <= label < num_choices:
                raise RecordError(f"{where}: the label {label} is not from 0 to {num_choices - 1}")
        rows["right"] = (labels[:, None] == range(num_choices)).tolist()
    unread = [name for name in names if name not in (PREDICTIONS, LABELS)]
    notices = (f"arrays ignored: {', '.join(unread)}",) if unread else ()
    return imported(path, sha256_of(path), rows, notices)


def _names(path: Path) -> list[str]:
    """Return the names of a file's arrays; a .npy file has the predictions."""
    if not zipfile.is_zipfile(path):
        return [PREDICTIONS]
    try:
        with zipfile.ZipFile(path) as archive:
            return [name[:-4] for name in archive.namelist() if name.endswith(".npy")]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise _damaged(path, error) from None


def _array(path: Path, name: str, num_items: int | None) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the predictions, or the labels of so many items, never Python objects.

    The header is checked before anything is allocated: it may promise any size.
    """
    from numpy.lib import format as npy

    try:
        with open_content(path, f"{name}.npy") as stream:
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(stream)
            if problem := _problem(shape, dtype, num_items):
                raise RecordError(f"{path}: {name} of {dtype} with the shape {shape}{problem}")
            stream.seek(0)
            return npy.read_array(stream, allow_pickle=False)
    except RecordError:
        raise
    except Exception as error:  # damaged headers and archives make anything of NumPy and zipfile
        raise _damaged(path, error) from None


def _problem(shape: tuple[int, ...], dtype: np.dtype[Any], num_items: int | None) -> str:
    """Return what is wrong with an array's shape and type; empty if nothing is."""
    if dtype.hasobject:
        return f": Python objects, which cannot be read; write it with {_WRITTEN}"
    if num_items is not None:
        fits = shape == (num_items,) and dtype.kind in "iu"
        return "" if fits else f"; one whole number for each of {num_items} rows is needed"
    if len(shape) != 2 or dtype.kind not in "fiu" or shape[1] < 2:
        return "; one row per item and one logit per choice are needed"
    if not 0 < shape[0] <= MAX_ITEMS or shape[0] * shape[1] > MAX_SCORES:
        return f"; 1 to {MAX_ITEMS:,} rows with at most {MAX_SCORES:,} logits in all can be read"
    return ""


def _damaged(path: Path, error: Exception) -> RecordError:
    text = " ".join(str(error).split())[:200]
    return RecordError(f"{path}: damaged ({text}); write it with {_WRITTEN}")
