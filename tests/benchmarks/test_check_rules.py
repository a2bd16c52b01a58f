from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.check_rules import RULES, named_in, simulate


def test_rules_are_simulated_on_the_same_scores() -> None:
    rows = simulate(3)
    assert [(row["items"], row["loss"]) for row in rows[:4]] == [
        (20, 0),
        (20, 0.1),
        (20, 0.2),
        (100, 0),
    ]
    assert all(0 <= row[f"false, {name}"] <= 1 for row in rows for name in RULES)
    # With 20 items there are no intervals, so nothing is claimed.
    assert all(row["false, probelight check"] == 0 for row in rows[:3])


def test_each_rule_names_what_is_beyond_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = [
        {"probe": name, "verdict": verdict, "before": {"value": old}, "after": {"value": new}}
        for name, verdict, old, new in (
            ("a", "forgot", 0.5, 0.35),
            ("b", "kept", 0.5, 0.45),
            ("c", "kept", 0.5, 0.49),
        )
    ]
    check = {"models": ["base", "tuned"], "probes": probes}
    (tmp_path / "check.json").write_text(json.dumps(check))
    named_in(tmp_path)
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split("names ")[1] for line in lines] == [
        "a 50.0 to 35.0",
        "a 50.0 to 35.0",
        "a 50.0 to 35.0, b 50.0 to 45.0",
    ]
