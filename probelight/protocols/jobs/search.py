"""`search: tpe`: what a trial draws, given the finished ones of those that it follows.

Trials come in batches. Optuna's TPE sampler is told both objectives of the finished trials of the
batches before, accuracy on the probe and on the original task, and nothing of what else is finished
or runs: a trial draws the same whatever order the others end in. It draws its whole batch and takes
what is its own, so that each of them keeps away from those drawn before it; drawn one by one they
crowd where the sampler expects most, and find less than random settings do.

The draw is kept in the run folder before anything trains, so a trial that is tried again keeps its
setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from probelight.io.atomic import write_text_once
from probelight.io.errors import UsageError
from probelight.metrics.aggregate import Checkpoint, best_checkpoint
from probelight.protocols.jobs.job import DRAWN_NAME
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder, config_hash

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

NUM_RANDOM = 4  # trials that must be finished before the sampler has anything to go by


class Told(NamedTuple):
    """What the sampler is told of a finished trial.

    Attributes:
        drawn: What it drew.
        objectives: What came of it, each the better the higher.
        place: How messages call it.
    """

    drawn: Mapping[str, Any]
    objectives: Sequence[float]
    place: str = "a trial"


def draw(job_key: str, config: Mapping[str, Any], folder: Path, earlier: Sequence[Path]) -> None:
    """Draw the setting of a trial and leave it in its folder, unless one is there already.

    Args:
        job_key: The trial, as messages call it.
        config: Its config, with the space, `search`, its number, `trial`, and how many trials are
            `trials_at_once`.
        folder: Its run folder.
        earlier: Those of the trials that it follows; those without a result do not count.

    Raises:
        UsageError: If Optuna is not installed, or the space is of neither kind.
        ValueError: If what an earlier trial left is damaged; the message names the file.
    """
    path = folder / DRAWN_NAME
    if path.exists():
        return
    finished = [RunFolder.at(one) for one in earlier if (one / "result.json").exists()]
    finished.sort(key=lambda run: int(run.config["trial"]))
    told = [_told(run) for run in finished]
    place = config["trial"] % config["trials_at_once"]
    # The batch's own: were it a plain number, all searches would begin with the same few settings.
    seed = int(config_hash({**config, "trial": config["trial"] - place})[:8], 16)
    try:
        *_, drawn = sample(config["search"], told, place + 1, seed)
    except UsageError as error:
        raise UsageError(f"{job_key}: {error}") from error
    # A process that was stopped before this line and has lost the trial replaces nothing.
    write_text_once(path, json.dumps(drawn) + "\n")


def sample(
    space: Mapping[str, Any], told: Sequence[Told], number: int, seed: int
) -> list[dict[str, Any]]:
    """Draw settings, each away from those before it; the first ones are the same for any number.

    Args:
        space: Parameter -> {"low", "high", "log"} or {"choices"}.
        told: The finished trials, in their order.
        number: How many to draw.
        seed: Seeds the draw.

    Raises:
        UsageError: If Optuna is not installed, or the space is of neither kind.
        ValueError: If a trial drew what is not in the space.
    """
    try:
        import optuna  # heavy, and only searches need it
    except ImportError as error:
        raise UsageError(
            f"search: tpe needs Optuna ({error}); pip install -e '.[sweep]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # By name: in which order the parameters are given must not decide what is drawn.
    distributions = {name: _distribution(name, space[name]) for name in sorted(space)}
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=NUM_RANDOM, constant_liar=True, multivariate=False
    )
    study = optuna.create_study(directions=["maximize", "maximize"], sampler=sampler)
    for one in told:
        params = dict(one.drawn)
        try:
            trial = optuna.trial.create_trial(
                params=params, distributions=distributions, values=list(one.objectives)
            )
        except ValueError as error:
            raise ValueError(f"{one.place}: {params} is not of the space: {error}") from error
        study.add_trial(trial)
    return [dict(study.ask(distributions).params) for _ in range(number)]


def objectives_of(result_path: Path) -> tuple[float, float]:
    """Accuracy on probe and original task, on selection items, of the epoch with the best mean.

    Raises:
        ValueError: If the file is damaged, or does not hold both.
    """
    epochs: dict[int, dict[str, float]] = {}
    for row in RunRecord.read(result_path).rows:
        if row.split == "selection" and row.epoch:
            epochs.setdefault(row.epoch, {})[row.metric] = row.value
    try:
        tried = [
            Checkpoint(said["probe_accuracy"], said["original_accuracy"], 0.0, epoch)
            for epoch, said in epochs.items()
        ]
        best = best_checkpoint(tried, lambda one: one)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{result_path}: not the result of a trial: {error}") from error
    return best.probe, best.original


def _told(run: RunFolder) -> Told:
    drawn, path = run.read(DRAWN_NAME), run.path / DRAWN_NAME
    if not isinstance(drawn, dict):
        raise ValueError(
            f"{path}: there is no setting, yet the trial is finished; remove {run.path}, "
            "it begins anew"
        )
    return Told(drawn, objectives_of(run.result_path), str(path))


def _distribution(name: str, said: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if "choices" in said:
        return CategoricalDistribution(tuple(said["choices"]))
    if {"low", "high"} <= said.keys():
        return FloatDistribution(said["low"], said["high"], log=bool(said.get("log")))
    raise UsageError(f"search: {name} needs `low` and `high`, or `choices`, not {dict(said)}")
