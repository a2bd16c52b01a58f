"""The curves of several models and probes, checked as a whole before the first is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.context import RunContext
from lightning_modules.base import ChoiceModule
from probes.catalog import ProbeConfig
from protocols.curve.data import CurveData
from protocols.curve.runs import CurveRuns
from protocols.curve.settings import FULL, CurveSettings, ProbeOptions
from protocols.engine.kinds import kind_of
from protocols.engine.settings import ModelSettings
from results.run_folder import CommandFolder
from storage.errors import UsageError

DEFAULT_OPTIONS = ProbeOptions()


def trace_curves(
    folder: CommandFolder,
    probes: Sequence[str | ProbeConfig],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    context: RunContext,
    options: ProbeOptions = DEFAULT_OPTIONS,
) -> None:
    """Adds the curves of several models and probes to a command's folder.

    Every row is put under every control before anything is computed, and every model is asked
    whether it reads the candidates: what does not fit stops the command at once. results.csv is
    rewritten behind each (model, probe).
    """
    runs = CurveRuns(folder, settings, context, options)
    sets = [runs.load(name, models) for name in probes]
    if options.first_stage and all(data.setup != "mc_qa" for data in sets):
        raise UsageError("--first_stage: none of the probes is posed as questions; see --setup")
    for model in models:
        for data in sets:
            if modes := modes_of(model, data, settings):
                runs.check(model, data, modes)  # said before hours of training
    for model in models:
        module: ChoiceModule | None = None
        for data in sets:
            if modes := modes_of(model, data, settings):
                if modes == [FULL]:
                    runs.full(model, data)
                else:
                    module = runs.frozen(model, data, modes, module)
                folder.write_results()
            else:
                print(f"{data.config.name}: {model.label} does not answer {data.setup} probes")


def modes_of(model: ModelSettings, data: CurveData, settings: CurveSettings) -> list[Any]:
    """How a model is trained on a probe; nothing where it cannot answer it."""
    trained = kind_of(model).trained.get(data.setup)
    if trained is None:
        return []
    return [mode for mode in settings.modes if mode in trained.modes] if trained.modes else [FULL]
