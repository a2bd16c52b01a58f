"""Comparisons of systems on the items that they share: accuracies, letters, differences."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache

import pandas as pd

from probelight.metrics.comparisons import compact_letters
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.charts import row_figure
from probelight.reports.figure import BLUE, MUTED, PAPER, Figure, Line, left_out
from probelight.reports.numbers import BY_GROUPS, INTERVAL, Estimate
from probelight.reports.table import ACCURACY, SIZE, Cell, Column, Table, text
from probelight.results.details import ComparisonDetails
from probelight.results.frames import results_frame
from probelight.results.load import RunSet

LEVEL = 0.05
DIFFERENT = "clearly different"
ORDER = ("zero shot", "learning curve", "original task", "before inoculation", "inoculated")
PLACE = "probe split answered setting"
TESTS = ["mcnemar_p", "p_value", "adjusted_p_value", "smallest_difference"]
MOST_DRAWN = 30
MOST_LETTERS = 66  # of a label


@lru_cache(maxsize=2)
def differences(results: RunSet) -> pd.DataFrame:
    """Return a row per pair of systems, in the order of the sets.

    `difference` is the accuracy of the `first` minus that of the `second`; `are_apart` says whether
    it is significant over all comparisons of the set; `about` names the set's split and setting.
    """
    rows = results_frame(results).query("protocol == 'compare' and subset_kind == 'versus'")
    tests = rows.pivot(index=["path", "subset"], columns="metric", values="value")
    rows = rows[rows.metric == "difference"].assign(difference=rows.value)
    pairs = _with_details(results, rows).join(tests.reindex(columns=TESTS), on=["path", "subset"])
    for name in ("first", "second"):
        pairs[name] = [subset[name] for subset in pairs.part]
    return pairs.assign(are_apart=pairs.adjusted_p_value < LEVEL)


@lru_cache(maxsize=2)
def systems(results: RunSet) -> pd.DataFrame:
    """Return a row per `system` and set, the best first; those not told apart share a letter."""
    rows = results_frame(results).query("protocol == 'compare' and subset_kind == 'model'")
    rows = rows[rows.metric == "accuracy"].rename(columns={"value": "accuracy"})
    ranked = _with_details(results, rows.sort_values("accuracy", ascending=False, kind="stable"))
    ranked["system"] = [subset["label"] for subset in ranked.part]
    runs_and_systems = zip(ranked.num_runs, ranked.system, strict=True)
    ranked["num_runs"] = [runs.get(system) for runs, system in runs_and_systems]
    apart = differences(results).query("are_apart")
    letters: list[str] = []
    for path, set_rows in ranked.groupby("path", sort=False):
        ranks = {system: rank for rank, system in enumerate(set_rows.system)}
        different = apart[apart.path == path]
        rank_pairs = zip(different["first"].map(ranks), different["second"].map(ranks), strict=True)
        letters += compact_letters(len(set_rows), {(min(pair), max(pair)) for pair in rank_pairs})
    return ranked.assign(letters=letters)


def _with_details(results: RunSet, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in the order of the sets, with the details of each comparison."""
    sets = [
        {"path": run.path, **vars(details)}
        for run in results.of("compare")
        if (details := run.detail(ComparisonDetails))
    ]
    columns = ["path", *(field.name for field in fields(ComparisonDetails))]
    detailed = rows.merge(pd.DataFrame(sets, columns=columns), on="path")
    digits = detailed.setting.astype(str).str.replace(r"\D", "", regex=True)
    about = zip(detailed.split, detailed.answered, detailed.setting, strict=True)
    detailed = detailed.assign(
        about=[", ".join(filter(None, words)) for words in about],
        # Whatever the rule and the way of asking.
        order=[ORDER.index(answered.partition(", ")[0]) for answered in detailed.answered],
        examples=pd.to_numeric(digits).fillna(0),  # a setting begins or ends with their number
    )
    order = ["order", "probe", "split", "examples", "setting", "path"]
    return detailed.sort_values(order, kind="stable", ignore_index=True)


def systems_table(results: RunSet) -> Table | None:
    """Make the table of each system's accuracy and letters."""
    ranked = systems(results)
    sizes = map(numbers.sample, ranked.num_items, ranked.num_groups)
    return tables.table(
        "compared_systems",
        "Which systems are not clearly different?",
        f"{INTERVAL} ({BY_GROUPS}; over seeds too if there are several). Systems that "
        "share a letter are not clearly different (Piepho 2004); this does not show that they are "
        "equally good.",
        ranked.assign(_about=[", ".join(about) for about in zip(ranked.about, sizes, strict=True)]),
        [
            text("probe", "probe", "_about"),
            text("system", "system"),
            tables.accuracy("accuracy %"),
            text("letters", "letters"),
            tables.whole("seeds", "num_runs"),
        ],
        csv=f"{PLACE} system {ACCURACY} letters {SIZE} num_runs",
    )


