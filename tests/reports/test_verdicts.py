"""Verdicts as people read them: lines, names of rows, a comment, plain values."""

from __future__ import annotations

from typing import Any

import pandas as pd

from probelight.reports import verdicts

NUMBERS = {
    **{"net_loss_ci_low": -0.02, "net_loss_ci_high": 0.05, "loss_bound": 0.04},
    **{"above_chance_ci_low": 0.1, "least_forgetting_ci_low": -0.1, "net_loss_p": 0.4},
    **{"lost": 12.0, "gained": 7.5, "num_items": 300, "num_groups": 300, "margin": 0.05},
    **{"accuracy_before": 0.5, "accuracy": 0.485, "net_loss": 0.015, "split": "test"},
    **{"smallest_loss": 0.06, "_family": ""},
}
LOST = {"net_loss_ci_low": 0.1, "net_loss_ci_high": 0.2, "net_loss_p": 1e-6, "loss_bound": 0.19}


def judged(*rows: dict[str, Any]) -> pd.DataFrame:
    common = {"model": "tuned", "dose": None, "extra": "", "control": ""} | NUMBERS
    return verdicts.judged(pd.DataFrame([common | row for row in rows], dtype=object))


def test_lines_are_columns_and_end_with_the_mean() -> None:
    rows = judged(
        {"set": "capitals"} | LOST | {"accuracy": 0.35, "net_loss": 0.15},
        {"set": "arithmetic"},
    )
    assert verdicts.lines(rows) == [
        "✗ forgot  capitals    50.0 → 35.0  −15.0 (−20.0 to −10.0): 12 lost, 7.5 gained of 300",
        "✓ kept    arithmetic  50.0 → 48.5   −1.5 (−5.0 to +2.0): within 5 points",
        # The ends are 5 and 3.5 points away below, 5 and 3.5 above: 3.05 of their mean.
        "          all probes  50.0 → 41.8   −8.2 (−11.3 to −5.2)",
    ]
    assert len(verdicts.lines(rows, has_mean=False)) == 2
    assert verdicts.headline(rows) == "Of 2 probes: forgot 1, kept 1."


def test_what_is_kept_may_be_more_than_before() -> None:
    rows = judged({"set": "a", "net_loss": -0.08, "net_loss_ci_low": -0.16, "accuracy": 0.58})
    assert verdicts.lines(rows)[0].endswith(": less than 5 points lost")


def test_rows_of_one_set_are_told_apart_by_what_differs() -> None:
    rows = judged(
        {"set": "facts", "dose": 200},
        {"set": "facts", "dose": 200, "extra": "x1"},
        {"set": "facts", "dose": 200, "control": "choice_only"},
    )
    assert verdicts.names_of(rows) == ["facts", "facts, replay x1", "facts, choice only"]
    both = judged({"set": "my_probe"}, {"set": "my_probe", "model": "other"})
    assert verdicts.names_of(both) == ["my_probe, tuned", "my_probe, other"]


def test_families_are_judged_apart() -> None:
    one = {"set": "a", "net_loss_p": 0.03, "net_loss_ci_low": 0.001}
    alone = judged(one, {"set": "b", "_family": "another folder"})
    assert [*alone.verdict] == ["forgot", "kept"]
    together = judged(one, {"set": "b"})
    assert [*together.verdict] == ["kept", "kept"]
    assert together.adjusted_p[0] == 0.06


def test_missing_numbers_are_null_and_no_interval_is_none() -> None:
    few = {name: None for name in NUMBERS if name.endswith(("_low", "_high", "_p", "bound"))}
    rows = judged({"set": "a", "num_groups": 12, **few})
    assert verdicts.lines(rows) == ["? cannot tell  a  50.0 → 48.5  −1.5: fewer than 40 groups"]
    [values] = verdicts.as_values(rows)
    assert values["p"] is None
    assert values["change"] == {"value": -0.015, "ci_low": None, "ci_high": None}
    assert values["margin_change"] is None
    assert values["items_needed"] is None
    assert "| ? cannot tell | a | 50.0 | 48.5 | −1.5 |" in verdicts.markdown(rows, "x → y")
