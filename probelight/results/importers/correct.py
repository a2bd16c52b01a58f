"""Items of which only right or wrong is known: a table, or JSON lines.

    suite,id,correct,num_choices
    agreement,1,1,2
    agreement,2,0,2

`correct` is 1 or 0, or one of the words in `minicons.IS_RIGHT`; ids may repeat from suite to suite.
An item becomes choices of which the right one, or a wrong one, has the score 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.files import content_sha256
from probelight.io.ranges import NumChoices
from probelight.results.importers.answers import Imported, imported
from probelight.results.importers.columns import Columns, TableRow, typed_rows
from probelight.results.importers.minicons import IS_RIGHT


@dataclass(frozen=True, kw_only=True)
class ScoredItem(TableRow):
    """An item that was answered right or wrong."""

    identity = ("suite", "id")
    id: str
    correct: bool | int | str
    num_choices: NumChoices
    suite: str = ""


def read(path: Path, columns: Columns | None = None) -> Imported:
    """Read one file; the message of a `RecordError` names file and line."""
    import pandas as pd  # not above: --help is quick

    items, lines = [], []
    for where, scored in typed_rows(path, columns or {}, [ScoredItem]):
        if (is_right := IS_RIGHT.get(str(scored.correct).lower())) is None:
            raise RecordError(f"{where}: correct is {scored.correct!r}; give {', '.join(IS_RIGHT)}")
        name = "/".join(filter(None, (scored.suite, scored.id)))
        wrong = [f"{name}, wrong", *(f"{name}, wrong {n}" for n in range(2, scored.num_choices))]
        items.append(
            {
                "id": name,
                "text": "",
                "choice": [f"{name}, right", *wrong],
                "score": [float(is_right), float(not is_right), *[0.0] * (len(wrong) - 1)],
                "right": [True, *[False] * len(wrong)],
                "paradigm": scored.suite,
            }
        )
        lines.append(where)
    notice = "only right or wrong is known of each item: scores are 1 and 0, and no probabilities"
    return imported(path, content_sha256(path), pd.DataFrame(items, index=lines), (notice,))
