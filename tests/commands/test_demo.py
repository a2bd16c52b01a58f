from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from probelight.commands.command import DECLARED
from probelight.commands.demo import DemoSettings, demo
from tests.fixtures.checkout import ROOT
from tests.fixtures.tiny import Refused


def test_the_shipped_config_says_all_that_is_run() -> None:
    path = DECLARED[demo].config
    assert path is not None
    plan = yaml.safe_load((ROOT / path).read_text())["plan"]
    assert set(plan) == {field.name for field in fields(DemoSettings)}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--plan.model.kind=esim", "ESIM (word_vectors)"),
        ("--plan.probes=[age_smal]", "there is no probe 'age_smal' (did you mean 'age_small'?)"),
    ],
)
def test_what_cannot_be_scored_before_training_is_refused_before_anything_is_computed(
    option: str, said: str, tmp_path: Path, refused: Refused
) -> None:
    assert said in refused(["demo", option, f"--output_dir={tmp_path / 'out'}"])
    assert not list(tmp_path.glob("out/runs/*"))
