"""Revisions of a model, such as pre-training checkpoints, by the step that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probelight.reports.diagnostics import MEASURES
from probelight.results.load import Results, Run, distinct_ends
from probelight.results.row import Row

_STEP = re.compile(r"(?<![a-z])(?:global[-_]?)?(?:steps?|checkpoint|ckpt|iter)[-_=]?(\d+)([km]?)\b")
_WHOLE = re.compile(r"(\d{1,12})([km]?)")
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
_PROTOCOLS = ("zero_shot", "diagnose")


@dataclass(frozen=True)
class Snapshot:
    """A number of a model at a revision.

    Attributes:
        model: The model, the same for all its revisions.
        revision: Branch, tag or commit; empty where none was asked for.
        step: The training step in the revision's name; None where there is none.
        row: What was measured.
    """

    model: str
    revision: str
    step: int | None
    row: Row

    @property
    def measure(self) -> str:
        """What was measured, as tables call it."""
        metric = self.row.metric
        return MEASURES.get(metric, metric.replace("_", " "))

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """By model, then step; those without a step come last."""
        return self.model, self.step is None, self.step or 0, self.revision


def step_of(revision: str) -> int | None:
    """The training step that a revision names, None where it names none.

    It is the number behind the word step ("step1000", "step-1000", "global_step1000",
    "stage1-step5000-tokens21B"), or behind checkpoint, ckpt or iter; or the whole revision, if that
    is a number. A k or m behind it stands for thousands or millions.
    """
    lower = revision.lower().replace("_", "-")
    found = _STEP.search(lower) or _WHOLE.fullmatch(lower)
    return int(found[1]) * _TIMES[found[2]] if found else None


def snapshots(results: Results) -> list[Snapshot]:
    """What was measured of the models of which several training steps are there.

    Accuracies before training, and all shares of the diagnostics, on whole sets.
    """
    runs = [run for name in _PROTOCOLS for run in results.of(name) if run.role == "model"]
    names = distinct_ends(_base(run) for run in runs)
    found = [one for run in runs for one in _of_run(run, names[_base(run)])]
    steps: dict[str, set[int]] = {}
    for one in found:
        if one.step is not None:
            steps.setdefault(one.model, set()).add(one.step)
    several = {model for model, own in steps.items() if len(own) > 1}
    return sorted((one for one in found if one.model in several), key=lambda one: one.order)


def by_set(found: Sequence[Snapshot]) -> dict[str, list[Snapshot]]:
    """What belongs together: each set of the diagnostics by its name, zero-shot probes by ""."""
    sets: dict[str, list[Snapshot]] = {}
    for one in sorted(found, key=lambda one: one.row.protocol != "zero_shot"):
        name = one.row.probe if one.row.protocol == "diagnose" else ""
        sets.setdefault(name, []).append(one)
    return sets


def _base(run: Run) -> str:
    """What a model was loaded from, without its revision."""
    return run.source.loaded_from.removesuffix(f"@{run.source.revision}")


def _of_run(run: Run, model: str) -> Iterator[Snapshot]:
    revision = run.source.revision or ""
    for row in run.rows:
        whole = row.subset is None and not row.perturbation and row.ci_low is not None
        wanted = run.protocol == "diagnose" or row.metric == "accuracy"
        if whole and wanted and not row.scoring:
            yield Snapshot(model, revision, step_of(revision), row)
