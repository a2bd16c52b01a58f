"""Minimal pairs: how often the right sentence is the likelier one, overall and by paradigm.

A sentence's score is the sum of its tokens' log-probabilities; accuracy by the mean per token,
which does not prefer short sentences, stands beside it (BLiMP: Warstadt et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from probelight.probes.catalog import GroupBy
from probelight.probes.record import Record, chance_of
from probelight.probes.source import ProbeData
from probelight.probes.splits import groups_of
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    near_tied_row,
    subset_rows,
    tied_row,
)
from probelight.results.row import Row, Subset

if TYPE_CHECKING:  # it imports torch
    from probelight.protocols.zero_shot.panel import Panel

DEFAULT_RULES = ("mean_token",)  # beside the sums, where no others are asked for


def pair_rows(said: Predictions, data: ProbeData, row: Row) -> list[Row]:
    """Accuracy with its ties and chance, overall and by paradigm.

    There is no majority to compare with: the right sentence stands first in each pair.

    Args:
        said: What was said by sums of log-probabilities.
        data: The probe.
        row: The columns that all rows share.
    """
    records, group_by = said.records, data.config.group_by
    chance = replace(row, metric="chance", value=chance_of(records), num_items=len(records))
    whole = [accuracy_row(said, groups_of(records, group_by), row), chance]
    ties = [tied_row(said, row), near_tied_row(said, row)]
    return whole + ties + _paradigm_rows(said, group_by, row)


def rule_rows(panel: Panel, group_by: GroupBy | None, row: Row) -> list[Row]:
    """Accuracy by paradigm by each rule of a panel, which itself gives that of all pairs."""
    return [
        own
        for rule, said in panel.by_rule.items()
        for own in _paradigm_rows(said, group_by, replace(row, mode=rule))
    ]


def _paradigm_rows(said: Predictions, group_by: GroupBy | None, row: Row) -> list[Row]:
    # Within a paradigm, an interval cannot keep paradigms together.
    groups = groups_of(said.records, None if group_by == "paradigm" else group_by)
    return subset_rows(said, groups, paradigms_of(said.records), replace(row, metric="accuracy"))


def paradigms_of(records: Sequence[Record]) -> list[Subset | None]:
    """The paradigm of each item; none where the file names none."""
    names = [record.meta.get("paradigm") for record in records]
    return [
        Subset.of("paradigm", f"UID={name}", name=str(name)) if name else None for name in names
    ]


def pair_notices(records: Sequence[Record]) -> list[str]:
    """How many items are of no paradigm, where others are of one."""
    lacking = sum(paradigm is None for paradigm in paradigms_of(records))
    if lacking in (0, len(records)):
        return []
    return [f"{lacking} of {len(records)} items have no UID and are in the overall accuracy alone"]
