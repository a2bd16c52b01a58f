"""The rows of a set, where a model was given empty choices that compete."""

from __future__ import annotations

import pytest

from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.zero_shot.measures import zero_shot_rows
from probelight.results.row import Row


def test_an_empty_choice_that_wins_is_an_answer_without_a_text() -> None:
    """Two candidates and three empty choices; the right one, the wrong one, and two empty ones."""
    records = tuple(Record(str(i), f"{i} [MASK]?", ("more", "less"), 0) for i in range(4))
    config = ProbeConfig("p", "mc_qa", 2, 0.5, candidates=("more", "less"))
    scores = [[float(place == best) for place in range(5)] for best in (0, 1, 4, 4)]
    said = Predictions("p", records, scores)
    rows = zero_shot_rows(said, ProbeData(config, records, (), ()), Row())
    found = {(row.metric, row.subset_text): row.value for row in rows}
    assert found["accuracy", ""] == 0.25
    assert (found["chance", ""], found["floor", ""]) == (pytest.approx(0.2), 0.5)
    shares = {text: value for (metric, text), value in found.items() if metric == "predicted_share"}
    assert {text.split("'")[-1]: value for text, value in shares.items()} == shares
    assert sorted(shares.values()) == [0.25, 0.25, 0.5]
    assert any("choice 5" in text for text in shares)
