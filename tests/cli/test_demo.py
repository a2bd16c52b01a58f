from __future__ import annotations

from dataclasses import fields, replace

import pytest
import yaml

from probelight.cli.demo import DemoSettings, demo, plan_for
from probelight.commands.command import DECLARED
from probelight.io.errors import UsageError
from probelight.io.settings import settings_from
from tests.fixtures.checkout import ROOT


def test_the_shipped_config_says_all_that_is_run() -> None:
    path = DECLARED[demo].config
    assert path is not None
    plan = yaml.safe_load((ROOT / path).read_text())["plan"]
    assert set(plan) == {field.name for field in fields(DemoSettings)}


def test_a_model_with_a_plan_of_its_own_has_that_plan_alone() -> None:
    shipped = yaml.safe_load((ROOT / str(DECLARED[demo].config)).read_text())
    default = settings_from(DemoSettings, shipped["plan"])
    plan = plan_for("smollm2", default)
    assert plan.model.name == "smollm2"
    assert plan.model.kind == "causal"
    assert plan.probes == ["capitals", "continents", "elements", "arithmetic", "agreement"]
    assert plan.tuning.method == "lora"
    with pytest.raises(UsageError, match="--model smollm2 has a plan of its own"):
        plan_for("smollm2", replace(default, dose=100))
    # Any other model is put into the plan that there is.
    other = plan_for("dictionary-lm", replace(default, dose=100))
    assert (other.dose, other.model.name_or_path) == (100, "dictionary-lm")
    assert other.probes == default.probes
