"""What models scored under controls without training, and how far below their score that is."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from probelight.metrics.choices import item_score
from probelight.metrics.comparisons import paired_difference
from probelight.reports.numbers import Estimate, named, with_ends
from probelight.reports.zero_shot.scores import ENTRY, zero_shot_rows, zero_shots
from probelight.results.frames import with_columns
from probelight.results.load import RunSet, UnreadableResultError
from probelight.results.predictions import ItemLine, read_item_lines

SAME_SCORER = [*ENTRY[1:], "model_sha256", "mode"]  # of a control, and of what it is a control of
STANDARD = dict(zip(("value", "ci_low", "ci_high"), with_ends("standard"), strict=True))


@lru_cache(maxsize=2)
def controls(results: RunSet) -> pd.DataFrame:
    """Return a row for each control of each row of `zero_shots`, by its own score and each rule.

    `value` is the accuracy under the control, `standard` that without it, and `gap` how much higher
    this is on the items of both; each has its interval.
    """
    rows = zero_shot_rows(results).query("metric == 'accuracy' and subset == ''")
    controlled = rows[rows.is_changed]
    pairs = controlled[controlled.scoring == ""].merge(
        zero_shots(results), on=SAME_SCORER, suffixes=("", "_standard")
    )
    controlled = controlled.merge(pairs[["path", "path_standard", "model"]], on="path")
    standard_rows = rows.rename(columns={"path": "path_standard"})
    on = ["path_standard", "scoring"]
    frame = with_columns(controlled, standard_rows, STANDARD, on).dropna(subset="standard")
    gaps = [
        named("gap", _gap(results, row.path_standard, row.path, row.scoring))
        for row in frame.itertuples()
    ]
    gap_columns = pd.DataFrame(gaps, frame.index, with_ends("gap"), "float64")
    return frame.join(gap_columns).sort_values(["probe", "split", "model"], kind="stable")


def _gap(results: RunSet, standard_path: str, path: str, rule: str) -> Estimate | None:
    """Return a score minus that under a control, on the items of both; None without any."""

    def score(line: ItemLine) -> float | None:
        if not rule:
            return line.correct
        answer = (line.by_rule or {}).get(rule)
        return answer and item_score(answer.best, line.answer)

    try:
        standard_lines = read_item_lines(results, results.by_path[standard_path])
        lines = read_item_lines(results, results.by_path[path])
    except UnreadableResultError:
        return None  # the section of all items says so
    by_name = {line.name: score(line) for line in lines}
    shared = [line for line in standard_lines if by_name.get(line.name) is not None]
    if not shared:
        return None
    groups = [line.interval_group for line in shared]
    scores = (np.array([by_name[line.name] for line in shared]), np.array(list(map(score, shared))))
    gap = paired_difference(*scores, None if None in groups else groups)
    return Estimate(gap.difference, gap.low, gap.high)
