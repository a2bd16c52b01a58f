"""The systems that runs in folders of results belong to: a model in one setting, with its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from probelight.metrics.intervals import Floats
from probelight.protocols.compare.answers import Answers, Item


@dataclass(frozen=True)
class System:
    """Runs that differ by their seed alone.

    Attributes:
        runs: One a seed.
        elsewhere: Other folders that it is in too, which would differ from it by nothing.
    """

    runs: tuple[Answers, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def first(self) -> Answers:
        """What all its runs have in common can be read from one."""
        return self.runs[0]

    def setting(self, but: Sequence[str]) -> str:
        """What it was trained with, as people read it, but for what goes without saying."""
        own = self.first.setting
        return ", ".join(value for name, value in own.items() if value and name not in but)

    def credit(self, items: Sequence[Item]) -> dict[int, Floats]:
        """By seed (0 where there is none) what each item counts."""
        return {run.seed or 0: np.array([run.credit[item] for item in items]) for run in self.runs}


def systems_of(answers: Sequence[Answers]) -> tuple[list[System], list[str]]:
    """The systems that runs belong to, and what is to be said of runs that are there twice."""
    found: dict[tuple[object, ...], dict[int | None, Answers]] = {}
    said = []
    for run in answers:
        setting = tuple(run.setting.items())
        own = found.setdefault((run.asked, run.folder, run.model, setting, run.setup), {})
        first = own.setdefault(run.seed, run)
        # What a model said before is in each of its inoculations.
        if first is not run and first.credit != run.credit:
            said.append(
                f"{run.folder}/{run.path}: not compared, as {first.path} is of the same model, "
                "setting and seed; give it in a folder of its own"
            )
    same: dict[object, list[System]] = {}
    for runs in found.values():
        system = System(tuple(runs.values()))
        same.setdefault(_identity(system), []).append(system)
    if more := len(found) - len(same):
        said.append(
            f"counted once: {more} of {len(found)} systems, which are in another folder too, "
            "with the same answers"
        )
    once = [
        replace(first, elsewhere=tuple(system.first.folder for system in others))
        for first, *others in same.values()
    ]
    return once, said


def _identity(system: System) -> object:
    """Equal for one system in two folders."""
    first = system.first
    runs = frozenset((r.origin, r.seed, frozenset(r.credit.items())) for r in system.runs)
    return first.asked, first.model, tuple(first.setting.items()), runs
