"""Which finished runs answered a taxonomy probe, and of which stems the two concepts are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.probes.source import load_probe
from probelight.protocols.analyses.taxonomy import (
    RESULTS,
    WORDNET,
    entities_of,
    taxonomy_items,
    taxonomy_runs,
    wordnet_of,
)
from probelight.protocols.jobs.context import RunContext
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from tests.probes.tiny_wordnet import write_wordnet


def answered(folder: Path, name: str, protocol: str, probe: str) -> RunFolder:
    run = RunFolder(folder / "runs", name, {})
    run.write_lines("predictions.jsonl", [])
    row = Row(protocol=protocol, probe=probe, split="dev", metric="accuracy", value=0.5)
    run.finish(RunRecord(protocol=protocol, probe=probe, rows=(row,)))
    return run


def test_only_finished_runs_of_a_taxonomy_probe_are_measured(tmp_path: Path) -> None:
    runs = {
        name: answered(tmp_path / "some", name, protocol, probe)
        for name, protocol, probe in (
            ("zero", "zero_shot", "taxonomy_small"),
            ("curve", "curve", "taxonomy_small"),
            ("ages", "zero_shot", "age_small"),
            ("own", "zero_shot", "a-file-of-ones-own"),
            ("grid", "grid", "taxonomy_small"),
        )
    }
    RunFolder(tmp_path / "some" / "runs", "begun", {}).write_lines("predictions.jsonl", [])
    context = RunContext(paths={RESULTS: str(tmp_path)})
    found = [path for path, _ in taxonomy_runs(context)]
    assert found == [runs["curve"].path, runs["zero"].path]
    assert [path for path, _ in taxonomy_runs(context, runs["zero"].key)] == [runs["zero"].path]


def test_the_two_concepts_of_a_stem_and_what_has_none() -> None:
    rows = (Row(split="dev"),)
    of_types = RunRecord(protocol="zero_shot", probe="taxonomy_small", rows=rows)
    items = taxonomy_items(of_types, RunContext())
    assert items is not None
    first = items.records[0]
    assert [word in first.stem for word in entities_of(items, first)] == [True, True]
    ages = load_probe("age_small", "dev")
    assert "type of" not in ages.records[0].stem
    of_ages = RunRecord(protocol="zero_shot", probe="age_small", rows=rows)
    assert taxonomy_items(of_ages, RunContext()) is None


def test_wordnet_is_opened_once_and_named_where_it_is_not_there(tmp_path: Path) -> None:
    context = RunContext(paths={WORDNET: str(write_wordnet(tmp_path))})
    found = wordnet_of(context)
    assert wordnet_of(context) is found
    assert found.edges("poodle")["animal"] == 3  # dog, mammal, animal
    with pytest.raises(FileNotFoundError, match="nowhere"):
        wordnet_of(RunContext(paths={WORDNET: str(tmp_path / "nowhere")}))
