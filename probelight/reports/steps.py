"""Revisions of a model, such as pre-training checkpoints, by the training step that they name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.probes.diagnostics.sets import SETS
from probelight.reports import table as tables
from probelight.reports.estimates import chance_levels
from probelight.reports.table import ACCURACY, SIZE, Table, accuracy, size, text, whole
from probelight.reports.words import BY_GROUPS, INTERVAL, measure
from probelight.results.frames import results_frame
from probelight.results.load import Results, distinct_ends

if TYPE_CHECKING:  # matplotlib takes a second to import
    from matplotlib.axes import Axes

    from probelight.reports.figure import Figure

STEP = re.compile(r"(?<![a-z])(?:global[-_]?)?(?:steps?|checkpoint|ckpt|iter)[-_=]?(\d+)([km]?)\b")
WHOLE = re.compile(r"(\d{1,12})([km]?)")
TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
NO_REVISION = "as published"
MOST_TICKS = 6
SIZES: Any = {"markersize": 4.2, "linewidth": 1.7}  # of a line and its marks


def step_of(revision: str) -> int | None:
    """Return the training step that a revision names, None where it names none.

    It is the number after the word step ("step1000", "step-1000", "global_step1000",
    "stage1-step5000-tokens21B"), or after checkpoint, ckpt or iter; or the whole revision, if that
    is a number. A k or m after it means thousands or millions.
    """
    lower = revision.lower().replace("_", "-")
    found = STEP.search(lower) or WHOLE.fullmatch(lower)
    return int(found[1]) * TIMES[found[2]] if found else None


@lru_cache(maxsize=2)
def snapshots(results: Results) -> pd.DataFrame:
    """Return what was measured of the models of which several training steps are there.

    Accuracies before training, and all shares of the diagnostics, on whole sets, by model and step;
    revisions without a step come last. The columns are those of the results with the model's name
    without its `revision`, the `step`, the `measure` as tables call it, and the `set` of the
    diagnostics, empty for zero-shot probes.
    """
    rows = results_frame(results)
    rows = rows[rows.protocol.isin(["zero_shot", "diagnose"]) & (rows.role == "model")]
    sources = [results.by_path[path].source for path in rows.path]
    bases = [one.loaded_from.removesuffix(f"@{one.revision}") for one in sources]
    names = distinct_ends(bases)
    revisions = [one.revision or "" for one in sources]
    rows = rows.assign(
        model=[names[base] for base in bases],
        revision=revisions,
        step=pd.array([step_of(revision) for revision in revisions], dtype="Int64"),
        measure=[measure(metric) for metric in rows.metric],
        set=rows.probe.where(rows.protocol == "diagnose", ""),
        _runs=rows.run,
    )
    is_whole = (rows.subset == "") & (rows.perturbation == "") & rows.ci_low.notna()
    is_shown = (rows.protocol == "diagnose") | (rows.metric == "accuracy")
    found = rows[is_whole & is_shown & (rows.scoring == "")]
    found = found[found.groupby("model").step.transform("nunique") > 1]
    return found.sort_values(["model", "step", "revision"], kind="stable", ignore_index=True)


def steps_tables(results: Results) -> list[Table | None]:
    """Make the tables of revisions by step; columns are probes, or the measures of a set."""
    made = []
    for name, found in _by_set(snapshots(results)):
        place = found.probe + (" (" + found.split + ")").where(found.split != "", "")
        made.append(
            tables.table(
                f"training_steps_{name}".rstrip("_"),
                f"{SETS[name].title if name else 'Accuracy before any training'}, by training step",
                "The step is the number in a revision's name; those that name none are last. "
                f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}).",
                found.assign(
                    accuracy=found.value,
                    _across=found.measure if name else place,
                    _revision=found.revision.replace("", NO_REVISION),
                ),
                [whole("step", "step"), text("revision", "_revision"), text("model", "model")],
                rows="model revision",
                across="_across",
                each=[accuracy("%"), size()],
                csv=f"model revision step probe metric {ACCURACY} {SIZE} split mode",
            )
        )
    return made


def steps_figures(results: Results) -> list[Figure]:
    """Draw each measure against the training step: a figure a set, a panel a measure."""
    from probelight.reports import figure as figures

    found = snapshots(results)
    chance = chance_levels(results)
    made = []
    for name, of_set in _by_set(found[found.step.notna()]):
        panels = list(of_set.groupby(["probe", "split", "measure"], sort=False))
        models = of_set.model.unique()
        looks: dict[str, dict[str, Any]] = {
            model: {"color": line.color, "linestyle": line.dash, "marker": line.marker}
            for model, line in zip(models, figures.LINES * len(models), strict=False)
        }
        with figures.styled():
            canvas, axes = figures.panels(len(panels[: figures.MAX_PANELS]), shared=False)
            for ((probe, split, what), rows), axis in zip(panels, axes, strict=False):
                title = SETS[probe].title if probe in SETS else probe.replace("_", " ")
                figures.head(axis, title, " · ".join(filter(None, (what, split))))
                _panel(axis, rows, looks, None if name else chance.get(probe))
            handles = [
                axes[0].plot([], [], label=model, **look, **SIZES)[0]
                for model, look in looks.items()
            ]
            canvas.legend(handles=handles, loc="outside upper left", ncols=2, handlelength=3.4)
            made.append(
                figures.drawn(
                    f"training_steps_{name}".rstrip("_"),
                    f"{SETS[name].title if name else 'What was known'}, at each training step",
                    "Shares against the training step that a revision's name holds (log axis, step "
                    "0 on its left); bands are 95% intervals, dotted lines chance. Revisions "
                    "without a step are in the table alone." + figures.left_out(len(panels)),
                    canvas,
                )
            )
    return made


def _by_set(found: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return what belongs together: the zero-shot probes, then each set of the diagnostics."""
    sets = sorted(found.groupby("set", sort=False), key=lambda one: one[0] != "")
    return [(str(name), of_set) for name, of_set in sets]


def _panel(
    axis: Axes, rows: pd.DataFrame, looks: dict[str, dict[str, Any]], chance: float | None
) -> None:
    from probelight.reports.figure import MUTED, example_axis, limits

    axis.set_ylim(*limits([chance, *rows[["value", "ci_low", "ci_high"]].to_numpy().ravel()]))
    axis.set_ylabel("%")
    steps = sorted(set(rows.step))
    positions = example_axis(axis, steps, "training step")
    shown = steps[:: -(-len(steps) // MOST_TICKS)]
    axis.set_xticks([positions[step] for step in shown], [_short(step) for step in shown])
    first, last = min(positions.values()), max(positions.values())
    axis.set_xlim(first - 0.06 * (last - first), last + 0.06 * (last - first))
    if chance is not None:
        axis.plot([first, last], [100 * chance] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
    for model, look in looks.items():
        of_model = rows[rows.model == model]
        xs = [positions[step] for step in of_model.step]
        lows, highs = 100 * of_model.ci_low, 100 * of_model.ci_high.fillna(0.0)
        axis.fill_between(xs, lows, highs, color=look["color"], alpha=0.13, linewidth=0)
        axis.plot(xs, 100 * of_model.value, **look, **SIZES)


def _short(step: int) -> str:
    """Return a tick label: 1,000 as 1k, 2,000,000 as 2M."""
    for size_, letter in ((1_000_000, "M"), (1_000, "k")):
        if step >= size_ and step % (size_ // 10) == 0:
            return f"{step / size_:g}{letter}"
    return f"{step:,}"
