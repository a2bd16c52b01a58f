"""Systems that were compared on the items that they share: accuracies, letters, differences."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.metrics.comparisons import compact_letters
from probelight.reports import table as tables
from probelight.reports.table import (
    ACCURACY,
    SIZE,
    Cell,
    Column,
    Table,
    accuracy,
    framed,
    gap,
    number,
    text,
    whole,
)
from probelight.reports.words import (
    ABSENT,
    BY_GROUPS,
    INTERVAL,
    count,
    missing,
    points,
    points_between,
    probability,
    sample,
)
from probelight.results.details import ComparisonDetails
from probelight.results.load import Results, Run

if TYPE_CHECKING:
    from probelight.reports.figure import Figure  # matplotlib takes a second to import

LEVEL = 0.05
ORDER = ("zero shot", "learning curve", "original task", "before inoculation", "inoculated")
PLACE = "probe split answered setting"
TESTS = ("mcnemar_p", "p_value", "adjusted_p_value", "smallest_difference")
MEASURED = ("ci_low", "ci_high", *SIZE.split())
MOST_ACROSS = 3  # systems that have columns; more have rows
MOST_DRAWN = 30
MOST_LETTERS = 66  # of a label


@lru_cache(maxsize=2)
def differences(results: Results) -> pd.DataFrame:
    """Return a row for each two systems, in the order of the sets.

    `difference` is the accuracy of the `first` minus that of the `second`; `are_apart` where that
    is told from chance, over all comparisons of the set. `place` names the set's split and setting,
    `num_runs` is the larger number of seeds of the two, `num_pairs` that of the comparisons that
    p-values were adjusted for.
    """
    return framed(one for run, details in _comparisons(results) for one in _pairs(run, details))


@lru_cache(maxsize=2)
def systems(results: Results) -> pd.DataFrame:
    """Return a row for each system on each set, the best one first.

    Systems that are not told from each other share one of their `letters`.
    """
    found = []
    for run, details in _comparisons(results):
        rows = {
            row.subset["label"]: row
            for row in run.rows
            if row.subset and row.subset.kind == "model" and row.metric == "accuracy"
        }
        names = sorted(rows, key=lambda name: -rows[name].value)
        ranks = {name: rank for rank, name in enumerate(names)}
        apart = {
            (min(two), max(two))
            for pair in _pairs(run, details)
            for two in [(ranks[pair["first"]], ranks[pair["second"]])]
            if pair["are_apart"]
        }
        letters = compact_letters(len(names), apart)
        for name, letter in zip(names, letters, strict=True):
            row = rows[name]
            found.append(
                {
                    **_place(run, details),
                    "system": name,
                    "letters": letter,
                    "accuracy": row.value,
                    **{name: getattr(row, name) for name in MEASURED},
                    "num_runs": details.num_runs.get(name),
                }
            )
    return framed(found)


def _comparisons(results: Results) -> list[tuple[Run, ComparisonDetails]]:
    found = [(run, run.detail(ComparisonDetails)) for run in results.of("compare") if run.rows]

    def order(one: tuple[Run, ComparisonDetails]) -> tuple[object, ...]:
        run, details = one
        # A setting begins or ends with a number: of examples.
        digits = "".join(letter for letter in details.setting if letter.isdigit())
        place = run.probe, run.rows[0].split, int(digits or 0), details.setting
        return ORDER.index(details.answered), *place, run.key

    return sorted(((run, details) for run, details in found if details), key=order)


def _place(run: Run, details: ComparisonDetails) -> dict[str, Any]:
    split = run.rows[0].split
    return {
        "probe": run.probe,
        "split": split,
        "answered": details.answered,
        "setting": details.setting,
        "place": ", ".join(filter(None, (split, details.answered, details.setting))),
        "path": run.path,
        "_runs": run.key,
    }


def _pairs(run: Run, details: ComparisonDetails) -> list[dict[str, Any]]:
    pairs: dict[Any, dict[str, Any]] = {}
    for row in run.rows:
        if row.subset and row.subset.kind == "versus":
            pair = pairs.setdefault(row.subset, {**dict(row.subset.fields), **dict.fromkeys(TESTS)})
            pair[row.metric] = row.value
            if row.metric == "difference":
                pair |= {name: getattr(row, name) for name in MEASURED}
    for pair in pairs.values():
        p_value = pair["adjusted_p_value"]
        pair |= {
            **_place(run, details),
            "are_apart": p_value is not None and p_value < LEVEL,
            "num_pairs": details.num_pairs,
            "num_runs": max(details.num_runs.get(pair[name]) or 1 for name in ("first", "second")),
        }
    return [pair for pair in pairs.values() if "difference" in pair]


def systems_table(results: Results) -> Table | None:
    """Make the table of the accuracy of each system, and of which are not told apart."""
    found = systems(results)
    if found.empty:
        return None
    details = [details for _, details in _comparisons(results)]
    names = list(dict.fromkeys(name for one in details for name in one.num_runs))
    are_across = len(names) <= MOST_ACROSS
    has_seeds = any((one or 1) > 1 for one in found.num_runs)
    of_system = [
        accuracy("accuracy %"),
        text("letters", "letters"),
        *([whole("seeds", "num_runs")] if has_seeds else []),
    ]
    name = text("system", "system")
    return tables.table(
        "compared_systems",
        "Which systems are not told apart?",
        f"{INTERVAL} ({BY_GROUPS}; over seeds too where there are several). Systems that share a "
        "letter are not told apart (Piepho 2004), which does not say that they are equally good.",
        found,
        [
            Column(
                "probe",
                lambda row: Cell(
                    row.probe, f"{row.place}, {sample(row.num_items, row.num_groups)}"
                ),
                "left",
            ),
            *([] if are_across else [name, *of_system]),
        ],
        rows="path",
        across="system" if are_across else "",
        each=of_system,
        values=names,
        csv=f"{PLACE} system {ACCURACY} letters {SIZE} num_runs",
    )


def differences_table(results: Results) -> Table | None:
    """Make the table of each two systems: difference, tests, and what could have been seen."""
    found = differences(results)
    if found.empty:
        return None
    pairs = set(zip(found["first"], found["second"], strict=True))
    tests = "p: McNemar's exact test, by groups where items come in groups."
    if (found.num_runs > 1).any():
        tests += (
            " Where a system has several seeds, that test takes each item's mean over them, and p "
            "is not below that of the interval, which knows of seeds too (Sellam et al. 2022)."
        )
    made = " and ".join(map(count, sorted(set(found.num_pairs))))
    pair = Column("first − second", lambda row: Cell(row.first, f"− {row.second}"), "left")
    seen = "smallest_difference"
    title = "Are the differences real?"
    return tables.table(
        "compared",
        # With the two systems where there are no others: no column names them then.
        f"{title} {' − '.join(*pairs)}" if len(pairs) == 1 else title,
        f"Differences in percentage points with their 95% intervals. {tests} Adjusted p: "
        f"Benjamini and Hochberg's, over all comparisons made together ({made}); below 0.05 two "
        "systems are told apart, and 5% of such findings may be expected to be false. Could have "
        "seen: the smallest difference that these items, their groups and seeds would have shown "
        "with probability 80% (Connor 1987); a smaller one may be there unseen.",
        found,
        [
            text("probe", "probe", "place"),
            *([] if len(pairs) == 1 else [pair]),
            gap("difference", "difference ci_low ci_high"),
            number("p", "p_value", _p),
            Column(
                "adjusted p",
                lambda row: Cell(_p(row.adjusted_p_value), "told apart" if row.are_apart else ""),
            ),
            Column("could have seen", lambda row: _unsigned(getattr(row, seen)) or "nothing"),
        ],
        csv=f"{PLACE} first second difference ci_low ci_high {' '.join(TESTS)} {SIZE}",
    )


def differences_figure(results: Results) -> Figure | None:
    """Draw differences with their intervals, sorted; filled where they are told from chance."""
    from matplotlib.figure import Figure as Canvas

    from probelight.reports.figure import BLUE, INK, MUTED, PAPER, drawn, left_out, styled

    found = differences(results)
    if found.empty:
        return None
    # The largest ones are kept, and are in the order of their sign.
    largest = found.sort_values("difference", key=abs, ascending=False, kind="stable")
    shown = largest[:MOST_DRAWN].sort_values("difference", ascending=False, kind="stable")
    with styled():
        canvas = Canvas(figsize=(7.4, 0.9 + 0.36 * len(shown)))
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        axis.axvline(0, color=INK, linewidth=1.0)
        labels = []
        for place, row in enumerate(shown.itertuples()):
            color = BLUE if row.are_apart else MUTED
            if not (missing(row.ci_low) or missing(row.ci_high)):
                ends = [100 * row.ci_low, 100 * row.ci_high]
                axis.plot(ends, [place] * 2, color=color, linewidth=1.3)
            axis.plot(
                [100 * row.difference], [place], marker="o", markersize=5, markeredgecolor=color,
                color=color if row.are_apart else PAPER,
            )  # fmt: skip
            axis.annotate(
                points(row.difference), (1.01, place), xycoords=("axes fraction", "data"),
                va="center", fontsize=8, annotation_clip=False,
            )  # fmt: skip
            lines = f"{row.first} − {row.second}", f"{row.probe} ({row.place})"
            labels.append("\n".join(map(_short, lines)))
        axis.set_yticks(range(len(shown)), labels, fontsize=7)
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.set_xlabel("first − second, percentage points")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        looks = (("told apart", BLUE, BLUE), ("not told apart", PAPER, MUTED))
        marks = [
            axis.plot([], [], "o", color=fill, markeredgecolor=edge, markersize=5, label=label)[0]
            for label, fill, edge in looks
        ]
        canvas.legend(handles=marks, loc="outside upper left", ncols=2)
        return drawn(
            "compared",
            "Differences between systems",
            "Accuracy of the first minus that of the second on the same items, with 95% intervals. "
            "Filled: told apart, at a false discovery rate of 5% over all comparisons."
            + left_out(len(found), MOST_DRAWN),
            canvas,
        )


def summary(results: Results) -> str:
    """Return how many pairs are told apart, the largest difference, and what went unseen."""
    found = differences(results)
    if found.empty:
        return ""
    apart = found[found.are_apart.astype(bool)]
    if len(found) == 1:
        told = f"The two systems are {'told' if len(apart) else 'not told'} apart."
    else:
        verb = "tells" if len(apart) < 2 else "tell"
        told = f"Of {len(found)} comparisons, {len(apart) or 'none'} {verb} two systems apart."
    if len(apart):
        row = apart.loc[apart.difference.abs().astype(float).idxmax()]
        better, worse, low, high = row["first"], row["second"], row.ci_low, row.ci_high
        if row.difference < 0:
            better, worse, low, high = (
                worse,
                better,
                *(None if missing(end) else -end for end in (high, low)),
            )
        return (
            f"{told} The largest difference: on {row.probe} ({row.place}) {better} is "
            f"{_unsigned(abs(row.difference))} points better than {worse} (95% interval "
            f"{points_between(low, high)}, adjusted p {probability(row.adjusted_p_value)})."
        )
    seen = found.smallest_difference.dropna()
    if seen.empty:
        return f"{told} With so few groups of items no difference could have been seen."
    if len(found) == 1:
        which = f"A difference of {_unsigned(seen.iloc[0])} points"
    else:
        which = (
            f"Differences from {_unsigned(seen.min())} points (the best case) or "
            f"{_unsigned(seen.max())} points (the worst)"
        )
    return f"{told} {which} would have been seen (power 80%)."


def _p(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _unsigned(value: float | None) -> str:
    return "" if value is None else points(value).removeprefix("+")


def _short(label: str) -> str:
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"
