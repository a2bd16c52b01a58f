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
from probelight.io.files import ITEMS, regular_file, sha256_of
from probelight.results.importers.answers import Imported, imported

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]

_WRITTEN = "np.savez(PATH, predictions=out.predictions, label_ids=out.label_ids)"


def read(path: Path) -> Imported:
    """Read one file.

    Raises:
        UsageError: If its name is not that of a NumPy file.
        RecordError: If it is damaged, or holds something else.
    """
    import pandas as pd  # not above: --help is quick

    if path.suffix not in (".npy", ".npz"):
        what = "by its name no file of NumPy"
        if path.name.startswith(("predict_results", "eval_results", "all_results")):
            what = "labels or metrics without the scores"
        raise UsageError(f"{path}: {what}; write the predictions with {_WRITTEN}")
    arrays = _arrays(regular_file(path))
    if "predictions" not in arrays:
        raise RecordError(f"{path}: it holds {', '.join(arrays)}; write it with {_WRITTEN}")
    logits, labels = arrays.pop("predictions"), arrays.pop("label_ids", None)
    if logits.ndim != 2 or logits.dtype.kind not in "fiu" or logits.shape[1] < 2:
        raise RecordError(
            f"{path}: predictions of {logits.dtype} with the shape {logits.shape}; a row an item "
            "and a logit a choice are needed"
        )
    num_items, num_choices = logits.shape
    rows = pd.DataFrame({"score": logits.tolist()})
    rows.index = pd.Index([f"{path}: row {row}" for row in range(1, num_items + 1)])
    if labels is not None:
        if labels.shape != (num_items,) or labels.dtype.kind not in "iu":
            raise RecordError(
                f"{path}: label_ids of {labels.dtype} with the shape {labels.shape}, where one "
                f"whole number for each of {num_items} rows is needed"
            )
        for where, label in zip(rows.index, labels.tolist(), strict=True):
            if not 0 <= label < num_choices:
                raise RecordError(f"{where}: the label {label} is none of {num_choices} choices")
        rows["right"] = (labels[:, None] == range(num_choices)).tolist()
    frame = rows.assign(item=rows.index).explode([*rows.columns])
    notices = (f"arrays that are not read: {', '.join(arrays)}",) if arrays else ()
    return imported(path, sha256_of(path), frame, notices)


def _arrays(path: Path) -> Arrays:
    import numpy as np  # not above: --help is quick

    num_bytes = path.stat().st_size
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                num_bytes = sum(member.file_size for member in archive.infolist())
        if num_bytes <= ITEMS.num_bytes:
            found: Any = np.load(path, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return {"predictions": found}
            with found:
                return {name: found[name] for name in found.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        what = (
            "Python objects, which are not read" if "pickle" in str(error) else f"damaged {error}"
        )
        raise RecordError(f"{path}: {what}; write it with {_WRITTEN}") from None
    raise RecordError(f"{path}: more than {ITEMS.num_bytes:,} bytes")
