"""Which rows a fit leaves of what it logged."""

from __future__ import annotations

import math

from probelight.protocols.cli.lightning import validation_rows
from probelight.results.row import Row

LOGGED = [
    (3, "0", "val/accuracy", 0.7),
    (3, "0", "val/loss", 0.4),
    (3, "0", "val/f1", 0.1),
    (4, "1", "train/loss", 0.2),
    (7, "1", "val/accuracy", 0.7),
    (7, "1", "val/loss", 0.3),
    (11, "2", "val/accuracy", 0.6),
    (11, "2", "val/loss", 0.5),
]


def test_each_metric_of_the_validation_has_its_last_and_its_best_value() -> None:
    scores = {"val/accuracy": 0.6, "val/loss": 0.5, "val/f1": 0.2, "train/loss": 0.2}
    rows = list(validation_rows(Row(protocol="fit", split="val"), scores, LOGGED))
    assert [(row.metric, row.extra, row.value, row.epoch) for row in rows] == [
        ("accuracy", "last", 0.6, 3),
        ("accuracy", "best", 0.7, 1),  # the first of equal ones
        ("loss", "last", 0.5, 3),
        ("loss", "best", 0.3, 2),
        ("f1", "last", 0.2, 1),  # nobody knows which value is better
    ]
    assert {row.split for row in rows} == {"val"}


def test_without_a_log_there_is_the_last_value_alone_and_no_nan() -> None:
    rows = list(validation_rows(Row(), {"val/accuracy": 0.5, "val/loss": math.nan}, ()))
    assert [(row.metric, row.extra, row.value, row.epoch) for row in rows] == [
        ("accuracy", "last", 0.5, None)
    ]