def differences_table(results: RunSet) -> Table | None:
    """Make the table of each pair of systems: difference, tests, detectable difference."""
    pairs = differences(results)
    tests = "p: McNemar's exact test, by groups where items come in groups."
    if any(number > 1 for runs in pairs.num_runs for number in runs.values()):
        tests += (
            " If a system has several seeds, the test takes each item's mean over them, and p is "
            "not below that of the interval, which accounts for seeds too (Sellam et al. 2022)."
        )
    num_pairs = " and ".join(map(numbers.count, sorted(set(pairs.num_pairs))))
    return tables.table(
        "compared",
        "Are the differences real?",
        f"Differences in percentage points with their 95% intervals. {tests} Adjusted p: by "
        f"Benjamini and Hochberg, over all comparisons made together ({num_pairs}). Below 0.05, "
        "two systems are clearly different; expect 5% of such findings to be false. Smallest "
        "detectable: the smallest difference that these items, groups and seeds would have shown "
        "with probability 80% (Connor 1987).",
        pairs,
        [
            text("probe", "probe", "about"),
            Column("first − second", lambda row: Cell(row.first, f"− {row.second}"), "left"),
            tables.gap("difference", "difference ci_low ci_high"),
            tables.number("p", "p_value", _p),
            Column(
                "adjusted p",
                lambda row: Cell(_p(row.adjusted_p_value), DIFFERENT if row.are_apart else ""),
            ),
            Column("smallest detectable", lambda row: _unsigned(row.smallest_difference) or "none"),
        ],
        csv=f"{PLACE} first second difference ci_low ci_high {' '.join(TESTS)} {SIZE}",
    )


def differences_figure(results: RunSet) -> Figure | None:
    """Draw the largest differences with their intervals, sorted; filled if significant."""
    pairs = differences(results)
    if pairs.empty:
        return None
    # Keep the largest differences, and sort them from positive to negative.
    largest = pairs.loc[pairs.difference.abs().nlargest(MOST_DRAWN).index]
    largest = largest.sort_values("difference", ascending=False, kind="stable")
    return row_figure(
        "compared",
        "Differences between systems",
        "Accuracy of the first minus that of the second on the same items, with 95% intervals. "
        "Filled: clearly different, at a false discovery rate of 5% over all comparisons."
        + left_out(len(pairs), MOST_DRAWN),
        largest.assign(
            heading="",
            name=(largest["first"] + " − " + largest["second"]).map(_short)
            + "\n"
            + (largest.probe + " (" + largest.about + ")").map(_short),
            look=largest.are_apart.map({True: DIFFERENT, False: f"not {DIFFERENT}"}),
            chance=None,
        ),
        {DIFFERENT: Line(BLUE, "-", "o"), f"not {DIFFERENT}": Line(MUTED, "-", "o", PAPER)},
        "first − second, percentage points",
        are_gaps=True,
    )


def comparison_summary(results: RunSet) -> str:
    """Return how many pairs clearly differ, and the largest or the detectable difference."""
    pairs = differences(results)
    if pairs.empty:
        return ""
    apart = pairs[pairs.are_apart]
    among = "Of 1 comparison" if len(pairs) == 1 else f"Of {len(pairs)} comparisons"
    verb = "shows" if len(apart) < 2 else "show"
    verdict = f"{among}, {len(apart) or 'none'} {verb} a clear difference."
    if len(apart):
        row = apart.loc[apart.difference.abs().idxmax()]
        gap, better, worse = Estimate.of(row), row["first"], row["second"]
        if gap.value < 0:
            gap, better, worse = gap.negative, worse, better
        return (
            f"{verdict} The largest difference: on {row.probe} ({row.about}) {better} is "
            f"{_unsigned(gap.value)} points better than {worse} (95% interval "
            f"{numbers.points_between(*gap.bounds)}, adjusted p "
            f"{numbers.probability(row.adjusted_p_value)})."
        )
    detectable = pairs.smallest_difference.dropna()
    if detectable.empty:
        return f"{verdict} With so few groups of items, no difference could be detected."
    if len(pairs) == 1:
        range_text = f"A difference of {_unsigned(detectable.iloc[0])} points"
    else:
        range_text = (
            f"Differences from {_unsigned(detectable.min())} points (the best case) or "
            f"{_unsigned(detectable.max())} points (the worst)"
        )
    return f"{verdict} {range_text} would have been detected (power 80%)."


def _p(value: float) -> str:
    return numbers.probability(value).removeprefix("= ")


def _unsigned(value: float | None) -> str:
    return "" if value is None else numbers.points(value).removeprefix("+")


def _short(label: str) -> str:
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"
