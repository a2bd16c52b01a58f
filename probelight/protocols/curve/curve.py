"""What the curves of a command are asked to be, and one of them: a model on a probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from probelight.io.ranges import settings_from
from probelight.lightning_modules.modes import HeadMode
from probelight.probes.controls import CONTROLS, STANDARD
from probelight.probes.source import ProbeData
from probelight.probes.splits import group_of
from probelight.protocols.curve.data import CurveData, rows_of, traced
from probelight.protocols.curve.models import nonsense_for, only_posed
from probelight.protocols.curve.settings import FULL, CurveSettings, ProbeOptions
from probelight.protocols.curve.stage import FirstStage, load_facts
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.context import RunContext

Mode = HeadMode | Literal["full"]


@dataclass(frozen=True)
class Asked:
    """What all curves of a command have in common.

    Attributes:
        models: The models compared: they share meaningless words, and rows that all can pose.
        settings: Points and trainings.
        options: How probes are posed.
    """

    models: tuple[ModelSettings, ...]
    settings: CurveSettings
    options: ProbeOptions = field(default_factory=ProbeOptions)

    def config(self) -> dict[str, Any]:
        """As plain values."""
        models = [model.config() for model in self.models]
        return {
            "models": models,
            "settings": asdict(self.settings),
            "options": asdict(self.options),
        }

    @staticmethod
    def of(config: Mapping[str, Any]) -> Asked:
        """What `config` said."""
        return Asked(
            tuple(ModelSettings(**model) for model in config["models"]),
            settings_from(CurveSettings, config["settings"]),
            ProbeOptions(**config["options"]),
        )


@dataclass(frozen=True)
class Curve:
    """One model on one probe.

    Attributes:
        asked: What it shares with the other curves of its command.
        probe: What the probe is loaded by: its name, or the path of a config.
        model: The model.
        context: What its jobs run under.
    """

    asked: Asked
    probe: str
    model: ModelSettings
    context: RunContext

    def config(self) -> dict[str, Any]:
        """As plain values, but for the model, which a run's config has anyway."""
        return {"probe": self.probe, **self.asked.config()}

    @staticmethod
    def of(config: Mapping[str, Any], context: RunContext) -> Curve:
        """The curve of a run, by the run's config."""
        said = config["curve"]
        return Curve(Asked.of(said), said["probe"], ModelSettings(**config["model"]), context)

    @property
    def settings(self) -> CurveSettings:
        """Points and trainings."""
        return self.asked.settings

    @property
    def fit(self) -> FitSettings:
        """How the whole network, or a baseline, is trained."""
        return self.settings.fit_of(self.model.kind)

    @cached_property
    def modes(self) -> list[Mode]:
        """How the model is trained on the probe; nothing where it cannot answer it."""
        traced = kind_of(self.model).modes(self.data.setup)
        if traced is None:
            return []
        own: list[Mode] = [mode for mode in self.settings.modes if mode in traced]
        return own if traced else [FULL]

    @property
    def sizes(self) -> list[int]:
        """N of the points, see `probelight.protocols.curve.data.traced`."""
        return list(self.rows.sizes)

    @property
    def data(self) -> CurveData:
        """The probe's rows, the same for all models.

        Raises:
            ConfigError: If the probe declares nothing that a control could go by.
            NonsenseError: If no meaningless words suit all models.
            RecordError: If a control does not fit a row.
        """
        return self.context.remembered(f"curve data {self.probe}", self.asked, self._load)

    @cached_property
    def rows(self) -> CurveData:
        """The same with this model's points and held-out rows.

        Raises:
            UsageError: If no point fits the rows, or the groups cannot be divided so.
        """
        others = [
            model
            for model in self.asked.models
            if kind_of(model).modes(self.data.setup) is not None
        ]
        return traced(self.data, self.settings, [self.model, *others])

    @property
    def stage(self) -> FirstStage | None:
        """What the model is trained on before; questions alone have a first stage."""
        facts = self._facts
        if facts is None or self.data.setup != "mc_qa":
            return None
        # Without patience: no row of the facts is held out.
        return FirstStage(facts, replace(self.fit, patience=None), self.settings.seeds[0])

    @property
    def _facts(self) -> ProbeData | None:
        name, mirror = self.asked.options.first_stage, self.context.mirror
        if name is None:
            return None
        return self.context.remembered("facts", name, lambda: load_facts(name, mirror))

    def _load(self) -> CurveData:
        models, controls = self.asked.models, self.settings.controls
        data = rows_of(self.probe, self.settings, self.asked.options, self.context)
        drawn = [CONTROLS[name] for name in controls if name != STANDARD]
        if any(control.replaces == "the candidates" for control in drawn):
            data = replace(data, nonsense=nonsense_for(data.config, models))
        for control in controls:
            data.under(control)
        data = only_posed(data, models, controls)
        if self._facts is None or data.setup != "mc_qa":
            return data
        known = {group_of(record, "stem") for record in self._facts.records}
        shared = sum(group_of(record, "stem") in known for record in data.evaluation)
        said = f"{shared} of {len(data.evaluation)} measured questions are in the first stage too"
        return replace(data, notices=(*data.notices, *[said] * bool(shared)))
