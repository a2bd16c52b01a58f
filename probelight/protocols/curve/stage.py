"""What a model is trained on before a curve: the single-hop facts of encyclopedic composition."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from probelight.callbacks.aggregate_checkpoint import FinalCheckpoint
from probelight.io.errors import UsageError
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.controls import STANDARD, control_named
from probelight.probes.source import ProbeData, load_file, load_probe
from probelight.probes.splits import groups_of
from probelight.protocols.curve.data import CurveData
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import module_for, saved_module
from probelight.protocols.engine.predictions import Predictions, grouped_row
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import data_files
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

PROTOCOL = "curve_first_stage"


@dataclass(frozen=True)
class FirstStage:
    """The facts that a model learns before a curve (Talmor 2020, section 4.5).

    Attributes:
        facts: The questions, all of which are trained on.
        settings: How.
        seed: Seeds head, order and dropout; one model is shared by all points.
    """

    facts: ProbeData
    settings: FitSettings
    seed: int

    def control_of(self, control: str) -> str:
        """The control that the facts themselves are put under: none where they declare none."""
        if control == STANDARD or not control_named(control).fits(self.facts.config):
            return STANDARD
        return control


def load_facts(name: str, mirror: str | None) -> ProbeData:
    """The questions of a first stage: a file, or a probe's split as `name:split`.

    Raises:
        UsageError: If they are not multiple-choice questions.
    """
    if Path(name).is_file() and Path(name).suffix not in {".yaml", ".yml"}:
        return load_file(name, "mc_qa")
    probe, _, split = name.partition(":")
    facts = load_probe(probe, split or "train", mirror=mirror)
    if facts.config.setup != "mc_qa":
        raise UsageError(f"--first_stage {name}: it must be questions with answers (mc_qa)")
    return facts


def train_facts(
    run: RunFolder,
    model: ModelSettings,
    stage: FirstStage,
    control: str,
    context: RunContext,
) -> None:
    """Trains a model on the facts, as a control of the facts has them, and leaves it."""
    began = time.perf_counter()
    settings, config = stage.settings, stage.facts.config
    rows = CurveData(
        config, config, "mc_qa", stage.facts.records, (), "train", "all facts", (stage.facts,)
    )
    facts = rows.controlled(control, rows.train, config)
    module = module_for(
        model,
        "mc_qa",
        learning_rate=settings.learning_rate,
        seed=stage.seed,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
    )
    keep = FinalCheckpoint(run.best_dir, always=True)
    plan = FitPlan(settings, stage.seed, [keep], f"{config.name}: facts")
    problems, encoded = fit_choices(module, facts, {}, run, plan, context)
    module = saved_module(run.best_dir)
    said = predict(TrainedScorer(module), {"facts": facts}, context.trainer)["facts"]
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model.label,
            probe=config.name,
            rows=(_train_row(said, model, stage, control),),
            counts={"train": len(facts)},
            notices=(*problems, *encoded, *stage.facts.notices),
            seeds=(stage.seed,),
            data=data_files([stage.facts]),
            source=source_of(model),
            model_sha256=model_fingerprint(module),
            seconds=round(time.perf_counter() - began, 3),
        )
    )


def _train_row(said: Predictions, model: ModelSettings, stage: FirstStage, control: str) -> Row:
    config = stage.facts.config
    row = replace(
        model.row,
        protocol=PROTOCOL,
        probe=config.name,
        control=control,
        mode="full",
        num_train=len(said.records),
        learning_rate=stage.settings.learning_rate,
        epoch=stage.settings.epochs,
        seed=stage.seed,
        metric="train_accuracy",
    )
    return grouped_row(said.credit, groups_of(said.records, config.group_by), row)
