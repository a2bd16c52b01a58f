from __future__ import annotations

from dataclasses import fields

import yaml

from probelight.cli.demo import DemoSettings, demo
from probelight.commands.command import DECLARED
from tests.fixtures.checkout import ROOT


def test_the_shipped_config_says_all_that_is_run() -> None:
    path = DECLARED[demo].config
    assert path is not None
    plan = yaml.safe_load((ROOT / path).read_text())["plan"]
    assert set(plan) == {field.name for field in fields(DemoSettings)}
