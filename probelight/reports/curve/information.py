"""How much effort a model's knowledge takes, and how much information its features hold."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from probelight.metrics.intervals import Floats, Interval, mean_interval
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.numbers import ABSENT, WHOLE, Estimate, missing, named
from probelight.reports.table import Cell, Column, Table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import RunSet, UnreadableResultError
from probelight.results.predictions import read_item_lines

CURVE = ["model", "probe", "mode", "split"]
BITS = {"v_information": "pvi", "conditional_v_information": "conditional_pvi"}
OVER_CONFIDENT = "over-confident"


def code_table(results: RunSet) -> Table | None:
    """Make the table of online code lengths (Voita & Titov 2020), by model and control."""
    rows = results_frame(results).query("protocol == 'curve'")
    rows = rows[rows.metric.isin(["first_bits", "code_bits", "guessed_bits"])]
    if rows.empty:
        return None
    records = []
    for key, curve_rows in rows.groupby([*CURVE, "control"], sort=False):
        lengths, guessed, num_sent = [], [], 0
        for _, seed_rows in curve_rows.groupby("seed"):
            first, code, even = (
                seed_rows[seed_rows.metric == name].sort_values("num_train")
                for name in ("first_bits", "code_bits", "guessed_bits")
            )
            # A code needs all its portions: each begins where the one before ends.
            ends = np.cumsum([*first.num_items, *code.num_items]).tolist()
            if len(first) and ends[:-1] == code.num_train.tolist():
                lengths.append(first.value.sum() + code.value.sum())
                guessed.append(first.value.sum() + even.value.sum())
                num_sent = ends[-1]
        if not lengths:
            continue
        shares = [even / length for length, even in zip(lengths, guessed, strict=True)]
        records.append(
            {
                **dict(zip([*CURVE, "control"], key, strict=True)),
                "num_seeds": len(lengths),
                "num_sent": num_sent,
                "code_length": fmean(lengths),
                "code_length_min": min(lengths),
                "code_length_max": max(lengths),
                "guessed_bits": fmean(guessed),
                "compression": fmean(shares),
                "compression_min": min(shares),
                "compression_max": max(shares),
                "_control": "full question" if key[4] in WHOLE else key[4].replace("_", " "),
                "_runs": [*curve_rows.run.unique()],
            }
        )
    return tables.table(
        "code_length",
        "How much effort does learning take? Online code length",
        "Code: the bits needed to send the answers of the largest sample to someone who has the "
        "texts. The fewer, the easier the answers are to learn. The first portion costs as much as "
        "even guesses. Each later portion is encoded by the head (in mode full, the whole model) "
        "that was trained on all portions before it (Voita & Titov 2020). Compression: bits of "
        "even guesses divided by those of the code; 1.00 or less is no better than guessing. Means "
        "over seeds, which draw the order, with the lowest and the highest. Random weights show "
        "what the architecture alone achieves.",
        records,
        [
            text("probe", "probe", "split"),
            text("model", "model", "mode"),
            text("control", "_control"),
            whole("seeds", "num_seeds"),
            whole("answers", "num_sent"),
            tables.number("even guesses, bits", "guessed_bits", "{:,.0f}".format),
            Column("code, bits", lambda row: _span(row, "code_length", "{:,.0f}".format)),
            Column("compression", lambda row: _span(row, "compression", "{:.2f}".format)),
        ],
    )


def _span(row: Any, name: str, form: Any) -> Cell:
    low, high = (getattr(row, f"{name}_{end}") for end in ("min", "max"))
    return Cell(form(getattr(row, name)), f"{form(low)}–{form(high)}" if low != high else "")


@lru_cache(maxsize=2)
def information(results: RunSet) -> pd.DataFrame:
    """Return a row per curve and N with V-information, over seeds and items, and the accuracy.

    `over_confident` says whether, since the N before it, the accuracy has risen and V-information
    fallen, and whether that may be chance; it is empty if not.
    """
    records: list[dict[str, Any]] = []
    rows = results_frame(results).query("protocol == 'curve'")
    on_all_items = (rows.subset == "") & rows.control.isin(WHOLE)
    measured = rows[on_all_items & rows.metric.isin([*BITS, "accuracy"]) & (rows.num_train > 0)]
    informed = measured[measured.metric == "v_information"]
    for key, curve_rows in measured.groupby(CURVE, sort=False):
        previous: dict[str, Any] | None = None
        informed_rows = curve_rows[curve_rows.run.isin(informed.run)]
        for size, size_rows in informed_rows.groupby("num_train"):
            values, groups = _item_values(results, {*size_rows.path})
            if not values["v_information"]:
                continue
            record = {
                **dict(zip(CURVE, key, strict=True)),
                "num_train": size,
                "num_seeds": size_rows.seed.nunique(),
                "accuracy": float(size_rows[size_rows.metric == "accuracy"].value.mean()),
                "num_items": int(size_rows.num_items.iloc[0]),
                "_runs": [*size_rows.run.unique()],
            }
            for name in BITS:
                if runs := values[name]:
                    value, *ends = mean_interval(runs, groups)
                    estimate = Estimate(value, *(ends if math.isfinite(ends[0]) else ()))
                    record |= named(name, estimate)
            changes = {
                name: mean_interval({s: values[name][s] - earlier[s] for s in earlier}, groups)
                for name, earlier in (previous or {}).items()
                if earlier.keys() == values[name].keys()
            }
            records.append(record | {"over_confident": _over_confident(changes)})
            previous = {name: values[name] for name in ("accuracy", "v_information")}
    return tables.framed(records)


def _over_confident(changes: Mapping[str, Interval]) -> str:
    """Return whether accuracy rises and V-information falls, and whether that can be chance."""
    if len(changes) < 2 or changes["accuracy"].value <= 0 or changes["v_information"].value >= 0:
        return ""
    sure = changes["accuracy"].low > 0 and changes["v_information"].high < 0
    return OVER_CONFIDENT if sure else f"{OVER_CONFIDENT} (may be chance)"


def _item_values(
    results: RunSet, paths: set[str]
) -> tuple[dict[str, dict[int, Floats]], tuple[int, ...] | None]:
    """Return, by metric and seed, (N,) the bits and scores of the items, and the items' groups."""
    scores: dict[str, defaultdict[int, list[float]]]
    columns = {**BITS, "accuracy": "correct"}
    scores, groups = {name: defaultdict(list) for name in columns}, None
    for path in sorted(paths):
        run = results.by_path[path]
        groups = run.hits.groups if run.hits else groups
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError:
            continue  # the section of all items says so
        for line in (line for line in lines if line.pvi is not None):
            for name, column in columns.items():
                if (value := getattr(line, column)) is not None:
                    scores[name][line.seed or 0].append(value)
    arrays = {n: {seed: np.array(v) for seed, v in runs.items()} for n, runs in scores.items()}
    return arrays, groups


