"""What the released hypernymy gives away, by counts of a plain loop over its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.build.giveaways.surface import WORDFREQ
from probelight.protocols.audit.counted import part_rows, rule_rows
from probelight.protocols.audit.data import load_audit
from probelight.protocols.audit.settings import AuditSettings
from probelight.results.row import Row


@pytest.mark.slow
@pytest.mark.paper_data
def test_hypernymy(data_mirror: Path) -> None:
    pytest.importorskip("wordfreq")
    data = load_audit("hypernymy", AuditSettings(), str(data_mirror))
    rules = {row.mode: row for row in rule_rows(data, WORDFREQ, Row()) if row.split == "test"}
    assert rules["the longest answer"].value == pytest.approx(0.24622892635314997)
    assert rules["the commonest words"].value == pytest.approx(0.37244897959183676)
    assert rules["the rarest words"].value == pytest.approx(0.05368234250221828)
    words = part_rows(data, "word", Row())
    told = {(row.subset_text, row.metric): row.value for row in words}
    assert told["word=white", "pmi"] == pytest.approx(-4.217230716220668)
    assert told["word=white", "right_share"] == 0.0
    assert told["word=concrete", "right_share"] == pytest.approx(55 / 67)
