"""What the Trainer of Hugging Face predicts of a multiple-choice set, as NumPy writes it.

Of `out = trainer.predict(dataset)` of a multiple-choice model:

    np.savez("predictions.npz", predictions=out.predictions, label_ids=out.label_ids)

or the predictions alone, `np.save("predictions.npy", out.predictions)`: a row an item in the order
of the set, a logit a choice in its order.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.io.errors import RecordError, UsageError
from probelight.io.files import ITEMS, DataFile, regular_file, sha256_of
from probelight.results.importers.answers import Answer, Imported, at, score_of

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]

_WRITTEN = "np.savez(PATH, predictions=out.predictions, label_ids=out.label_ids)"


def read(path: Path) -> Imported:
    """Read one file.

    Raises:
        UsageError: If its name says that it is none of NumPy.
        RecordError: If it is damaged, or holds something else.
    """
    if path.suffix not in (".npy", ".npz"):
        only_labels = path.name.startswith(("predict_results", "eval_results", "all_results"))
        what = (
            "labels or metrics without the scores"
            if only_labels
            else "by its name no file of NumPy"
        )
        raise UsageError(f"{path}: {what}; write the predictions with {_WRITTEN}")
    arrays = _arrays(regular_file(path))
    if "predictions" not in arrays:
        raise RecordError(f"{path}: it holds {', '.join(arrays)}; write it with {_WRITTEN}")
    logits, labels = arrays["predictions"], arrays.get("label_ids")
    if logits.ndim != 2 or logits.dtype.kind not in "fiu" or logits.shape[1] < 2:
        raise RecordError(
            f"{path}: predictions of {logits.dtype} with the shape {logits.shape}; a row an item "
            "and a logit a choice are needed"
        )
    if labels is not None and (labels.shape != logits.shape[:1] or labels.dtype.kind not in "iu"):
        raise RecordError(
            f"{path}: label_ids of {labels.dtype} with the shape {labels.shape}, where one whole "
            f"number for each of {len(logits)} rows is needed"
        )
    answers = tuple(
        _answer(f"{path}: row {number}", row, None if labels is None else int(labels[number - 1]))
        for number, row in enumerate(logits.tolist(), start=1)
    )
    unread = [name for name in arrays if name not in ("predictions", "label_ids")]
    notices = (f"arrays that are not read: {', '.join(unread)}",) if unread else ()
    file = DataFile(str(path), sha256_of(path), len(answers))
    return Imported(file, answers, path.name.partition(".")[0], notices=notices)


def _answer(where: str, row: list[float], gold: int | None) -> Answer:
    if gold is not None and not 0 <= gold < len(row):
        raise RecordError(f"{where}: the label {gold} is none of {len(row)} choices")
    with at(where):
        scores = tuple(score_of(one, "a logit") for one in row)
    return Answer(where=where, scores=scores, gold=gold)


def _arrays(path: Path) -> Arrays:
    import numpy as np  # not above: --help is quick

    try:
        if path.stat().st_size > ITEMS.num_bytes:
            raise RecordError(f"{path}: more than {ITEMS.num_bytes:,} bytes")
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                if sum(one.file_size for one in archive.infolist()) > ITEMS.num_bytes:
                    raise RecordError(f"{path}: it unpacks to more than {ITEMS.num_bytes:,} bytes")
        found: Any = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return {"predictions": found}
        with found:
            return {name: found[name] for name in found.files}
    except RecordError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        said = (
            "Python objects, which are not read" if "pickle" in str(error) else f"damaged {error}"
        )
        raise RecordError(f"{path}: {said}; write it with {_WRITTEN}") from None
