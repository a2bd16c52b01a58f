"""Scores a model on probes while another program trains it: what does it gain and lose?"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from probelight.evaluation.evaluate import evaluate
from probelight.evaluation.scorers import vocabulary_sha256
from probelight.evaluation.sets import LoadedSet
from probelight.integrations.folders import step_of, training_folder
from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.errors import UsageError, quietly, required_path
from probelight.io.package import cache_folder
from probelight.io.ranges import Points
from probelight.io.settings import as_settings, typed
from probelight.io.workload import Workload
from probelight.metrics.verdicts import MARGIN
from probelight.models.in_memory import TextSettings, as_it_was, scorer_of
from probelight.models.loading import name_of
from probelight.models.scorer import Scorer
from probelight.probes.importers.items import ProbeLike, as_list, is_items
from probelight.probes.source import ProbeData, load_entry, load_items
from probelight.reports.forgetting import verdicts_on
from probelight.reports.verdicts import lines
from probelight.results.details import WatchDetails
from probelight.results.frames import changes
from probelight.results.load import WATCH, load_results
from probelight.results.measured import chance_rows
from probelight.results.pairs import pair_of
from probelight.results.predictions import write_predictions
from probelight.results.record import ModelSource, RunRecord, checksums
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.results.systems import System, scores_of
from probelight.runs.settings import TrainerSettings

Entry: TypeAlias = "ProbeLike | ProbeData"
Keep = Literal["best_average"] | Callable[[Mapping[str, float]], float] | None
CHANGES = "changes.csv"  # what was gained and lost, in the folder of the results
KEPT = "kept"  # folder of the checkpoints, below that of the results


class Look(NamedTuple):
    """The scores of a model at a step of its training."""

    step: int
    scores: Mapping[str, float]  # accuracy by the name of the probe


class WatchState(NamedTuple):
    """The state of a watch, the same in all processes of a training."""

    folder: Path  # of the results
    name: str  # of the model
    looks: list[Look]
    best_checkpoint: Path | None


class Watch:
    """Scores a model on probes while it is trained, and keeps its best checkpoints.

    Each look at the model adds a run per probe to the folder, with the protocol "watch", so
    `report` and `compare` can read it. A resumed training also resumes in the folder: looks that
    are there are not repeated. A second training has a folder of its own, with a number.

    Args:
        probes: Names of probes, `name:split`, files of items, items in memory, or return values of
            `probelight.load_probe`; one or several.
        original: The task that the model should not forget; it is scored like the probes.
        output_dir: Folder of the results, `output_dir-2` of a second training.
        keep: "best_average" keeps the checkpoint with the best mean of all scores, the first one
            on ties. A function gets the scores by probe name; the checkpoint with the highest value
            is kept. None keeps no checkpoint.
        keep_most: Maximum number of checkpoints to keep.
        max_items: Score at most this many items per probe, drawn in whole groups. This is cheaper,
            but intervals are wider. None scores all.
        seed: Seed of the draw of these items.
        text: How the model gets its text, such as {"max_length": 128}.
        max_tokens: Padded tokens per batch.
        check: Print a verdict per probe at the end of the training, as `train.py check` does: was
            it forgotten, gained or kept between the first scores and the last ones?
        margin: The loss of accuracy that does not matter to the verdicts, in percentage points.
        resume: Use the newest folder again for a training that begins, and replace its scores.

    Raises:
        ProbelightError: If there is no such probe, or one is malformed.
    """

    def __init__(
        self,
        probes: Entry | Sequence[Entry],
        original: Entry | None = None,
        *,
        output_dir: str | Path = "runs/watch",
        keep: Keep = None,
        keep_most: int = 1,
        max_items: int | None = None,
        seed: int = 0,
        text: TextSettings | Mapping[str, Any] | None = None,
        max_tokens: int = 8192,
        check: bool = False,
        margin: float = 100 * MARGIN,
        resume: bool = False,
    ) -> None:
        if not (keep in (None, "best_average") or callable(keep)):
            raise UsageError(f"keep={keep!r}: give 'best_average' or a function of the scores")
        for number in (keep_most, 1 if max_items is None else max_items):
            if not isinstance(number, int) or number < 1:
                raise UsageError(f"keep_most and max_items must be 1 or more, not {number!r}")
        entries, originals = (
            [argument] if isinstance(argument, ProbeData) else as_list(argument)
            for argument in (probes, original)
        )
        if not entries and not originals:
            raise UsageError("give a probe to watch, such as probes=['age_small']")
        if len(originals) > 1:
            raise UsageError("original: give one task; others to watch are probes")
        with quietly():
            loaded_sets = _loaded_sets([*entries, *originals])
        self.sets = [loaded.drawn(max_items, "max_items", seed) for loaded in loaded_sets]
        called = [watched.name for watched in self.sets]
        if repeated := {name for name in called if called.count(name) > 1}:
            raise UsageError(
                f"two probes are called {min(repeated)!r}; give one of them, or another name with "
                "probelight.load_probe(..., name=)"
            )
        self.original = called[-1] if originals else None
        self.folder = self.output_dir = required_path(output_dir, "output_dir")
        self.resume = resume
        self.keep, self.keep_most = keep, keep_most
        self.drawn = {"max_items": max_items, "seed": seed}
        if keep is not None:
            try:
                self._value(dict.fromkeys(called, 0.5))
            except Exception as error:
                raise UsageError(
                    f"keep: {type(error).__name__}: {error}; the function gets the scores of "
                    f"{', '.join(called)} by name, and must return a number"
                ) from error
        self.text = as_settings(TextSettings, text or {}, "text")
        self.max_tokens = max_tokens
        self.check = check
        self.margin = typed(Points, margin, "margin", UsageError) / 100
        self.looks: list[Look] = []
        self.best_checkpoint: Path | None = None
        self._command: CommandFolder | None = None  # of the first process
        self._name = ""

    @property
    def state(self) -> WatchState:
        """The state of the watch; it is set in the other processes of a training."""
        return WatchState(self.folder, self._name, self.looks, self.best_checkpoint)

    @state.setter
    def state(self, state: WatchState) -> None:
        self.folder, self._name, self.looks, self.best_checkpoint = state

    def begin(self, network: Any, tokenizer: Any, step: int = 0) -> None:
        """Take the model to watch, and check before the training that it can answer the probes.

        Args:
            network: The model.
            tokenizer: Its tokenizer.
            step: Number of steps already taken, if a training resumes.

        Raises:
            UsageError: If the model's type is not supported, or there is no tokenizer.
            ConfigConflictError: If a training resumes, but its folder has scores of other probes.
            RecordError: If an item does not fit the model; the message names the item.
        """
        if tokenizer is None:
            raise UsageError("the trainer has no tokenizer (processing_class); give tokenizer=")
        self._tokenizer = tokenizer
        self._name = name_of(network)
        with as_it_was(network):
            for watched in self.sets:
                encoder = self._scorer(network, watched).choice_scores().encoder
                encoder.cache_dir = cache_folder()
                encoder.encode(watched.data.records)
        sets = [{"name": s.name, "split": s.split, "sha256": checksums(s.data)} for s in self.sets]
        config: dict[str, Any] = {"command": "watch", "model": self._name, "probes": sets}
        config |= {"text": asdict(self.text), **self.drawn}
        probes = [s.data for s in self.sets]
        self._command = training_folder(
            self.output_dir, config, probes, step=step, resume=self.resume
        )
        self.folder = self._command.path
        self._discard(step)
        self.looks = self._known_looks()
        if self.keep is not None and self.looks and self.looks[-1].step == step:
            self._keep(network)  # a kill may have come between the scores and the checkpoint
        self.best_checkpoint = self._best_dir()

    def _discard(self, step: int) -> None:
        """Remove the looks after the resumed step, or all at the beginning of a training."""
        assert self._command is not None
        first = step + 1 if step else 0  # the weights at the beginning may be others
        for record in self._command.finished():
            if step_of(record) >= first:
                self._command.remove(record.key)
                (self.folder / CHANGES).unlink(missing_ok=True)
        for path in (self.folder / KEPT).glob("step*"):
            if path.name.removeprefix("step").isdecimal() and int(path.name[4:]) >= first:
                shutil.rmtree(path)

    def _known_looks(self) -> list[Look]:
        """Return the looks in the folder at which every probe was scored."""
        assert self._command is not None
        scores_by_step: dict[int, dict[str, float]] = {}
        for record in self._command.finished():
            scores_by_step.setdefault(step_of(record), {})[record.probe] = _accuracy(record)
        names = [watched.name for watched in self.sets]
        return [
            Look(step, {name: scores[name] for name in names})
            for step, scores in sorted(scores_by_step.items())
            if scores.keys() == {*names}
        ]

    def _scorer(self, network: Any, watched: LoadedSet) -> Scorer:
        return scorer_of(network, self._tokenizer, watched.data.config.setup, self.text)

    def look(self, network: Any, step: int) -> dict[str, float]:
        """Score every probe, write the runs, and keep the checkpoint if it is one of the best.

        The model, its mode, its gradients and the random states do not change. If a look fails, it
        only warns; the training continues.

        Returns:
            The accuracy of each probe by name; nothing if the look failed.
        """
        for look in self.looks:
            if look.step == step:
                return dict(look.scores)
        try:
            scores = {watched.name: self._score(network, watched, step) for watched in self.sets}
            self.looks.append(Look(step, scores))
            assert self._command is not None
            self._command.write_results()
        except Exception as error:
            warnings.warn(f"probelight: scoring at step {step} failed: {error}", stacklevel=2)
            return {}
        if self.keep is not None:
            try:
                self._keep(network)
            except Exception as error:
                text = f"probelight: no checkpoint was kept at step {step}: {error}"
                warnings.warn(text, stacklevel=2)
        return scores

    def _score(self, network: Any, watched: LoadedSet, step: int) -> float:
        assert self._command is not None
        revision = f"step{step}"
        config = {
            "protocol": WATCH,
            "model": {"name": self._name, "revision": revision, "text": asdict(self.text)},
            "probe": watched.name,
            "split": watched.split,
            "data": checksums(watched.data),
            "items": [record.position for record in watched.data.records],
        }
        run = self._command.run(f"watch-{watched.name}-{self._name}-{revision}", config)
        if (finished := self._command.result(run.key)) is not None:
            return _accuracy(finished)
        workload = Workload()
        with as_it_was(network):
            scorer = self._scorer(network, watched)
            record = self._record(run, scorer, watched, step)
        run.finish(replace(record, **workload.measured()))
        return _accuracy(record)

    def _record(self, run: RunFolder, scorer: Scorer, watched: LoadedSet, step: int) -> RunRecord:
        revision, name = f"step{step}", f"{self._name}@step{step}"
        task = "original task" if watched.name == self.original else ""
        device = next(scorer.network.parameters()).device
        settings = TrainerSettings(
            max_eval_tokens=self.max_tokens, num_workers=0, progress_bar=False
        )
        evaluation = evaluate(scorer, watched.data, trainer=settings, device=device)
        predictions = evaluation.predictions
        row = Row(
            protocol=WATCH,
            model=name,
            probe=watched.name,
            control="standard",
            mode=evaluation.mode,
            split=watched.split,
            role="model",
            num_items=len(predictions.records),
        )
        rows = (*evaluation.accuracy_rows(row), *chance_rows(predictions, row))
        run.write_metrics(rows)
        write_predictions(run, evaluation.lines())
        return replace(
            evaluation.record(row, rows, evaluation.accuracy_notices),
            num_rescored=0,
            source=ModelSource(
                loaded_from=name,
                revision=revision,
                tokenizer_sha256=vocabulary_sha256(self._tokenizer),
            ),
            details=(WatchDetails(step=step, task=task),),
        )

    def _best(self) -> list[Look]:
        """Return the looks whose checkpoints are kept, the best one first."""
        if self.keep is None:
            return []
        newest = self.looks[-1:]  # also if its checkpoint could not be written
        looks = [look for look in self.looks if look in newest or self._step_dir(look).is_dir()]
        return sorted(looks, key=lambda look: (-self._value(look.scores), look.step))[
            : self.keep_most
        ]

    def _step_dir(self, look: Look) -> Path:
        return self.folder / KEPT / f"step{look.step}"

    def _best_dir(self) -> Path | None:
        return next((path for path in map(self._step_dir, self._best()) if path.is_dir()), None)

    def _keep(self, network: Any) -> None:
        """Write the checkpoint if its value is one of the best, and remove those that are worse."""
        best = self._best()
        newest = self.looks[-1]
        checkpoint_dirs = {look.step: self._step_dir(look) for look in best}
        if newest.step in checkpoint_dirs and not checkpoint_dirs[newest.step].exists():
            with whole_folder(checkpoint_dirs[newest.step]) as fresh, as_it_was(network):
                network.save_pretrained(fresh)
                self._tokenizer.save_pretrained(fresh)
                text = json.dumps({"step": newest.step, **newest.scores}, indent=1)
                (fresh / "scores.json").write_text(text + "\n", encoding="utf-8")
        for path in (self.folder / KEPT).glob("step*"):
            if path not in checkpoint_dirs.values() and not path.name.endswith((".tmp", ".old")):
                shutil.rmtree(path, ignore_errors=True)
        self.best_checkpoint = self._best_dir()

    def _value(self, scores: Mapping[str, float]) -> float:
        if callable(self.keep):
            return float(self.keep(scores))
        return float(np.mean([*scores.values()]))

    @property
    def changes(self) -> pd.DataFrame:
        """What the model gained and lost between the first look and the last, one row per probe.

        `before` and `after` are accuracies with 95% intervals (`before_ci_low`, ...), and `chance`
        is that of guessing; `change` is their difference (`ci_low`, `ci_high`); `lost` and `gained`
        are numbers of items; `p_value` is below 0.05 exactly if the interval of the change excludes
        0, and `changed_p` is from McNemar's exact test; `could_see` is the smallest difference that
        these items would show with probability 80% (Connor 1987).
        """
        if len(self.looks) < 2:
            return pd.DataFrame()
        results = load_results(self.folder)
        own_runs = (run for run in results.runs if run.path == f"runs/{run.key}")  # not those below
        table = changes(replace(results, runs=tuple(own_runs))).drop(columns=["task", "_runs"])
        names = [watched.name for watched in self.sets]
        return table.set_index("probe", drop=False).loc[names].reset_index(drop=True)

    @property
    def verdicts(self) -> pd.DataFrame:
        """A row per probe: the verdict on the last look against the first one, as in `check`."""
        results = load_results(self.folder)
        systems = {
            (scores.model, scores.key.probe): System((scores,))
            for scores in scores_of(results, str(self.folder))
            if scores.path.startswith("runs/")  # not of folders below
        }
        name_before, name_after = (
            f"{self._name}@step{look.step}" for look in (self.looks[0], self.looks[-1])
        )
        pairs = [
            pair_of(
                systems[name_before, watched.name],
                systems[name_after, watched.name],
                name_before,
                name_after,
            )
            for watched in self.sets
        ]
        return verdicts_on(pairs, self.margin)

    def write_changes(self) -> None:
        """Write `changes` as a table in the folder, and print the verdicts, if they are wanted.

        What fails only warns: the model is trained.
        """
        try:
            write_text_atomic(self.folder / CHANGES, self.changes.to_csv(index=False))
            if self.check and len(self.looks) > 1:
                print(*lines(self.verdicts), sep="\n")
        except Exception as error:
            warnings.warn(f"probelight: {self.folder / CHANGES}: {error}", stacklevel=2)


def _loaded_sets(entries: Sequence[Any]) -> list[LoadedSet]:
    """Return the sets of probes; items in memory are called items, items2, ..."""
    sets: list[LoadedSet] = []
    num_unnamed = 0
    for entry in entries:
        probe, split = entry, ""
        if is_items(entry):
            num_unnamed += 1
            probe = load_items(entry)
            name = f"items{num_unnamed if num_unnamed > 1 else ''}"
            probe = replace(probe, config=replace(probe.config, name=name))
        elif isinstance(entry, str | Path):
            probe, split = load_entry(entry)
        elif not isinstance(entry, ProbeData):
            raise UsageError(
                f"probes: {type(entry).__name__} is not a name, a file, a list of dicts, a table "
                "or what probelight.load_probe returns"
            )
        sets.append(LoadedSet(probe.config.name, split, probe))
    return sets


def _accuracy(record: RunRecord) -> float:
    return next(row.value for row in record.rows if row.metric == "accuracy")
