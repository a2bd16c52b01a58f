"""What the numbers of `train.py fit` may be, those that Lightning takes as words among them."""

from __future__ import annotations

from typing import Any

import pytest

from probelight.io.ranges import RangeError, check_settings
from probelight.protocols.cli.fit_ranges import lightning_options


@pytest.mark.parametrize(
    "settings",
    [
        {"trainer": {"max_epochs": -1, "max_steps": -1, "devices": -1, "num_sanity_val_steps": -1}},
        {"trainer": {"devices": "auto", "limit_val_batches": 0.25, "gradient_clip_val": None}},
        {"trainer": {"devices": [0, 1], "min_epochs": None, "val_check_interval": 0.5}},
        {"trainer": None, "seed_everything": True, "checkpoint_every": 1},
    ],
)
def test_what_lightning_takes_is_taken(settings: dict[str, Any]) -> None:
    check_settings(lightning_options, settings, "--")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"trainer": {"max_epochs": 0}}, "--trainer.max_epochs 0: give -1 (no limit) or a number "),
        ({"trainer": {"num_sanity_val_steps": -2}}, "steps -2: give -1 (all) or a number from 0"),
        ({"trainer": {"val_check_interval": 0}}, "val_check_interval 0: give a number more than 0"),
        ({"checkpoint_every": 0}, "--checkpoint_every 0: give a number from 1"),
        ({"seed_everything": -1}, "--seed_everything -1: give a number from 0"),
    ],
)
def test_what_it_would_find_late_is_refused_by_name(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(RangeError) as refused:
        check_settings(lightning_options, settings, "--")
    assert said in str(refused.value)