def information_table(results: RunSet) -> Table | None:
    """Make the table of V-information by N, next to the accuracy."""
    points = information(results)
    if points.empty:
        return None
    return tables.table(
        "v_information",
        "How much do the stems tell the model? V-information",
        "V-information: by how many bits per item the right answer is likelier for the head than "
        "for one that was trained without the stems (control choice only), on the measured items. "
        "Conditional: by how many it is likelier than for one that was trained under the "
        "no-language control (Ethayarajh et al. 2022). Below 0, the stems make the right answer "
        "less likely. Intervals are over groups of items and seeds. Over-confident: since the "
        "previous N, accuracy has risen and V-information has fallen; this may be chance if the "
        "interval of either change includes 0.",
        points,
        [
            text("probe", "probe", "split"),
            text("model", "model", "mode"),
            whole("N", "num_train"),
            whole("seeds", "num_seeds"),
            tables.share("accuracy %", "accuracy"),
            _bits_column("V-information, bits", "v_information"),
            _bits_column("conditional, bits", "conditional_v_information"),
            text("over-confident", "over_confident"),
        ],
    )


def imported_table(results: RunSet) -> Table | None:
    """Make the table of V-information of what other programs measured."""
    rows = results_frame(results).query("protocol == 'information'")
    rows = rows.assign(_part=rows.subset.replace("", "all"))
    ends = {"ci_low": "v_information_ci_low", "ci_high": "v_information_ci_high"}
    return tables.table(
        "imported_information",
        "V-information, imported",
        "By how many bits per item the input makes the right label likelier (Ethayarajh et al. "
        "2022), with 95% intervals that treat items as independent. The run's pvi.csv has each "
        "item.",
        rows.rename(columns={"value": "v_information", **ends}),
        [
            text("items", "probe"),
            text("model", "model"),
            text("part", "_part"),
            whole("n", "num_items"),
            _bits_column("V-information, bits", "v_information"),
        ],
        csv="probe model subset v_information v_information_ci_low v_information_ci_high num_items",
    )


def _bits_column(label: str, name: str) -> Column:
    def show(row: Any) -> Cell:
        value, low, high = (getattr(row, column, None) for column in numbers.with_ends(name))
        if missing(value):
            return Cell(ABSENT)
        ends = "" if missing(low) else f"{_signed(low)} to {_signed(high)}"
        return Cell(_signed(value), ends)

    return Column(label, show)


def _signed(bits: float | None) -> str:
    text = f"{bits or 0.0:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def over_confidence_sentences(results: RunSet) -> str:
    """Return which models are over-confident: surer with more training, and not better informed."""
    sentences = []
    points = information(results)
    for key, curve_points in () if points.empty else points.groupby(CURVE, sort=False):
        for earlier, later in pairwise(curve_points.to_dict("records")):
            if later["over_confident"]:
                sizes = [numbers.count(point["num_train"]) for point in (earlier, later)]
                accuracies = [numbers.percent(point["accuracy"]) for point in (earlier, later)]
                bits = [_signed(point["v_information"]) for point in (earlier, later)]
                sentences.append(
                    f"{key[0]} is {later['over_confident']} on {key[1]} ({key[2]}): from N = "
                    f"{' to '.join(sizes)} its accuracy rises from {' to '.join(accuracies)} and "
                    f"its V-information falls from {' to '.join(bits)} bits."
                )
                break
    return " ".join(sentences)
