"""Rows of words without any vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from probelight.encoding.encoded_set import Ids


class Numbered:
    """Rows in the order in which words come; words with a z have no vector."""

    def __init__(self, notices: tuple[str, ...] = ()) -> None:
        self.notices = notices
        self.rows: dict[str, int] = {}
        self.calls = 0

    def ids(self, words: Sequence[str]) -> Ids:
        self.calls += any(word not in self.rows for word in words)
        found = [self.rows.setdefault(word, len(self.rows) + 1) for word in words]
        return np.array(found, dtype=np.int64)

    def unknown(self, words: Iterable[str]) -> set[str]:
        return {word for word in words if "z" in word}

    def spell(self, ids: Iterable[int]) -> list[str]:
        names = {row: word for word, row in self.rows.items()}
        return [names[row] for row in ids if row]
