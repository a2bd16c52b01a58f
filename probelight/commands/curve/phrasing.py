"""Which phrasing of a probe is kept: the best by mean zero-shot accuracy over the models.

Talmor 2020, section 3.1. It is chosen on train rows, so that the rows measured had no say, and all
phrasings are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from probelight.commands.curve.settings import PROTOCOL
from probelight.evaluation.evaluate import evaluate
from probelight.evaluation.scorers import answered_by, loaded_scorer, model_row
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.probes.controls import STANDARD
from probelight.probes.source import ProbeData, load_probe
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, check_data, checksums
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.run import run_jobs
from probelight.runs.spec import Job, ModelRunSpec


@dataclass(frozen=True, kw_only=True)
class PhrasingSpec(ModelRunSpec):
    """One phrasing, answered by one model."""

    protocol = PROTOCOL

    phrasing: str  # its name, or the path of a config
    probe: str
    model: ModelSettings
    split: str
    data_sha256: tuple[str, ...]

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"phrasing-{self.probe}-{self.model.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Score one phrasing by one model, zero-shot."""
        data = load_phrasing(context, self.phrasing, self.split)
        check_data(self.data_sha256, [data])
        scorer = loaded_scorer(context, self.model, "mc_mlm")
        evaluation = evaluate(scorer, data, trainer=context.trainer)
        row = replace(
            model_row(self.model),
            protocol=PROTOCOL,
            probe=self.probe,
            control=STANDARD,
            mode=evaluation.mode,
            num_train=0,
            split=self.split,
        )
        write_predictions(run, evaluation.lines())
        rows, notices = evaluation.accuracy_rows(row), evaluation.accuracy_notices
        return answered_by(evaluation.record(row, rows, notices), self.model, scorer)


def best_phrasing(
    folder: CommandFolder,
    names: Sequence[str],
    models: Sequence[ModelSettings],
    split: str,
    context: RunContext,
) -> str:
    """Return the phrasing with the best mean accuracy on train rows; the first one on a tie.

    Random weights and baselines know no phrasing and have no say.
    """
    judges = [m for m in models if model_row(m).role == "model"]
    for name in names:
        probe = load_phrasing(context, name, split).config
        if probe.setup != "mc_mlm":
            raise UsageError(f"--phrasings: {probe.name} is not an mc_mlm probe")
    if not judges:
        raise UsageError("--phrasings: none of the models is a pre-trained language model")
    specs = []
    for model in judges:
        for name in names:
            data = load_phrasing(context, name, split)
            spec = PhrasingSpec(
                phrasing=name,
                probe=data.config.name,
                model=model,
                split=split,
                data_sha256=checksums(data),
            ).under(context.trainer)
            specs.append(spec)
    run_jobs([Job(spec) for spec in specs], folder, context)
    scores: dict[str, list[float]] = {name: [] for name in names}
    for spec in specs:
        record = folder.result(spec.key)
        assert record is not None
        scores[spec.phrasing].append(record.rows[0].value)
    best = max(names, key=lambda name: fmean(scores[name]))
    for name in names:
        suffix = " (kept)" if name == best else ""
        print(f"{name}: {fmean(scores[name]):.1%} zero-shot on {split} rows{suffix}")
    return best


@cached(most=None)
def load_phrasing(context: RunContext, name: str, split: str) -> ProbeData:
    """Return the rows of a phrasing."""
    return load_probe(name, split, mirror=context.mirror)
