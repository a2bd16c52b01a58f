"""The one item of a set that is asked for: by its id, by id and line, or by its line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from probelight.io.errors import UsageError
from probelight.probes.record import Record
from probelight.protocols.zero_shot.data import LoadedSet

_MOST = 5  # ids that a message names


def find_item(sets: Sequence[LoadedSet], item: str) -> tuple[LoadedSet, Record]:
    """The item and its set.

    Args:
        sets: Where it is looked for.
        item: Its id; `id@line`, where ids repeat; or `@line`.

    Raises:
        UsageError: If there is none, with the nearest ids, or more than one.
    """
    records = [(one, record) for one in sets for record in one.data.records]
    asked = item.strip()
    keys = (lambda r: r.id, lambda r: r.name, lambda r: f"@{r.position}")
    for key in keys:
        if found := [(one, record) for one, record in records if key(record) == asked]:
            break
    else:
        raise UsageError(_nothing(sets, asked, [record.id for _, record in records]))
    if len(found) > 1:
        several = len({one.name for one, _ in found}) > 1
        names = [f"{r.name} of {one.name}" if several else r.name for one, r in found]
        more = ", ..." if len(names) > _MOST else ""
        raise UsageError(
            f"--item {item}: {len(found)} items are called so: {', '.join(names[:_MOST])}{more}; "
            f"give {'one of the sets alone' if several else 'one of these'}"
        )
    return found[0]


def _nothing(sets: Sequence[LoadedSet], asked: str, ids: Sequence[str]) -> str:
    names = " or ".join(one.name for one in sets)
    if asked.startswith("@"):
        last = max(record.position for one in sets for record in one.data.records)
        return f"--item {asked}: no item of {names} stands on that line; the last is on @{last}"
    near = difflib.get_close_matches(asked, list(dict.fromkeys(ids)), n=_MOST, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}" if near else f"the first are {', '.join(ids[:3])}"
    line = asked if asked.isdecimal() else 12
    return f"--item {asked}: no item of {names} has that id ({hint}); its line is given as @{line}"
