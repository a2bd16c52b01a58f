"""The runs of learning curves: which points there are, and the missing ones one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.progress import track

from jobs.context import RunContext, TrainerSettings
from lightning_modules.base import ChoiceModule
from lightning_modules.modes import HeadMode
from probes.catalog import ProbeConfig
from probes.controls import CONTROLS, STANDARD
from probes.splits import group_of
from protocols.curve.data import CurveData, load_curve_data
from protocols.curve.full import (
    FullPoint,
    early_stopping,
    forget_states,
    full_points,
    hold_out,
    run_point,
)
from protocols.curve.models import nonsense_for, only_posed
from protocols.curve.probe import CurveProbe, refuse_unposed
from protocols.curve.rows import Measurement, Point, finish_run
from protocols.curve.settings import FULL, PROTOCOL, CurveSettings, ProbeOptions
from protocols.curve.stage import FirstStage, first_stage_model, load_facts
from protocols.engine.kinds import kind_of
from protocols.engine.model_source import source_of
from protocols.engine.models import check_module, check_scorer, module_for
from protocols.engine.settings import ModelSettings
from results.run_folder import CommandFolder, RunFolder


@dataclass
class CurveRuns:
    """The runs of a command's curves: which there are, which are missing, and how they are made.

    Attributes:
        folder: The command's folder.
        settings: The curves.
        context: What the runs are made under; Weights & Biases is for fine-tuned points.
        options: How probes are posed.
    """

    folder: CommandFolder
    settings: CurveSettings
    context: RunContext
    options: ProbeOptions

    def __post_init__(self) -> None:
        name = self.options.first_stage
        self.facts = load_facts(name, self.context.mirror) if name else None

    def load(self, name: str | ProbeConfig, models: Sequence[ModelSettings]) -> CurveData:
        """A probe's rows, with one mapping of meaningless words for all models."""
        data = load_curve_data(name, self.settings, self.options, self.context.mirror)
        controls = [CONTROLS[own] for own in self.settings.controls if own != STANDARD]
        if any(control.replaces == "the candidates" for control in controls):
            data = replace(data, nonsense=nonsense_for(data.config, models))
        for control in self.settings.controls:
            data.under(control)
        data = only_posed(data, models, self.settings.controls)
        if self.facts is None or data.setup != "mc_qa":
            return data
        known = {group_of(record, "stem") for record in self.facts.records}
        shared = sum(group_of(record, "stem") in known for record in data.evaluation)
        said = f"{shared} of {len(data.evaluation)} measured questions are in the first stage too"
        return replace(data, notices=(*data.notices, *[said] * bool(shared)))

    def frozen(
        self,
        model: ModelSettings,
        data: CurveData,
        modes: Sequence[HeadMode],
        module: ChoiceModule | None,
    ) -> ChoiceModule | None:
        """Heads on a frozen encoder, one run a (mode, N); returns the module for the next probe."""
        rows = self.rows(model, data)
        runs = self._frozen_runs(model, rows, modes)
        missing = [point for point, run in runs.items() if run.result() is None]
        if not missing:
            print(f"{data.config.name}: curve of {model.label} complete")
            return module
        module = module or self._drawn(model, self.settings.seeds[0])
        redraw = partial(self._drawn, model) if model.random_weights else None
        probe = CurveProbe(module, rows, self.settings, self.context.trainer, model.kind, redraw)
        for mode, size in self._progress(missing, model, rows):
            start = time.perf_counter()
            measured = probe.point(mode, size)
            stopping = self._stopping(model, rows, measured) if size else None
            finish_run(
                runs[mode, size],
                rows,
                Point(model, mode, size, self._rate(model, mode) if size else None),
                measured,
                start,
                with_levels=size == 0,
                notices=[*probe.notices, *([f"early stopping: {stopping}"] if stopping else [])],
                facts={
                    "early_stopping": stopping,
                    **source_of(model),
                    **_weights(probe.fingerprints),
                },
            )
        return module

    def check(self, model: ModelSettings, data: CurveData, modes: Sequence[Any]) -> None:
        """Refuses what a model, if anything is missing of it, could not be trained and asked with.

        Raises:
            UsageError: If the probe's groups cannot be divided as early stopping needs it.
            PretrainedError: If the model cannot be loaded.
            RecordError: If it does not know a candidate.
        """
        rows = self.rows(model, data)
        if not kind_of(model).has_checkpoint:
            return
        full = modes == [FULL]
        runs: Mapping[Any, RunFolder] = (
            self._full_runs(model, data, rows) if full else self._frozen_runs(model, rows, modes)
        )
        if all(run.result() is not None for run in runs.values()):
            return
        if full:
            check_module(model, "mc_qa")
        else:
            parts = [part for c in self.settings.controls for part in rows.under(c)]
            check_scorer(model, "mc_mlm", parts, refuse_unposed)

    def _sizes(self, rows: CurveData) -> list[int]:
        return [size for size in self.settings.sizes if size <= len(rows.train)]

    def _frozen_runs(
        self, model: ModelSettings, rows: CurveData, modes: Sequence[HeadMode]
    ) -> dict[tuple[HeadMode, int], RunFolder]:
        points = [(mode, size) for mode in modes for size in (0, *self._sizes(rows))]
        return {point: self._frozen_run(model, rows, *point) for point in points}

    def _full_runs(
        self, model: ModelSettings, data: CurveData, rows: CurveData
    ) -> dict[FullPoint, RunFolder]:
        points = full_points(self._sizes(rows), self.settings.controls, self.settings.seeds)
        return {point: self._full_run(model, data, point) for point in points}

    def rows(self, model: ModelSettings, data: CurveData) -> CurveData:
        """A probe's rows with those held out that stop a model's training, where some do.

        Raises:
            UsageError: If the probe's groups cannot be divided so.
        """
        if data.setup == "mc_mlm" and kind_of(model).is_pretrained:
            return data  # heads on a frozen encoder are trained for a number of epochs
        fit = self.settings.fit_of(model.kind)
        return hold_out(data, fit, self.settings.split_seed, self.settings.sizes)

    def _drawn(self, model: ModelSettings, seed: int) -> ChoiceModule:
        """The module, its random weights drawn from a seed where it has some."""
        device = device_of(self.context.trainer)
        return module_for(model, "mc_mlm", mode="mlp", seed=seed).to(device)

    def _rate(self, model: ModelSettings, mode: HeadMode) -> float:
        if kind_of(model).is_pretrained:
            return self.settings.head_fit(mode).learning_rate
        return self.settings.fit_of(model.kind).learning_rate

    def _stopping(
        self, model: ModelSettings, rows: CurveData, measured: Sequence[Measurement]
    ) -> str | None:
        if kind_of(model).is_pretrained:
            return None
        epochs = [one.epoch for one in measured]
        return early_stopping(rows, self.settings.fit_of(model.kind), epochs)

    def full(self, model: ModelSettings, data: CurveData) -> None:
        """The whole network, one run a (N, control, seed)."""
        settings = self.settings.fit_of(model.kind)
        rows = self.rows(model, data)
        runs = self._full_runs(model, data, rows)
        missing = [point for point, run in runs.items() if run.result() is None]
        for point, run in runs.items():
            if point not in missing:
                forget_states(run)
        if not missing:
            print(f"{data.config.name}: curve of {model.label} complete")
            return
        trainer = replace(self.context.trainer, progress_bar=False)
        quiet = replace(self.context, trainer=trainer)
        for point in self._progress(missing, model, data):
            start = self._start(model, point.control, quiet)
            run_point(runs[point], model, rows, point, settings, start, quiet)

    def _start(self, model: ModelSettings, control: str, context: RunContext) -> Path | None:
        stage = self._stage(model)
        if stage is None:
            return None
        return first_stage_model(self.folder, model, stage, control, context)

    def _stage(self, model: ModelSettings) -> FirstStage | None:
        if self.facts is None:
            return None
        # Without patience: no row of the facts is held out.
        settings = replace(self.settings.fit_of(model.kind), patience=None)
        return FirstStage(self.facts, settings, self.settings.seeds[0])

    def _progress(self, points: Sequence[Any], model: ModelSettings, data: CurveData) -> Any:
        description = f"{data.config.name}, {model.label}"
        return track(
            points, description, transient=True, disable=not self.context.trainer.progress_bar
        )

    def _frozen_run(
        self, model: ModelSettings, data: CurveData, mode: HeadMode, size: int
    ) -> RunFolder:
        settings = self.settings
        config = {
            **self._common(model, data),
            "mode": mode,
            "num_train": size,
            "seeds": settings.seeds,
            "controls": settings.controls,
        }
        if kind_of(model).is_pretrained:
            config |= asdict(settings.head_fit(mode))
        else:
            config["fit"] = asdict(settings.fit_of(model.kind))
        if model.random_weights:
            config["weights"] = "drawn from each seed"
        return self.folder.run(f"curve-{data.config.name}-{mode}-{size}-{model.label}", config)

    def _full_run(self, model: ModelSettings, data: CurveData, point: FullPoint) -> RunFolder:
        stage = self._stage(model)
        config = {
            **self._common(model, data),
            **asdict(point),
            "mode": FULL,
            "fit": asdict(self.settings.fit_of(model.kind)),
            "precision": self.context.trainer.precision,
        }
        if stage is not None:
            config["first_stage"] = {
                "facts": [file.sha256 for file in stage.facts.files],
                "control": stage.control_of(point.control),
                "seed": stage.seed,
            }
        return self.folder.run(f"curve-{data.config.name}-{point.name}-{model.label}", config)

    def _common(self, model: ModelSettings, data: CurveData) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "model": model.config(),
            "probe": data.config.name,
            "setup": data.setup,
            "train": data.train_said,
            "split": data.split,
            "split_seed": self.settings.split_seed,
            "nonsense": dict(data.nonsense),
            "substitutes": dict(data.substitutes) if data.config.key_words else {},
            "arguments": {name: part.pattern for name, part in data.config.arguments.items()},
            "group_by": data.config.group_by,
            "data": [file.sha256 for part in data.files for file in part.files],
            # Other models of the command can have left rows out.
            "rows": [len(data.train), len(data.evaluation)],
        }


def _weights(fingerprints: Mapping[int, str]) -> dict[str, Any]:
    """Checksums of the weights that a curve began with; of each seed where each has its own."""
    first, *others = fingerprints.values()
    by_seed = {str(seed): sha256 for seed, sha256 in fingerprints.items()}
    return {"model_sha256": first} | ({"model_sha256_by_seed": by_seed} if others else {})


def device_of(trainer: TrainerSettings) -> torch.device:
    """Where a frozen encoder and its heads run: one GPU if there is one, or the processor."""
    on_gpu = trainer.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available()
    return torch.device("cuda" if on_gpu else "cpu")
