"""`search: tpe`: draw the setting of a trial from the results of the finished trials before it.

Trials come in batches. Optuna's TPE sampler sees both objectives of the finished trials of earlier
batches, accuracy on the probe and on the original task, and nothing else: a trial draws the same
setting in whatever order the others end. A trial draws its whole batch and takes its own setting,
so that each setting keeps away from those before it; drawn one by one they crowd where the sampler
expects most, and find less than random settings do.

The draw is kept in the run folder before anything trains, so a retried trial keeps its setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from probelight.io.atomic import write_text_once
from probelight.io.errors import UsageError
from probelight.metrics.aggregate import EpochAccuracies, best_checkpoint
from probelight.results.record import RESULT, RunRecord
from probelight.results.run_folder import RunFolder, config_hash
from probelight.runs.spec import DRAWN_NAME, RunSpec, Trial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

NUM_RANDOM = 4  # trials that must be finished before the sampler has anything to go by


class FinishedTrial(NamedTuple):
    """A finished trial as the sampler sees it."""

    setting: Mapping[str, Any]
    objectives: Sequence[float]  # higher is better
    source: str = "a trial"  # in messages


def draw(spec: RunSpec, trial: Trial, folder: Path, earlier: Sequence[Path]) -> None:
    """Draw the setting of a trial into its run folder, unless one is there already.

    `earlier` are the run folders of the trials that it follows, in their order; those without a
    result do not count.

    Raises:
        UsageError: If Optuna is not installed, or the space is malformed.
        ValueError: If an earlier trial left a damaged file; the message names it.
    """
    path = folder / DRAWN_NAME
    if path.exists():
        return
    finished = []
    for run in [RunFolder.at(path) for path in earlier if (path / RESULT).exists()]:
        setting, drawn_path = run.read(DRAWN_NAME), run.path / DRAWN_NAME
        if not isinstance(setting, dict):
            raise ValueError(
                f"{drawn_path}: this finished trial has no setting; remove {run.path} to start the "
                "trial again"
            )
        finished.append(FinishedTrial(setting, objectives_of(run.result_path), str(drawn_path)))
    number = trial.number % trial.at_once
    # The batch's own: were it a plain number, all searches would begin with the same few settings.
    batch = {**spec.to_config(), "trial": asdict(replace(trial, number=trial.number - number))}
    seed = int(config_hash(batch)[:8], 16)
    try:
        *_, drawn = sample(trial.space, finished, number + 1, seed)
    except UsageError as error:
        raise UsageError(f"{spec.key}: {error}") from error
    # A process that was stopped before this line and has lost the trial replaces nothing.
    write_text_once(path, json.dumps(drawn) + "\n")


def sample(
    space: Mapping[str, Any], finished: Sequence[FinishedTrial], number: int, seed: int
) -> list[dict[str, Any]]:
    """Draw `number` settings, each away from those before it; a larger number only adds to them.

    Each parameter of `space` has {"low", "high", "log"} or {"choices"}.
    """
    try:
        import optuna  # heavy, and only searches need it
        from optuna.distributions import CategoricalDistribution, FloatDistribution
    except ImportError as error:
        raise UsageError(
            f"search: tpe needs Optuna ({error}); pip install -e '.[sweep]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions: dict[str, BaseDistribution] = {}
    for name, values in sorted(space.items()):  # their order must not decide what is drawn
        if "choices" in values:
            distributions[name] = CategoricalDistribution(tuple(values["choices"]))
        elif {"low", "high"} <= values.keys():
            is_log = bool(values.get("log"))
            distributions[name] = FloatDistribution(values["low"], values["high"], log=is_log)
        else:
            needed = f"{name} needs `low` and `high`, or `choices`"
            raise UsageError(f"search: {needed}, not {dict(values)}")
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=NUM_RANDOM, constant_liar=True, multivariate=False
    )
    study = optuna.create_study(directions=["maximize", "maximize"], sampler=sampler)
    for setting, objectives, source in finished:
        params = dict(setting)
        try:
            trial = optuna.trial.create_trial(
                params=params, distributions=distributions, values=list(objectives)
            )
        except ValueError as error:
            raise ValueError(f"{source}: {params} is outside the search space: {error}") from error
        study.add_trial(trial)
    return [dict(study.ask(distributions).params) for _ in range(number)]


def objectives_of(result_path: Path) -> tuple[float, float]:
    """Return selection accuracy on probe and original task at the epoch with the best mean."""
    epochs: dict[int, dict[str, float]] = {}
    for row in RunRecord.read(result_path).rows:
        if row.split == "selection" and row.epoch:
            epochs.setdefault(row.epoch, {})[row.metric] = row.value
    try:
        checkpoints = [
            EpochAccuracies(values["probe_accuracy"], values["original_accuracy"], 0.0, epoch)
            for epoch, values in epochs.items()
        ]
        best = best_checkpoint(checkpoints, lambda checkpoint: checkpoint)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{result_path}: this is not the result of a trial: {error}") from error
    return best.probe, best.original
