"""Runs of functions of the tests, by name and plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.spec import Job, ModelRunSpec, Trial


@dataclass(frozen=True, kw_only=True)
class RunnerSpec(ModelRunSpec):
    """A run of `runner`, a "module:function", with these values."""

    protocol = "test"

    label: str
    runner: str
    values: dict[str, Any] = field(default_factory=dict)
    setting: dict[str, Any] | None = None
    trial: Trial | None = None

    @property
    def name(self) -> str:
        return self.label

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        values = self.values if self.setting is None else {**self.values, "setting": self.setting}
        record: RunRecord = resolve_name(self.runner)(run, values, context)
        return record


def runner_job(label: str, values: dict[str, Any], runner: str, **estimates: Any) -> Job:
    names = ("threads", "setting", "precision", "matmul_precision")
    fields = {name: value for name, value in values.items() if name in names}
    spec = RunnerSpec(label=label, runner=runner, values=values, **fields)
    return Job(spec, **estimates)


def folder_of(job: Job, runs_dir: Any) -> RunFolder:
    return RunFolder(runs_dir, job.spec.name, job.spec.to_config())
