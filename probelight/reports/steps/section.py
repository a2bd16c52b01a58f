"""What the report says of a model's pre-training checkpoints."""

from __future__ import annotations

from probelight.reports.kit.section import Section
from probelight.reports.steps.tables import steps_tables

STEPS = Section(
    name="steps",
    title="By training step",
    tables=(steps_tables,),
    figures=("probelight.reports.steps.figures:steps_figures",),
    printed={"zero_shot": (steps_tables,), "diagnose": (steps_tables,)},
)
