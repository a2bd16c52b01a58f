"""The folder of a training's scores: a second training beside it has one with a number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from itertools import count
from pathlib import Path
from typing import Any

from probelight.probes.source import ProbeData
from probelight.results.record import RunRecord
from probelight.results.run_folder import CommandFolder, ConfigConflictError, is_computed

_NUMBERED = re.compile(r"-([2-9]|[1-9]\d\d?)")  # by no date


def training_folder(
    output_dir: Path,
    config: Mapping[str, Any],
    probes: Sequence[ProbeData],
    *,
    step: int,
    resume: bool,
) -> CommandFolder:
    """Open the folder of a training's scores: `output_dir`, or with a number `output_dir-2`.

    Args:
        output_dir: The folder of the first training.
        config: What is scored.
        probes: The sets whose checksums the config has.
        step: Number of steps that the training has already taken.
        resume: Use an earlier folder again, although no step was taken.

    Returns:
        The newest folder in which nothing was scored. If the training goes on, that with the scores
        of the same config up to its step, and of several the newest.

    Raises:
        ConfigConflictError: If the training goes on, but all scores are of other configs.
    """
    name = output_dir.name
    suffixes = [
        path.name.removeprefix(name) for path in output_dir.parent.glob(f"{escape(name)}-*")
    ]
    numbers = [1, *(int(suffix[1:]) for suffix in suffixes if _NUMBERED.fullmatch(suffix))]

    def path_of(number: int) -> Path:
        return output_dir if number == 1 else output_dir.with_name(f"{name}-{number}")

    if not (step or resume):
        for number in count(max(numbers)):
            if not _is_scored(path_of(number)):
                with suppress(ConfigConflictError):  # another process has begun to
                    return CommandFolder(path_of(number), config, probes)
    paths = [path_of(number) for number in sorted(numbers, reverse=True)]
    scored_paths = [path for path in paths if _is_scored(path)]
    earlier = []
    for path in scored_paths:
        with suppress(ConfigConflictError):
            earlier.append(CommandFolder(path, config, probes))
    if not earlier:
        return CommandFolder((scored_paths or paths)[0], config, probes)

    def last_step(folder: CommandFolder) -> int:
        steps = (step_of(record) for record in folder.finished())
        return max((scored for scored in steps if scored <= step), default=-1)

    return max(earlier, key=last_step) if step else earlier[0]


def _is_scored(folder: Path) -> bool:
    """Return whether the runs of a folder have more than their configs."""
    return is_computed(folder, folder / "runs")


def step_of(record: RunRecord) -> int:
    """Return the step of a training at which a model was scored."""
    return int((record.source.revision or "step0").removeprefix("step"))
